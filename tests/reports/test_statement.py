"""The statement of applicability as an auditor reads it: what is implemented and planned, and the same on paper."""

from __future__ import annotations

import csv
import re
import unicodedata
from io import BytesIO, StringIO
from typing import Any

import pytest
from openpyxl import load_workbook
from pypdf import PdfReader

from normata.core.db.types import now
from normata.events.sealing import seal_all_now
from normata.reports import pdf
from tests.databases import on_both, tamper
from tests.reports.conftest import Ask
from tests.reports.reported import FRAMEWORK, match, statement
from tests.reports.test_applicability import SOA, entries
from tests.served import Served, refused
from tests.world import ALPHA, EARLIER

SCOPE = "Development and hosting of Größe & Co,\nin Gdańsk."
TITLES = ["Identifier", "Name", "Framework", "Applicable", "Reasons", "Justification", "Implemented"]
TITLES += ["Follows from matches", "Evidence", "Owner", "Note"]


def task(number: int, control: str, deadline: str | None, status: str = "TODO", **more: Any) -> dict[str, Any]:
    """A task about the assessment of a control."""
    made = {"id": f"plan-{number}", "organizationId": ALPHA, "slug": f"plan-{number}", "title": "Plan", "order": number}
    times = {"createdAt": EARLIER, "updatedAt": EARLIER, "shortId": 900 + number}
    return made | times | {"controlCoverageId": f"say-{control}", "deadline": deadline, "status": status} | more


@pytest.fixture
def audited(service: Served) -> Served:
    """A world with a table of applicability, and one requirement for each thing that a statement says."""
    lapsed = {"lapsedStatus": "FULL", "lapsedAt": "2026-10-02T00:00:00.000Z", "reviewBy": "2026-10-01T00:00:00.000Z"}
    service.load(
        {
            "organizations": [{"id": ALPHA, "scope": SCOPE}],
            "controls": [{"id": "sun.A.1", "isMandatory": True}],
            "controlMatches": [match("sun.A.1", "rep.1.1.c", "FULL")],
            "controlCoverages": [
                statement("rep.1.1.a", "FULL"),  # mandatory
                statement("rep.1.1.c", "NONE", reasons=["LEGAL"]),  # in conflict with the match
                statement("rep.2.1", None, **lapsed),
                statement("rep.2.3", "NONE", justification="=1+1", ownerId="member-editor", note="By hand <b>[x]."),
                statement("rep.3", "FULL", reasons=["CONTRACTUAL"]),
            ],
        }
    )
    service.load(
        {
            "tasks": [
                task(1, "rep.2.3", "2027-03-01T00:00:00.000Z"),
                task(2, "rep.2.3", "2027-02-01T00:00:00.000Z", "BLOCKED"),
                task(3, "rep.2.3", "2027-01-01T00:00:00.000Z", "DONE"),
                task(4, "rep.2.3", "2027-01-02T00:00:00.000Z", archivedAt=EARLIER),
                task(5, "rep.2.3", None),
                task(6, "rep.3", "2027-01-03T00:00:00.000Z"),  # there is nothing to plan
            ]
        }
    )
    seal_all_now(service.database)
    return service


