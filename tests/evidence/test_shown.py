"""Where the evidence of a control is shown: its explanation, reports, commands and the page, now and as of a moment."""

from __future__ import annotations

import csv
import time
from hashlib import sha256
from io import BytesIO, StringIO

import pytest
from openpyxl import load_workbook

from normata.core.db.types import now
from tests import mostly_sqlite
from tests.cli import conftest as commands
from tests.cli.commands import Run
from tests.client import TestClient
from tests.console.app import conftest as console
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA as PAGES
from tests.console.browser import text_of
from tests.coverage.assessing import Json, done
from tests.databases import on_both
from tests.evidence.test_support import CONTROL, LATER, OTHER, PAST, Bearer, Evidences
from tests.world import ALPHA, DUE

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url
normata, people = commands.normata, console.people

CONTENT = b"Returned: one laptop, two keys."
SOA = "/frameworks/fw-sun/statement-of-applicability/"


@pytest.fixture
def alpha(client: TestClient, bearer: Bearer) -> Evidences:
    """The evidence and coverage of alpha."""
    return Evidences(client, bearer("admin", scope="admin"))


def explained(alpha: Evidences, control: str = CONTROL, **query: str) -> Json:
    found: Json = done(alpha._send("GET", f"/controls/{control}/coverage/", query=query))["evidence"]
    return found


def moment() -> str:
    """A moment after all that was done, and before what comes."""
    time.sleep(0.003)
    found = now()
    time.sleep(0.003)
    return found


@on_both
def test_the_explanation_has_the_pieces_and_their_files_now_and_of_then(alpha: Evidences) -> None:
    nothing: Json = {"pieces": 0, "isValid": False, "endsAt": None, "items": [], "recordedLater": []}
    assert explained(alpha) == nothing
    before = moment()
    sent = {"organizationId": ALPHA, "name": "checklist.txt"}
    file = alpha.client.post("/files/", params=sent, content=CONTENT, headers=alpha.headers).json()
    piece = alpha.made("/evidence/", {"name": "Checklist", "type": "FILE", "collectedAt": "2026-03-01"})
    alpha.set(piece, fileIds=[file["id"]], validUntil=LATER)
    alpha.link(piece)
    expired, _ = alpha.supported(PAST)
    found = explained(alpha)
    assert (found["pieces"], found["isValid"], found["endsAt"]) == (2, True, "2031-01-02T00:00:00.000Z")
    assert [(one["id"], one["isValid"]) for one in found["items"]] == [(expired, False), (piece, True)]
    first = found["items"][1]
    assert (first["name"], first["type"], first["validUntil"][:10]) == ("Checklist", "FILE", LATER)
    wanted = {"id": file["id"], "name": "checklist.txt", "size": len(CONTENT), "sha256": sha256(CONTENT).hexdigest()}
    assert [{name: one[name] for name in wanted} for one in first["files"]] == [wanted]
    then = moment()
    alpha.set(piece, name="Another name", fileIds=[], validUntil="2029-01-01")
    alpha.archive(expired)
    assert [one["name"] for one in explained(alpha)["items"]] == ["Another name"]
    assert explained(alpha, asOf=then) == found, "as it was, with the file that it had"
    # Of what was recorded later about then, only what was collected by then.
    later = explained(alpha, asOf=before)
    assert {name: later[name] for name in ("pieces", "items", "endsAt")} == {"pieces": 0, "items": [], "endsAt": None}
    assert [one["id"] for one in later["recordedLater"]] == [piece]
    alpha.set(piece, collectedAt="2031-01-01")
    assert explained(alpha, asOf=before)["recordedLater"] == []
    assert explained(alpha, OTHER, asOf=before)["recordedLater"] == []


