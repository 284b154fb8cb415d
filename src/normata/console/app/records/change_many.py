"""Changing the same fields of all selected records: which fields, a preview of what changes, and the undo."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import Fields, Refusal
from normata.console.app.notes import FINISHED, changed_notice
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.approval import hidden_fields
from normata.console.app.records.editing import asks_to_find, sent_form, with_faults
from normata.console.app.records.forms import Entry, read, typed_entry
from normata.console.app.records.kinds import Kind, kind_names, kind_of, label, title_of
from normata.console.app.records.layout import form_layout, is_seldom
from normata.console.app.records.recurrence import following_words
from normata.console.app.records.references import choices_of, names_of
from normata.console.app.records.undo import joined, split, without_selection
from normata.console.filters import zone_name
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.records.fields import Field, offered_values

_RECORD = re.compile(r"records/(\d+)(?:/(.+))?")  # where a fault of a record is
_VALUES = "values/"
_MOST_SHOWN = 20  # faults of records


async def change_many(page_request: OrganizationRequest) -> Response:
    """Change fields of the selected records: ``step`` says whether they are chosen, previewed, changed or undone.

    ``assign`` changes the responsible member alone, at once: it is a single choice, and can be undone.
    """
    kind, form = kind_of(page_request), await sent_form(page_request)
    if form.get("step") == "undo":
        return await _undo(page_request, kind, form)
    if form.get("step") == "assign":
        responsible = responsible_of(page_request, kind)
        if responsible is None or not form.get(responsible.name):
            return page_request.back(form, page_request.path("records", kind.path), "nobody_chosen")
        form = Fields([*form.pairs, ("change", responsible.name), ("step", "do")])
    named = [split(value) for value in dict.fromkeys(form.all("selected"))]
    ids = [record_id for path, record_id in named if path == kind.path]
    if not ids:
        return page_request.back(form, page_request.path("records", kind.path), "no_record_selected")
    entries = [_entry(field, form) for field in many_fields(page_request, kind)]
    if form.get("step") not in ("preview", "do", "enter") or asks_to_find(form):
        return await _form_page(page_request, kind, form, ids, entries)
    return await _preview_or_do(page_request, kind, form, ids, entries)


async def _preview_or_do(
    page_request: OrganizationRequest, kind: Kind, form: Fields, ids: Sequence[str], entries: Sequence[Entry]
) -> Response:
    chosen = [entry for entry in entries if entry.field.name in form.all("change")]
    if not chosen:
        refusal = Refusal(400, "validation", text("record.many.no_field"), text("record.many.choose_field"))
        return await _form_page(page_request, kind, form, ids, entries, refusal=refusal)
    entered = read(chosen, form.get("zone"), dict.fromkeys(entry.field.name for entry in chosen))
    body = {"records": [{"kind": kind.path, "id": one} for one in ids], "values": entered.values}
    is_done = form.get("step") == "do"
    if is_done or entered.faults:
        outcome = await page_request.change("changeRecords", body=body, checks_only=bool(entered.faults))
    else:
        outcome = await page_request.preview("changeRecords", [], body=body)
    refused = with_faults(outcome.refusal, {f"{_VALUES}{name}": why for name, why in entered.faults.items()})
    if refused is not None:
        return await _form_page(page_request, kind, form, ids, entries, refusal=refused)
    if is_done:
        answer = outcome.answer
        purpose = FINISHED if form.get("purpose") == FINISHED else ""
        change_id, count = answer["changeId"], answer["changed"]
        following = await following_words(page_request, kind, ids[0]) if purpose and len(ids) == 1 else ""
        note = {"done": purpose, "following": following}
        notice = changed_notice(page_request, kind.path, change_id, count, **note) if change_id else None
        done = "" if notice else "record_unchanged"
        return page_request.back(without_selection(form), page_request.path("records", kind.path), done, notice)
    return await _preview_page(page_request, kind, form, [entry.field for entry in chosen], outcome.answer[0])


def responsible_of(page_request: OrganizationRequest, kind: Kind) -> Field | None:
    """The field with the responsible member, whom the reader can assign many records to; null if there is none."""
    return next((field for field in many_fields(page_request, kind) if field.is_responsible), None)


def many_fields(page_request: OrganizationRequest, kind: Kind) -> list[Field]:
    """The fields of many records that the reader can change, those that matter first: no slug, and no documents."""
    layout = form_layout(kind, hidden=hidden_fields(page_request, kind.path, None))
    fields = [*layout.chosen, *layout.written, *layout.rest, *layout.seldom]
    return [field for field in fields if field.name != "slug" and field.sort != "document"]


def _entry(field: Field, form: Fields) -> Entry:
    if field.sort == "flag":
        return Entry(field, "true" if form.get(field.name) == "true" else "")
    return typed_entry(field, form) or Entry(field, "")


async def _undo(page_request: OrganizationRequest, kind: Kind, form: Fields) -> Response:
    """Give the records of one change their earlier values again."""
    outcome = await page_request.change("undoRecordChanges", body={"changeId": form.get("changed")})
    refusal = outcome.refusal
    if refusal is not None and refusal.code != "nothing_to_undo":
        raise InvalidRequest(f"{text('record.many.no_undo')} {refusal.detail}")
    done = "changes_undone" if refusal is None else "no_change_to_undo"
    return page_request.back(form, page_request.path("records", kind.path), done)


async def _form_page(
    page_request: OrganizationRequest,
    kind: Kind,
    form: Fields,
    ids: Sequence[str],
    entries: Sequence[Entry],
    *,
    refusal: Refusal | None = None,
) -> Response:
    references = [entry.field for entry in entries if entry.field.target]
    find = {field.name: form.get(f"find.{field.name}")[:200] for field in references}
    chosen = {entry.field.name: entry.shown for entry in entries}
    faults = dict(refusal.faults) if refusal else {}
    at_fields = {name.removeprefix(_VALUES): why for name, why in faults.items() if name.startswith(_VALUES)}
    at_records = list(_faults_of_records(faults, ids))
    ticked = {*form.all("change"), *at_fields}
    first = {entry.field.name for entry in entries if not _is_further(kind, entry.field)}
    return page_request.page(
        "app/record_change.html",
        status=refusal.status if refusal else 200,
        kind=kind_names(kind),
        selected=[joined(kind.path, one) for one in ids],
        entries=[entry for entry in entries if entry.field.name in first],
        rest=[entry for entry in entries if entry.field.name not in first],
        opens_rest=bool((ticked | {name for name, words in find.items() if words}) - first),
        ticked=ticked,
        label=label,
        offered=partial(offered_values, kind, record=None),
        choices=await choices_of(page_request, references, chosen, find),
        zone=form.get("zone") or zone_name(),
        refusal=refusal,
        at_fields=at_fields,
        at_records=at_records[:_MOST_SHOWN],
        more_at_records=max(0, len(at_records) - _MOST_SHOWN),
        names=await names_of(page_request, ((kind.path, one) for one, _, _ in at_records[:_MOST_SHOWN])),
        return_to=form.get("return_to"),
        is_again=form.has("again"),
    )


def _is_further(kind: Kind, field: Field) -> bool:
    """Whether a field is folded: what few change, and what each record has of its own."""
    layout = form_layout(kind)
    return is_seldom(field) or field in layout.rest or field.is_title


def _faults_of_records(faults: Mapping[str, str], ids: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """What is wrong with records: the id of each, what the field is called, and why."""
    for name, why in faults.items():
        found = _RECORD.fullmatch(name)
        if found is not None and int(found[1]) < len(ids):
            yield ids[int(found[1])], label(found[2]) if found[2] else "", why


async def _preview_page(
    page_request: OrganizationRequest, kind: Kind, form: Fields, fields: Sequence[Field], answer: Mapping[str, Any]
) -> Response:
    records = answer["records"]
    named = (
        (field.target, values.get(field.name))
        for one in records
        for values in (one["before"], one["after"])
        for field in fields
        if field.target
    )
    return page_request.page(
        "app/record_changes.html",
        kind=kind_names(kind),
        title_label=label(title_of(kind)),
        fields=[(field, label(field)) for field in fields],
        records=sorted(records, key=lambda one: not one["after"]),
        changed=answer["changed"],
        unchanged=answer["unchanged"],
        names=await names_of(page_request, named),
        pairs=[pair for pair in form.pairs if pair[0] != "step"],
        return_to=form.get("return_to"),
    )
