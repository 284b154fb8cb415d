"""Plans over HTTP: each step is what a brute force finds, and what assessing it then gives."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.coverage import definition
from tests.coverage.assessing import Json, Stating, done
from tests.coverage.test_plan import by_definition
from tests.coverage.test_published_coverage import LEVELS, Said, own_matches, served_with
from tests.databases import on_both
from tests.reports.conftest import Ask
from tests.reports.reported import FRAMEWORK, match, statement
from tests.served import Served, refused
from tests.world import ALPHA, BETA


def brief(plan: Json) -> list[tuple[str, int, int]]:
    """The steps of a plan: what is assessed, how many gaps it closes and improves."""
    return [(step["control"]["id"], step["closes"], step["improves"]) for step in plan["steps"]]


@on_both
def test_a_plan_begins_with_what_closes_most(ask: Ask) -> None:
    plan = done(ask("gaps/plan"))
    assert plan["framework"]["id"] == FRAMEWORK
    assert plan["isComplete"] is True
    assert brief(plan) == [
        ("sun.A.8", 2, 0),  # closes two gaps by matches
        ("rep.1.1.b", 1, 0),  # is PARTIAL already
        ("rep.1.1.c", 1, 0),
        ("rep.2.3", 1, 0),
    ]
    [first, *_] = plan["steps"]
    assert first["control"]["framework"]["identifier"] == "SUN-2"
    assert first["effectiveCoverageStatus"] == "NONE"
    assert [(one["framework"]["identifier"], one["closes"], one["improves"]) for one in first["effects"]] == [
        ("REP-1", 2, 0),
        ("SUN-2", 1, 0),
    ]
    assert [one["identifier"] for one in first["effects"][0]["closed"]] == ["1.1.a", "2.2"]
    counts = ask("coverage").json()["counts"]["effective"]
    assert plan["effective"] == counts
    assert plan["steps"][-1]["effective"] == {"none": 0, "partial": 0, "full": sum(counts.values())}


@on_both
def test_what_a_plan_promises_comes_true(ask: Ask, service: Served) -> None:
    """Each step, done over HTTP, gives the counts that it says, in this framework and in all."""
    stating = Stating(service.client, service.bearer("admin"))
    plan = done(ask("gaps/plan", steps="50"))
    assert len(plan["steps"]) > 3
    carry_out(stating, plan)
    assert done(ask("gaps/plan"))["steps"] == []


def carry_out(stating: Stating, plan: Json) -> None:
    """Assess as a plan says, and hold each step against what is shown then."""
    for step in plan["steps"]:
        before = requirements(stating)
        done(stating.put(step["control"]["id"], coverageStatus="FULL"))
        after = requirements(stating)
        assert stating.summary(plan["framework"]["id"])["effective"] == step["effective"]
        assert step["effectiveEverywhere"] == {
            level.lower(): sum(status == level for status, _ in after.values()) for level in LEVELS
        }
        assert before[step["control"]["id"]][0] == step["effectiveCoverageStatus"]
        found: dict[str, dict[str, list[str]]] = {}
        for control, (status, framework) in after.items():
            if before[control][0] != status:
                found.setdefault(framework, {"FULL": [], "PARTIAL": []})[status].append(control)
        assert {one["framework"]["id"]: (one["closes"], one["improves"]) for one in step["effects"]} == {
            framework: (len(rose["FULL"]), len(rose["PARTIAL"])) for framework, rose in found.items()
        }
        for one in step["effects"]:
            rose = found[one["framework"]["id"]]
            assert [control["id"] for control in one["closed"]] == rose["FULL"][:5]
            assert [control["id"] for control in one["improved"]] == rose["PARTIAL"][:5]


def requirements(stating: Stating) -> dict[str, tuple[str, str]]:
    """The applicable requirements of all adopted frameworks as lists show them: status and framework, in order."""
    found: dict[str, tuple[str, str]] = {}
    for page in range(1, 100):
        items = stating.covered(page=str(page), isApplicable="true")
        found |= {
            one["id"]: (one["effectiveCoverageStatus"], one["frameworkId"])
            for one in items
            if one["type"] == "CONTROL" and not one["isDecomposed"]
        }
        if len(items) < 100:
            return found
    raise AssertionError("the list does not end")


@pytest.mark.parametrize("seed", range(4))
@on_both
def test_a_plan_is_what_a_brute_force_finds(service: Served, seed: int) -> None:
    """On the world with random assessments, matches and exclusions. Each step is then done, and held against it."""
    rng = random.Random(seed)  # noqa: S311
    stating = Stating(service.client, service.bearer("admin"))
    controls = sorted(stating.listed())
    service.load({"controlMatches": [random_match(rng, controls, number) for number in range(25)]})
    for control in rng.sample(controls, 12):
        if rng.random() < 0.2:
            stating.put(control, isApplicable=False, justification="We have no such thing.")
        else:
            done(stating.put(control, coverageStatus=rng.choice(["NONE", "PARTIAL", "FULL"])))
    frameworks = {control: item["frameworkId"] for control, item in stating.listed().items()}
    steps = brute_force(stating, FRAMEWORK, 6)
    for most in (1, 6):
        plan = done(plan_of(stating, FRAMEWORK, most))
        assert [step["control"]["id"] for step in plan["steps"]] == [control for control, *_ in steps[:most]]
        for step, (_, closed, improved) in zip(plan["steps"], steps, strict=False):
            assert step["closes"] == sum(frameworks[one] == FRAMEWORK for one in closed)
            assert sum(one["closes"] for one in step["effects"]) == len(closed)
            assert sum(one["improves"] for one in step["effects"]) == len(improved)
    carry_out(stating, plan)


def random_match(rng: random.Random, controls: list[str], number: int) -> Json:
    """A match of alpha's own between any two controls."""
    source, target = rng.sample(controls, 2)
    return match(source, target, rng.choice(["PARTIAL", "FULL"])) | {"id": f"random-{number}", "organizationId": ALPHA}


