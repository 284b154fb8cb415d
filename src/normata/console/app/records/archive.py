"""The archive: its list, and archiving and restoring one record or many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Outcome, Query, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.kinds import kind_names
from normata.console.app.records.references import Called, names_of
from normata.console.app.records.undo import (
    RecordName,
    UndoQueries,
    archived_notice,
    joined,
    restored_notice,
    split,
    without_selection,
)
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.errors import InsufficientRole
from normata.records.archive.queries import KINDS

_FILTERS = ("kind", "userId", "from", "to", "search", "archiveId")
_LABELS = {
    "kind": "record.kind",
    "userId": "record.archived_by_whom",
    "from": "record.from",
    "to": "record.to",
}
_ORDER = ("page", "cursor", "limit")
_PLACE = "records/"
_STEPS = ("archive", "restore")


class Refused(NamedTuple):
    """A record that was not archived or restored: its name if known, and why."""

    record: RecordName
    name: Called | None
    reason: str


async def show(page_request: OrganizationRequest) -> Response:
    """The archived records: who archived each, when and why, and what prevents a restore."""
    sent = page_request.request.query_params
    wanted = {name: sent.getlist(name) for name in (*_FILTERS, *_ORDER)}
    undo_queries = UndoQueries(page_request)
    archive, people, *notice = await page_request.ask(
        ApiQuery("listArchive", wanted),
        ApiQuery("listNames", {"kind": "users", "archived": "include"}),
        *undo_queries.api_queries,
    )
    chosen = {name: sent.get(name, "") for name in wanted}
    filled = [(name, value) for name in _FILTERS for value in wanted[name] if value]
    names = [(one["id"], one["label"]) for one in people["items"]]
    return page_request.page(
        "app/archive.html",
        archive=archive,
        kinds=_kinds(),
        chips=_chips(page_request, filled, {"kind": dict(_kinds()), "userId": dict(names)}),
        keeps=[pair for pair in filled if pair[0] != "search"],
        keeps_search=[pair for pair in filled if pair[0] in ("search", "archiveId")],
        sorts={path: kind_names(kind) for path, kind in KINDS.items()},
        people=names,
        chosen=chosen,
        is_filtered=bool(filled),
        selected=set(sent.getlist("selected")),
        undo=undo_queries.note(notice),
        can_edit=page_request.may("editor"),
    )


def _kinds() -> list[tuple[str, str]]:
    return [(path, kind.plural().capitalize()) for path, kind in KINDS.items()]


def _chips(
    page_request: OrganizationRequest, filled: Sequence[tuple[str, str]], called: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, str, str]]:
    """The active filters: the label, the values as words, and the address without the filter."""
    values: dict[str, list[str]] = {}
    for name, value in filled:
        if name in _LABELS:
            values.setdefault(name, []).append(called.get(name, {}).get(value, value[:10]))
    return [
        (text(_LABELS[name]), ", ".join(found), page_request.link(**{name: None, "page": None}))
        for name, found in values.items()
    ]


async def archive_or_restore(page_request: OrganizationRequest) -> Response:
    """Archive or restore the records that a form names: one, those selected, or all of one archive action.

    ``step`` says which. With ``mode`` ``each``, those that are not refused are done; else all or none.
    """
    form = await page_request.fields()
    if not page_request.may("editor"):
        raise InsufficientRole(text("record.editors_only"))
    if form.get("step") not in _STEPS:
        raise InvalidRequest(text("problem.form"))
    records, archive_id = _named(form), form.get("archiveId")
    otherwise = page_request.path("archive")
    if not records and not archive_id:
        return page_request.back(form, otherwise, "no_record_selected")
    is_restore = form.get("step") == "restore"
    mode = {"mode": "each"} if form.get("mode") == "each" else {}
    if is_restore:
        outcome = await page_request.change("restoreRecords", body={**_selected_records(records, archive_id), **mode})
    else:
        reason = form.get("reason") or None
        outcome = await page_request.change(
            "archiveRecords", body={**_selected_records(records), "reason": reason, **mode}
        )
    if outcome.refusal is not None:
        return await _refused(page_request, form, records, outcome.refusal)
    origin = form if form.has("only") else without_selection(form)
    return page_request.back(origin, otherwise, notice=_notice(page_request, outcome))


def _named(form: Fields) -> Sequence[RecordName]:
    """The records that a form names: the one whose button was pressed, or else those selected."""
    return [split(value) for value in dict.fromkeys(form.all("only") or form.all("selected"))]


def _selected_records(records: Sequence[RecordName], archive_id: str = "") -> Mapping[str, Any]:
    if archive_id and not records:
        return {"archiveId": archive_id}
    return {"records": [{"kind": kind, "id": record_id} for kind, record_id in records]}


def _notice(page_request: OrganizationRequest, outcome: Outcome) -> Query:
    """The parameters of the note after an archiving or a restore."""
    answer = outcome.answer
    if not answer["done"]:
        return {"done": "no_record_done"}
    if answer["archiveId"] is not None:
        return archived_notice(page_request, answer["archiveId"])
    return restored_notice(page_request, [(one["kind"], one["id"]) for one in answer["records"] if one["done"]])


async def _refused(
    page_request: OrganizationRequest, form: Fields, records: Sequence[RecordName], refusal: Refusal
) -> Response:
    """The page that lists the refused records with their reasons, and offers to do the others."""
    archive_id = form.get("archiveId")
    if archive_id and not records:
        left = await page_request.ask_one(ApiQuery("listArchive", {"archiveId": archive_id}))
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
    names = await names_of(page_request, (record for record, _ in by_record if record[0] in KINDS))
    return page_request.page(
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
