"""Adopting and leaving over HTTP: what comes and goes, what is kept, and what a preview promises of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from normata.cli import demo
from normata.core.db.database import Database
from normata.demo.files import ORGANIZATION
from normata.files.opening import open_store
from normata.frameworks.model import ControlCoverage, FrameworkAdoption
from normata.settings import Settings
from tests import mostly_sqlite, stored, world
from tests.coverage.assessing import Json, Stating, assert_consistent, done
from tests.databases import change, on_both
from tests.served import served
from tests.world import ALPHA, BETA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

LEVELS = ("NONE", "PARTIAL", "FULL")


def of_framework(controls: dict[str, Json], framework_id: str) -> list[Json]:
    """The controls of one framework, in their order."""
    return [item for item in controls.values() if item["framework"]["id"] == framework_id]


def leaves(controls: list[Json]) -> list[Json]:
    return [item for item in controls if not item["children"]]


def counts(controls: list[Json]) -> dict[str, int]:
    counted = Counter(item["effectiveCoverageStatus"] for item in controls)
    return {level.lower(): counted[level] for level in LEVELS}


# --- Adopting and leaving


def test_adopting_brings_the_controls_and_what_follows(alpha: Stating, database: Database) -> None:
    done(alpha.leave("fw-moon"))
    done(alpha.put("sun.A.2", coverageStatus="FULL"))
    answer = done(alpha.adopt("fw-moon"))
    [row] = stored.rows(database, FrameworkAdoption, organization_id=ALPHA, framework_id="fw-moon")
    assert (answer["id"], answer["isAdopted"]) == ("fw-moon", True)
    assert answer["adoption"] == {"id": row["id"], "adoptedAt": row["adopted_at"]}
    listed = alpha.effective()
    assert (listed["moon.A.2"], listed["own.A.2"]) == ("FULL", "FULL")
    assert_consistent(database)


@on_both
def test_leaving_takes_away_what_rested_on_it(alpha: Stating, database: Database) -> None:
    """sun.A.1 covers moon.A.1, and that covers own.A.2: without moon there is no way."""
    assert alpha.effective()["own.A.2"] == "FULL"
    answer = done(alpha.leave("fw-moon"))
    assert (answer["isAdopted"], answer["adoption"], answer["frameworkAdoptions"]) == (False, None, [])
    listed = alpha.listed()
    assert of_framework(listed, "fw-moon") == []
    assert listed["own.A.2"]["effectiveCoverageStatus"] == "NONE"
    assert alpha.control("moon.A.1").status_code == 404
    assert_consistent(database)


@on_both
def test_leaving_keeps_the_statements_and_adopting_again_finds_them(alpha: Stating, database: Database) -> None:
    done(alpha.put("sun.A.5", isApplicable=False, justification="No premises.", reasons=["LEGAL"]))
    before, said = alpha.listed(), stored.rows(database, ControlCoverage)
    done(alpha.leave("fw-sun"))
    assert stored.rows(database, ControlCoverage) == said
    assert alpha.put("sun.A.5").status_code == alpha.delete("sun.A.5").status_code == 404
    done(alpha.adopt("fw-sun"))
    assert alpha.listed() == before
    assert alpha.said("sun.A.5")["justification"] == "No premises."
    assert_consistent(database)


@pytest.mark.long
@pytest.mark.parametrize("framework_id", ["fw-star", "fw-sun", "fw-own"])
@on_both
def test_twice_is_harmless(alpha: Stating, database: Database, framework_id: str) -> None:
    for step in (alpha.adopt, alpha.leave, alpha.adopt):
        first = done(step(framework_id))
        before = stored.everything(database)
        assert done(step(framework_id)) == first
        assert stored.everything(database) == before


@pytest.mark.parametrize("framework_id", ["fw-foreign", "fw-old", "nothing", "STAR"])
def test_what_cannot_be_seen_can_be_neither_adopted_nor_left(
    alpha: Stating, database: Database, framework_id: str
) -> None:
    """Another organization's, an inactive one, none; and a framework is addressed by its id alone."""
    before = stored.everything(database)
    for response in (alpha.adopt(framework_id), alpha.leave(framework_id)):
        assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert stored.everything(database) == before


def test_one_that_has_become_inactive_can_be_left_but_not_adopted_again(alpha: Stating, database: Database) -> None:
    world.load(database, {"frameworks": [{"id": "fw-moon", "isActive": False}]})
    assert done(alpha.adopt("fw-moon"))["isAdopted"] is True  # it still is
    done(alpha.leave("fw-moon"))
    assert alpha.adopt("fw-moon").status_code == alpha.leave("fw-moon").status_code == 404


@on_both
def test_organizations_adopt_for_themselves(alpha: Stating, beta: Stating, database: Database) -> None:
    theirs = beta.listed()
    done(alpha.adopt("fw-star"))
    done(alpha.leave("fw-sun"))
    assert beta.listed() == theirs
    ours = alpha.listed()
    done(beta.leave("fw-star"))
    done(beta.adopt("fw-sun"))
    assert alpha.listed() == ours
    assert_consistent(database)
    assert_consistent(database, BETA)


