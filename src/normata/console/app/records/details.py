"""The page of a record: its fields, its references, the records that refer to it, and its history."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Refusal
from normata.console.app.comments import comments_of, comments_query
from normata.console.app.event_lines import UNSHOWN
from normata.console.app.links import happenings_of, links_of, links_query, named_in
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.approval import approval_of
from normata.console.app.records.audit_details import audit_progress
from normata.console.app.records.incident_view import incident_view
from normata.console.app.records.kinds import (
    Kind,
    KindNames,
    getting,
    kind_names,
    kind_of,
    label,
    listing,
    remembering,
    title_of,
)
from normata.console.app.records.layout import by_sort, is_seldom
from normata.console.app.records.linked_owners import Ownership, ownership_of
from normata.console.app.records.panel import marks_of_state
from normata.console.app.records.record_pictures import picture_of
from normata.console.app.records.recurrence import repeats_of
from normata.console.app.records.references import names_of
from normata.console.app.records.risk_details import entitlement_progress, review_progress, risk_details
from normata.console.app.records.undo import UndoQueries, joined
from normata.console.app.records.vendor_details import answers_for
from normata.console.differences import Piece, difference, difference_as_read
from normata.console.filters import action_words, as_json
from normata.console.markdown import markdown
from normata.console.texts import has_text, text
from normata.core.db.types import now
from normata.records.assurance import Risk
from normata.records.base import Restorable
from normata.records.closing import is_to_verify
from normata.records.fields import Field, fields_of, referring_to
from normata.records.finals import is_to_finalize
from normata.records.kinds import Finding, Incident, Policy, Record

_MAX_REFERRERS = "10"  # of each kind and field
_MAX_HISTORY = "20"
_SHORT = 5_000  # characters; rendering them takes a few milliseconds
_OURS = ("id", "organizationId", "archivedAt", "shortId")  # shown elsewhere on the page, or of no interest
_LONG = ("prose", "document")
_TIMES = frozenset({"createdAt", "updatedAt"})
_NOT_SHOWN = UNSHOWN | {"archivedAt"}  # fields of an event


class Referrers(NamedTuple):
    """A page of the records of a kind that refer to this one by one of their fields."""

    kind: KindNames
    field: str
    label: str
    page: Mapping[str, Any]
    title: str


class Change(NamedTuple):
    """A changed field: its value before, null if unknown, and after; ``pieces`` is the difference of long texts."""

    field: Field
    label: str
    before: Any
    after: Any
    pieces: Sequence[Piece]


class Facts(NamedTuple):
    """The short fields with a value: those of general interest, references, and those that few people need."""

    shown: Sequence[Field]
    referred: Sequence[Field]
    seldom: Sequence[Field]


async def show_one(
    page_request: OrganizationRequest, refusal: Refusal | None = None, kind: type[Restorable] | None = None
) -> Response:
    """Show a record, live or archived, of the kind of the address unless it is given; and what was refused of it."""
    kind, record_id = kind or kind_of(page_request), page_request.param("id")
    if refusal is not None:
        page_request.shows(page_request.path("records", kind.path, record_id))
    referring = referring_to(kind.path)
    undo_queries = UndoQueries(page_request)
    record, history, archive, links, comments, external_ids, *others = await page_request.ask(
        ApiQuery(getting(kind), id=record_id),
        ApiQuery(remembering(kind), {"limit": _MAX_HISTORY}, record_id),
        ApiQuery("listArchive", {"kind": kind.path, "recordId": record_id, "limit": "5"}),
        links_query(kind.path, record_id),
        comments_query(kind.path, record_id),
        ApiQuery("listExternalIds", {"kind": kind.path, "id": record_id}),
        *(
            ApiQuery(listing(one), {field.name: record_id, "archived": "include", "limit": _MAX_REFERRERS})
            for one, field in referring
        ),
        *undo_queries.api_queries,
    )
    fields = [field for field in fields_of(kind) if field.name not in _OURS and not field.is_title]
    filled = [field for field in fields if _has(record, field) and field.sort != "files"]
    texts = [field for field in filled if field.sort in _LONG]
    events = await _events(kind, history["items"])
    names = await names_of(page_request, _named(record, fields, events))
    ownership = await ownership_of(page_request, kind, record, links, to_choose=True)
    return page_request.page(
        "app/record.html",
        kind=kind_names(kind),
        record=record,
        me=joined(kind.path, record_id),
        title=record[title_of(kind).name],
        marks=marks_of_state(record, filled),
        whose=next((field for field in filled if field.is_responsible), None),
        ownership=ownership,
        picture=picture_of(kind, record),
        incident=await incident_view(page_request, record) if kind is Incident else None,
        has_texts=any(field.sort in _LONG for field in fields),
        due=next((field for field in filled if field.is_open(record)), None),
        facts=_facts(filled),
        texts=texts,
        written=await _written({field.name: record[field.name] for field in texts}),
        empty=[label(field) for field in fields if field.is_typed and not _has(record, field) and not is_seldom(field)],
        label=label,
        names=names,
        links=links_of(kind.path, record_id, links),
        comments=comments_of(page_request, kind.path, record_id, comments, is_live=record["archivedAt"] is None),
        external_ids=external_ids["items"],
        happenings=await happenings_of(
            page_request, kind.path, record_id, history["items"], {**names, **named_in(links)}
        ),
        archived=next(iter(archive["items"]), None),
        status=200 if refusal is None else refusal.status,
        refusal=refusal,
        files=await _files(page_request, record, fields),
        takes_files=any(field.sort == "files" for field in fields),
        referrers=[
            Referrers(kind_names(one), field.name, label(field), page, title_of(one).name)
            for (one, field), page in zip(referring, others, strict=False)
        ],
        history=history,
        events=events,
        did=did,
        undo=undo_queries.note(others[len(referring) :]),
        today=now(),
        can_edit=page_request.may("editor"),
        approval=await approval_of(page_request, record) if kind is Policy else None,
        risk=await risk_details(page_request, kind, record_id),
        repeats=await repeats_of(page_request, kind, record),
        review=await review_progress(page_request, kind, record_id),
        answered=await answers_for(page_request, kind, record),
        entitlements=await entitlement_progress(page_request, kind, record_id),
        checklist=await audit_progress(page_request, kind, record_id),
        can_accept=kind is Risk and await _can_accept(page_request, record),
        can_finalize=kind is Record and page_request.may("editor") and _is_to_finalize(record),
        can_verify=kind is Finding and await _can_verify(page_request, record, ownership),
    )


def _is_to_verify(finding: Mapping[str, Any]) -> bool:
    return finding["archivedAt"] is None and is_to_verify(finding["status"], finding["verifiedAt"])


def _is_to_finalize(record: Mapping[str, Any]) -> bool:
    return record["archivedAt"] is None and is_to_finalize(record["status"], record["finalizedAt"])


async def _can_accept(page_request: OrganizationRequest, risk: Mapping[str, Any]) -> bool:
    """Whether the member owns a live risk, and has not accepted what remains of it."""
    is_rated = risk["residualProbability"] is not None and risk["residualImpact"] is not None
    if risk["archivedAt"] is not None or not is_rated or risk["ownerId"] is None or risk["acceptedAt"] is not None:
        return False
    own = await page_request.ask_one(ApiQuery("getOrganization", id=page_request.membership.organization_id))
    return bool(own["memberId"] == risk["ownerId"])


async def _can_verify(
    page_request: OrganizationRequest, finding: Mapping[str, Any], ownership: Ownership | None
) -> bool:
    """Whether the member can verify a finding: where somebody else has to, no owner can."""
    if not (page_request.may("editor") and _is_to_verify(finding)):
        return False
    own = await page_request.ask_one(ApiQuery("getOrganization", id=page_request.membership.organization_id))
    owners = {one.member.id for one in ownership.owners} if ownership else set[str]()
    return not (own["verifiesFindings"] and own["memberId"] in owners)


async def _files(
    page_request: OrganizationRequest, record: Mapping[str, Any], fields: Sequence[Field]
) -> Sequence[Mapping[str, Any]]:
    """The files of a record, in its order."""
    ids = [one for field in fields if field.sort == "files" for one in record[field.name]]
    return await page_request.ask(*(ApiQuery("getFile", id=one) for one in ids)) if ids else ()


async def _written(texts: Mapping[str, Any]) -> Mapping[str, Markup]:
    """The markup of texts by field. Long ones are rendered on a thread, so that other requests do not wait."""
    found = {name: written for name, written in texts.items() if isinstance(written, str)}

    def render() -> Mapping[str, Markup]:
        return {name: markdown(written) for name, written in found.items()}

    return render() if sum(map(len, found.values())) <= _SHORT else await asyncio.to_thread(render)


def _facts(fields: Sequence[Field]) -> Facts:
    short = [field for field in by_sort(fields) if field.sort not in _LONG]
    seldom = [field for field in short if is_seldom(field) or field.name in _TIMES]
    shown = [field for field in short if field not in seldom]
    referred = [field for field in shown if field.target and field.target not in ("memberships", "users")]
    return Facts([field for field in shown if field not in referred], referred, seldom)


def _has(record: Mapping[str, Any], field: Field) -> bool:
    return record[field.name] is not None and record[field.name] != ""


def _named(
    record: Mapping[str, Any], fields: Sequence[Field], events: Sequence[tuple[Mapping[str, Any], Sequence[Change]]]
) -> Iterator[tuple[str, str | None]]:
    """All rows that the page names, as pairs of kind and id: references now and before, and who changed them."""
    for field in fields:
        yield field.may_name, record[field.name] if field.may_name else None
    for event, changes in events:
        yield "users", event["userId"]
        for change in changes:
            for value in (change.before, change.after) if change.field.may_name else ():
                yield change.field.may_name, value if isinstance(value, str) else None


async def _events(kind: Kind, events: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Sequence[Change]]]:
    """Events with their changes. Long texts are compared on a thread, so that other requests do not wait."""
    found = [(event, list(_changes(kind, event))) for event in events]
    long = [change for _, changes in found for change in changes if change.field.sort in _LONG]

    def compare() -> list[tuple[Mapping[str, Any], Sequence[Change]]]:
        return [(event, [_with_pieces(change) for change in changes]) for event, changes in found]

    return await asyncio.to_thread(compare) if long else [(event, changes) for event, changes in found]


def _with_pieces(change: Change) -> Change:
    if change.field.sort not in _LONG:
        return change
    is_written = not isinstance(change.after, dict | list) and not isinstance(change.before, dict | list)
    compare = difference_as_read if is_written else difference
    return change._replace(pieces=compare(_as_text(change.before), _as_text(change.after)))


def _as_text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else as_json(value)


def _changes(kind: Kind, event: Mapping[str, Any]) -> Iterator[Change]:
    """The changes of an event; none if it created the record, or is about a link."""
    if event["before"] is None or event["after"] is None or event["kind"] != kind.path:
        return
    for field in fields_of(kind):
        if field.name in event["after"] and field.name not in _NOT_SHOWN:
            yield Change(field, label(field), event["before"].get(field.name), event["after"][field.name], ())


def did(action: str) -> str:
    """An action as a verb in the past tense."""
    return text(f"did.{action}") if has_text(f"did.{action}") else action_words(action).lower()