@on_both
def test_what_is_implemented_follows_from_the_own_assessment_alone(ask: Ask, audited: Served) -> None:
    report, found = ask(SOA).json(), entries(ask(SOA))
    assert {control: (entry["implemented"], entry["plannedBy"]) for control, entry in found.items()} == {
        "rep.1.1.a": ("YES", None),
        "rep.1.1.b": ("PARTLY", None),
        "rep.1.1.c": ("NO", None),
        "rep.1.2": (None, None),
        "rep.1.3": (None, None),
        "rep.2.1": ("NOT_ASSESSED", None),
        "rep.2.2": ("NOT_ASSESSED", None),
        "rep.2.3": ("NO", "2027-02-01T00:00:00.000Z"),
        "rep.3": ("YES", None),
    }
    assert [one["id"] for one in report["mandatory"]["requirements"]] == ["rep.1.1.a"]
    disputed, lapsed, planned = (found[f"rep.{number}"] for number in ("1.1.c", "2.1", "2.3"))
    assert (disputed["effectiveCoverageStatus"], disputed["isIndirectlyCovered"]) == ("FULL", True)
    assert disputed["objections"] == ["CONFLICTING"]
    assert (lapsed["effectiveCoverageStatus"], lapsed["objections"][1:]) == ("FULL", ["APPLICABLE_WITHOUT_STATUS"])
    assert (planned["owner"], planned["note"]) == ({"memberId": "member-editor", "name": "Editor"}, "By hand <b>[x].")
    log = report["log"]
    checkpoint = audited.client.get(
        "/events/checkpoint/", params={"organizationId": ALPHA}, headers=audited.bearer("admin")
    ).json()
    assert log == {name: checkpoint[name] for name in ("origin", "size", "root", "sealedAt")}
    assert log["size"] > 0
    head = {name: report[name] for name in ("scope", "version", "approver", "date", "otherFrameworks")}
    assert head == {"scope": SCOPE, "version": None, "approver": None, "date": now()[:10], "otherFrameworks": []}
    label = {"organizationId": ALPHA, "name": "Later"}
    assert audited.client.post("/labels/", json=label, headers=audited.bearer("admin")).is_success
    seal_all_now(audited.database)
    assert ask(SOA).json()["log"]["size"] > log["size"]
    assert ask(SOA, asOf=log["sealedAt"]).json()["log"] == log, "what was sealed later is none of it"
    tamper(audited.database, "UPDATE event_checkpoint SET root = 'f' WHERE organization_id = 'org-alpha'")
    assert ask(SOA).json()["log"] is None, "it proves nothing"


@on_both
def test_all_formats_say_the_same_row_by_row(ask: Ask, audited: Served) -> None:
    """With the necessary controls of another framework: those that apply, and its mandatory ones apart."""
    del audited
    report = ask(SOA, otherFrameworkIds="fw-sun").json()
    assert [one["id"] for one in report["otherFrameworks"]] == ["fw-sun"]
    others = [entry["identifier"] for entry in report["controls"] if entry["frameworkId"] == "fw-sun"]
    assert others == ["A.3", "A.5", "A.7", "A.11"], "A.9 is excluded, so it is not necessary"
    mandatory = [(one["frameworkId"], one["identifier"]) for one in report["mandatory"]["requirements"]]
    assert mandatory == [(FRAMEWORK, "1.1.a"), *(("fw-sun", f"A.{number}") for number in (1, 2, 4, 6, 8, 10, 12))]
    assert report["counts"]["requirements"] == len(report["controls"]) == 8 + len(others)

    rows = list(csv.reader(StringIO(ask(SOA, otherFrameworkIds="fw-sun", format="csv").content.decode("utf-8-sig"))))
    assert rows[0] == TITLES
    assert [(row[0], row[3]) for row in rows[1:]] == [
        (entry["identifier"], "yes" if entry["isApplicable"] else "no") for entry in report["controls"]
    ]
    said = {row[0]: dict(zip(TITLES, row, strict=True)) for row in rows}
    assert [said[number]["Implemented"] for number in ("1.1.b", "1.1.c", "1.2", "2.1", "2.3", "3")] == [
        *("partly", "no", "", "not assessed", "no, planned by 2027-02-01", "yes")
    ]
    assert said["1.1.c"]["Follows from matches"] == "full:\nSUN-2 A.1 sun control 1 (full match)"
    assert (said["2.3"]["Justification"], said["2.3"]["Owner"]) == ("'=1+1", "Editor")

    book = load_workbook(BytesIO(ask(SOA, otherFrameworkIds="fw-sun", format="xlsx").content))
    assert book.sheetnames == ["Statement of applicability", "Mandatory requirements", "Objections", "Summary"]
    cells = [["" if cell is None else cell for cell in row] for row in book.worksheets[0].iter_rows(values_only=True)]
    start = cells.index(TITLES)
    facts = {row[0]: row[1] for row in cells[: start - 1]}
    assert (facts["Organization"], facts["Scope"], facts["Version"], facts["Date"]) == ("Alpha", SCOPE, "", now()[:10])
    assert (facts["Approver"], str(report["log"]["size"]) in facts["Log of events"]) == ("", True)
    assert cells[start:] == [[cell.removeprefix("'") for cell in row] for row in rows]
    sheet = book.worksheets[0]
    layout = sheet.page_setup
    assert (layout.orientation, layout.fitToWidth or 1, layout.fitToHeight) == ("landscape", 1, 0)
    assert sheet.sheet_properties.pageSetUpPr.fitToPage
    assert (sheet.print_title_rows, sheet.oddFooter.right.text) == (f"${start + 1}:${start + 1}", "&P / &N")
    clauses = list(book["Mandatory requirements"].iter_rows(values_only=True))
    assert [list(clauses[0]), *(row[:4] for row in clauses[1:3])] == [
        *(TITLES, ("1.1.a", "Requirement 1.1.a", "REP-1", "yes"), ("A.1", "sun control 1", "SUN-2", "yes"))
    ]
    assert len(clauses) == 1 + len(mandatory)
    objections = [row[::3] for row in book["Objections"].iter_rows(min_row=2, values_only=True)]
    assert len(objections) == sum(len(one["objections"] + one["stale"]) for one in entries(ask_all(ask)).values())
    assert ("1.1.c", "is assessed otherwise than matches or other assessments say") in objections
    assert not {"Objections", "Objection"} & {*TITLES}

    printed = on_paper(ask(SOA, otherFrameworkIds="fw-sun", format="pdf").content)
    for line in (["Scope", SCOPE], TITLES, *rows[1:], ["Mandatory requirements"], *clauses[1:]):
        words = squeezed("".join("yes" if one is True else one or "" for one in line).replace("'=", "="))
        place = printed.find(words)
        assert place >= 0, line
        printed = printed[place + len(words) :]


