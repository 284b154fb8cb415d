"""Registers from files: what is exported imports unchanged, and what a row changes; on both databases."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from httpx2 import Response

from normata.events.model import AuditEvent
from normata.records.base import Restorable
from normata.records.imports import operations, planning
from normata.records.kinds import Asset, Audit, Incident, Policy, Record, Task, Vendor
from tests import stored
from tests.records.registers.test_exports import XLSX, file_of, rows_of_csv
from tests.records.shapes import KINDS, full_record
from tests.served import Served, refused, served
from tests.world import ALPHA, BETA

CSV = "text/csv"
EVERY = ("name", "externalSource", "externalId")
HARD = (
    *(
        "plain",
        " blanks ",
        "a\nb",
        "a\rb",
        "a\r\nb",
        'a "quoted" text, with; and\ttab',
        "\ttab",
        "'",
        "''",
        "'x",
        "'=x",
    ),
    *(
        "=1+1",
        "+1",
        "-1",
        "@x",
        "\uff1d1",
        "",
        "yes",
        "no",
        "true",
        "1",
        "1.0",
        "007",
        "1E5",
        "2026-11-20",
        "20.11.2026",
    ),
    *(
        "_x000D_",
        "_x005F_",
        "id:x",
        "null",
        "{}",
        "[1]",
        "\u2028",
        "😀 Größe été",
        "\ufeffx",
        "\x7f",
        "\x01",
        "x" * 40_000,
    ),
)
DOCUMENTS: tuple[Any, ...] = (
    *(None, {}, [], {"a": {"b": None}}, [1, 1.0, True, None, "=x", "'"], "=x", "", 0, -1, 1.5, True, False),
    *({"x": "y" * 40_000}, 2**70, 1e300, {"": "", "=": "\r\n"}),
)
NUMBERS = (None, 0, -1, 0.1 + 0.2, 1e-7, 2.5, 2**53 - 1, -1234567890.125)
MOMENTS = (
    *(
        None,
        "2026-11-20T00:00:00.000Z",
        "2026-11-20T09:14:03.127Z",
        "1899-12-31T00:00:00.000Z",
        "1900-02-28T00:00:00.000Z",
    ),
    *("9999-12-31T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z"),
)


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Served]:
    """A world with one record of each kind that has all fields, and others with values that are easily damaged."""
    with served(shared_url) as service:
        service.load({kind.path: [full_record(kind, "exported")] for kind in Restorable.kinds})
        service.load(
            {
                "tasks": [_hard(Task, n, title=text[:400] or "x", description=text) for n, text in enumerate(HARD)],
                "policies": [_hard(Policy, n, title="x", content=one) for n, one in enumerate(DOCUMENTS)],
                "assets": [_hard(Asset, n, name="x", integrityRating=one) for n, one in enumerate(NUMBERS)],
                "incidents": [_hard(Incident, n, name="x", occurredAt=one) for n, one in enumerate(MOMENTS)],
                # A value of another system that looks like the name of a row here.
                "audits": [_hard(Audit, n, name="x", auditor=text[:900]) for n, text in enumerate(HARD)],
            }
        )
        yield service


def _hard(kind: type[Restorable], number: int, **values: Any) -> dict[str, Any]:
    return {"id": f"{kind.path}-hard-{number}", "organizationId": ALPHA, **values}


def send(
    service: Served, kind: type[Restorable], content: bytes | str, media_type: str = CSV, /, **query: Any
) -> Response:
    """The answer to the import of a register, by an editor unless ``user`` says who."""
    headers = service.bearer(query.pop("user", "editor")) | {"Content-Type": media_type}
    params = {"organizationId": ALPHA} | query
    body = content.encode() if isinstance(content, str) else content
    return service.client.post(f"/{kind.path}/import/", params=params, content=body, headers=headers)


def table(*rows: Sequence[Any]) -> str:
    """A table in CSV."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()


def outcome(answer: Response) -> tuple[int, int, int, int]:
    """The numbers of created, updated, unchanged and refused rows."""
    assert answer.status_code == 200, answer.text
    found = answer.json()
    numbers = [found[name] for name in ("created", "updated", "unchanged", "refused")]
    assert sum(numbers) == len(found["rows"])
    return tuple(numbers)


def faults(answer: Response) -> list[tuple[str, str]]:
    """The places and codes of the faults of a refused import."""
    return [(one["name"], one["code"]) for one in refused(answer, 400, "validation")["errors"]]


def events(service: Served) -> int:
    """The number of events of records."""
    kinds = {kind.path for kind in Restorable.kinds}
    return sum(row["entity_type"] in kinds for row in stored.rows(service.database, AuditEvent))


