"""Explaining coverage on the command line."""

from __future__ import annotations

import pytest

from normata.core.db.database import Database
from tests import mostly_sqlite, world
from tests.cli.commands import Run, failed
from tests.databases import on_both, tamper
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


@pytest.fixture
def explain(run: Run) -> Run:
    """Runs the command on the test world."""
    return lambda *arguments: run("explain", *arguments)


@on_both
def test_the_tree(explain: Run) -> None:
    done = explain(ALPHA, "own.A.2")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "A.2 own control 2 (OWN): FULL, indirectly",
        "├── not assessed",
        "└── because",
        "    └── is FULL, because it is contained in (by a match of your own)",
        "        └── A.1 moon control 1 (SUN-10) is FULL, because it is contained in",
        "            └── A.1 sun control 1 (SUN-2) is assessed FULL",
    ]


def test_what_hangs_on_it_and_what_would_lift_it(explain: Run) -> None:
    out = explain("alpha", "sun.A.1").out
    assert "├── assessed: FULL" in out
    assert "less covered without its own assessment: 3" in out
    assert "A.1 moon control 1 (SUN-10): FULL, and NONE without it" in out
    assert "A.2 sun control 2 (SUN-2): FULL instead of PARTIAL would make it FULL" in explain(ALPHA, "moon.A.2").out
    assert "gap: Two sites are missing." in explain(ALPHA, "sun.A.2").out
    assert "children that are not FULL: 10" in explain(ALPHA, "sun.A").out


def test_what_a_group_takes_with_it(explain: Run, database: Database) -> None:
    said = {"id": "say-sun.A", "organizationId": ALPHA, "controlId": "sun.A", "isApplicable": False}
    world.load(database, {"controlCoverages": [said | {"justification": "No premises.", "reasons": ["LEGAL"]}]})
    assert explain("alpha", "sun.A.5").out.splitlines() == [
        "A.5 sun control 5 (SUN-2): NONE",
        "├── not assessed",
        "└── excluded with A sun category: No premises.; LEGAL",
    ]


def test_what_is_against_an_assessment(explain: Run, database: Database) -> None:
    say = {"organizationId": ALPHA, "id": "say-own.A.2", "controlId": "own.A.2", "coverageStatus": "PARTIAL"}
    group = {"organizationId": ALPHA, "id": "say-own.A", "controlId": "own.A", "coverageStatus": "FULL"}
    mapping = {"id": "doc", "document": "moon-to-own", "name": "Moon to own", "version": "2"}
    published = {"id": "moon.A.1->own.A.2", "mappingDocumentId": "doc"}
    own = {"id": "ours", "organizationId": ALPHA, "sourceControlId": "sun.A.3", "targetControlId": "own.A.2"}
    world.load(
        database,
        {
            "mappingDocuments": [mapping],
            "controlMatches": [published, own | {"matchLevel": "FULL"}],
            "controlCoverages": [say, group],
        },
    )
    out = explain("alpha", "own.A.2").out
    first = out.splitlines().index("├── in conflict with matches that make it FULL (2)")
    assert out.splitlines()[first + 1 : first + 5] == [
        "│   ├── A.3 sun control 3 (SUN-2), match ours of your own",
        "│   │   └── A.3 sun control 3 (SUN-2) is assessed FULL",
        "│   └── A.1 moon control 1 (SUN-10), match moon.A.1->own.A.2 of your own",
        "│       └── A.1 sun control 1 (SUN-2) is assessed FULL",
    ]
    out = explain("alpha", "own.A").out
    first = out.splitlines().index("├── in conflict with what is assessed below it: 1")
    assert out.splitlines()[first + 1] == "│   └── A.2 own control 2 (OWN) is assessed PARTIAL"
    for number in range(1, 13):
        if number != 2:
            more = {"organizationId": ALPHA, "id": f"more-{number}", "controlId": f"own.A.{number}"}
            world.load(database, {"controlCoverages": [more | {"coverageStatus": "NONE"}]})
    assert "│   └── and 2 more" in explain("alpha", "own.A").out


def test_of_many_children_the_first_are_shown(explain: Run, database: Database) -> None:
    says = [
        {"id": f"s{number}", "organizationId": ALPHA, "controlId": f"own.A.{number}", "coverageStatus": "FULL"}
        for number in range(1, 13)
    ]
    world.load(database, {"controlCoverages": says})
    lines = explain(ALPHA, "own.A").out.splitlines()
    assert "    └── is FULL by its 12 children; the first 10 are shown" in lines
    assert sum("is assessed FULL" in line for line in lines) == 10
    tamper(
        database, "UPDATE effective_coverage SET rank = 0 WHERE control_id = 'own.A'", "DELETE FROM control_coverage"
    )
    lines = explain(ALPHA, "own.A").out.splitlines()
    assert "└── no proof is shown: it is too long, or the stored coverage is from before the newest upgrade" in lines


def test_names(explain: Run) -> None:
    assert failed(explain(ALPHA, "A.5")) == (
        "'A.5' names 3 controls; name one by its id: own.A.5 (OWN), sun.A.5 (SUN-2), moon.A.5 (SUN-10)"
    )
    for framework in ("SUN-10", "fw-moon"):
        assert "moon control 5" in explain(ALPHA, "A.5", "--framework", framework).out
    assert failed(explain(ALPHA, "A.5", "--framework", "STAR")) == (
        "no adopted framework 'STAR' has a control 'A.5'; there is own.A.5 (OWN), sun.A.5 (SUN-2), moon.A.5 (SUN-10)"
    )
    assert failed(explain(ALPHA, "B.1")) == "no adopted framework has a control 'B.1'"
    assert "star.A.4" in failed(explain(ALPHA, "star.A.4"))
    assert "no organization" in failed(explain("nobody", "A.5"))


def test_names_of_others_cannot_write_to_the_terminal(explain: Run, database: Database) -> None:
    world.load(database, {"controls": [{"id": "own.A.2", "name": "[red]\x1b[31mX"}]})
    out = explain(ALPHA, "own.A.2").out
    assert "\x1b" not in out
    assert "[red]" in out
