"""The archive: what is in it, and archiving and restoring of one record or of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.responses import Response

from normata.console.app.api_calls import Fields, Outcome, Query, Question, Refusal
from normata.console.app.organization_request import OrganizationVisit
from normata.console.app.records.kinds import sort_of_kind
from normata.console.app.records.references import Called, names_of
from normata.console.app.records.undo import (
    RecordName,
    Undoing,
    joined,
    split,
    told_archived,
    told_restored,
)
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.errors import RoleTooSmall
from normata.records.archive.queries import KINDS

_FILTERS = ("kind", "userId", "from", "to", "search", "archiveId")
_ORDER = ("page", "limit")
_PLACE = "records/"
_STEPS = ("archive", "restore")


class Refused(NamedTuple):
    """A record that nothing was done to: what it is called, where that is known, and why."""

    record: RecordName
    name: Called | None
    reason: str


async def show(visit: OrganizationVisit) -> Response:
    """What is archived: who did it, when and why, and what stands in the way of a restore."""
    sent = visit.request.query_params
    wanted = {name: sent.getlist(name) for name in (*_FILTERS, *_ORDER)}
    undoing = Undoing(visit)
    archive, people, *told = await visit.ask(
        Question("listArchive", wanted),
        Question("listNames", {"kind": "users", "archived": "include"}),
        *undoing.questions,
    )
    chosen = {name: sent.get(name, "") for name in wanted}
    return visit.page(
        "app/archive.html",
        archive=archive,
        sorts={path: sort_of_kind(kind) for path, kind in KINDS.items()},
        people=[(one["id"], one["label"]) for one in people["items"]],
        chosen=chosen,
        is_filtered=any(chosen[name] for name in _FILTERS),
        selected=set(sent.getlist("selected")),
        undo=undoing.note(told),
        can_edit=visit.may("editor"),
    )


async def archive_or_restore(visit: OrganizationVisit) -> Response:
    """Archive or restore what a form names: one record, those selected, or all that one action has archived.

    ``step`` says which; ``mode`` is ``each`` where some may be refused and the others done.
    """
    form = await visit.fields()
    if not visit.may("editor"):
        raise RoleTooSmall(text("record.editors_only"))
    if form.get("step") not in _STEPS:
        raise InvalidRequest(text("problem.form"))
    records, archive_id = _named(form), form.get("archiveId")
    otherwise = visit.path("archive")
    if not records and not archive_id:
        return visit.back(form, otherwise, "no_record_selected")
    is_restore = form.get("step") == "restore"
    mode = {"mode": "each"} if form.get("mode") == "each" else {}
    if is_restore:
        outcome = await visit.change("restoreRecords", body={**_meant(records, archive_id), **mode})
    else:
        reason = form.get("reason") or None
        outcome = await visit.change("archiveRecords", body={**_meant(records), "reason": reason, **mode})
    if outcome.refusal is not None:
        return await _refused(visit, form, records, outcome.refusal)
    return visit.back(_without_selection(form), otherwise, told=_told(visit, outcome))


def _named(form: Fields) -> Sequence[RecordName]:
    """The records that a form names: the one of the button that was pressed, or else those selected."""
    return [split(value) for value in dict.fromkeys(form.all("only") or form.all("selected"))]


def _without_selection(form: Fields) -> Fields:
    """The form, to lead back to a page on which nothing is selected any more: script keeps that in its address."""
    path, _, query = form.get("return_to").partition("?")
    kept = urlencode([pair for pair in parse_qsl(query) if pair[0] != "selected"])
    return Fields([("return_to", f"{path}?{kept}" if kept else path)])


def _meant(records: Sequence[RecordName], archive_id: str = "") -> Mapping[str, Any]:
    if archive_id and not records:
        return {"archiveId": archive_id}
    return {"records": [{"kind": kind, "id": record_id} for kind, record_id in records]}


def _told(visit: OrganizationVisit, outcome: Outcome) -> Query:
    """What the address has afterwards."""
    answer = outcome.answer
    if not answer["done"]:
        return {"done": "no_record_done"}
    if answer["archiveId"] is not None:
        return told_archived(visit, answer["archiveId"])
    return told_restored(visit, [(one["kind"], one["id"]) for one in answer["records"] if one["done"]])


async def _refused(visit: OrganizationVisit, form: Fields, records: Sequence[RecordName], refusal: Refusal) -> Response:
    """The page that says which records were refused, and why; the others can be done then."""
    archive_id = form.get("archiveId")
    if archive_id and not records:
        left = await visit.ask_one(Question("listArchive", {"archiveId": archive_id}))
        stuck = [one for one in left["items"] if one["obstacle"]]
        by_record = [((one["kind"], one["id"]), text(f"record.obstacle.{one['obstacle']['code']}")) for one in stuck]
        others = left["total"] - len(stuck)
    else:
        by_record = [
            (records[int(place)], message)
            for place, message in ((name.removeprefix(_PLACE), message) for name, message in refusal.faults.items())
            if place.isdecimal() and int(place) < len(records)
        ]
        others = len(records) - len(by_record)
    names = await names_of(visit, (record for record, _ in by_record if record[0] in KINDS))
    return visit.page(
        "app/record_refused.html",
        status=refusal.status,
        refusal=refusal,
        refused=[Refused(record, names.get(record), message) for record, message in by_record],
        others=others if by_record else 0,
        selected=[joined(*record) for record in records],
        step=form.get("step"),
        archive_id=archive_id,
        reason=form.get("reason"),
        return_to=form.get("return_to"),
    )
