"""Statements of many controls at once over HTTP: all of them or none, merged with what is said, every fault told."""

from __future__ import annotations

import pytest

from normata.core.db.database import Database
from normata.coverage.assessments import MAX_AT_ONCE
from normata.frameworks.model import Framework
from tests import mostly_sqlite, stored, world
from tests.coverage.assessing import SILENCE, Stating, assert_consistent, done, faults, large
from tests.databases import on_both
from tests.world import BETA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

NO_CONTROL = "names no control of an adopted framework"


# --- What is stored


def test_answers_are_in_the_order_of_the_request(alpha: Stating) -> None:
    names = ["sun.A.9", "moon.A.1", "own.A.3", "sun.A.1"]
    items = done(alpha.patch(*({"controlId": name, "coverageStatus": "PARTIAL"} for name in names)))["items"]
    assert [item["control"]["id"] for item in items] == names
    assert {item["coverage"]["coverageStatus"] for item in items} == {"PARTIAL"}


@on_both
def test_effective_coverage_follows_from_all_of_them_together(alpha: Stating, database: Database) -> None:
    """All children of a category; and a match from a control that comes after the one that it lifts."""
    names = ["moon.A.2", "sun.A.2", *(f"own.A.{number}" for number in range(1, 13))]
    said = [{"controlId": name, "coverageStatus": "NONE" if name == "moon.A.2" else "FULL"} for name in names]
    items = done(alpha.patch(*said))["items"]
    assert [(item["effectiveCoverageStatus"], item["isIndirectlyCovered"]) for item in items[:2]] == [
        ("FULL", True),
        ("FULL", False),
    ]
    listed = alpha.effective()
    assert listed["own.A"] == "FULL"
    assert {item["control"]["id"]: item["effectiveCoverageStatus"] for item in items}.items() <= listed.items()
    assert_consistent(database)


def test_what_is_left_out_stays_as_it_is(alpha: Stating) -> None:
    said = {"coverageStatus": "PARTIAL", "coverageGap": "Half.", "justification": "Law.", "reasons": ["LEGAL"]}
    done(alpha.put("sun.A.5", **said))
    done(alpha.patch({"controlId": "sun.A.5", "coverageStatus": "FULL"}))
    assert alpha.said("sun.A.5") == SILENCE | said | {"coverageStatus": "FULL"}
    done(alpha.patch({"controlId": "sun.A.5", "coverageGap": None, "reasons": []}))
    expected = SILENCE | {"coverageStatus": "FULL", "justification": "Law."}
    assert alpha.said("sun.A.5") == expected
    done(alpha.patch({"controlId": "sun.A.5", "isApplicable": False}))  # it is justified already
    assert alpha.said("sun.A.5") == expected | {"isApplicable": False}
    told = faults(alpha.patch({"controlId": "sun.A.5", "justification": None}))
    assert told == [("assessments/0/justification", "is required where the control is not applicable")]


def test_of_what_nothing_was_said_the_rest_is_silence(alpha: Stating) -> None:
    done(alpha.patch({"controlId": "sun.A.9", "coverageGap": "All of it."}))
    assert alpha.said("sun.A.9") == SILENCE | {"coverageGap": "All of it."}


# --- Which controls are meant


@pytest.mark.parametrize("framework", ["fw-moon", "sun-10", "SUN-10"])
def test_by_framework_and_identifier(alpha: Stating, database: Database, framework: str) -> None:
    slug = stored.row(database, Framework, "fw-moon")["slug"]
    assert slug == "sun-10"
    [item] = done(alpha.patch({"identifier": "A.5", "framework": framework, "coverageStatus": "FULL"}))["items"]
    assert item["control"]["id"] == "moon.A.5"


def test_by_identifier_alone_where_one_framework_has_it(alpha: Stating, database: Database) -> None:
    world.load(database, large(2))
    [item] = done(alpha.patch({"identifier": "L1", "coverageStatus": "FULL"}))["items"]
    assert item["control"]["id"] == "large.1"