def test_events_name_who_when_and_what(alpha: Stating, database: Database) -> None:
    adopted = done(alpha.adopt("fw-star"))["adoption"]
    done(alpha.adopt("fw-star"))
    done(alpha.leave("fw-star"))
    done(alpha.leave("fw-star"))
    events = stored.events(database)
    assert [event["action"] for event in events] == ["adopt", "leave"]
    assert {event["entity_id"] for event in events} == {adopted["id"]}
    assert {(event["entity_type"], event["user_id"], event["organization_id"]) for event in events} == {
        ("FrameworkAdoption", "user-admin", ALPHA)
    }
    assert events[0]["at"] == adopted["adoptedAt"] <= events[1]["at"]


# --- What a preview promises


def assert_promise_is_kept(stating: Stating, framework_id: str) -> Json:
    """Adopt a framework, and find what its preview has promised."""
    before = stating.listed()
    promised = stating.preview(framework_id)
    assert stating.listed() == before, "a preview changes nothing"
    assert promised["isAdopted"] is False
    done(stating.adopt(framework_id))
    after = stating.listed()
    summary = stating.summary(framework_id)
    assert {name: promised[name] for name in ("applicable", "notApplicable", "effective")} == {
        name: summary[name] for name in ("applicable", "notApplicable", "effective")
    }
    gaps = stating.gaps(framework_id)
    assert [gap["id"] for gap in promised["gaps"]] == sorted((gap["id"] for gap in gaps), key=list(after).index)
    assert promised["gaps"] == [
        {name: after[gap["id"]][name] for name in ("id", "identifier", "name", "effectiveCoverageStatus")}
        for gap in promised["gaps"]
    ]
    gained = Counter(
        after[control_id]["framework"]["id"]
        for control_id, item in before.items()
        if not item["children"]
        and LEVELS.index(after[control_id]["effectiveCoverageStatus"]) > LEVELS.index(item["effectiveCoverageStatus"])
    )
    assert {other["framework"]["id"]: other["gained"] for other in promised["others"]} == gained
    for other in promised["others"]:
        assert other["effective"] == stating.summary(other["framework"]["id"])["effective"]
    return promised


def test_a_preview_shows_gaps_and_what_others_would_gain(alpha: Stating) -> None:
    """own.A.2 is covered by way of moon only."""
    done(alpha.leave("fw-moon"))
    promised = assert_promise_is_kept(alpha, "fw-moon")
    assert promised["effective"] == counts(leaves(of_framework(alpha.listed(), "fw-moon")))
    assert [gap["id"] for gap in promised["gaps"]][:2] == ["moon.A.2", "moon.A.3"]
    [other] = promised["others"]
    assert (other["framework"]["id"], other["gained"]) == ("fw-own", 1)  # its category is no leaf


@on_both
def test_a_preview_counts_what_is_stated_of_the_framework_already(alpha: Stating) -> None:
    done(alpha.put("moon.A.9", coverageStatus="FULL"))
    done(alpha.put("moon.A.1", isApplicable=False, justification="No moon here."))
    done(alpha.leave("fw-moon"))
    promised = assert_promise_is_kept(alpha, "fw-moon")
    assert not {"moon.A.9", "moon.A.1"} & {gap["id"] for gap in promised["gaps"]}
    assert promised["notApplicable"] == 1
    assert promised["others"] == []


def test_a_preview_of_what_is_adopted_shows_what_is(alpha: Stating) -> None:
    promised = alpha.preview("fw-moon")
    assert (promised["isAdopted"], promised["others"]) == (True, [])
    assert promised["effective"] == counts(leaves(of_framework(alpha.listed(), "fw-moon")))


def test_nobody_else_sees_a_preview_of_ones_own(alpha: Stating, beta: Stating) -> None:
    astray = Stating(beta.client, beta.headers, BETA)
    responses = [
        astray.client.get(
            f"/frameworks/{name}/adoption/preview/", params={"organizationId": BETA}, headers=beta.headers
        )
        for name in ("fw-own", "nothing", "fw-old")
    ]
    assert [response.status_code for response in responses] == [404] * 3
    assert alpha.preview("fw-own")["isAdopted"] is True


@pytest.fixture
def harbourlight(empty_url: str, empty: Database) -> Iterator[Stating]:
    """The coverage of the demo's organization."""
    demo.fill(empty, lambda *_: None, open_store(Settings()))
    token = change(empty, demo.new_token)
    with served(empty_url) as service:
        yield Stating(service.client, {"Authorization": f"Bearer {token}"}, ORGANIZATION)


@pytest.mark.long
def test_adopting_brings_what_was_promised_for_every_framework_of_the_demo(
    harbourlight: Stating, empty: Database
) -> None:
    first = harbourlight.listed()
    frameworks = sorted({item["framework"]["id"] for item in first.values()})
    assert len(frameworks) == 3
    gains: list[Any] = []
    for framework_id in frameworks:
        done(harbourlight.leave(framework_id))
        gains += assert_promise_is_kept(harbourlight, framework_id)["others"]
        assert harbourlight.listed() == first
    assert gains, "no framework of the demo brings another anything: nothing was tested"
    # From nothing, one after the other, too.
    for framework_id in frameworks:
        done(harbourlight.leave(framework_id))
    assert harbourlight.listed() == {}
    for framework_id in frameworks:
        assert_promise_is_kept(harbourlight, framework_id)
    assert harbourlight.listed() == first
    assert_consistent(empty, ORGANIZATION)
