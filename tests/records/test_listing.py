"""The list of each kind: its filters, its orders, and one record alone; on both databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from types import ModuleType
from typing import Any, cast

import pytest
from pydantic.alias_generators import to_camel
from sqlalchemy import Boolean

from normata.core.db.sqlite.transaction import SQLiteTransaction
from normata.core.schema import paging
from normata.core.schema.wire import columns
from normata.records import listing as records_list
from normata.records.base import Maintained, Restorable, filter_columns, text_columns
from normata.records.kinds import Asset, Policy, Task
from tests.cells import all_cells
from tests.core.http.documented import document
from tests.listing import Item, in_order, natural
from tests.records.living import foreign_references, read, references
from tests.records.shapes import KINDS, RATINGS, SHAPES, full_record
from tests.served import Served, refused, served
from tests.world import ALPHA, BETA, record_id

# All kinds on SQLite. These three have columns of all sorts, in which PostgreSQL might differ.
ON_BOTH = (Asset, Policy, Task)
every_kind = pytest.mark.parametrize(
    ("shared_url", "kind"),
    [
        *(pytest.param("sqlite", *kind.values, id=f"sqlite-{kind.id}") for kind in KINDS),
        *(pytest.param("postgresql", kind, id=f"postgresql-{kind.path}") for kind in ON_BOTH),
    ],
    indirect=["shared_url"],
    scope="module",
)
COUNT = 12
NAMES = {"slug", "shortId", "identifier"}


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Served]:
    """A world that no test changes, with records that differ in every field."""
    with served(shared_url) as service:
        service.load({kind.path: [_record(kind, number) for number in range(COUNT)] for kind in Restorable.kinds})
        yield service


def _record(kind: type[Restorable], number: int) -> dict[str, Any]:
    """Every other one is archived, and every third has all fields; of two made at the same moment each."""
    full = full_record(kind, f"list-{number:02}")
    kept = {"id", "organizationId", kind.title_column()}
    record = full if number % 3 == 0 else {name: full[name] for name in kept}
    moment = f"2026-05-{number // 2 + 1:02}T00:00:00.000Z"
    record |= {kind.title_column(): f"Title {number}", "createdAt": moment, "archivedAt": None}
    if number % 2:
        record["archivedAt"] = f"2026-06-{number + 1:02}T00:00:00.000Z"
    if "updatedAt" in full:
        record["updatedAt"] = f"2026-07-{COUNT - number:02}T00:00:00.000Z"
    for place, (name, sort) in enumerate(SHAPES[kind.path].fields.items()):
        if sort == "enum":
            record[name] = f"SORT_{(number + place) % 4}"
        elif sort == "boolean":
            record[name] = number % 4 == 0
        elif name in RATINGS and name in record:
            record[name] = 1 + (number + place) % 5
        elif sort in ("number", "integer"):
            record.update({name: record[name] + number} if name in record else {})
    if "identifier" in record:
        record["identifier"] += f"{number}"
    return record | ({"slug": f"list-{number}"} if "slug" in full else {})


def everything(service: Served, kind: type[Restorable]) -> list[Item]:
    """All records of alpha, in no order that counts."""
    return service.listing(f"/{kind.path}/").items(archived="include")


def expected(items: list[Item]) -> list[str]:
    """The ids in the default order."""
    return [item["id"] for item in sorted(items, key=lambda item: (item["createdAt"], item["id"]), reverse=True)]


@every_kind
def test_live_ones_newest_first(kind: type[Restorable], shared: Served) -> None:
    listing, items = shared.listing(f"/{kind.path}/"), everything(shared, kind)
    live = [item for item in items if item["archivedAt"] is None]
    archived = [item for item in items if item["archivedAt"] is not None]
    assert len(live) > 5 < len(archived)
    assert listing.ids() == listing.ids(archived="exclude") == expected(live)
    assert listing.ids(archived="only") == expected(archived)
    assert listing.ids(archived="include") == expected(items)
    assert listing.ids(sortDirection="desc") == expected(live)[::-1]
    assert listing.walk() == listing.items()


@every_kind
def test_every_column_but_a_document_orders(kind: type[Restorable], shared: Served) -> None:
    """A title naturally, other texts by character, numbers by value; null last, and equal ones as `tied` says."""
    listing, items = shared.listing(f"/{kind.path}/"), everything(shared, kind)
    filters = {to_camel(column.name) for column in filter_columns(kind)}
    live = {item["id"] for item in items if item["archivedAt"] is None}
    with all_cells() as at:
        for name, sort in SHAPES[kind.path].fields.items():
            if sort in ("any", "files"):
                with at(name):
                    assert listing.faults(sortColumn=name) == [("sortColumn", "not_allowed")]
                continue

            def key(item: Item, name: str = name) -> Any:
                return natural(item[name]) if name == kind.title_column() else item[name]

            for direction in ("asc", "desc"):
                order = in_order(tied(items, direction, is_filter=name in filters), key, direction)
                chosen = {"sortColumn": name} | ({"sortDirection": direction} if direction == "desc" else {})
                with at(f"{name} {direction}"):
                    assert listing.ids(archived="include", **chosen) == order
                    # Pages have numbers, or follow each other: some begin among equal ones, or where null does.
                    pages = listing.follow if direction == "desc" else listing.walk
                    assert [item["id"] for item in pages(**chosen)] == [one for one in order if one in live]


def tied(items: list[Item], direction: str, *, is_filter: bool) -> list[Item]:
    """Records as they follow each other where a sort key is equal: of a filter's the newest first, else by id."""
    if is_filter:
        return sorted(items, key=lambda item: (item["createdAt"], item["id"]), reverse=True)
    return sorted(items, key=lambda item: cast("str", item["id"]), reverse=direction == "desc")


