"""The kinds of records, and the list of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Query
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import PEOPLE
from normata.console.app.records.change_many import responsible_of
from normata.console.app.records.kinds import Kind, KindNames, getting, kind_names, kind_of, label, listing, title_of
from normata.console.app.records.layout import by_sort, is_seldom
from normata.console.app.records.linked_owners import listed_fields, owner_field, owners_of_page
from normata.console.app.records.panel import Panel, panel_of
from normata.console.app.records.references import Choice, choices_of, names_of
from normata.console.app.records.risk_details import resting_on_gaps
from normata.console.app.records.undo import UndoQueries
from normata.console.app.saved_views import ListView, Tab, list_view
from normata.console.app.sections import PLACES
from normata.console.app.view_links import PARAMETER
from normata.console.filters import words
from normata.console.texts import text
from normata.core.db.types import now
from normata.records.archive.queries import KINDS
from normata.records.fields import Field, fields_of, offered_values

_ORDER = ("archived", "search", "sortColumn", "sortDirection", "page", "cursor", "limit")
_NO_STATE = ("page", "cursor", "limit")  # what a view does not have
_FEWEST, _MOST, _MOST_STATES = 3, 4, 2  # columns besides the title, unless others are chosen
_SMALLEST_PAGE = "5"
_BESIDE_PANEL = 2  # columns that there is room for while a record is open
_NO_COLUMNS = frozenset({"id", "organizationId", "archivedAt", "shortId"})  # said with the title, or of no use
_ICON_OF_OTHERS = "all"


class Column(NamedTuple):
    """A column of a list: its field, what it is called, where it stands, and whether records can be sorted by it."""

    field: Field
    label: str
    place: str
    is_sortable: bool


class Filter(NamedTuple):
    """A filter of a list: its field, what it is called, and the values that it offers, where these are few."""

    field: Field
    label: str
    options: list[tuple[str, str]]


class KindCounts(NamedTuple):
    """A kind, the icon of its place, and how many records of it are live and archived."""

    kind: KindNames
    icon: str
    live: int
    archived: int


async def show_kinds(page_request: OrganizationRequest) -> Response:
    """The kinds of records, with how many there are of each."""
    kinds = await page_request.ask_one(ApiQuery("listKinds"))
    icons = {place.key: place.icon for place in PLACES}
    return page_request.page(
        "app/records.html",
        kinds=[
            KindCounts(
                kind_names(KINDS[one["kind"]]),
                icons.get(one["kind"], _ICON_OF_OTHERS),
                one["live"],
                one["archived"],
            )
            for one in kinds["items"]
        ],
        can_edit=page_request.may("editor"),
    )


async def show_list(page_request: OrganizationRequest) -> Response:
    """The records of a kind: with views, filters, an order and pages; beside them the one that is open."""
    kind = kind_of(page_request)
    filters = [field for field in listed_fields(kind) if field.is_filter]
    sent = page_request.request.query_params
    wanted = {name: sent.getlist(name) for name in (*(field.name for field in filters), *_ORDER)}
    group = next((field for field in _groupings(kind) if field.name == sent.get("group")), None)
    listed = wanted | ({"sortColumn": [group.name]} if group else {})
    alternatives = {field.name: _alternatives(field, wanted[field.name]) for field in filters}
    open_id = sent.get("open", "")
    responsible = next((field for field in filters if field.is_responsible), None)
    undo_queries = UndoQueries(page_request)
    more = [
        *([ApiQuery(getting(kind), id=open_id)] if open_id else []),
        *([PEOPLE] if responsible else []),
        *undo_queries.api_queries,
    ]
    found, *answers = await page_request.ask(ApiQuery(listing(kind), listed), *more)
    opened = answers.pop(0) if open_id else None
    members = answers.pop(0) if responsible else None
    chosen = {name: sent.get(name, "") for name in wanted}
    is_whole = sent.get("filters") == "all"
    shown = [field for field in filters if is_whole or chosen[field.name] or _is_handy(field)]
    shown.sort(key=lambda field: (not _is_handy(field), field.is_opaque))
    references = [field for field in shown if field.target]
    find = {field.name: sent.get(f"find.{field.name}", "").strip()[:200] for field in references}
    columns = columns_of(kind, sent.getlist("columns"))
    filled = [(name, value) for name in wanted if name not in _ORDER[2:] for value in wanted[name] if value]
    order = [(name, chosen[name]) for name in ("sortColumn", "sortDirection", "limit") if chosen[name]]
    order += [("columns", name) for name in sent.getlist("columns")] + ([("group", group.name)] if group else [])
    view = list_view(page_request, kind.path, [*(name for name in wanted if name not in _NO_STATE), "columns", "group"])
    order += [(PARAMETER, view.opened["id"])] if view.opened else []
    choices = await choices_of(page_request, references, chosen, find)
    panel = await panel_of(page_request, kind, opened, found["items"]) if opened else None
    shows_owners = owner_field(kind) in [column.field for column in columns]
    owned, owners = await owners_of_page(page_request, kind, found["items"] if shows_owners else ())
    return page_request.page(
        "app/record_list.html",
        kind=kind_names(kind),
        title=title_of(kind),
        title_label=label(title_of(kind)),
        has_number=any(field.name == "shortId" for field in fields_of(kind)),
        records=found,
        owned=owned,
        view=view,
        views=_views(page_request, kind, responsible, _member_id(page_request, members), filled, view=view),
        columns=columns,
        all_columns=[(field.name, label(field)) for field in _possible_columns(kind)],
        names={**await names_of(page_request, _named(found["items"], columns, panel)), **owners},
        filters=[Filter(field, label(field), _options(field)) for field in shown],
        chips=_chips(page_request, shown, wanted, choices),
        keeps=[*((name, value) for name, value in filled if name != "search"), *order],
        keeps_search=[*((name, value) for name, value in filled if name == "search"), *order],
        keeps_columns=[*filled, *(pair for pair in order if pair[0] != "columns")],
        has_more=len(shown) < len(filters),
        is_whole=is_whole,
        group=group,
        groupings=[("", text("list.no_group")), *((field.name, label(field)) for field in _groupings(kind))],
        group_counts=await _counts(page_request, kind, group, listed, found["items"]),
        choices=choices,
        chosen=chosen,
        alternatives=alternatives,
        is_filtered=bool(filled),
        selected=set(sent.getlist("selected")),
        panel=panel,
        resting_on_gaps=await resting_on_gaps(page_request, kind, found["items"]),
        undo=undo_queries.note(answers),
        assigned=responsible_of(page_request, kind) if responsible else None,
        today=now(),
        label=label,
        offered=partial(offered_values, kind, record=opened),
        sort_link=lambda **changed: page_request.link(**{"group": None, **changed}),
        here_with=lambda **changed: page_request.here_with(**{"open": None, **changed}),
        export=lambda name: _export(page_request, kind, {**listed, "format": [name]}),
        can_edit=page_request.may("editor"),
    )


def _export(page_request: OrganizationRequest, kind: Kind, query: Query) -> str:
    """The address of a file with all records of the list, in its order."""
    remaining = {name: values for name, values in query.items() if name not in _NO_STATE}
    return page_request.context.prefix + page_request.path("export", kind.path, "file", query=remaining)


# --- Groups


def _groupings(kind: Kind) -> list[Field]:
    """The fields by which a list can be grouped."""
    return [field for field in fields_of(kind) if field.sort == "token"]


async def _counts(
    page_request: OrganizationRequest,
    kind: Kind,
    group: Field | None,
    listed: Query,
    records: Sequence[Mapping[str, Any]],
) -> Mapping[str, int]:
    """How many there are in each group that the page shows, also on its other pages."""
    values = list(dict.fromkeys(record[group.name] for record in records)) if group else []
    if not group or not values:
        return {}
    query = {name: value for name, value in listed.items() if name not in _NO_STATE}
    answers = await page_request.ask(
        *(ApiQuery(listing(kind), {**query, group.name: value, "limit": _SMALLEST_PAGE}) for value in values)
    )
    return {value: answer["total"] for value, answer in zip(values, answers, strict=True)}


# --- Columns


def columns_of(kind: Kind, chosen: Sequence[str] = ()) -> Sequence[Column]:
    """The columns besides the title: those chosen, or those that tell most of a record.

    These are what it is and where it stands, whose it is, and what is due. Where a kind has few of them, its first
    texts.
    """
    possible = _possible_columns(kind)
    fields = [field for field in possible if field.name in chosen] if any(chosen) else _usual_columns(kind)
    return [Column(field, label(field), _place(field, fields), not field.target) for field in fields]


def _possible_columns(kind: Kind) -> list[Field]:
    return by_sort(
        field
        for field in listed_fields(kind)
        if not field.is_title
        and field.name not in _NO_COLUMNS
        and field.sort not in ("document", "files")
        and not is_seldom(field)
    )


def _usual_columns(kind: Kind) -> list[Field]:
    fields = fields_of(kind)
    # Where a record stands comes first, then how much it matters.
    token_order = ("status", "severity", "priority", "type")
    state = sorted(
        (field for field in fields if field.sort == "token"),
        key=lambda field: token_order.index(field.name) if field.name in token_order else len(token_order),
    )
    owner = owner_field(kind)
    whose = [field for field in (*fields, *([owner] if owner and state else [])) if field.is_responsible]
    due = [field for field in fields if field.ends is not None]
    lacking = max(0, _FEWEST - len(state) - len(whose) - len(due))
    texts = [
        field
        for field in fields
        if field.sort in ("text", "prose", "flag") and not field.is_title and field.name != "slug"
    ]
    changed = [field for field in fields if field.name == "updatedAt"]
    changed = changed or [field for field in fields if field.name == "createdAt"]
    return [*texts[:lacking], *state[:_MOST_STATES], *whose, *due, *changed][:_MOST]


def _place(field: Field, fields: Sequence[Field]) -> str:
    """The class of a column. On a phone there is room for one besides the name: where a record stands, or the first."""
    if field == next((one for one in fields if one.name == "status"), fields[0]):
        return "nb"
    is_short = field.sort != "text" and len(fields) <= _MOST
    wide = " missing" if field.sort == "prose" else " nb" if is_short else ""
    roomy = " roomy" if fields.index(field) >= _BESIDE_PANEL else ""
    return f"{'num ' if field.sort in ('number', 'count') else ''}less{wide}{roomy}"


# --- Views and filters


def _member_id(page_request: OrganizationRequest, members: Mapping[str, Any] | None) -> str:
    """The membership of the person, by which records name them; empty if it is not known."""
    found = members["items"] if members else []
    return next((one["id"] for one in found if one["userId"] == page_request.person.user_id), "")


def _views(
    page_request: OrganizationRequest,
    kind: Kind,
    responsible: Field | None,
    member_id: str,
    filled: Sequence[tuple[str, str]],
    *,
    view: ListView,
) -> list[Tab]:
    """The views as tabs: all, those of the person, the archived ones, and those that were saved."""
    views: list[tuple[str, Query]] = [("record.view.all", {})]
    if responsible and member_id:
        views.append(("record.view.mine", {responsible.name: member_id}))
    views.append(("record.view.archived", {"archived": "only"}))
    return [
        *(
            (
                text(key),
                page_request.context.prefix + page_request.path("records", kind.path, query=query),
                None,
                view.opened is None and list(query.items()) == list(filled),
            )
            for key, query in views
        ),
        *view.tabs,
    ]


def _chips(
    page_request: OrganizationRequest,
    filters: Sequence[Field],
    wanted: Mapping[str, Sequence[str]],
    choices: Mapping[str, Choice],
) -> list[tuple[str, str, str]]:
    """The filters that count: what each is called, its values as words, and the address without it."""
    chips = []
    for field in filters:
        names = {one.id: one.words for one in choices[field.name].options} if field.name in choices else {}
        called = names | dict(_options(field))
        values = [called.get(value, words(value) if field.known else value) for value in wanted[field.name] if value]
        if values:
            without = page_request.link(**{field.name: None, "page": None})
            chips.append((label(field), ", ".join(values), without))
    archived = next(iter(wanted["archived"]), "")
    if archived in ("only", "include"):
        without = page_request.link(archived=None, page=None)
        chips.append((text("record.which"), text(f"record.which.{archived}"), without))
    return chips


def _options(field: Field) -> list[tuple[str, str]]:
    if field.sort == "flag":
        return [("true", text("app.yes")), ("false", text("app.no"))]
    return [(value, words(value)) for value in field.known]


def _alternatives(field: Field, requested: Sequence[str]) -> Sequence[str]:
    """What the form has of a filter: each value that the address has, and an empty one, for another."""
    values = [value for value in requested if value]
    return values[-1:] or [""] if field.sort == "flag" else [*values, ""]


def _is_handy(field: Field) -> bool:
    return field.sort in ("token", "flag") or field.is_responsible


def _named(
    records: Sequence[Mapping[str, Any]], columns: Sequence[Column], panel: Panel | None
) -> Iterator[tuple[str, str | None]]:
    """What the page names: what its columns refer to, and what the open record does."""
    for record in records:
        for column in columns:
            if column.field.target and column.field.name in record:
                yield column.field.target, record[column.field.name]
    for field in panel.facts if panel else ():
        if panel and field.target:
            yield field.target, panel.record[field.name]
