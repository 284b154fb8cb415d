"""Stating coverage, and leaving frameworks, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from normata.core.db.database import Database
from normata.coverage.recompute import stored_coverage
from normata.frameworks.model import ControlCoverage
from tests import mostly_sqlite, stored
from tests.cli.commands import Done, Run, failed
from tests.coverage.assessing import assert_consistent, large
from tests.databases import on_both
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


def said(database: Database, control_id: str) -> dict[str, Any] | None:
    """What alpha says of a control; null where it says nothing."""
    rows = stored.rows(database, ControlCoverage, organization_id=ALPHA, control_id=control_id)
    names = ("coverage_status", "coverage_gap", "is_applicable", "justification", "reasons")
    return {name: rows[0][name] for name in names} if rows else None


# --- One control


@on_both
def test_one_control(run: Run, where: tuple[str, str], database: Database) -> None:
    done = run("assess", "alpha", "A.5", "partial", "--framework", "SUN-2", "--gap", "Half.", "--reason", "legal")
    assert done == Done(0, "SUN-2 A.5 sun control 5: assessed PARTIAL; effective PARTIAL\n", "")
    assert said(database, "sun.A.5") == {
        "coverage_status": "PARTIAL",
        "coverage_gap": "Half.",
        "is_applicable": None,
        "justification": None,
        "reasons": ["LEGAL"],
    }
    # A command on the database has no user to name.
    assert len(stored.events(database)) == (where[0] == "--server")


def test_what_is_left_out_stays(run: Run, database: Database) -> None:
    run("assess", ALPHA, "sun.A.5", "PARTIAL", "--gap", "Half.")
    done = run("assess", ALPHA, "sun.A.5", "--not-applicable", "--justification", "No premises.")
    assert done.out == "SUN-2 A.5 sun control 5: assessed PARTIAL, not applicable; effective NONE\n"
    done = run("assess", ALPHA, "sun.A.5", "--applicable", "FULL")
    assert done.out == "SUN-2 A.5 sun control 5: assessed FULL; effective FULL\n"
    assert said(database, "sun.A.5") == {
        "coverage_status": "FULL",
        "coverage_gap": "Half.",
        "is_applicable": True,
        "justification": "No premises.",
        "reasons": [],
    }


@on_both
def test_what_follows_is_stored(run: Run, database: Database) -> None:
    assert run("assess", ALPHA, "sun.A.2", "FULL").code == 0
    found = database.read_now(lambda transaction: stored_coverage(transaction, ALPHA))
    assert found["moon.A.2"].effective.name == "FULL"
    assert_consistent(database)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("A.5", "FULL"), 1, "CONTROL is ambiguous; name the framework: OWN, SUN-10, SUN-2"),
        (("B.1", "FULL"), 1, "CONTROL names no control of an adopted framework"),
        (("star.A.4", "FULL"), 1, "CONTROL names no control of an adopted framework"),
        (("foreign.A.1", "FULL"), 1, "CONTROL names no control of an adopted framework"),
        (("A.5", "FULL", "--framework", "STAR"), 1, "CONTROL names no control of the adopted framework 'STAR'"),
        (("sun.A.5", "--not-applicable"), 1, "--justification is required where the control is not applicable"),
        (("sun.A.5", "MOST"), 2, "STATUS must be one of NONE, PARTIAL, FULL"),
        (("sun.A.5", "--reason", "our own"), 2, "--reason must match ^[A-Z][A-Z0-9_]*$"),
        (("sun.A.5",), 2, "name a control and its assessment, or a file with --file"),
        ((), 2, "name a control and its assessment, or a file with --file"),
        (("sun.A.5", "FULL", "--file", "s.csv"), 2, "name a control and its assessment, or a file with --file"),
        (("--file", "s.csv", "--gap", "x"), 2, "name a control and its assessment, or a file with --file"),
        (("--file", "s.csv", "--framework", "x"), 2, "name a control and its assessment, or a file with --file"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    run: Run, database: Database, arguments: tuple[str, ...], code: int, told: str
) -> None:
    before = stored.everything(database)
    assert failed(run("assess", ALPHA, *arguments), code) == told
    assert stored.everything(database) == before


def test_an_unknown_organization_is_one_sentence(run: Run) -> None:
    assert "nowhere" in failed(run("assess", "nowhere", "sun.A.5", "FULL"))


# --- A file


@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["without a byte-order mark", "with a byte-order mark"])
@pytest.mark.parametrize("delimiter", [",", ";"])
@on_both
def test_a_file(run: Run, folder: Path, database: Database, start: str, delimiter: str) -> None:
    table = (
        "framework,identifier,status,gap,applicable,justification,reasons",
        'SUN-2,A.5,full,"Größe\nund Maß",,,',
        "fw-moon,A.5,,,no,No premises.,LEGAL",
        "own,A.7,PARTIAL,,,,",
    )
    text = start + "\r\n".join(line.replace(",", delimiter) for line in table)
    (folder / "s.csv").write_text(text, encoding="utf-8", newline="")
    assert run("assess", "alpha", "--file", "s.csv") == Done(0, "3 assessments stored\n", "")
    nothing: dict[str, Any] = {"coverage_gap": None, "is_applicable": None, "justification": None, "reasons": []}
    assert said(database, "sun.A.5") == nothing | {"coverage_status": "FULL", "coverage_gap": "Größe\nund Maß"}
    excluded = {"is_applicable": False, "justification": "No premises.", "reasons": ["LEGAL"]}
    assert said(database, "moon.A.5") == nothing | excluded | {"coverage_status": None}
    assert said(database, "own.A.7") == nothing | {"coverage_status": "PARTIAL"}
    assert_consistent(database)


def test_all_faults_of_a_file_are_told_and_nothing_is_stored(run: Run, folder: Path, database: Database) -> None:
    """Those of reading it, and those that only the database can tell."""
    (folder / "s.csv").write_text(
        "framework,identifier,status,applicable\n"
        "SUN-2,A.5,FULL,\n"
        "SUN-2,A.6,MOST,\n"
        ",A.7,FULL,\n"
        "SUN-2,B.1,FULL,\n"
        "SUN-2,A.9,,no\n"
        "fw-sun,A.5,NONE,\n"
    )
    before = stored.everything(database)
    done = run("assess", ALPHA, "--file", "s.csv")
    assert (done.code, done.out) == (1, "")
    *told, last = done.err.splitlines()
    assert sorted(told) == [
        "s.csv: /3/status: must be one of NONE, PARTIAL, FULL",
        "s.csv: /4/identifier: is ambiguous; name the framework: OWN, SUN-10, SUN-2",
        "s.csv: /5/identifier: names no control of the adopted framework 'SUN-2'",
        "s.csv: /6/justification: is required where the control is not applicable",
        "s.csv: /7: is about the same control as /2",
    ]
    assert last == "normata: 5 faults found, nothing was changed"
    assert stored.everything(database) == before


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"identifier\n\xff\n", "is not UTF-8 text"),
        (b"identifier,status\n", "has no assessments"),
        (b"control,status\nA.1,FULL\n", "/1: names columns that are not known here: 'control'"),
    ],
)
def test_a_file_that_is_none(run: Run, folder: Path, content: bytes | None, told: str) -> None:
    if content is not None:
        (folder / "s.csv").write_bytes(content)
    done = run("assess", ALPHA, "--file", "s.csv")
    assert (done.code, done.out) == (1, "")
    first, last = done.err.splitlines()
    assert first.startswith(f"s.csv: {told}")
    assert last == "normata: 1 fault found, nothing was changed"


def test_a_file_may_have_more_than_a_request(
    run: Run, where: tuple[str, str], folder: Path, database: Database
) -> None:
    stored.load(database, large(1_200))
    lines = [f"L{number},FULL" for number in range(1_200)]
    (folder / "s.csv").write_text("\n".join(["identifier,status", *lines]))
    done = run("assess", ALPHA, "--file", "s.csv")
    if where[0] == "--server":
        assert failed(done).startswith("a server takes at most 500 assessments at once, and there are 1,200; split ")
        return
    assert done.out == "1200 assessments stored\n"
    assert_consistent(database)


# --- Leaving


@on_both
def test_leaving_and_adopting_again(run: Run, database: Database) -> None:
    before = database.read_now(lambda transaction: stored_coverage(transaction, ALPHA))
    assert run("leave", "alpha", "SUN-2", "fw-star") == Done(0, "fw-sun: left\nfw-star: was not adopted\n", "")
    assert said(database, "sun.A.1") is not None
    assert_consistent(database)
    assert run("leave", "alpha", "fw-sun").out == "fw-sun: was not adopted\n"
    assert run("adopt", "alpha", "fw-sun").out == "fw-sun: adopted\n"
    assert database.read_now(lambda transaction: stored_coverage(transaction, ALPHA)) == before


@pytest.mark.parametrize("name", ["nothing", "fw-foreign", "fw-old"])
def test_leaving_what_cannot_be_seen_is_one_sentence_and_leaves_nothing(
    run: Run, database: Database, name: str
) -> None:
    before = stored.everything(database)
    assert f"can see no framework {name!r}" in failed(run("leave", ALPHA, "fw-sun", name))
    assert stored.everything(database) == before