@every_kind
def test_every_enum_flag_and_reference_filters(kind: type[Restorable], shared: Served) -> None:
    """By the name of the field; repeated it finds what any of the values does."""
    listing, items = shared.listing(f"/{kind.path}/"), everything(shared, kind)
    shape = SHAPES[kind.path].fields
    filters = references(kind) | {name for name, sort in shape.items() if sort in ("enum", "boolean")}
    with all_cells() as at:
        with at("parameters"):
            parameters = {one["name"] for one in document()["paths"][f"/{kind.path}/"]["get"]["parameters"]}
            assert filters <= parameters
            assert parameters <= filters | ({"ownerId"} if kind.responsible is None else set()) | {
                *(
                    "organizationId",
                    "limit",
                    "page",
                    "cursor",
                    "archived",
                    "search",
                    "sortColumn",
                    "sortDirection",
                    "updatedSince",
                ),
                *("externalSource", "externalId", "format", "If-None-Match"),
            } | (NAMES & {*shape})
        for name in filters:
            values = sorted({item[name] for item in items if item[name] is not None}, key=str)
            assert values
            with at(name):
                for chosen in ([values[0]], values[-2:], values[:1] * 2):
                    sent = [str(value).lower() if isinstance(value, bool) else value for value in chosen]
                    found = listing.ids(archived="include", **{name: sent})
                    assert found == expected([item for item in items if item[name] in chosen])
                    live = [item for item in items if item[name] in chosen and item["archivedAt"] is None]
                    assert listing.page(limit=5, **{name: sent})["total"] == len(live)
                if shape[name] != "boolean":
                    assert listing.ids(archived="include", **{name: "NOTHING"}) == []


