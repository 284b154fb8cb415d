"""Registers as files: downloading one, and importing one after a preview of every row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from starlette.responses import Response

from normata.console.app.api_calls import Outcome, Refusal, Upload
from normata.console.app.downloads import download_register
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.kinds import Kind, kind_names, kind_of, label, listing
from normata.console.app.records.references import names_of
from normata.console.app.uploaded import UploadForm, endings_of, importing, upload_form
from normata.console.texts import text
from normata.core.http.list_file import OF_A_PAGE
from normata.records.fields import Field, fields_of
from normata.records.imports.operations import import_id

_MOST_ROWS = 50  # shown of each sort
_MOST_FIELDS = 8  # shown of a row
_OF_FILES = frozenset({"format", "organizationId"})


class ShownField(NamedTuple):
    """A field that a row sets: what it is called, and its values before and after."""

    field: Field
    label: str
    before: Any
    after: Any


class ShownRow(NamedTuple):
    """A row that creates or changes a record: its number, the record, and the fields that it sets."""

    number: int
    label: str
    record_id: str
    fields: Sequence[ShownField]
    more: int


class ShownFault(NamedTuple):
    """What is wrong with a cell: the number of the row, the column, empty for the whole row, and why."""

    number: int
    column: str
    message: str


async def download(page_request: OrganizationRequest) -> Response:
    """All records of a list, with the filters and the order of the address, in the format that it names."""
    kind = kind_of(page_request)
    operation = page_request.console.operations[listing(kind)]
    sent = page_request.request.query_params
    names = {field.alias or name for name, field in operation.query.model_fields.items()}  # type: ignore[attr-defined]
    query = {name: sent.getlist(name) for name in sent if name in names - _OF_FILES - {*OF_A_PAGE}}
    return await download_register(page_request, listing(kind), {**query, "format": sent.get("format", "csv")})


async def show_import(page_request: OrganizationRequest) -> Response:
    """Show the form that takes a register."""
    return await _page(page_request, kind_of(page_request), UploadForm({}, None))


async def import_(page_request: OrganizationRequest) -> Response:
    """Preview what a register changes, or import it, as ``step`` says. What was not previewed is previewed first.

    The step ``import`` imports all rows or none, ``import_others`` those that are not refused.
    """
    kind = kind_of(page_request)
    operation = importing(page_request, import_id(kind))
    form = await upload_form(page_request, operation)
    file = form.file
    if file is None or not file.media_type:
        endings = ", ".join(endings_of(operation))
        message = text("app.upload.no_file") if file is None else text("app.upload.unknown_type", endings=endings)
        refused = Refusal(400, "validation", text("app.upload.refused"), message, {"file": message})
        return await _page(page_request, kind, form, Outcome(None, refused))
    step = form.get("step") if form.get("previewed") == file.digest else ""
    is_import = step in ("import", "import_others")
    outcome = await page_request.change(
        import_id(kind),
        query={"mode": "all" if step == "import" else "each"},
        upload=Upload(file.media_type, file.content),
        dry_run=not is_import,
        key=form.get("key") if is_import else "",
    )
    if outcome.refusal is not None or not is_import:
        return await _page(page_request, kind, form, outcome)
    return page_request.go(page_request.path("records", kind.path), "register_imported")


async def _page(
    page_request: OrganizationRequest, kind: Kind, form: UploadForm, outcome: Outcome | None = None
) -> Response:
    await page_request.ask()  # for the frame of the page
    refusal = None if outcome is None else outcome.refusal
    at_cells = [] if refusal is None else list(_faults_of(refusal))
    if refusal is not None:
        others = {name: why for name, why in refusal.faults.items() if not name.startswith("rows/")}
        title, detail = (refusal.title, refusal.detail) if others else (text("app.upload.refused"), "")
        refusal = replace(refusal, title=title, faults=others, detail=detail)
    answer = None if outcome is None or outcome.answer is None else outcome.answer["answer"]
    rows: Mapping[str, list[ShownRow]] = {}
    if outcome is not None and answer is not None:
        rows = _shown_rows(kind, answer["rows"], outcome.answer["changes"])
        at_cells = [
            ShownFault(row["row"], fault["column"] or "", fault["message"])
            for row in answer["rows"]
            for fault in row["faults"]
        ]
    return page_request.page(
        "app/register_import.html",
        status=refusal.status if refusal else 200,
        kind=kind_names(kind),
        sent=form,
        endings=endings_of(importing(page_request, import_id(kind))),
        preview=answer,
        rows={name: some[:_MOST_ROWS] for name, some in rows.items()},
        hidden={name: max(0, len(some) - _MOST_ROWS) for name, some in rows.items()},
        at_cells=at_cells[:_MOST_ROWS],
        hidden_faults=max(0, len(at_cells) - _MOST_ROWS),
        names=await names_of(page_request, _named(rows)),
        key=page_request.new_key(),
        refusal=refusal,
    )


def _faults_of(refusal: Refusal) -> Iterator[ShownFault]:
    for name, message in refusal.faults.items():
        if name.startswith("rows/"):
            number, _, column = name.removeprefix("rows/").partition("/")
            yield ShownFault(int(number), column, message)


def _shown_rows(
    kind: Kind, rows: Sequence[Mapping[str, Any]], changes: Sequence[Mapping[str, Any]]
) -> Mapping[str, list[ShownRow]]:
    """The rows that create or change records, by what they do, with the fields that they set."""
    by_record = {one["id"]: one for one in changes if one["kind"] == kind.path}
    fields = {field.name: field for field in fields_of(kind) if field.is_writable}
    found: defaultdict[str, list[ShownRow]] = defaultdict(list)
    for row in rows:
        change = by_record.get(row["id"])
        if row["outcome"] not in ("created", "updated"):
            continue
        before, after = (change and change["before"]) or {}, (change and change["after"]) or {}
        shown = [
            ShownField(field, label(field), before.get(name), after[name])
            for name, field in fields.items()
            if name in after and (before or after[name] not in (None, []))
        ]
        more = max(0, len(shown) - _MOST_FIELDS)
        found[row["outcome"]].append(ShownRow(row["row"], row["label"], row["id"], shown[:_MOST_FIELDS], more))
    return found


def _named(rows: Mapping[str, Sequence[ShownRow]]) -> Iterator[tuple[str, str | None]]:
    """What the rows that are shown refer to."""
    for some in rows.values():
        for row in some[:_MOST_ROWS]:
            for one in row.fields:
                if one.field.target and isinstance(one.after, str | None):
                    yield from ((one.field.target, value) for value in (one.before, one.after))
