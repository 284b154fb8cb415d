"""Explanations over HTTP: what they show of many children, and where the stored coverage has no ranks."""

from __future__ import annotations

import pytest

from normata.core.db.database import Database
from tests import world
from tests.coverage.assessing import Json, Stating, done, large
from tests.databases import tamper
from tests.world import ALPHA

NO_RANKS = "UPDATE effective_coverage SET rank = 0"  # as a version without ranks leaves what it writes


def state_all(alpha: Stating) -> None:
    """State all twelve children of own.A FULL."""
    done(alpha.patch(*({"controlId": f"own.A.{number}", "coverageStatus": "FULL"} for number in range(1, 13))))


def test_of_many_children_the_first_are_shown(alpha: Stating) -> None:
    state_all(alpha)
    found = done(alpha.explanation("own.A"))
    assert found["isProved"]
    *children, last = found["proof"]
    assert (last["rule"], last["premiseCount"], len(last["premises"])) == ("ROLL_UP", 12, 10)
    assert [one["controlId"] for one in last["premises"]] == [f"own.A.{number}" for number in range(1, 11)]
    assert [(step["control"]["id"], step["rule"], step["premiseCount"]) for step in children] == [
        (f"own.A.{number}", "ASSESSMENT", 0) for number in range(1, 11)
    ]


def test_children_that_are_lacking_are_counted(alpha: Stating) -> None:
    state_all(alpha)
    done(alpha.put("own.A.3", coverageStatus="PARTIAL"))
    done(alpha.put("own.A.5", coverageStatus="NONE"))
    done(alpha.put("own.A.9", isApplicable=False, justification="There is none."))
    found = done(alpha.explanation("own.A"))
    assert [control["id"] for control in found["lacking"]] == ["own.A.3", "own.A.5"]
    assert found["lackingCount"] == 2
    last = found["proof"][-1]
    assert (last["level"], last["premiseCount"]) == ("PARTIAL", 1)
    assert last["premises"] == [{"controlId": "own.A.1", "level": "PARTIAL"}]


def test_where_ranks_are_missing_a_short_proof_is_found(alpha: Stating, database: Database) -> None:
    tamper(database, NO_RANKS)
    found = done(alpha.explanation("own.A.2"))
    assert found["isProved"]
    assert [(step["control"]["id"], step["rule"]) for step in found["proof"]] == [
        ("sun.A.1", "ASSESSMENT"),
        ("moon.A.1", "MATCH"),
        ("own.A.2", "MATCH"),
    ]


def test_where_ranks_are_missing_and_no_proof_is_found_that_is_told(alpha: Stating, database: Database) -> None:
    """The children that are not shown may rest on the category, for all that is known."""
    state_all(alpha)
    done(alpha.put("own.A.2"))  # by a match it is FULL all the same
    assert done(alpha.explanation("own.A"))["isProved"]
    tamper(database, NO_RANKS)
    found = done(alpha.explanation("own.A"))
    assert (found["effectiveCoverageStatus"], found["proof"], found["isProved"]) == ("FULL", [], False)
    assert done(alpha.explanation("own.A.9"))["isProved"], "it is stated"


@pytest.mark.parametrize(("last", "are_all"), [(3, True), (5, False)])
def test_lifts_are_not_said_to_be_all_where_more_may_be_further(
    alpha: Stating, database: Database, last: int, *, are_all: bool
) -> None:
    world.load(database, large(6) | {"controlMatches": [match(number) for number in range(5)]})
    found = done(alpha.explanation(f"large.{last - 1}"))
    nearest = [f"large.{number}" for number in range(last - 2, max(-1, last - 5), -1)]
    assert [lift["control"]["id"] for lift in found["lifts"]] == nearest
    assert found["liftsAreAll"] is are_all


def match(number: int) -> Json:
    """A match of a chain."""
    return {
        "id": f"chain-{number}",
        "organizationId": ALPHA,
        "sourceControlId": f"large.{number}",
        "targetControlId": f"large.{number + 1}",
        "matchLevel": "FULL",
    }


def test_what_leaving_a_control_out_does_for_its_category_is_told(alpha: Stating) -> None:
    """The category is FULL only because the one child that lacks does not apply."""
    state_all(alpha)
    done(alpha.put("own.A.7", isApplicable=False, justification="There is none."))
    effects = done(alpha.explanation("own.A.7"))["effects"]
    assert effects["count"] == 1
    assert [(one["control"]["id"], one["level"], one["without"]) for one in effects["items"]] == [
        ("own.A", "FULL", "PARTIAL")
    ]


def test_where_one_statement_may_do_through_several_children_others_are_not_said_to_be_all(alpha: Stating) -> None:
    state_all(alpha)
    done(alpha.put("own.A", coverageStatus="FULL"))
    found = done(alpha.explanation("own.A"))
    assert [step["rule"] for step in found["proof"]] == ["ASSESSMENT"]
    assert not found["othersAreAll"]
