"""What a conflict is explained by: which matches and whose assessments, over HTTP and against the rules alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.coverage.explain import explain
from normata.coverage.explained import ExplainedConflict
from tests import mostly_sqlite
from tests.coverage import definition
from tests.coverage.assessing import Json, Stating, done, large
from tests.databases import on_both
from tests.world import ALPHA, load

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


def conflict(alpha: Stating, control: str) -> Any:
    """What is against the assessment of a control."""
    return done(alpha.explanation(control))["conflict"]


def set_aside(alpha: Stating, match_id: str) -> None:
    """Set a match aside."""
    done(
        alpha.client.put(
            f"/matches/{match_id}/set-aside/",
            params={"organizationId": ALPHA},
            json={"justification": "Our premises differ."},
            headers=alpha.headers,
        )
    )


@on_both
def test_a_match_is_told_with_its_mapping_and_whose_assessment_it_rests_on(alpha: Stating, database: Database) -> None:
    """The chain sun.A.1 (FULL), moon.A.1, own.A.2; the first match is one of a mapping."""
    document = {"id": "doc", "document": "sun-to-moon", "name": "Sun to moon", "version": "3"}
    first = {"id": "sun.A.1->moon.A.1", "mappingDocumentId": "doc", "rationale": "semantic", "strength": "8"}
    load(database, {"mappingDocuments": [document], "controlMatches": [first]})
    done(alpha.patch({"controlId": "sun.A.1", "ownerId": "member-viewer", "coverageGap": "None that we know of."}))
    assert conflict(alpha, "moon.A.1") is None
    done(alpha.put("moon.A.1", coverageStatus="PARTIAL"))
    found = conflict(alpha, "moon.A.1")
    sun = {"id": "fw-sun", "identifier": "SUN-2", "name": "Sun Standard"}
    source = {"id": "sun.A.1", "identifier": "A.1", "name": "sun control 1", "framework": sun}
    assert found == {
        "kind": "MATCHES",
        "matches": [
            {
                "id": "sun.A.1->moon.A.1",
                "matchLevel": "FULL",
                "isOwn": False,
                "justification": None,
                "rationale": "semantic",
                "strength": "8",
                "mapping": document,
                "sourceControl": source,
                "assessments": [
                    {"control": source, "coverageStatus": "FULL", "coverageGap": "None that we know of."}
                    | {"ownerId": "member-viewer"}
                ],
            }
        ],
        "matchesAreAll": True,
        "below": [],
        "belowCount": 0,
    }
    done(alpha.put("own.A.2", coverageStatus="NONE"))
    [match] = conflict(alpha, "own.A.2")["matches"]
    assert (match["id"], match["mapping"], match["sourceControl"]["id"]) == ("moon.A.1->own.A.2", None, "moon.A.1")
    assert [one["control"]["id"] for one in match["assessments"]] == ["sun.A.1"], "the one that it all rests on"


@on_both
def test_each_way_out_ends_it(alpha: Stating) -> None:
    """A change of either assessment, and to set the match aside that is told."""
    for _ in range(3):
        done(alpha.put("moon.A.1", coverageStatus="NONE"))
    [match] = conflict(alpha, "moon.A.1")["matches"]
    [other] = match["assessments"]
    done(alpha.patch({"controlId": other["control"]["id"], "coverageStatus": "PARTIAL"}))
    assert conflict(alpha, "moon.A.1") is None
    done(alpha.patch({"controlId": other["control"]["id"], "coverageStatus": "FULL"}))
    assert conflict(alpha, "moon.A.1") is not None
    set_aside(alpha, match["id"])
    assert conflict(alpha, "moon.A.1") is None
    done(alpha.put("own.A.1", coverageStatus="FULL"))
    done(alpha.put("own.A", coverageStatus="FULL"))
    assert conflict(alpha, "own.A") is None


def test_every_match_of_the_pair_is_told(alpha: Stating, database: Database) -> None:
    """Each of them would be enough."""
    own = {"id": "ours", "organizationId": ALPHA, "sourceControlId": "sun.A.1", "targetControlId": "moon.A.1"}
    load(database, {"controlMatches": [own | {"matchLevel": "FULL", "justification": "We looked into it."}]})
    done(alpha.put("moon.A.1", coverageStatus="NONE"))
    found = conflict(alpha, "moon.A.1")["matches"]
    assert [(one["id"], one["isOwn"], one["justification"]) for one in found] == [
        ("ours", True, "We looked into it."),
        ("sun.A.1->moon.A.1", False, None),
    ]
    for one in found:
        set_aside(alpha, one["id"])
    assert conflict(alpha, "moon.A.1") is None


def test_what_is_full_by_the_control_alone_is_not_told(alpha: Stating, database: Database) -> None:
    """Two that equal each other, of which the first alone is covered by an assessment."""
    back = {"id": "back", "sourceControlId": "own.A.2", "targetControlId": "moon.A.1", "matchLevel": "FULL"}
    load(database, {"controlMatches": [back]})
    done(alpha.put("moon.A.1", coverageStatus="PARTIAL"))
    assert [one["id"] for one in conflict(alpha, "moon.A.1")["matches"]] == ["sun.A.1->moon.A.1"]
    done(alpha.put("own.A.2", coverageStatus="FULL"))
    assert {one["id"] for one in conflict(alpha, "moon.A.1")["matches"]} == {"sun.A.1->moon.A.1", "back"}


@on_both
def test_below_a_group_the_requirements_that_are_assessed_less_are_told(alpha: Stating) -> None:
    done(alpha.put("own.A", coverageStatus="FULL"))
    for number in (3, 1):
        done(alpha.put(f"own.A.{number}", coverageStatus="PARTIAL", coverageGap="A site.", ownerId="member-editor"))
    done(alpha.put("own.A.5", isApplicable=False, coverageStatus="NONE", justification="There is none."))
    found = conflict(alpha, "own.A")
    assert (found["kind"], found["matches"], found["matchesAreAll"], found["belowCount"]) == ("BELOW", [], True, 2)
    assert [(one["control"]["id"], one["coverageStatus"]) for one in found["below"]] == [
        ("own.A.1", "PARTIAL"),
        ("own.A.3", "PARTIAL"),
    ]
    assert {(one["coverageGap"], one["ownerId"]) for one in found["below"]} == {("A site.", "member-editor")}
    done(alpha.patch(*({"controlId": f"own.A.{number}", "coverageStatus": "NONE"} for number in (1, 3, *range(6, 13)))))
    done(alpha.patch(*({"controlId": f"own.A.{number}", "coverageStatus": "NONE"} for number in (2, 4))))
    found = conflict(alpha, "own.A")
    assert (found["belowCount"], len(found["below"])) == (11, 10)


def test_of_many_matches_the_first_are_told(alpha: Stating, database: Database) -> None:
    matches = [
        {"id": f"m{number:02}", "organizationId": ALPHA, "sourceControlId": f"large.{number}"}
        | {"targetControlId": "large.12", "matchLevel": "FULL"}
        for number in range(12)
    ]
    load(database, large(13) | {"controlMatches": matches})
    done(alpha.patch(*({"controlId": f"large.{number}", "coverageStatus": "FULL"} for number in range(12))))
    done(alpha.put("large.12", coverageStatus="NONE"))
    found = conflict(alpha, "large.12")
    assert (len(found["matches"]), found["matchesAreAll"]) == (10, False)


def test_nothing_of_another_organization_is_told(alpha: Stating, beta: Stating) -> None:
    for framework in ("fw-sun", "fw-moon"):
        done(beta.adopt(framework))
    done(beta.put("sun.A.2", coverageStatus="FULL"))
    done(beta.put("moon.A.2", coverageStatus="NONE"))
    assert conflict(beta, "moon.A.2") is not None
    assert conflict(alpha, "moon.A.2") is None
    assert beta.explanation("own.A.2").status_code == 404


# --- Against the rules alone


SIZE = 24
Levels = tuple[str, ...]
LEVELS: Levels = ("NONE", "PARTIAL", "FULL")


def organization(rng: random.Random) -> tuple[definition.Controls, dict[str, tuple[str, str, int]], Json]:
    """A random organization: its controls, its matches by id, and a bundle with both."""
    names = [f"r.{number}" for number in range(SIZE)]
    controls = {
        name: definition.Control(
            parent=rng.choice([None, *names[:number]][-6:]) if number else None,
            is_category=number % 6 == 0,
            assessed=rng.choice([None, None, 0, 1, 2, 2]),
            decision=rng.choice([None] * 19 + [False]),
        )
        for number, name in enumerate(names)
    }
    pairs = [rng.sample(names, 2) for _ in range(2 * SIZE)]
    matches = {
        f"r{number}": (source, target, rng.choice([1, 2, 2, 2])) for number, (source, target) in enumerate(pairs)
    }
    bundle = {
        "frameworks": [{"id": "fw-r", "identifier": "R", "name": "Random", "organizationId": ALPHA}],
        "frameworkAdoptions": [{"id": "adopt-r", "organizationId": ALPHA, "frameworkId": "fw-r"}],
        "controls": [
            {"id": name, "frameworkId": "fw-r", "parentId": one.parent, "identifier": name, "name": name}
            | {"type": "CATEGORY" if one.is_category else "CONTROL"}
            for name, one in controls.items()
        ],
        "controlMatches": [
            {"id": name, "organizationId": ALPHA, "sourceControlId": source, "targetControlId": target}
            | {"matchLevel": LEVELS[level]}
            for name, (source, target, level) in matches.items()
        ],
        "controlCoverages": [
            {"id": f"say-{name}", "organizationId": ALPHA, "controlId": name, "isApplicable": one.decision}
            | {"coverageStatus": None if one.assessed is None else LEVELS[one.assessed], "justification": "So."}
            for name, one in controls.items()
        ],
    }
    return controls, matches, bundle


@pytest.mark.parametrize("seed", range(9))
def test_what_is_told_is_so(seed: int, database: Database) -> None:
    """Each match that is told counts, and without all that are told the conflict is over."""
    controls, matches, bundle = organization(random.Random(seed))  # noqa: S311 - the same every time
    load(database, bundle)
    against = definition.conflicts(controls, matches.values())
    assert against, "this organization has none to tell of"
    seen = Counter[str]()

    def work(transaction: Transaction) -> dict[str, ExplainedConflict | None]:
        return {name: explain(transaction, ALPHA, name).conflict for name in controls}

    explained = database.read_now(work)
    for name in controls:
        found = explained[name]
        assert (found is not None) == (name in against), name
        if found is None:
            continue
        seen[found.kind] += 1
        if found.kind == "BELOW":
            _check_below(name, found, controls)
        else:
            _check_matches(name, found, controls, matches)
    assert seen["MATCHES"]


def _check_below(name: str, found: ExplainedConflict, controls: definition.Controls) -> None:
    below = definition.requirements_below(controls, definition.applicable(controls)).get(name, [])
    less = [one for one in below if controls[one].assessed in {0, 1}]
    assert found.below_count == len(less)
    assert [one.control.id for one in found.below] == less[:10]


def _check_matches(
    name: str,
    found: ExplainedConflict,
    controls: definition.Controls,
    matches: Mapping[str, tuple[str, str, int]],
) -> None:
    assert found.matches
    assert found.matches_are_all
    told = {one.id for one in found.matches}
    remaining = [match for one, match in matches.items() if one not in told]
    assert name not in definition.conflicts(controls, remaining), "more would have to be set aside"
    elsewhere = [match for match in matches.values() if name not in match[:2]]
    # What does not apply is in no roll-up; what is below a group stays.
    without = controls if controls[name].is_group else {**controls, name: replace(controls[name], decision=False)}
    levels = definition.effective(without, elsewhere)
    assert controls[name].is_group or any(one.assessments for one in found.matches)
    for one in found.matches:
        assert matches[one.id] == (one.source_control.id, name, 2)
        resting_on = {other.control.id for other in one.assessments}
        if not resting_on:  # too far to be followed, or, above a group, FULL by the group alone
            continue
        assert levels[one.source_control.id] == 2
        alone = {
            other: control if other in resting_on else replace(control, assessed=None)
            for other, control in without.items()
        }
        assert definition.effective(alone, elsewhere)[one.source_control.id] == 2