# --- What is exported imports unchanged


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["csv", "xlsx"])
def test_what_is_exported_imports_unchanged(shared: Served, kind: type[Restorable], name: str) -> None:
    before = events(shared)
    content = file_of(shared, kind, name, archived="include")
    created, updated, unchanged, refused_ = outcome(send(shared, kind, content, {"csv": CSV, "xlsx": XLSX}[name]))
    assert (created, updated, refused_) == (0, 0, 0)
    assert unchanged == len(shared.listing(f"/{kind.path}/").items(archived="include")) > 1
    assert events(shared) == before


def test_what_spreadsheets_make_of_a_file_is_still_the_same(shared: Served) -> None:
    """Semicolons, UTF-16, other ends of lines, another order of columns, and none of those that do not matter."""
    content = file_of(shared, Vendor, "csv", archived="include").decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(content, newline="")))
    with_semicolons = io.StringIO(newline="")
    csv.writer(with_semicolons, delimiter=";", lineterminator="\r").writerows(row[::-1] for row in rows)
    for changed in (
        with_semicolons.getvalue().encode(),
        content.replace(",", ",").encode("utf-16"),
        "\n\n".join([content]).encode(),
        table(*([name.upper() if at == 0 else name for name in row[:6]] for at, row in enumerate(rows))).encode(),
    ):
        created, updated, unchanged, refused_ = outcome(send(shared, Vendor, changed))
        assert (created, updated, refused_) == (0, 0, 0)
        assert unchanged == len(rows) - 1


# --- What a row changes


def test_rows_are_found_by_id_external_id_and_slug(service: Served) -> None:
    service.load(
        {"vendors": [{"id": f"v-{n}", "slug": f"s-{n}", "organizationId": ALPHA, "name": f"V {n}"} for n in range(4)]}
    )
    columns = ("id", "externalSource", "externalId", "slug", "name", "ownerId", "inherentImpact", "status")
    first = table(
        columns,
        ("v-0", "", "", "s-0", "By id", "editor@alpha.example", "2,5", "under review"),
        ("", "erp", "1", "s-1", "By slug", "", "", "ACTIVE"),
        ("", "erp", "2", "", "New", "member-viewer", "", ""),
        ("", "", "", "s-3", "V 3", "", "", "ACTIVE"),
    )
    preview = send(service, Vendor, first, mode="each", dryRun="true").json()
    assert preview["answer"]["created"] == 1
    assert {one["action"] for one in preview["changes"]} == {"update", "create"}
    assert outcome(send(service, Vendor, first)) == (1, 2, 1, 0)
    made = service.listing("/vendors/").items(search="New")[0]
    assert (made["slug"], made["ownerId"], made["status"]) == ("new", "member-viewer", "ACTIVE")
    by_id = service.listing("/vendors/").items(slug="s-0")[0]
    assert (by_id["ownerId"], by_id["inherentImpact"], by_id["status"]) == ("member-editor", 2.5, "UNDER_REVIEW")
    wrapped = json.dumps({"table": first})
    assert outcome(send(service, Vendor, wrapped, "application/json")) == (0, 0, 4, 0)  # as a nightly run
    second = table(columns[1:5], ("erp", "1", "renamed", "By external id"), ("erp", "2", "", "Newer"))
    assert outcome(send(service, Vendor, second)) == (0, 2, 0, 0)
    renamed = service.listing("/vendors/").items(slug="renamed")[0]
    assert (renamed["id"], renamed["name"]) == ("v-1", "By external id")
    rows = {row["id"]: row for row in rows_of_csv(file_of(service, Vendor, "csv"))}
    assert (rows["v-1"]["externalSource"], rows["v-1"]["externalId"]) == ("erp", "1")


def test_an_empty_cell_clears_and_an_absent_column_leaves(service: Served) -> None:
    record = {"id": "v-1", "organizationId": ALPHA, "name": "V", "description": "x", "ownerId": "member-viewer"}
    service.load({"vendors": [record]})
    assert outcome(send(service, Vendor, table(("id", "description"), ("v-1", "")))) == (0, 1, 0, 0)
    found = service.listing("/vendors/").items(search="V", slug="v")[0]
    assert (found["description"], found["ownerId"], found["name"]) == (None, "member-viewer", "V")
    # A field that cannot be null stays, so that what is made without it is the same in the next run.
    assert outcome(send(service, Vendor, table(("id", "name", "status", "slug"), ("v-1", "", "", "")))) == (0, 0, 1, 0)