@every_kind
def test_names_filter_exactly(kind: type[Restorable], shared: Served) -> None:
    """By what people and programs call a record; repeated, and along with everything else that a list takes."""
    listing, items = shared.listing(f"/{kind.path}/"), everything(shared, kind)
    for name in sorted(NAMES & {*SHAPES[kind.path].fields}):
        values = sorted({item[name] for item in items if item[name] is not None}, key=str)
        for chosen in ([values[0]], [values[1]], values[-2:], values):
            these = [item for item in items if item[name] in chosen]
            live = [item for item in these if item["archivedAt"] is None]
            for archived, found in (("include", these), ("exclude", live)):
                listed = listing.page(archived=archived, **{name: chosen})
                assert ([item["id"] for item in listed["items"]], listed["total"]) == (expected(found), len(found))
            oldest = listing.walk(sortColumn="createdAt", archived="include", **{name: chosen})
            assert [item["id"] for item in oldest] == expected(these)[::-1]
            by_title = listing.follow(sortColumn=kind.title_column(), **{name: chosen})
            assert {item["id"] for item in by_title} == {item["id"] for item in live}
        first = next(item for item in items if item[name] == values[0])
        both = {name: values[0], "archived": "include", "search": first[kind.title_column()]}
        assert first["id"] in listing.ids(**both)
        assert listing.ids(**both | {"search": "nothing has this"}) == []
        if isinstance(values[0], int):
            assert listing.ids(**{name: 2**31 - 1}) == []
            assert listing.faults(**{name: ["1", "1_0"]}) == [(name, "invalid")]
            assert listing.faults(**{name: 2**63}) == [(name, "too_large")]
        else:
            assert listing.ids(archived="include", **{name: [values[0].upper() + "?", "Not a slug!", ""]}) == []
        assert [fault for fault, _ in listing.faults(**{name: ["1"] * 101})] == [name]


@every_kind
def test_two_filters_find_what_both_do(kind: type[Restorable], shared: Served) -> None:
    listing, items = shared.listing(f"/{kind.path}/"), everything(shared, kind)
    enums = [name for name, sort in SHAPES[kind.path].fields.items() if sort == "enum"]
    chosen = {name: items[0][name] for name in enums}
    found = [item for item in items if all(item[name] == value for name, value in chosen.items())]
    searched = [to_camel(name) for name in text_columns(kind)]
    both = [item for item in found if "1" in str([item[name] for name in searched if name in item])]
    assert both
    assert listing.ids(archived="include", search="1", **chosen) == expected(both)


@every_kind
def test_since_when_it_was_changed(kind: type[Restorable], shared: Served) -> None:
    listing, items = shared.listing(f"/{kind.path}/"), everything(shared, kind)
    if "updatedAt" not in SHAPES[kind.path].fields:
        assert listing.faults(updatedSince="2026-07-06") == [("updatedSince", "unknown")]
        return
    for since in ("2026-07-06T00:00:00.000Z", "2026-07-06", "2026-07-06T02:00:00+02:00"):
        found = [item for item in items if item["updatedAt"] >= "2026-07-06T00:00:00.000Z"]
        assert 3 < len(found) < len(items)
        assert listing.ids(archived="include", updatedSince=since) == expected(found)
    assert listing.faults(updatedSince="yesterday") == [("updatedSince", "invalid")]


