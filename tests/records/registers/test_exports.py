"""Registers as files: every record of a list, from one snapshot, in CSV and XLSX; on both databases."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import openpyxl
import pytest

from normata.records.base import Restorable
from normata.records.kinds import Asset, Task, Vendor
from normata.records.registers import exporting
from normata.records.registers.cells import value_of
from normata.records.registers.columns import column_names, register_columns
from tests.records.shapes import KINDS, full_record
from tests.served import Served, refused, served
from tests.world import ALPHA

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MEMBER = "viewer@alpha.example"

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Served]:
    """A world with one record of each kind that has all fields."""
    with served(shared_url) as service:
        service.load({kind.path: [full_record(kind, "exported")] for kind in Restorable.kinds})
        yield service


def file_of(service: Served, kind: type[Restorable], name: str, **query: Any) -> bytes:
    """The register of a kind as a file."""
    found = service.listing(f"/{kind.path}/").get(format=name, **query)
    assert found.status_code == 200, found.text
    assert found.headers["content-disposition"].endswith(f'.{name}"')
    return found.content


def rows_of_csv(content: bytes) -> Rows:
    """The rows of a register in CSV, by the names of their columns."""
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def rows_of_workbook(content: bytes) -> Rows:
    """The rows of a register in a workbook, by the names of their columns."""
    rows = openpyxl.load_workbook(io.BytesIO(content)).worksheets[0].iter_rows(values_only=True)
    names = [str(name) for name in next(rows)]
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_has_every_record_and_field(shared: Served, kind: type[Restorable]) -> None:
    items = shared.listing(f"/{kind.path}/").items(archived="include")
    rows = rows_of_csv(file_of(shared, kind, "csv", archived="include"))
    book = rows_of_workbook(file_of(shared, kind, "xlsx", archived="include"))
    assert [row["id"] for row in rows] == [row["id"] for row in book] == [one["id"] for one in items]
    for row, in_book, item in zip(rows, book, items, strict=True):
        assert tuple(row) == tuple(in_book) == column_names(kind)
        for column in register_columns(kind):
            assert (row[column.name] == "") == (item[column.name] in (None, [])), column.name
            assert (in_book[column.name] is None) == (row[column.name] == ""), column.name
            if not column.target:
                assert value_of(column.sort, row[column.name]) == item[column.name], column.name


@pytest.mark.parametrize("name", ["csv", "xlsx"])
def test_filters_and_sorts_as_the_list_does(shared: Served, name: str) -> None:
    query = {"archived": "include", "sortColumn": "name", "sortDirection": "desc", "search": "asset"}
    rows = {"csv": rows_of_csv, "xlsx": rows_of_workbook}[name](file_of(shared, Asset, name, **query))
    items = shared.listing("/assets/").items(**query)
    assert len(items) > 1
    assert [row["id"] for row in rows] == [one["id"] for one in items]


def test_what_others_archive_meanwhile_is_still_there(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exporter that read page after page has missed 20 of 286 records."""
    records = [{"id": f"v-{number:03}", "organizationId": ALPHA, "name": f"V {number}"} for number in range(120)]
    service.load({"vendors": records})
    texts, editor = exporting._texts, service.bearer("editor")
    archived: list[int] = []

    def archiving(*arguments: Any) -> Any:
        if not archived:
            names = [{"kind": "vendors", "id": one["id"]} for one in records[:50]]
            body = {"organizationId": ALPHA, "records": names}
            archived.append(service.client.post("/archive/", json=body, headers=editor).status_code)
        return texts(*arguments)

    monkeypatch.setattr(exporting, "_texts", archiving)
    monkeypatch.setattr(exporting, "_AT_ONCE", 10)
    found = {row["id"] for row in rows_of_csv(file_of(service, Vendor, "csv"))}
    assert archived == [200]
    assert {one["id"] for one in records} <= found
    assert len(rows_of_csv(file_of(service, Vendor, "csv"))) == len(found) - 50


def test_no_spreadsheet_takes_a_text_for_a_formula(service: Served) -> None:
    texts = ["=1+1", "+1", "-1", "@x", "\tx", "'x", "'=x", "plain", " =x"]
    records = [{"id": f"v-{number}", "organizationId": ALPHA, "name": text} for number, text in enumerate(texts)]
    service.load({"vendors": records})
    query = {"search": "", "sortColumn": "id"}
    named = {row["id"]: row["name"] for row in rows_of_csv(file_of(service, Vendor, "csv", **query))}
    guarded = ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "''x", "''=x", "plain", " =x"]
    assert [named[f"v-{number}"] for number in range(len(texts))] == guarded
    book = openpyxl.load_workbook(io.BytesIO(file_of(service, Vendor, "xlsx", **query))).worksheets[0]
    assert all(cell.data_type != "f" for row in book.iter_rows() for cell in row)


def test_references_are_named_where_the_name_is_one_row_only(service: Served) -> None:
    def vendor(row_id: str, **values: Any) -> dict[str, Any]:
        return {"id": row_id, "organizationId": ALPHA, "name": row_id, **values}

    service.load(
        {
            "vendors": [
                vendor("v-1", slug="v-one", ownerId="member-viewer"),
                vendor("v-2", slug="v-3"),  # an id goes before a slug, so this names another one
                vendor("v-3", slug="v-three"),
            ],
            "tasks": [
                {"id": "t-1", "organizationId": ALPHA, "title": "1", "vendorId": "v-1", "riskId": "v-one"},
                {"id": "t-2", "organizationId": ALPHA, "title": "2", "vendorId": "v-2", "riskId": "id:x"},
                {"id": "t-3", "organizationId": ALPHA, "title": "3", "vendorId": "v-3"},
            ],
        }
    )
    tasks = {row["id"]: row for row in rows_of_csv(file_of(service, Task, "csv"))}
    assert [tasks[one]["vendorId"] for one in ("t-1", "t-2", "t-3")] == ["v-one", "v-2", "v-three"]
    assert [tasks[one]["riskId"] for one in ("t-1", "t-2")] == ["v-one", "id:id:x"]
    vendors = {row["id"]: row for row in rows_of_csv(file_of(service, Vendor, "csv"))}
    assert vendors["v-1"]["ownerId"] == MEMBER


def test_formats_and_conditions(shared: Served) -> None:
    listing = shared.listing("/vendors/")
    assert listing.get().headers["content-type"] == "application/json"
    assert "accept" in listing.get().headers["vary"].split(", ")
    by_header = listing.get({"Accept": "text/csv"})
    assert by_header.headers["content-type"].startswith("text/csv")
    assert listing.get({"Accept": "application/json"}, format="xlsx").headers["content-type"] == XLSX
    refused(listing.get({"Accept": "application/pdf"}), 406, "not_acceptable")
    tag = by_header.headers["etag"]
    assert listing.get({"If-None-Match": tag}, format="csv").status_code == 304
    for name, value in (("page", 2), ("limit", 50), ("cursor", "x")):
        problem = refused(listing.get(format="csv", **{name: value}), 400, "validation")
        assert [(one["name"], one["code"]) for one in problem["errors"]] == [(name, "combined")]
    refused(listing.get(format="pdf"), 400, "validation")
    refused(listing.get(organizationId="org-beta", format="csv"), 404, "not_found")
    head = shared.client.head("/vendors/", params={"organizationId": ALPHA, "format": "csv"}, headers=listing._headers)
    assert (head.status_code, head.content) == (200, b"")