def test_what_is_ambiguous_is_told_with_the_choices(alpha: Stating, database: Database) -> None:
    told = faults(alpha.patch({"identifier": "A.5", "coverageStatus": "FULL"}))
    assert told == [("assessments/0/identifier", "is ambiguous; name the framework: OWN, SUN-10, SUN-2")]
    namesake = {"id": "sun.A.5-again", "frameworkId": "fw-sun", "identifier": "A.5", "name": "The same again"}
    world.load(database, {"controls": [namesake]})
    told = faults(alpha.patch({"identifier": "A.5", "framework": "SUN-2", "coverageStatus": "FULL"}))
    assert told == [("assessments/0/identifier", "is ambiguous; name the control by its id: sun.A.5, sun.A.5-again")]


def test_frameworks_that_are_not_adopted_make_nothing_ambiguous(beta: Stating) -> None:
    """Beta has adopted a framework of its own and STAR. Three more have A.5, and they are not named."""
    told = faults(beta.patch({"identifier": "A.5"}))
    assert told == [("assessments/0/identifier", "is ambiguous; name the framework: FOREIGN, STAR")]
    done(beta.leave("fw-star"))
    [item] = done(beta.patch({"identifier": "A.5", "coverageStatus": "FULL"}))["items"]
    assert item["control"]["id"] == "foreign.A.5"


# --- All or none


@on_both
def test_every_fault_is_told_with_its_place_and_nothing_is_stored(alpha: Stating, database: Database) -> None:
    before = stored.everything(database)
    told = faults(
        alpha.patch(
            {"controlId": "sun.A.5", "coverageStatus": "FULL"},
            {"controlId": "nothing", "coverageStatus": "FULL"},
            {"identifier": "A.6", "coverageStatus": "FULL"},
            {"identifier": "A.6", "framework": "STAR", "coverageStatus": "FULL"},
            {"controlId": "sun.A.6", "framework": "SUN-10"},
            {"controlId": "sun.A.7", "isApplicable": False},
            {"identifier": "A.5", "framework": "SUN-2", "coverageStatus": "NONE"},
        )
    )
    assert sorted(told) == [
        ("assessments/1/controlId", NO_CONTROL),
        ("assessments/2/identifier", "is ambiguous; name the framework: OWN, SUN-10, SUN-2"),
        ("assessments/3/identifier", "names no control of the adopted framework 'STAR'"),
        ("assessments/4/controlId", "names no control of the adopted framework 'SUN-10'"),
        ("assessments/5/justification", "is required where the control is not applicable"),
        ("assessments/6", "is about the same control as /assessments/0"),
    ]
    assert stored.everything(database) == before


def test_every_fault_of_the_form_is_told_with_its_place(alpha: Stating, database: Database) -> None:
    before = stored.everything(database)
    told = faults(
        alpha.patch(
            {"controlId": "sun.A.5", "coverageStatus": "FULL"},
            {"controlId": "sun.A.6", "coverageStatus": "full"},
            {"controlId": "sun.A.7", "reasons": ["LEGAL", "not a token"], "coverageGap": 7},
            {"coverageStatus": "FULL"},
            {"controlId": "sun.A.8", "identifier": "A.8"},
            {"controlId": "sun.A.9", "organizationId": BETA},
        )
    )
    assert [name for name, _ in told] == [
        "assessments/1/coverageStatus",
        "assessments/2/coverageGap",
        "assessments/2/reasons/1",
        "assessments/3",
        "assessments/4",
        "assessments/5/organizationId",
    ]
    assert stored.everything(database) == before


@on_both
def test_five_hundred_are_the_most(alpha: Stating, database: Database) -> None:
    assert MAX_AT_ONCE == 500
    world.load(database, large(501))
    said = [{"controlId": f"large.{number}", "coverageStatus": "FULL"} for number in range(501)]
    before = stored.everything(database)
    [(place, message)] = faults(alpha.patch(*said))
    assert place == "assessments"
    assert "500" in message
    assert stored.everything(database) == before
    items = done(alpha.patch(*said[:500]))["items"]
    assert [item["control"]["id"] for item in items] == [one["controlId"] for one in said[:500]]
    assert alpha.effective()["large.499"] == "FULL"
    assert alpha.effective()["large.500"] == "NONE"
    assert_consistent(database)


def test_none_is_too_few(alpha: Stating) -> None:
    [(place, message)] = faults(alpha.patch())
    assert place == "assessments"
    assert "1" in message