@pytest.mark.parametrize(("module", "limit"), [(records_list, "_FEW"), (paging, "MOST_COUNTED")])
@pytest.mark.parametrize("shared_url", ["sqlite", "postgresql"], indirect=True, scope="module")
def test_many_are_found_as_few_are(
    module: ModuleType, limit: str, shared: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among many, rows are looked for in another way: on pages far behind, and what was changed since some time."""
    listing = shared.listing("/tasks/")
    both = {"archived": "include", "status": ["SORT_1", "SORT_2"]}
    queries: list[dict[str, Any]] = [
        *({"archived": state} for state in ("exclude", "only", "include")),
        {"archived": "include", "sortColumn": "title"},
        {"archived": "include", "sortDirection": "desc"},
        {"archived": "include", "updatedSince": "2026-07-06"},
        {"archived": "include", "status": "SORT_1"},
        *(both | more for more in ({}, {"sortDirection": "desc"}, {"sortColumn": "title"}, {"priority": "SORT_3"})),
        *(
            both | more
            for more in ({"updatedSince": "2026-07-03"}, {"search": "title"}, {"type": ["SORT_0", "SORT_1"]})
        ),
    ]
    few = [listing.follow(**query) for query in queries]
    assert [listing.walk(**query) for query in queries] == few
    # Everything but the first page is far behind, and more than a page is many.
    monkeypatch.setattr(module, limit, 0 if module is records_list else 5)
    assert [listing.follow(**query) for query in queries] == few
    if module is records_list:
        assert [listing.walk(**query) for query in queries] == few
    assert max(map(len, few)) > 10
    assert min(map(len, few)) > 0


def plans(service: Served, kind: type[Restorable], monkeypatch: pytest.MonkeyPatch, **query: Any) -> list[str]:
    """How SQLite finds a page, once it has counted the few rows there are: the steps of each part of it."""
    asked: list[tuple[str, Sequence[Any]]] = []
    fetch = SQLiteTransaction.fetch

    def noting(transaction: SQLiteTransaction, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        asked.append((sql, values))
        return fetch(transaction, sql, values)

    with monkeypatch.context() as patch:
        patch.setattr(SQLiteTransaction, "fetch", noting)
        assert service.listing(f"/{kind.path}/").ids(**{"archived": "include"} | query)
    parts = [one for one in asked if one[0].startswith(f"SELECT {kind.__tablename__}.id, ")]
    with closing(sqlite3.connect(service.url.removeprefix("sqlite:///"))) as file, closing(sqlite3.connect("")) as copy:
        file.backup(copy)
        copy.execute("ANALYZE")
        return [step for sql, values in parts for *_, step in copy.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


@pytest.mark.parametrize("shared_url", ["sqlite"], indirect=True, scope="module")
@pytest.mark.parametrize("kind", [pytest.param(*kind.values, id=kind.id) for kind in KINDS])
def test_what_no_index_has_in_order_is_found_by_what_it_meets(
    kind: type[Restorable], shared: Served, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """In the order of the list, SQLite would pass a million records to find the ten that are asked for."""
    everything_in_order = f" ix_{kind.__tablename__}_live_list "
    items = everything(shared, kind)
    queries: list[tuple[str, dict[str, Any]]] = []
    for column in filter_columns(kind):
        name = to_camel(column.name)
        value = next(item[name] for item in items if item[name] is not None)
        both = ["true", "false"] if isinstance(column.type, Boolean) else [value, "NOTHING"]
        queries.append((column.name, {name: both}))
    if issubclass(kind, Maintained):
        queries.append(("updated", {"updatedSince": "2026-07-01"}))
    for name, query in queries:
        with subtests.test(name):
            found = plans(shared, kind, monkeypatch, **query)
            assert any(f" ix_{kind.__tablename__}_{name}_list " in step for step in found), found
            assert not any(everything_in_order in f"{step} " for step in found), found


@pytest.mark.parametrize("shared_url", ["sqlite"], indirect=True, scope="module")
@pytest.mark.parametrize("kind", [pytest.param(*kind.values, id=kind.id) for kind in KINDS])
def test_names_are_found_by_their_indexes(
    kind: type[Restorable], shared: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = everything(shared, kind)
    for name in sorted({"slug", "shortId"} & {*SHAPES[kind.path].fields}):
        values = [item[name] for item in items if item[name] is not None][:2]
        for query in ({name: values[:1]}, {name: values, "sortColumn": kind.title_column()}):
            found = plans(shared, kind, monkeypatch, **query)
            condition = f"(organization_id=? AND {'slug' if name == 'slug' else 'short_id'}=?"
            assert any(condition in step for step in found), found


@pytest.mark.parametrize("shared_url", ["sqlite"], indirect=True, scope="module")
@pytest.mark.parametrize("kind", [pytest.param(*kind.values, id=kind.id) for kind in KINDS])
def test_indexes_have_the_orders_of_filters_titles_and_dates(
    kind: type[Restorable], shared: Served, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """Whole: no row is sorted, since a load gives thousands the same time, and most may have no date."""
    indexes = {"title_key": "title_order", "created_at": "live_list"}
    indexes |= {"updated_at": "updated_list"} if issubclass(kind, Maintained) else {}
    indexes |= {column.name: f"{column.name}_order" for column in columns(kind) if "due" in column.info}
    indexes |= {column.name: f"{column.name}_list" for column in filter_columns(kind)}
    for column, index in indexes.items():
        name = kind.title_column() if column == "title_key" else to_camel(column)
        for direction in ("asc", "desc"):
            with subtests.test(f"{name} {direction}"):
                found = plans(shared, kind, monkeypatch, archived="exclude", sortColumn=name, sortDirection=direction)
                assert found
                # It does sort the few records with one reference.
                sorting = [step for step in found if " TEMP B-TREE " in step]
                assert not sorting or column.endswith("_id"), found
                # Where a date is due until it is removed, the index of what is due has the same ones.
                equal = (index, index.replace("_order", "_due"))
                assert any(f" ix_{kind.__tablename__}_{one} " in found[0] for one in equal), found


@every_kind
def test_all_faults_of_a_query_at_once(kind: type[Restorable], shared: Served) -> None:
    listing = shared.listing(f"/{kind.path}/")
    fields = SHAPES[kind.path].fields
    wrong = {"archived": "maybe", "sortColumn": "search_text", "sortDirection": "up", "limit": "1"}
    wrong |= {name: "lower case" for name, sort in fields.items() if sort == "enum"}
    wrong |= {name: "yes" for name, sort in fields.items() if sort == "boolean"}
    wrong |= dict.fromkeys(references(kind), "")
    assert [name for name, _ in listing.faults(**wrong)] == sorted(wrong)


@every_kind
def test_a_filter_has_a_hundred_values_at_most(kind: type[Restorable], shared: Served) -> None:
    listing = shared.listing(f"/{kind.path}/")
    for name in references(kind):
        assert listing.ids(**{name: [f"nothing-{number}" for number in range(100)]}) == []
        assert [fault for fault, _ in listing.faults(**{name: ["x"] * 101})] == [name]


@every_kind
def test_what_is_anothers_is_not_found(kind: type[Restorable], shared: Served) -> None:
    listing = shared.listing(f"/{kind.path}/")
    for name, value in foreign_references(kind).items():
        assert listing.ids(archived="include", **{name: value}) == []
    assert listing.ids(archived="include", search=BETA) == []


# --- One record


@every_kind
@pytest.mark.parametrize("state", ["live", "archived"])
def test_one_record(kind: type[Restorable], state: str, shared: Served) -> None:
    row_id, headers = record_id(kind, state), shared.bearer("viewer", scope="read")
    response = read(shared, kind, row_id, headers)
    assert response.status_code == 200
    (item,) = (item for item in everything(shared, kind) if item["id"] == row_id)
    assert response.json() == item
    held = headers | {"If-None-Match": response.headers["etag"]}
    assert (read(shared, kind, row_id, held).status_code, read(shared, kind, row_id, held).content) == (304, b"")
    assert read(shared, kind, row_id, headers, organizationId="alpha").json() == item


@every_kind
def test_who_cannot_read_it(kind: type[Restorable], shared: Served) -> None:
    live, foreign = record_id(kind, "live"), record_id(kind, "live", BETA)
    other = next(one for one in Restorable.kinds if one is not kind)
    viewer, foreigner = shared.bearer("viewer"), shared.bearer("foreigner")
    refused(read(shared, kind, live, {}), 401, "unauthenticated")
    for row_id in ("nothing", foreign, record_id(other, "live")):
        refused(read(shared, kind, row_id, viewer), 404, "not_found")
    refused(read(shared, kind, foreign, viewer, organizationId=BETA), 404, "not_found")
    refused(read(shared, kind, live, foreigner), 404, "not_found")
    refused(read(shared, kind, live, foreigner, organizationId=BETA), 404, "not_found")
    refused(shared.client.get(f"/{kind.path}/{live}/", headers=viewer), 400, "validation")


def test_documents_do_not_order() -> None:
    """Only two kinds have one; this holds the test of orders against the tables."""
    assert {kind.path for kind in Restorable.kinds if "any" in SHAPES[kind.path].fields.values()} == {
        "policies",
        "records",
    }
    assert all(to_camel(one.name) in SHAPES[kind.path].fields for kind in Restorable.kinds for one in columns(kind))
    assert ALPHA