def test_a_document_becomes_what_the_cell_has(service: Served) -> None:
    service.load(
        {"records": [{"id": "r-1", "organizationId": ALPHA, "title": "R", "content": {"a": {"b": 1, "c": 2}}}]}
    )
    for content in ('{"a":{"c":3}}', "[1,true]", '"x"', "", '{"d":{}}'):
        assert outcome(send(service, Record, table(("id", "content"), ("r-1", content)))) == (0, 1, 0, 0)
        assert outcome(send(service, Record, table(("id", "content"), ("r-1", content)))) == (0, 0, 1, 0)
    assert faults(send(service, Record, table(("id", "content"), ("r-1", '{"d":null}')))) == [
        ("rows/2/content", "invalid")
    ]


def test_changes_of_others_since_the_export_are_not_lost(service: Served) -> None:
    service.load({"vendors": [{"id": "v-1", "organizationId": ALPHA, "name": "V"}]})
    exported = file_of(service, Vendor, "csv", slug="v").decode("utf-8-sig")
    service.client.patch("/vendors/v-1/", json={"description": "theirs"}, headers=service.bearer("editor"))
    assert faults(send(service, Vendor, exported.replace(",V,", ",Mine,"))) == [("rows/2/updatedAt", "changed_since")]
    rows = list(csv.reader(io.StringIO(exported, newline="")))
    rows[1][rows[0].index("updatedAt")] = ""
    rows[1][rows[0].index("name")] = "Mine"
    assert outcome(send(service, Vendor, table(*rows))) == (0, 1, 0, 0)


def test_a_change_between_the_plan_and_the_import_is_not_lost(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    service.load({"vendors": [_hard(Vendor, 1, id="v-1", name="V")]})
    editor, planned = service.bearer("editor"), planning.planned

    def overtaken(*arguments: Any) -> Any:
        plan = planned(*arguments)
        changed = service.client.patch("/vendors/v-1/", json={"description": "theirs"}, headers=editor)
        assert changed.status_code == 200
        return plan

    monkeypatch.setattr(operations, "planned", overtaken)
    answer = send(service, Vendor, table(("id", "name"), ("v-1", "Mine")))
    assert faults(answer) == [("rows/2", "precondition_failed")]


# --- What is refused


def test_every_fault_has_its_cell(service: Served) -> None:
    service.load(
        {
            "vendors": [
                {"id": "v-1", "organizationId": ALPHA, "name": "Twin", "archivedAt": None},
                {"id": "v-2", "organizationId": ALPHA, "name": "twin"},
                {"id": "v-3", "organizationId": ALPHA, "name": "Old", "archivedAt": "2026-01-01"},
            ]
        }
    )
    content = table(
        ("id", "title", "deadline", "order", "vendorId", "shortId", "assigneeMemberId", "externalSource"),
        ("tasks-live-org-beta", "Foreign", "", "1", "", "", "", ""),
        ("nowhere", "Unknown", "", "1", "", "", "", ""),
        ("", "", "20.11.2026", "many", "Twin", "7", "nobody@alpha.example", "erp"),
        ("tasks-live-org-alpha", "x" * 501, "", "1", "vendors-live-org-beta", "", "", ""),
        ("tasks-live-org-alpha", "Twice", "", "1", "", "", "", ""),
    )
    expected = [
        ("rows/2/id", "not_found"),
        ("rows/3/id", "not_found"),
        ("rows/4/assigneeMemberId", "not_found"),
        ("rows/4/deadline", "invalid"),
        ("rows/4/externalId", "required"),
        ("rows/4/order", "invalid"),
        ("rows/4/shortId", "read_only"),
        ("rows/4/title", "required"),
        ("rows/4/vendorId", "ambiguous"),
        ("rows/5/title", "too_long"),
        ("rows/5/vendorId", "not_found"),
        ("rows/6/id", "repeated"),
    ]
    before = events(service)
    assert sorted(faults(send(service, Task, content))) == expected
    each = send(service, Task, content, mode="each").json()
    assert [one["outcome"] for one in each["rows"]] == ["refused"] * 5
    found = [(f"rows/{row['row']}/{one['column']}", one["code"]) for row in each["rows"] for one in row["faults"]]
    assert sorted(found) == expected
    assert events(service) == before
    archived = table(("id", "name"), ("v-3", "Changed"))
    assert faults(send(service, Vendor, archived)) == [("rows/2", "archived")]
    assert faults(send(service, Vendor, table(("id", "slug"), ("v-2", "twin"))))[0][0] == "rows/2/slug"


@pytest.mark.parametrize(
    ("content", "media_type", "expected"),
    [
        ("nam,status\nx,ACTIVE\n", CSV, [("rows/1/nam", "unknown")]),
        ("name,name\nx,y\n", CSV, [("rows/1/name", "invalid")]),
        ("name\nx,y\n", CSV, [("rows/2", "invalid")]),
        ("name\n", CSV, [("", "required")]),
        ("name\nx", "application/json", [("", "malformed")]),
        ("name\nx\0\n", CSV, [("rows/2/name", "invalid")]),
        ("name,externalSource,externalId\n\0,\0,\0\n", CSV, [(f"rows/2/{name}", "invalid") for name in EVERY]),
        ('{"rows": []}', "application/json", [("table", "required")]),
        ("", CSV, [("", "required")]),
        (b"name\n\xff", CSV, [("", "malformed")]),
        (b"\xff\xfe\x00", CSV, [("", "malformed")]),
        ('name\n"x', CSV, [("", "malformed")]),
        (b"PK\x03\x04", CSV, [("", "malformed")]),
        (b"%PDF-1.7", XLSX, [("", "malformed")]),
        ("name\n" + "x\n" * 10_001, CSV, [("", "malformed")]),
        ("name\n" + "x" * (4 * 2**20 + 1), CSV, [("", "malformed")]),
        ("name" + ",x" * 60 + "\n", CSV, [("", "malformed")]),
        ("name\n" + "," * 10_000 + "x\n", CSV, [("rows/2", "invalid")]),
    ],
)
def test_what_is_no_register(
    shared: Served, content: str | bytes, media_type: str, expected: list[tuple[str, str]]
) -> None:
    assert faults(send(shared, Vendor, content, media_type)) == expected


def test_an_unknown_column_is_answered_with_the_nearest(shared: Served) -> None:
    problem = refused(send(shared, Vendor, "nam,website\nx,\n"), 400, "validation")
    assert "did you mean name?" in problem["errors"][0]["message"]


def test_too_large_workbooks_are_not_unpacked(shared: Served) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * (130 * 2**20))
    assert faults(send(shared, Vendor, packed.getvalue(), XLSX)) == [("", "malformed")]


