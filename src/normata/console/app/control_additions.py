"""What is added to a control in one step, with its link: a task, a finding, evidence, a policy or a risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Following, Refusal
from normata.console.app.controls import ADDITIONS
from normata.console.app.links import link_between
from normata.console.app.notes import added_notice
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.approval import hidden_fields
from normata.console.app.records.attached import Uploaded, has_files, upload
from normata.console.app.records.editing import asks_to_find, new_entry, sent_form, with_faults
from normata.console.app.records.forms import Entry, Started, form_fields, read, typed_entry
from normata.console.app.records.kinds import Kind, kind_names, kind_of, label, making
from normata.console.app.records.layout import by_sort, first_of
from normata.console.app.records.references import choice_of, choices_of
from normata.console.filters import zone_name
from normata.console.texts import text
from normata.errors import NotFound
from normata.frameworks.model import Control
from normata.records.assurance import Evidence, Risk
from normata.records.fields import Field, offered_values
from normata.records.kinds import Finding, Policy, Task

_CHOSEN: tuple[Kind, ...] = (Evidence, Policy, Risk)  # of which there may be one already
_FIELDS: Mapping[str, tuple[str, ...]] = {
    Evidence.path: ("name", "description", "url", "validUntil", "ownerId"),
    Policy.path: ("title", "approverId", "nextReviewAt"),
    Risk.path: ("name", "description", "ownerId", "inherentProbability", "inherentImpact"),
}


async def show(page_request: OrganizationRequest) -> Response:
    """The form of what is added. Parameters of the address fill fields in."""
    kind = _kind_of(page_request)
    entries = [new_entry(field, page_request.query.get(field.name)) for field in _fields(page_request, kind)]
    return await _page(page_request, kind, entries, Started(key=page_request.new_key(), zone=zone_name()))


async def add(page_request: OrganizationRequest) -> Response:
    """Create a record and link it, or link one that there is: both or neither; or take that back, as ``step`` says."""
    kind, control_id = _kind_of(page_request), page_request.param("id")
    uploaded = await upload(page_request) if has_files(page_request) else None
    form = uploaded.fields if uploaded else await sent_form(page_request)
    if form.get("step") == "undo":
        return await _undo(page_request, kind, form)
    entries = [_entry(field, form) for field in _fields(page_request, kind)]
    zone = form.get("zone") or zone_name()
    started = Started(key=form.get("key") or page_request.new_key(), zone=zone)
    if asks_to_find(form):
        return await _page(page_request, kind, entries, started, form=form)
    if form.has("other"):  # the form of what there is already
        return await _link_found(page_request, kind, entries, started, form)
    page = page_request.path("controls", control_id)
    entered = read(entries, zone)
    values = {**entered.values, **await _values(page_request, kind, control_id, entered.values, uploaded)}
    refusal = uploaded.outcome.refusal if uploaded else None
    if refusal is None:
        created = Following("createLinks", lambda answers: {"links": [_link(control_id, kind, answers[0]["id"])]})
        outcome = await page_request.change(
            making(kind), body=values, key=started.key, checks_only=bool(entered.faults), then=(created,)
        )
        refusal = with_faults(outcome.refusal, entered.faults)
    if refusal is not None:
        started = Started(key=page_request.new_key(), zone=zone)
        return await _page(page_request, kind, entries, started, form=form, refusal=refusal)
    record, linked = outcome.answer
    link_id = linked["links"][0]["link"]["id"]
    return page_request.back(
        form, page, notice=added_notice(page_request, control_id, kind.path, link_id, record["id"])
    )


async def _link_found(
    page_request: OrganizationRequest, kind: Kind, entries: Sequence[Entry], started: Started, form: Fields
) -> Response:
    """Link the record that is chosen."""
    control_id = page_request.param("id")
    if not form.get("other"):
        refusal = with_faults(None, {kind.path: text("control.add.none_chosen")})
    else:
        link = _link(control_id, kind, form.get("other"))
        outcome = await page_request.change("createLinks", body={"links": [link]})
        refusal = outcome.refusal
    if refusal is not None:
        return await _page(page_request, kind, entries, started, form=form, refusal=refusal)
    made = outcome.answer["links"][0]
    notice = added_notice(page_request, control_id, kind.path, made["link"]["id"]) if made["created"] else None
    return page_request.back(form, page_request.path("controls", control_id), "" if notice else "linked_before", notice)


async def _undo(page_request: OrganizationRequest, kind: Kind, form: Fields) -> Response:
    """Remove the link again, and archive the record if it was new; both or neither."""
    link_id, _, record_id = form.get("added").partition("\t")
    archiving = Following("archiveRecords", lambda _: {"records": [{"kind": kind.path, "id": record_id}]})
    try:
        outcome = await page_request.change("deleteLink", row_id=link_id, then=(archiving,) if record_id else ())
        is_done = outcome.refusal is None
    except NotFound:  # somebody has removed the link
        is_done = False
    done = "addition_undone" if is_done else "no_addition_to_undo"
    return page_request.back(form, page_request.path("controls", page_request.param("id")), done)


def _kind_of(page_request: OrganizationRequest) -> Kind:
    """The kind in the address. Raises NotFound if nothing of it is added here."""
    kind = kind_of(page_request)
    if kind.path not in ADDITIONS:
        raise NotFound
    return kind


def _fields(page_request: OrganizationRequest, kind: Kind) -> list[Field]:
    """The fields of the form that the reader can fill in: at most five, without the control."""
    hidden = hidden_fields(page_request, kind.path, None)
    fields = [field for field in form_fields(kind) if field.name not in hidden]
    if kind.path in _FIELDS:
        return [field for name in _FIELDS[kind.path] for field in fields if field.name == name]
    return sorted(
        (field for field in by_sort(first_of(kind)) if field.target != Control.array),
        key=lambda field: not field.is_title,
    )


def _entry(field: Field, form: Fields) -> Entry:
    return typed_entry(field, form) or new_entry(field, "")


def _link(control_id: str, kind: Kind, record_id: str) -> dict[str, Any]:
    return link_between((Control.array, control_id), (kind.path, record_id))


async def _values(
    page_request: OrganizationRequest,
    kind: Kind,
    control_id: str,
    typed: Mapping[str, Any],
    uploaded: Uploaded | None,
) -> dict[str, Any]:
    """The values that nobody types: the control or its assessment, and what follows from the files of evidence."""
    if kind is Finding:
        return {"controlId": control_id}
    if kind is Task:
        why = await page_request.ask_one(ApiQuery("explainCoverage", id=control_id))
        return {"controlCoverageId": why["assessment"]["id"]} if why["assessment"] else {}
    if kind is not Evidence:
        return {}
    if uploaded is None or not uploaded.ids:
        return {"type": "ADDRESS" if typed.get("url") else "NOTE"}
    name = typed.get("name") or uploaded.names[0]
    return {"name": name, "type": "FILE", "fileIds": list(uploaded.ids)}


async def _page(
    page_request: OrganizationRequest,
    kind: Kind,
    entries: Sequence[Entry],
    started: Started,
    *,
    form: Fields | None = None,
    refusal: Refusal | None = None,
) -> Response:
    control = await page_request.ask_one(ApiQuery("getControl", id=page_request.param("id")))
    references = [entry.field for entry in entries if entry.field.target]
    find = {field.name: form.get(f"find.{field.name}")[:200] for field in references} if form else {}
    chosen = {entry.field.name: entry.shown for entry in entries}
    faults = (
        {name.rpartition("/")[2] if name.startswith("links/") else name: why for name, why in refusal.faults.items()}
        if refusal
        else {}
    )
    return page_request.page(
        "app/control_addition.html",
        status=refusal.status if refusal else 200,
        control=control,
        kind=kind_names(kind),
        entries=entries,
        choices=await choices_of(page_request, references, chosen, find),
        existing=await choice_of(page_request, kind.path, form.get("find.other")[:200] if form else "")
        if kind in _CHOSEN
        else None,
        other=form.get("other") if form else "",
        takes_files=kind is Evidence,
        started=started,
        label=label,
        offered=partial(offered_values, kind, record=None),
        refusal=refusal,
        faults=faults,
        return_to=(form or page_request.query).get("return_to", ""),
        is_again=bool(form and form.has("again")),
    )
