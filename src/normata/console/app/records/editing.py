"""Creating and changing records with forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.approval import hidden_fields
from normata.console.app.records.forms import (
    Entry,
    Started,
    entry_of,
    form_fields,
    is_marked,
    known_marks,
    read,
    started_with,
    typed_entry,
)
from normata.console.app.records.kinds import Kind, changing, getting, kind_names, kind_of, label, making, title_of
from normata.console.app.records.layout import form_layout
from normata.console.app.records.references import choices_of
from normata.console.app.records.risk_details import entitlement_progress
from normata.console.filters import zone_name
from normata.console.texts import text
from normata.records.fields import Field, offered_values
from normata.records.writing import MAX_DOCUMENT_BYTES

# URL encoding takes up to three bytes for one.
_MAX_FORM = 3 * MAX_DOCUMENT_BYTES


async def show_new(page_request: OrganizationRequest) -> Response:
    """Show the form of a new record. Parameters of the address fill fields in: ``?policyId=…``."""
    kind = kind_of(page_request)
    fields = await _fields(page_request, kind)
    entries = [new_entry(field, page_request.query.get(field.name)) for field in fields]
    return await _page(page_request, kind, entries, Started(key=page_request.new_key(), zone=zone_name()))


async def make(page_request: OrganizationRequest) -> Response:
    """Create a record, once, however often the form is sent."""
    kind, form = kind_of(page_request), await sent_form(page_request)
    entries = [typed_entry(field, form) or new_entry(field, "") for field in await _fields(page_request, kind)]
    zone = form.get("zone")
    started = Started(key=form.get("key") or page_request.new_key(), zone=zone)
    if asks_to_find(form):
        return await _page(page_request, kind, entries, started, form=form)
    entered = read(entries, zone)
    outcome = await page_request.change(
        making(kind), body=entered.values, key=started.key, checks_only=bool(entered.faults)
    )
    refusal = with_faults(outcome.refusal, entered.faults)
    if refusal is not None:
        started = Started(key=page_request.new_key(), zone=zone)
        return await _page(page_request, kind, entries, started, form=form, refusal=refusal)
    return page_request.go(page_request.path("records", kind.path, outcome.answer["id"]), "record_made")


async def show_edit(page_request: OrganizationRequest) -> Response:
    """Show the form of a record. An archived one is read-only, so this redirects to its page, which says so."""
    kind, record_id = kind_of(page_request), page_request.param("id")
    record = await page_request.ask_one(ApiQuery(getting(kind), id=record_id))
    if record["archivedAt"] is not None:
        return page_request.go(page_request.path("records", kind.path, record_id))
    filled = _filled(await _fields(page_request, kind, record), record, zone_name())
    return await _page(page_request, kind, *filled, record=record)


async def change(page_request: OrganizationRequest) -> Response:
    """Change what the person has changed of a record, unless somebody else was faster: then say what they did."""
    kind, record_id, form = kind_of(page_request), page_request.param("id"), await sent_form(page_request)
    api_query = ApiQuery(getting(kind), id=record_id)
    record = await page_request.ask_one(api_query)
    marks, zone = known_marks(form), form.get("zone")
    started = Started(form.get("tag"), form.get("marks"), zone=zone)
    fields = await _fields(page_request, kind, record)
    typed = [entry for field in fields if (entry := typed_entry(field, form)) is not None]
    changed = [entry for entry in typed if not is_marked(entry, marks)]
    here = {field.name: entry_of(field, record[field.name], zone) for field in fields}
    here |= {entry.field.name: entry for entry in typed}
    if asks_to_find(form):
        return await _page(page_request, kind, list(here.values()), started, record=record, form=form)
    entered = read(changed, zone, record)
    outcome = await page_request.change(
        changing(kind), row_id=record_id, body=entered.values, if_match=started.tag, checks_only=bool(entered.faults)
    )
    refusal = with_faults(outcome.refusal, entered.faults)
    if refusal is None:
        done = "record_saved" if entered.values else "record_unchanged"
        return page_request.back(form, page_request.path("records", kind.path, record_id), done)
    if refusal.code != "precondition_failed":
        return await _page(page_request, kind, list(here.values()), started, record=record, form=form, refusal=refusal)
    # The form gets the values of others, except where the person has changed the same field: it then shows both.
    record = await page_request.ask_one(api_query)
    theirs, started = _filled(await _fields(page_request, kind, record), record, zone)
    mine = {entry.field.name for entry in changed}
    entries = [here[entry.field.name] if entry.field.name in mine else entry for entry in theirs]
    meanwhile = [entry for entry in theirs if entry.field.name in marks and not is_marked(entry, marks)]
    refusal = replace(refusal, title=text("record.not_saved"), detail=text("app.changed_meanwhile"))
    return await _page(
        page_request, kind, entries, started, record=record, form=form, refusal=refusal, meanwhile=meanwhile
    )


async def _page(
    page_request: OrganizationRequest,
    kind: Kind,
    entries: Sequence[Entry],
    started: Started,
    *,
    record: Mapping[str, Any] | None = None,
    form: Fields | None = None,
    refusal: Refusal | None = None,
    meanwhile: Sequence[Entry] = (),
) -> Response:
    references = [entry.field for entry in entries if entry.field.target]
    find = {field.name: form.get(f"find.{field.name}")[:200] for field in references} if form else {}
    chosen = {entry.field.name: entry.shown for entry in entries}
    theirs = {entry.field.name: entry for entry in meanwhile}
    by_name = {entry.field.name: entry for entry in entries}
    faults = dict(refusal.faults) if refusal else {}
    at_fields = {name.partition("/")[0]: message for name, message in reversed(faults.items())}
    named = [name for name in by_name if record is None and name in page_request.query]
    hidden = {field.name for field in form_fields(kind)} - by_name.keys()
    layout = form_layout(kind, named, hidden)
    # Unfold the sections with faults, changes of others and searches.
    to_be_seen = {*at_fields, *theirs, *(name for name, words in find.items() if words)}
    return page_request.page(
        "app/record_form.html",
        status=refusal.status if refusal else 200,
        kind=kind_names(kind),
        record=record,
        title=record[title_of(kind).name] if record else "",
        layout=layout,
        entries=by_name,
        opens_rest=any(field.name in to_be_seen for field in layout.rest),
        opens_seldom=any(field.name in to_be_seen or field.name in named for field in layout.seldom),
        label=label,
        offered=partial(offered_values, kind, record=record),
        started=started,
        choices=await choices_of(page_request, references, chosen, find),
        refusal=refusal,
        faults=[(name.partition("/")[0], name, message) for name, message in faults.items()],
        at_fields=at_fields,
        meanwhile=theirs,
        return_to=form.get("return_to") if form else "",
        is_again=bool(form and form.has("again")),
    )


async def sent_form(page_request: OrganizationRequest) -> Fields:
    """The form that was sent. Raises what :meth:`OrganizationRequest.fields` raises."""
    page_request.context.body_limit = _MAX_FORM
    return await page_request.fields()


def asks_to_find(form: Fields) -> bool:
    """Whether the form is to come back with more to choose from, rather than be saved.

    That is so where "Find" was pressed, where somebody has written something to find and pressed Enter, and where they
    had to sign in again before they could save.
    """
    if form.has("again"):
        return True
    step = form.get("step")
    wanted = {name: form.get(name) for name, _ in form.pairs if name.startswith("find.")}
    is_new = any(words != form.get(f"found.{name.removeprefix('find.')}") for name, words in wanted.items())
    return step == "find" or (step == "enter" and is_new)


def new_entry(field: Field, entered: str | None) -> Entry:
    """The entry of a field in the form of a new record: its default, unless something was entered."""
    value: Any = field.default if entered is None else entered
    if field.sort == "flag":
        value = entered == "true" if entered is not None else bool(field.default)
    return entry_of(field, value, "") if field.sort != "moment" else Entry(field, entered or "")


async def _fields(
    page_request: OrganizationRequest, kind: Kind, record: Mapping[str, Any] | None = None
) -> Sequence[Field]:
    """The fields that the member can fill in, of a new record or a stored one."""
    hidden = hidden_fields(page_request, kind.path, record)
    progress = None if record is None else await entitlement_progress(page_request, kind, record["id"])
    if progress is not None and progress["total"]:
        hidden |= {"finishedAt"}  # set by the step that finishes it
    return [field for field in form_fields(kind) if field.name not in hidden]


def _filled(fields: Sequence[Field], record: Mapping[str, Any], zone: str) -> tuple[Sequence[Entry], Started]:
    entries = [entry_of(field, record[field.name], zone) for field in fields]
    return entries, started_with(record, entries, zone)


def with_faults(refusal: Refusal | None, faults: Mapping[str, str]) -> Refusal | None:
    """What the interface refuses, along with what could not be sent to it."""
    if refusal is None and not faults:
        return None
    if refusal is None or (faults and refusal.status != 400):
        refusal = Refusal(400, "validation", "", "")
    title = text("record.not_valid") if refusal.status == 400 else refusal.title
    return replace(refusal, title=title, faults={**faults, **refusal.faults})