@on_both
def test_reports_say_how_many_and_until_when(alpha: Evidences) -> None:
    done(alpha.put(CONTROL, coverageStatus="PARTIAL", coverageGap="Two sites."))
    first, _ = alpha.supported()
    alpha.supported(PAST)
    summary = {"pieces": 2, "isValid": True, "endsAt": "2031-01-02T00:00:00.000Z"}
    words = "2 pieces, until 2031-01-01"
    then = moment()
    world = {"pieces": 1, "isValid": False, "endsAt": DUE}, f"1 piece, none valid since {DUE[:10]}"
    assert _evidence(alpha) == {CONTROL: (summary, words), "sun.A.11": world}
    alpha.archive(first)
    _, words_after = _evidence(alpha)[CONTROL]
    assert words_after == f"1 piece, none valid since {now()[:10]}"
    assert _evidence(alpha, asOf=then)[CONTROL] == (summary, words)
    gap = {one["id"]: one for one in done(alpha._send("GET", "/frameworks/fw-sun/gaps/", query={"asOf": then}))["gaps"]}
    assert gap[CONTROL]["evidence"] == summary
    assert gap["sun.A.7"]["evidence"] is None


def _evidence(alpha: Evidences, **query: str) -> dict[str, tuple[Json, str]]:
    """The evidence of each requirement that has some, in JSON, and as CSV and a workbook write it."""
    report = done(alpha._send("GET", SOA, query=query))
    entries = [*report["controls"], *report["mandatory"]["requirements"]]
    titles, *lines = csv.reader(
        StringIO(alpha._send("GET", SOA, query=query | {"format": "csv"}).content.decode("utf-8-sig"))
    )
    said = {line[0]: dict(zip(titles, line, strict=True))["Evidence"] for line in lines}
    book = load_workbook(BytesIO(alpha._send("GET", SOA, query=query | {"format": "xlsx"}).content))
    for sheet in book.worksheets[:2]:
        rows = [[cell or "" for cell in row] for row in sheet.iter_rows(values_only=True)]
        start = next(number for number, row in enumerate(rows) if row[0] == "Identifier")
        at = rows[start].index("Evidence")
        found = {str(row[0]): str(row[at]) for row in rows[start + 1 :]}
        assert all(said.setdefault(name, words) == words for name, words in found.items())
    return {one["id"]: (one["evidence"], said[one["identifier"]]) for one in entries if one["evidence"]}


def test_the_command_says_it(alpha: Evidences, normata: Run, database_url: str) -> None:
    alpha.supported(None)
    lines = normata("explain", ALPHA, CONTROL, "--database", database_url).out.splitlines()
    assert "├── evidence: 1 piece, without end" in lines
    assert any("Report (" in line and line.endswith("): valid") for line in lines)
    piece, _ = alpha.supported(LATER)
    assert any(
        line.endswith(f"Report ({piece}): valid until {LATER}")
        for line in normata("explain", ALPHA, CONTROL, "--database", database_url).out.splitlines()
    )
    assert "2 pieces, without end" in normata("gaps", ALPHA, "SUN-2", "--database", database_url, "--format", "csv").out


def test_the_page_of_a_control_has_a_card(people: People) -> None:
    service, page = people.instance, f"{PAGES}controls/{CONTROL}/"
    assert "Nothing was linked to the control as evidence." in text_of(people["viewer"].get(page))
    alpha = Evidences(service.client, service.bearer("admin"))
    done(alpha.put(CONTROL, coverageStatus="FULL"))
    before = moment()
    piece = alpha.made("/evidence/", {"name": "Checklist <b>", "type": "NOTE", "collectedAt": "2026-03-01"})
    link = alpha.link(piece)
    shown = text_of(people["viewer"].get(page))
    assert all(words in shown for words in ("Checklist <b>", "Collected", "Valid"))
    assert "Recorded later" in text_of(people["viewer"].get(f"{page}?asOf={before}"))
    alpha.set(piece, validUntil=PAST)
    assert "Expired" in text_of(people["viewer"].get(page))
    alpha.unlink(link)
    ended = text_of(people["viewer"].get(page))
    assert "There was evidence until" in ended
