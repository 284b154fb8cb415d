"""Reports in several formats: which one is sent, under which name, and as conditional as every other answer."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from httpx2 import Response
from openpyxl import load_workbook

from normata.core.http.operation import Operation, ReadOperation
from normata.events.sealing import seal_all_now
from tests.core.http import documented
from tests.core.http.samples import enough, operations, sample
from tests.served import Served, refused

TYPES = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8; header=present",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pdf": "application/pdf",
}
STARTS = {"json": b"{", "csv": b"\xef\xbb\xbf", "xlsx": b"PK", "pdf": b"%PDF"}
PACKED = ("xlsx", "pdf")

reports = operations(
    # A version has what is stored: tests/soa_versions.
    lambda operation: (
        isinstance(operation, ReadOperation)
        and operation.formats
        and "xlsx" in operation.formats.by_name
        and operation.tag == "Reports"
    )
)
each_format = pytest.mark.parametrize(
    ("operation", "name"),
    [
        pytest.param(operation, name, id=f"{operation.operation_id}-{name}")
        for operation in (mark.values[0] for mark in reports.args[1])
        for name in operation.formats.by_name
    ],
)


@pytest.fixture(autouse=True)
def sealed(shared: Served) -> None:
    """A statement says how many events are sealed, so none may be sealed between two requests."""
    seal_all_now(shared.database)


def names_of(operation: Operation) -> list[str]:
    """The formats of a report."""
    assert isinstance(operation, ReadOperation)
    assert operation.formats is not None
    return list(operation.formats.by_name)


def ask(operation: Operation, service: Served, name: str | None = None, **headers: str) -> Response:
    """A report, in the format of the query or of the headers."""
    wanted = sample(operation)
    sent = service.bearer(enough(operation)) | {title.replace("_", "-"): value for title, value in headers.items()}
    return wanted.but(query=wanted.query | ({"format": name} if name else {})).send(service.client, sent)


def test_there_are_reports() -> None:
    assert {mark.id for mark in reports.args[1]} >= {"getFrameworkGaps", "getStatementOfApplicability"}


@each_format
def test_the_header_and_the_parameter_ask_for_the_same(operation: Operation, name: str, shared: Served) -> None:
    by_name, by_header = ask(operation, shared, name), ask(operation, shared, Accept=TYPES[name].partition(";")[0])
    assert by_name.headers["content-type"] == by_header.headers["content-type"] == TYPES[name]
    assert by_name.content.startswith(STARTS[name])
    assert by_header.content == by_name.content
    assert by_header.headers["etag"] == by_name.headers["etag"]


@each_format
def test_the_parameter_wins(operation: Operation, name: str, shared: Served) -> None:
    """Over a header that asks for something else, and over one that nothing could satisfy."""
    for accept in ("application/json", "text/csv", "text/html", "*/*;q=0"):
        assert ask(operation, shared, name, Accept=accept).headers["content-type"] == TYPES[name]


@reports
def test_whoever_likes_anything_gets_json(operation: Operation, shared: Served) -> None:
    for accept in ("*/*", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"):
        assert ask(operation, shared, Accept=accept).headers["content-type"] == "application/json"


@reports
def test_another_format_is_a_fault(operation: Operation, shared: Served) -> None:
    [fault] = refused(ask(operation, shared, "odt"), 400, "validation")["errors"]
    assert (fault["in"], fault["name"], fault["allowed"]) == ("query", "format", names_of(operation))
    refused(ask(operation, shared, "odt", Accept="text/html"), 406, "not_acceptable")


@each_format
def test_what_a_client_has_already_is_not_sent_again(operation: Operation, name: str, shared: Served) -> None:
    """By format and coding, and each of them by a tag of its own."""
    tags = set()
    is_long = len(ask(operation, shared, name).content) >= 1_000
    for coding in ("identity", "gzip", "zstd"):
        first = ask(operation, shared, name, Accept_Encoding=coding)
        again = ask(operation, shared, name, Accept_Encoding=coding, If_None_Match=first.headers["etag"])
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["vary"] == first.headers["vary"] == "accept, accept-encoding, authorization"
        tags.add(first.headers["etag"])
        packs = coding != "identity" and name not in PACKED and is_long
        assert first.headers.get("content-encoding", "identity") == (coding if packs else "identity")
    assert len(tags) == (3 if is_long and name not in PACKED else 1), "what is packed already stays as it is"
    refused(ask(operation, shared, name, If_Match='"other"'), 412, "precondition_failed")


@each_format
def test_a_file_has_a_name(operation: Operation, name: str, service: Served) -> None:
    """In plain ASCII for old clients, and as it is for others (RFC 6266)."""
    service.load({"organizations": [{"id": "org-alpha", "slug": 'große"firma'}]})
    sort, plain, whole = ask(operation, service, name).headers["content-disposition"].split("; ")
    assert sort == ("inline" if name == "json" else "attachment")
    assert plain.startswith('filename="')
    assert plain.endswith(f'gro-e-firma-own.{name}"')
    assert whole.startswith("filename*=UTF-8''")
    assert whole.endswith(f"gro%C3%9Fe%22firma-own.{name}")


@reports
def test_each_format_is_documented(operation: Operation, shared: Served) -> None:
    content: dict[str, Any] = documented.answer(operation, 200)["content"]
    assert list(content) == [TYPES[name].partition(";")[0] for name in names_of(operation)]
    assert content["text/csv"]["example"].partition("\r\n")[0].startswith("\ufeffIdentifier,Name")
    del shared


@reports
def test_csv_and_the_first_sheet_say_the_same(operation: Operation, shared: Served) -> None:
    """Below the facts that a sheet may begin with."""
    sheet = load_workbook(BytesIO(ask(operation, shared, "xlsx").content)).worksheets[0]
    lines = ask(operation, shared, "csv").content.decode("utf-8-sig").split("\r\n")
    rows = [list(row) for row in sheet.iter_rows(values_only=True)]
    start = rows.index(lines[0].split(","))
    assert len(rows) - start == len(lines) - 1 > 5