def plan_of(stating: Stating, framework: str, steps: int) -> Any:
    """The answer to a request for a plan."""
    return stating.client.get(
        f"/frameworks/{framework}/gaps/plan/",
        params={"organizationId": stating.organization_id, "steps": str(steps)},
        headers=stating.headers,
    )


def brute_force(stating: Stating, framework: str, most: int) -> list[tuple[str, dict[str, int], set[str]]]:
    """The steps by definition, from what the lists show alone."""
    listed = stating.listed()  # by framework as lists have them, and in catalog order
    facts: dict[str, Json] = {}
    for page in range(1, 100):
        items = stating.covered(page=str(page))
        facts |= {one["id"]: one for one in items}
        if len(items) < 100:
            break
    controls = {
        name: definition.Control(
            item["parentId"],
            is_category=item["type"] == "CATEGORY",
            is_decomposed=facts[name]["isDecomposed"],
            assessed=level(facts[name]["coverage"]["coverageStatus"]),
            decision=facts[name]["isApplicable"],
        )
        for name, item in listed.items()
    }
    matches = [
        (found["matchedControl"]["id"], name, LEVELS.index(found["matchLevel"]))
        for name, item in listed.items()
        for found in item["sourceMatches"]
    ]
    frameworks = {name: item["frameworkId"] for name, item in listed.items()}
    places = {name: (frameworks[name] != framework, place) for place, name in enumerate(listed)}
    return by_definition(controls, matches, frameworks, framework, order=lambda name: places[name], most=most)


def level(status: str | None) -> int | None:
    """A status as the definition has it."""
    return None if status is None else LEVELS.index(status)


# --- What it does not do


def test_nobody_plans_for_what_is_not_theirs(ask: Ask, service: Served) -> None:
    refused(ask("gaps/plan", "fw-star"), 404, "not_found")
    refused(ask("gaps/plan", "nothing"), 404, "not_found")
    refused(ask("gaps/plan", organizationId=BETA), 404, "not_found")
    refused(
        service.client.get(f"/frameworks/{FRAMEWORK}/gaps/plan/", params={"organizationId": ALPHA}),
        401,
        "unauthenticated",
    )


@pytest.mark.parametrize("steps", ["0", "51", "1.0", "many", ""])
def test_a_plan_has_one_to_fifty_steps(ask: Ask, steps: str) -> None:
    problem = refused(ask("gaps/plan", steps=steps), 400, "validation")
    assert [fault["name"] for fault in problem["errors"]] == ["steps"]


def test_what_does_not_apply_is_no_step(ask: Ask, service: Served) -> None:
    """Neither a source that is excluded, nor a gap that is."""
    service.load({"controlCoverages": [statement("sun.A.8", None, isApplicable=False, justification="No.")]})
    first = done(ask("gaps/plan"))["steps"][0]
    assert (first["control"]["id"], first["closes"]) != ("sun.A.8", 2)
    service.load({"controlCoverages": [statement("rep.1.1.c", None, isApplicable=False, justification="No.")]})
    assert "rep.1.1.c" not in {step["control"]["id"] for step in done(ask("gaps/plan"))["steps"]}


@pytest.mark.long
def test_a_plan_for_published_catalogs_is_what_a_brute_force_finds(catalogs: Path, tmp_path: Path) -> None:
    files = ("nist-csf-1.1", "nist-csf-2.0", "map-nist-csf-1.1-nist-csf-2.0")
    rng = random.Random(5)  # noqa: S311
    with served_with([catalogs / "ciso-assistant" / f"{name}.yaml" for name in files], tmp_path) as service:
        stating = Stating(service.client, service.bearer("admin"))
        frameworks: Mapping[str, Json] = {one["slug"]: one for one in service.listing("/frameworks/", "admin").items()}
        for one in frameworks.values():
            done(stating.adopt(one["id"]))
        service.load({"controlMatches": own_matches(rng, Said.shown(stating.listed()))})
        (framework,) = (one["id"] for one in frameworks.values() if one["version"] and "2.0" in one["name"])
        steps = brute_force(stating, framework, 3)
        plan = done(plan_of(stating, framework, 3))
        assert [step["control"]["id"] for step in plan["steps"]] == [control for control, *_ in steps]
        assert plan["steps"][0]["closes"] > 1
        carry_out(stating, plan)
