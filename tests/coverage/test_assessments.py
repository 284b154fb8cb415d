"""Statements: what an organization says of a control, and what it must say with it."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.changes.source import FaultyInput
from normata.core.db.database import Database
from normata.core.schema.fields import REASONS
from normata.frameworks.model import ControlCoverage
from tests import stored, world
from tests.world import ALPHA

NEEDED = "/controlCoverages/0/justification: is required where the control is not applicable"
NEW = {"id": "new", "organizationId": ALPHA, "controlId": "sun.A.8"}


def faults(database: Database, statement: dict[str, Any]) -> list[str]:
    with pytest.raises(FaultyInput) as caught:
        world.load(database, {"controlCoverages": [statement]})
    return [f"{fault.place}: {fault.reason}" for fault in caught.value.faults]


def load(database: Database, statement: dict[str, Any]) -> dict[str, Any]:
    world.load(database, {"controlCoverages": [statement]})
    return stored.row(database, ControlCoverage, statement["id"])


@pytest.mark.parametrize("justification", [{}, {"justification": None}, {"justification": " \n"}])
def test_what_is_not_applicable_needs_a_justification(database: Database, justification: dict[str, Any]) -> None:
    assert faults(database, NEW | {"isApplicable": False} | justification) == [NEEDED]
    assert faults(database, {"id": "say-sun.A.1", "isApplicable": False} | justification) == [NEEDED]
    assert stored.rows(database, ControlCoverage, is_applicable=False) == []


def test_a_justification_cannot_be_taken_away_while_it_is_needed(database: Database) -> None:
    found = load(database, NEW | {"isApplicable": False, "justification": "We have no premises."})
    assert (found["is_applicable"], found["justification"]) == (False, "We have no premises.")
    assert faults(database, {"id": "new", "justification": None}) == [NEEDED]
    found = load(database, {"id": "new", "justification": "We own none."})
    assert (found["is_applicable"], found["justification"]) == (False, "We own none.")
    found = load(database, {"id": "new", "isApplicable": True, "justification": None})
    assert (found["is_applicable"], found["justification"]) == (True, None)


def test_reasons_are_tokens_in_their_order_each_once(database: Database) -> None:
    assert load(database, NEW)["reasons"] == []
    assert load(database, NEW | {"reasons": list(REASONS)})["reasons"] == list(REASONS)
    assert load(database, NEW | {"reasons": ["LEGAL", "OUR_OWN", "LEGAL"]})["reasons"] == ["LEGAL", "OUR_OWN"]
    assert load(database, {"id": "new", "reasons": []})["reasons"] == []


@pytest.mark.parametrize("reasons", [["legal"], [""], ["TWO WORDS"], "LEGAL", None, [1], [f"R{n}" for n in range(21)]])
def test_reasons_that_are_none(database: Database, reasons: Any) -> None:
    [fault] = faults(database, NEW | {"reasons": reasons})
    assert fault.startswith("/controlCoverages/0/reasons")


def test_the_longest_reasons_fit(database: Database) -> None:
    reasons = [f"R{number:02}" + "X" * 61 for number in range(20)]
    assert load(database, NEW | {"reasons": reasons})["reasons"] == reasons


def test_it_has_its_times(database: Database) -> None:
    first = load(database, NEW)
    assert first["created_at"] == first["updated_at"] is not None
    again = load(database, {"id": "new", "coverageGap": "Half."})
    assert again["created_at"] == first["created_at"]
    assert again["updated_at"] >= first["updated_at"]