def ask_all(ask: Ask) -> Any:
    """The statement with the other framework."""
    return ask(SOA, otherFrameworkIds="fw-sun")


def on_paper(content: bytes) -> str:
    """The text of a PDF in the order of its pages, squeezed; each page has its number."""
    pages = [squeezed(page.extract_text()) for page in PdfReader(BytesIO(content)).pages]
    assert all(f"{number}/{len(pages)}" in page for number, page in enumerate(pages, 1))
    return "".join(pages)


def squeezed(text: str) -> str:
    """A text without white space, ligatures and the places where words may break."""
    return re.sub(r"[\s\u200b]", "", unicodedata.normalize("NFKC", text))


def test_the_same_statement_is_the_same_bytes(ask: Ask, audited: Served) -> None:
    del audited
    for name in ("json", "csv", "xlsx", "pdf"):
        assert ask(SOA, format=name).content == ask(SOA, format=name).content


def test_a_framework_that_is_not_adopted_is_a_fault(ask: Ask) -> None:
    [fault] = refused(ask(SOA, otherFrameworkIds="fw-star"), 400, "validation")["errors"]
    assert (fault["in"], fault["name"]) == ("query", "otherFrameworkIds")


def test_without_the_extra_a_pdf_is_refused(ask: Ask, service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "find_spec", lambda _: None)
    pdf.is_installed.cache_clear()
    try:
        [fault] = refused(ask(SOA, format="pdf"), 400, "validation")["errors"]
        assert (fault["name"], fault["code"]) == ("format", "unavailable")
        assert "normata[pdf]" in fault["message"]
        path, query = f"/frameworks/{FRAMEWORK}/{SOA}/", {"organizationId": ALPHA}
        headers = service.bearer("viewer") | {"Accept": "application/pdf"}
        refused(service.client.get(path, params=query, headers=headers), 406, "not_acceptable")
    finally:
        monkeypatch.undo()
        pdf.is_installed.cache_clear()


def test_a_statement_that_is_too_long_for_paper_has_the_other_formats(
    ask: Ask, service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "MAX_ROWS", 1)
    [fault] = refused(ask(SOA, format="pdf"), 400, "validation")["errors"]
    assert (fault["name"], fault["code"]) == ("format", "too_large")
    assert "at most 1 rows" in fault["message"]
    assert ask(SOA, format="xlsx").status_code == 200
    body = {"organizationId": ALPHA, "frameworkId": FRAMEWORK, "title": "A long one"}
    made = service.client.post("/soa-versions/", json=body, headers=service.bearer("admin"))
    assert made.status_code == 201, made.text
    assert made.json()["pdfSha256"] is None
    assert made.json()["xlsxSha256"] is not None
