"""The kinds of records, and the list of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.kinds import Kind, kind_of, label, listing, sort_of_kind, title_of
from normata.console.app.records.references import choices_of, names_of
from normata.console.app.records.undo import UndoQueries
from normata.core.db.types import now
from normata.records.fields import Field, fields_of

_ORDER = ("archived", "search", "sortColumn", "sortDirection", "page", "limit")
_FEWEST = 3  # columns besides the title


class Column(NamedTuple):
    """A column of a list: its field, what it is called, and whether records can be sorted by it."""

    field: Field
    label: str
    is_sortable: bool


async def show_kinds(page_request: OrganizationRequest) -> Response:
    """The kinds of records, with how many there are of each."""
    kinds = await page_request.ask_one(ApiQuery("listKinds"))
    return page_request.page("app/records.html", kinds=kinds["items"], can_edit=page_request.may("editor"))


async def show_list(page_request: OrganizationRequest) -> Response:
    """The records of a kind: with filters, in an order, in pages."""
    kind = kind_of(page_request)
    filters = [field for field in fields_of(kind) if field.is_filter]
    sent = page_request.request.query_params
    wanted = {name: sent.getlist(name) for name in (*(field.name for field in filters), *_ORDER)}
    alternatives = {field.name: _alternatives(field, wanted[field.name]) for field in filters}
    undo_queries = UndoQueries(page_request)
    found, *notice = await page_request.ask(ApiQuery(listing(kind), wanted), *undo_queries.api_queries)
    chosen = {name: sent.get(name, "") for name in wanted}
    is_whole = sent.get("filters") == "all"
    shown = [field for field in filters if is_whole or chosen[field.name] or _is_handy(field)]
    shown.sort(key=lambda field: (not _is_handy(field), field.sort == "foreign"))
    references = [field for field in shown if field.sort == "reference"]
    find = {field.name: sent.get(f"find.{field.name}", "").strip()[:200] for field in references}
    columns = columns_of(kind)
    answerable = [column.field for column in columns if column.field.sort == "reference"]
    return page_request.page(
        "app/record_list.html",
        kind=sort_of_kind(kind),
        title=title_of(kind).name,
        records=found,
        columns=columns,
        names=await names_of(
            page_request, ((field.target, record[field.name]) for record in found["items"] for field in answerable)
        ),
        filters=[(field, label(field)) for field in shown],
        has_more=len(shown) < len(filters),
        is_whole=is_whole,
        choices=await choices_of(page_request, references, chosen, find),
        chosen=chosen,
        alternatives=alternatives,
        is_filtered=any(
            chosen[name] for name in wanted if name not in ("sortColumn", "sortDirection", "page", "limit")
        ),
        selected=set(sent.getlist("selected")),
        undo=undo_queries.note(notice),
        today=now(),
        can_edit=page_request.may("editor"),
    )


def columns_of(kind: Kind) -> Sequence[Column]:
    """The columns that tell most of a record: the title, what it is and where it stands, whose it is, what is due.

    Where a kind has few of these, its first texts.
    """
    fields = fields_of(kind)
    title = [field for field in fields if field.is_title]
    numbers = [field for field in fields if field.name == "shortId"]
    state = [field for field in fields if field.sort == "token"]
    whose = [field for field in fields if field.is_responsible]
    due = [field for field in fields if field.ends is not None]
    lacking = max(0, _FEWEST - len(state) - len(whose) - len(due))
    texts = [
        field
        for field in fields
        if field.sort in ("text", "prose", "flag") and not field.is_title and field.name != "slug"
    ]
    changed = [field for field in fields if field.name == "updatedAt"]
    changed = changed or [field for field in fields if field.name == "createdAt"]
    columns = (*numbers, *title, *texts[:lacking], *state, *whose, *due, *changed)
    return [Column(field, label(field), field.sort != "reference") for field in columns]


def _alternatives(field: Field, requested: Sequence[str]) -> Sequence[str]:
    """What the form has of a filter: each value that the address has, and an empty one, for another."""
    values = [value for value in requested if value]
    return values[-1:] or [""] if field.sort == "flag" else [*values, ""]


def _is_handy(field: Field) -> bool:
    return field.sort in ("token", "flag") or field.is_responsible
