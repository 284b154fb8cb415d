"""gaps and soa: the bytes that HTTP answers, in files for their owner alone, and a short table for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from normata.cli.reports import _SHOWN
from normata.events.sealing import seal_all_now
from tests import mostly_sqlite, stored
from tests.cli.commands import Done, Run, failed, mode, on_terminal, program
from tests.client import TestClient
from tests.databases import on_both, open_url
from tests.reports.reported import FRAMEWORK, document
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

PATHS = {"gaps": "gaps", "soa": "statement-of-applicability"}

both_reports = pytest.mark.parametrize("report", PATHS)


@pytest.fixture(autouse=True)
def reported(database_url: str) -> None:
    """A framework worth reporting on."""
    database = open_url(database_url)
    stored.load(database, document())
    seal_all_now(database)  # so that a statement says the same of the log until something is done
    database.close()


@pytest.fixture
def answered(client: TestClient, bearer: Callable[..., dict[str, str]]) -> Callable[[str, str], bytes]:
    """What HTTP answers: ``answered("gaps", "csv")``."""

    def one(report: str, name: str) -> bytes:
        query = {"organizationId": ALPHA, "format": name}
        answer = client.get(f"/frameworks/{FRAMEWORK}/{PATHS[report]}/", params=query, headers=bearer("viewer"))
        assert answer.status_code == 200
        content: bytes = answer.content
        return content

    return one


@pytest.mark.parametrize(
    ("report", "name"), [(report, name) for report in PATHS for name in ("json", "csv", "xlsx")] + [("soa", "pdf")]
)
def test_a_file_has_the_bytes_that_http_answers(
    run: Run, answered: Callable[[str, str], bytes], report: str, name: str
) -> None:
    """Whether the format is said, or told by the name of the file."""
    assert run(report, "alpha", "REP-1", "--output", f"by-name.{name}") == Done(0, "", "")
    assert run(report, ALPHA, FRAMEWORK, "--format", name, "--output", "said") == Done(0, "", "")
    assert Path(f"by-name.{name}").read_bytes() == Path("said").read_bytes() == answered(report, name)
    assert mode(Path("said")) == 0o600


@pytest.mark.parametrize(("report", "name"), [("gaps", "json"), ("soa", "csv"), ("soa", "xlsx")])
def test_standard_output_has_them_too(database_url: str, normata: Run, folder: Path, report: str, name: str) -> None:
    normata(report, "alpha", "rep-1", "--output", f"file.{name}", "--database", database_url)
    with (folder / "piped").open("wb") as pipe:
        done = program(report, "alpha", "rep-1", "--format", name, "--database", database_url, stdout=pipe)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "piped").read_bytes() == (folder / f"file.{name}").read_bytes()


@on_both
def test_without_a_format_it_is_a_short_table(run: Run) -> None:
    out = run("gaps", "alpha", "REP-1").out.splitlines()
    assert out[:2] == ["REP-1 Reported, Alpha", "7 controls apply (3 NONE, 2 PARTIAL, 2 FULL), 2 do not"]
    assert out[3].split() == ["Identifier", "Covered", "Mandatory", "Evidence", "Name", "Closed", "by"]
    assert out[4].split() == [
        *("1.1.a", "NONE", "yes", "Requirement", "1.1.a"),
        *("SUN-2", "A.8,", "SUN-2", "A.4,", "SUN-2", "A.5"),
    ]
    assert len(out) == 4 + 5
    out = run("soa", "alpha", "REP-1").out.splitlines()
    assert out[2] == "Mandatory requirements: 1 (1 NONE, 0 PARTIAL, 0 FULL)"
    assert out[5].split()[:3] == ["1.1.b", "yes", "partly"]
    assert "applicable without status" in out[6]
    assert len(out) == 5 + 8
    with_others = run("soa", "alpha", "REP-1", "--with", "SUN-2").out.splitlines()
    assert [line.split()[0] for line in with_others[5 + 8 :]] == ["A.1", "A.3", "A.5", "A.7", "A.11"]
    assert ["ended" in line for line in with_others[-2:]] == [False, True], "its evidence is not valid any more"


def test_the_table_is_short_and_shows_no_markup(run: Run, database_url: str) -> None:
    many = [
        {"id": f"rep.9.{number}", "frameworkId": FRAMEWORK, "identifier": f"9.{number}", "name": "[red]\x1b[31mname"}
        for number in range(_SHOWN)
    ]
    stored.load(open_url(database_url), {"controls": many})
    out = run("gaps", "alpha", "REP-1").out
    assert "[red]\\u001b[31mname" in out
    assert out.splitlines()[-1] == "… and 5 more; --format csv has them all"


def test_a_terminal_gets_no_workbook_and_obeys_nothing(database_url: str) -> None:
    code, shown = on_terminal("gaps", "alpha", "REP-1", "--format", "xlsx", "--database", database_url)
    assert code == 2
    assert "use --output with a file name" in shown
    code, shown = on_terminal("gaps", "alpha", "REP-1", "--format", "csv", "--database", database_url)
    assert code == 0
    assert shown.splitlines()[0].startswith("Identifier,Name,")
    code, shown = on_terminal("soa", "alpha", "REP-1", "--format", "json", "--database", database_url)
    assert (code, json.loads(shown)["framework"]["id"]) == (0, FRAMEWORK)


@both_reports
def test_what_is_wrong_is_told(run: Run, folder: Path, report: str) -> None:
    told = failed(run(report, "alpha", "STAR"))
    assert told == "the organization has not adopted a framework 'STAR'; it has adopted OWN, REP-1, SUN-2, SUN-10"
    assert failed(run(report, "nobody", "REP-1")).startswith("no organization 'nobody'; ")
    told = failed(run(report, "alpha", "REP-1", "--output", "report.odt"), 2)
    known = {"gaps": "json, csv or xlsx", "soa": "json, csv, xlsx or pdf"}[report]
    assert told == f"report.odt has no known extension; use --format {known}"
    (folder / "report.csv").write_text("yesterday's")
    told = failed(run(report, "alpha", "REP-1", "--output", "report.csv"))
    assert told == "report.csv exists already; --force replaces it"
    assert run(report, "alpha", "REP-1", "--output", "report.csv", "--force").code == 0
    assert (folder / "report.csv").read_bytes().startswith(b"\xef\xbb\xbf")


def test_an_organization_that_has_adopted_nothing_is_told_what_to_do(normata: Run, database_url: str) -> None:
    stored.load(open_url(database_url), {"organizations": [{"id": "org-gamma", "name": "Gamma"}]})
    told = failed(normata("soa", "gamma", "REP-1", "--database", database_url))
    assert told.endswith("it has adopted none; `normata adopt` does that")
