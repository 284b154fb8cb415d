"""Statements of single controls over HTTP: what they replace, what follows, who sees it, what is written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from httpx2 import Response

from normata.core.db.database import Database
from normata.frameworks.model import ControlCoverage
from normata.records.kinds import Task
from tests import mostly_sqlite, stored, world
from tests.coverage.assessing import SILENCE, Stating, assert_consistent, done, faults
from tests.databases import on_both
from tests.listing import Listing
from tests.served import refused
from tests.world import ALPHA, BETA, record_id

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

SAID = {
    "coverageStatus": "PARTIAL",
    "coverageGap": "Two sites are missing.",
    "isApplicable": True,
    "justification": "The customer wants it.",
    "reasons": ["CONTRACTUAL", "OUR_OWN"],
    "ownerId": "member-editor",
    "note": "By hand, each morning.",
    "reviewBy": "2031-02-03T00:00:00.000Z",
}

NEVER: dict[str, Any] = {"updatedAt": None, "assessedAt": None, "stale": [], "lapsedStatus": None, "lapsedAt": None}


# --- PUT


@on_both
def test_it_answers_with_the_control_its_statement_and_what_follows(alpha: Stating) -> None:
    answer = done(alpha.put("sun.A.5", **SAID))
    assert answer["control"] == {"id": "sun.A.5", "identifier": "A.5", "name": "sun control 5"}
    assert (answer["framework"]["id"], answer["framework"]["identifier"]) == ("fw-sun", "SUN-2")
    assert {name: answer["coverage"][name] for name in SAID} == SAID
    assert (answer["effectiveCoverageStatus"], answer["isIndirectlyCovered"]) == ("PARTIAL", False)
    assert alpha.said("sun.A.5") == SAID
    assert done(alpha.control("sun.A.5"))["coverage"] == answer["coverage"]


@on_both
def test_it_replaces_all_that_was_said(alpha: Stating, database: Database) -> None:
    done(alpha.put("sun.A.5", **SAID))
    first = stored.rows(database, ControlCoverage, control_id="sun.A.5")[0]
    answer = done(alpha.put("sun.A.5", coverageStatus="FULL"))
    assert alpha.said("sun.A.5") == SILENCE | {"coverageStatus": "FULL"}
    [row] = stored.rows(database, ControlCoverage, control_id="sun.A.5")
    assert (row["id"], row["created_at"]) == (first["id"], first["created_at"])
    assert row["updated_at"] == answer["coverage"]["updatedAt"] >= first["updated_at"]
    done(alpha.put("sun.A.5"))
    assert alpha.said("sun.A.5") == SILENCE


def test_the_same_again_changes_nothing(alpha: Stating, database: Database) -> None:
    first = done(alpha.put("sun.A.5", **SAID))
    before = stored.everything(database)
    assert done(alpha.put("sun.A.5", **SAID)) == first
    assert stored.everything(database) == before


def test_an_identifier_is_no_address(alpha: Stating) -> None:
    assert alpha.put("A.5", **SAID).status_code == 404


@pytest.mark.parametrize(
    "justification", [{}, {"justification": None}, {"justification": ""}, {"justification": " \n"}]
)
def test_what_is_not_applicable_needs_a_justification(
    alpha: Stating, database: Database, justification: dict[str, Any]
) -> None:
    before = stored.everything(database)
    response = alpha.put("sun.A.1", isApplicable=False, **justification)
    assert faults(response) == [("justification", "is required where the control is not applicable")]
    assert stored.everything(database) == before
    done(alpha.put("sun.A.1", isApplicable=False, justification="We have no premises."))
    shown = done(alpha.control("sun.A.1"))
    assert (shown["coverage"]["isApplicable"], shown["effectiveCoverageStatus"]) == (False, "NONE")


def test_every_fault_of_a_body_is_told(alpha: Stating) -> None:
    said = {"coverageStatus": "MOST", "isApplicable": "no", "reasons": ["legal"], "reason": "LEGAL"}
    told = dict(faults(alpha.put("sun.A.5", **said)))
    assert told.keys() == {"coverageStatus", "isApplicable", "reasons/0", "reason"}
    assert told["coverageStatus"] == "must be one of NONE, PARTIAL, FULL"
    assert told["reason"] == "is not a known field"


# --- DELETE


@on_both
def test_delete_says_nothing_any_more_and_may_be_said_twice(alpha: Stating, database: Database) -> None:
    assert alpha.effective()["own.A.2"] == "FULL"  # by sun.A.1 and moon.A.1
    first = done(alpha.delete("sun.A.1"))
    assert first["coverage"] == SILENCE | NEVER
    assert first["effectiveCoverageStatus"] == "NONE"
    assert stored.rows(database, ControlCoverage, control_id="sun.A.1") == []
    effective = alpha.effective()
    assert [effective[name] for name in ("sun.A.1", "moon.A.1", "own.A.2")] == ["NONE"] * 3
    before = stored.everything(database)
    assert done(alpha.delete("sun.A.1")) == first
    assert done(alpha.delete("sun.A.9"))["coverage"] == SILENCE | NEVER
    assert stored.everything(database) == before


# --- What follows


def test_what_follows_is_the_same_wherever_it_is_shown(alpha: Stating, database: Database) -> None:
    assert alpha.effective()["moon.A.2"] == "NONE"
    for said, expected in (
        ({"coverageStatus": "FULL"}, "FULL"),
        ({"coverageStatus": "PARTIAL"}, "PARTIAL"),
        ({}, "NONE"),
    ):
        answer = done(alpha.put("sun.A.2", **said))
        assert answer["effectiveCoverageStatus"] == expected
        listed = alpha.listed()
        for control_id in ("sun.A.2", "moon.A.2", "moon.A", "sun.A"):
            one = done(alpha.control(control_id))
            for name in ("effectiveCoverageStatus", "isIndirectlyCovered"):
                assert one[name] == listed[control_id][name], control_id
        assert listed["sun.A.2"]["effectiveCoverageStatus"] == expected
        assert listed["sun.A.2"]["coverage"] == {
            "coverageStatus": said.get("coverageStatus", "NONE"),
            "coverageGap": None,
        }
        lifted = listed["moon.A.2"]["effectiveCoverageStatus"], listed["moon.A.2"]["isIndirectlyCovered"]
        assert lifted == (("FULL", True) if expected == "FULL" else ("NONE", False))
        assert_consistent(database)


def test_a_kept_page_is_not_sent_after_a_change(alpha: Stating, listing: Callable[..., Listing]) -> None:
    """A viewer has every page, with its tag; each change makes the tag out of date."""
    viewer = listing("/controls/", "viewer")
    kept = viewer.get()
    changes: list[Callable[[], Response]] = [
        lambda: alpha.put("sun.A.5", coverageStatus="FULL"),
        lambda: alpha.put("sun.A.5", coverageStatus="FULL", coverageGap="None that we know of."),
        lambda: alpha.patch({"controlId": "sun.A.5", "coverageStatus": "PARTIAL"}),
        lambda: alpha.delete("sun.A.5"),
        lambda: alpha.leave("fw-moon"),
        lambda: alpha.adopt("fw-moon"),
    ]
    for change in changes:
        assert viewer.get({"If-None-Match": kept.headers["etag"]}).status_code == 304
        done(change())
        following = viewer.get({"If-None-Match": kept.headers["etag"]})
        assert following.status_code == 200
        assert following.json() != kept.json()
        kept = following


# --- Whose, and of which frameworks

OUT_OF_REACH = [
    pytest.param("star.A.4", id="not adopted"),
    pytest.param("foreign.A.1", id="another organization's own"),
    pytest.param("nothing", id="unknown"),
]


@pytest.mark.parametrize("control_id", OUT_OF_REACH)
def test_controls_out_of_reach_are_not_found(alpha: Stating, database: Database, control_id: str) -> None:
    before = stored.everything(database)
    for response in (
        alpha.put(control_id, **SAID),
        alpha.put(control_id, isApplicable=False),  # also where more is wrong
        alpha.delete(control_id),
        alpha.control(control_id),
    ):
        assert (response.status_code, response.json()["code"]) == (404, "not_found")
    for names in ({"controlId": control_id}, {"identifier": control_id}):
        [field] = names
        told = faults(alpha.patch({"controlId": "sun.A.5"}, names | {"coverageStatus": "FULL"}))
        assert told == [(f"assessments/1/{field}", "names no control of an adopted framework")]
    assert stored.everything(database) == before


@on_both
def test_organizations_state_for_themselves(alpha: Stating, beta: Stating, database: Database) -> None:
    """Both have adopted the same framework. What one says neither shows in the other nor lifts anything there."""
    done(beta.adopt("fw-sun"))
    done(beta.adopt("fw-moon"))
    ours = alpha.listed()
    done(beta.put("sun.A.2", coverageStatus="FULL", coverageGap="Beta's secret"))
    done(beta.patch({"controlId": "sun.A.5", "coverageStatus": "PARTIAL"}))
    assert alpha.listed() == ours
    assert beta.effective()["moon.A.2"] == "FULL"
    theirs = beta.listed()
    done(alpha.put("sun.A.2", coverageStatus="NONE"))
    done(alpha.delete("sun.A.1"))
    assert beta.listed() == theirs
    said = {row["organization_id"] for row in stored.rows(database, ControlCoverage, control_id="sun.A.2")}
    assert said == {ALPHA, BETA}
    assert_consistent(database)
    assert_consistent(database, BETA)


def test_an_organization_that_is_another_is_not_found(alpha: Stating, beta: Stating, database: Database) -> None:
    before = stored.everything(database)
    for mine, other in ((alpha, BETA), (beta, ALPHA)):
        astray = Stating(mine.client, mine.headers, other)
        responses = astray.put("sun.A.1", **SAID), astray.delete("sun.A.1"), astray.patch({"controlId": "sun.A.1"})
        assert [response.status_code for response in responses] == [404] * 3
    assert stored.everything(database) == before


def test_the_organization_may_be_named_by_its_slug(alpha: Stating, database: Database) -> None:
    by_slug = Stating(alpha.client, alpha.headers, "alpha")
    done(by_slug.put("sun.A.5", **SAID))
    done(by_slug.patch({"controlId": "sun.A.6", "coverageStatus": "FULL"}))
    done(by_slug.delete("sun.A.5"))
    [row] = stored.rows(database, ControlCoverage, control_id="sun.A.6")
    assert row["organization_id"] == ALPHA
    assert stored.rows(database, ControlCoverage, control_id="sun.A.5") == []


# --- What is written down


def test_events_name_who_when_and_what(alpha: Stating, database: Database) -> None:
    seen: set[str] = set()

    def events_of(change: Callable[[], Response]) -> list[tuple[str, str]]:
        """What the events of a change say was done to the statement of which control."""
        controls = {row["id"]: row["control_id"] for row in stored.rows(database, ControlCoverage)}
        done(change())
        controls |= {row["id"]: row["control_id"] for row in stored.rows(database, ControlCoverage)}
        found = [event for event in stored.events(database) if event["id"] not in seen]
        seen.update(event["id"] for event in found)
        for event in found:
            assert (event["entity_type"], event["organization_id"]) == ("ControlCoverage", ALPHA)
            assert event["user_id"] == "user-admin"
        return sorted((event["action"], controls[event["entity_id"]]) for event in found)

    assert events_of(lambda: alpha.put("sun.A.5", coverageStatus="FULL")) == [("assess", "sun.A.5")]
    [event] = stored.events(database)
    assert event["at"] == done(alpha.control("sun.A.5"))["coverage"]["updatedAt"]
    assert events_of(lambda: alpha.put("sun.A.5", coverageStatus="FULL")) == []  # it was said already
    assert events_of(lambda: alpha.put("sun.A.5", coverageStatus="NONE")) == [("assess", "sun.A.5")]
    many = [{"controlId": f"sun.A.{number}", "coverageStatus": "NONE"} for number in (5, 6, 7)]
    assert events_of(lambda: alpha.patch(*many)) == [("assess", "sun.A.6"), ("assess", "sun.A.7")]
    assert events_of(lambda: alpha.delete("sun.A.5")) == [("clear", "sun.A.5")]
    assert events_of(lambda: alpha.delete("sun.A.5")) == []


def test_the_request_is_named(alpha: Stating, database: Database) -> None:
    named = Stating(alpha.client, alpha.headers | {"X-Request-Id": "the-third-of-may"})
    done(named.put("sun.A.5", coverageStatus="FULL"))
    [event] = stored.events(database)
    assert event["request_id"] == "the-third-of-may"
    assert event["token_id"] is not None


def test_a_dump_has_what_was_stated(alpha: Stating, database: Database) -> None:
    """A statement that was made over HTTP loads again as it is."""
    done(alpha.put("sun.A.5", **SAID))
    [row] = stored.rows(database, ControlCoverage, control_id="sun.A.5")
    again = {"id": row["id"], "organizationId": ALPHA, "controlId": "sun.A.5"} | SAID
    tally = world.load(database, {"controlCoverages": [again]})["controlCoverages"]
    assert (tally.inserted, tally.updated, tally.unchanged) == (0, 0, 1)


def test_a_control_may_have_the_id_of_an_address(alpha: Stating, database: Database) -> None:
    """Only reading it alone is impossible: its address is that of many statements."""
    stored.load(database, {"controls": [{"id": "coverage", "frameworkId": "fw-own", "identifier": "C", "name": "C"}]})
    assert done(alpha.put("coverage", coverageStatus="FULL"))["effectiveCoverageStatus"] == "FULL"
    assert alpha.effective()["coverage"] == "FULL"
    assert done(alpha.delete("coverage"))["effectiveCoverageStatus"] == "NONE"
    response = alpha.control("coverage")
    assert (response.status_code, response.headers["allow"]) == (405, "PATCH")


@on_both
def test_a_statement_that_a_task_refers_to_stays(alpha: Stating, database: Database) -> None:
    """To take it away would leave the task with a reference to nothing."""
    statement = next(row for row in stored.rows(database, ControlCoverage) if row["control_id"] == "sun.A.2")
    task = record_id(Task, "archived")
    stored.load(database, {"tasks": [{"id": task, "controlCoverageId": statement["id"]}]})
    before = alpha.listed()
    problem = refused(alpha.delete("sun.A.2"), 409, "in_use")
    assert problem["conflictingId"] == task
    assert alpha.listed() == before


def test_an_item_that_says_nothing_states_nothing(alpha: Stating, database: Database) -> None:
    before = stored.rows(database, ControlCoverage)
    done(alpha.patch({"controlId": "moon.A.5"}))
    assert stored.rows(database, ControlCoverage) == before