def test_a_formula_counts_by_its_value(shared: Served) -> None:
    """One without a value would be an empty cell, which clears a field."""
    plain = file_of(shared, Vendor, "xlsx", slug="vendors-live")

    def with_name(cell: str) -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(plain)) as before, zipfile.ZipFile(packed, "w") as after:
            for part in before.namelist():
                inline = r'(<c r="[A-Z]+2" s="\d+") t="inlineStr"><is><t>vendor live</t></is>'
                after.writestr(part, re.sub(inline, rf"\1>{cell}", before.read(part).decode()))
        return packed.getvalue()

    previewed = send(shared, Vendor, with_name("<f>1+1</f><v>2</v>"), XLSX, dryRun="true").json()
    assert [one["after"]["name"] for one in previewed["changes"]] == ["2"]
    assert faults(send(shared, Vendor, with_name("<f>1+1</f>"), XLSX)) == [("", "malformed")]


def test_who_may(shared: Served) -> None:
    content = table(("name",), ("New",))
    refused(send(shared, Vendor, content, user="viewer"), 403, "forbidden")
    refused(send(shared, Vendor, content, organizationId=BETA), 404, "not_found")
    refused(send(shared, Vendor, content, "application/pdf"), 415, "unsupported_media_type")


def test_a_key_does_not_change_how_an_import_is_refused(shared: Served) -> None:
    """The answer to the same key is looked for even where nothing can be planned."""
    for user, organization, status in (("viewer", ALPHA, 403), ("editor", BETA, 404), ("editor", "none", 404)):
        headers = shared.bearer(user) | {"Content-Type": CSV, "Idempotency-Key": f"{user}-{organization}"}
        params = {"organizationId": organization}
        for _ in range(2):
            answer = shared.client.post("/vendors/import/", params=params, content="name\nNew\n", headers=headers)
            assert answer.status_code == status, answer.text


def test_many_faults_are_all_listed_and_the_text_has_the_first(service: Served) -> None:
    answer = send(service, Vendor, table(("externalSource", "externalId", "name"), *(("erp", "", ""),) * 500))
    assert len(faults(answer)) == 1000
    assert len(answer.json()["detail"]) < 2000
    name = ("externalSource", "externalId", "name")
    for _ in range(2):  # where the record is new, and where it is there
        twice = table(name, ("erp", "1", "A"), ("erp", "1", "B"))
        assert faults(send(service, Vendor, twice)) == [("rows/3/externalId", "repeated")]
        send(service, Vendor, table(name, ("erp", "1", "A")))
