"""Stored coverage: after whatever was changed it is what would be computed afresh, for every organization."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from normata.adoption.adoption import adopt
from normata.bundle import loading
from normata.catalogs import reading as importing
from normata.catalogs.importing import import_for_all
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.core.db.transaction import Parameters, Statement, Transaction
from normata.coverage.engine import Computed, Level
from normata.coverage.recompute import current_coverage, recompute, stored_coverage
from normata.frameworks.model import Control, EffectiveCoverage
from normata.identity.model import Organization
from tests import world
from tests.databases import change, tamper
from tests.world import ALPHA, BETA

Coverage = dict[str, dict[str, Computed]]


def stored(transaction: Transaction) -> Coverage:
    """What the lists show, for every organization."""
    ids = transaction.scalars(select(Organization.id))
    return {organization_id: stored_coverage(transaction, organization_id) for organization_id in ids}


def afresh(transaction: Transaction) -> Coverage:
    ids = transaction.scalars(select(Organization.id))
    return {organization_id: current_coverage(transaction, organization_id) for organization_id in ids}


def shown(database: Database) -> Coverage:
    """What is stored, once it is sure that it is what follows from what is stated."""
    coverage = database.read_now(stored)
    assert coverage == database.read_now(afresh)
    return coverage


def found(coverage: dict[str, Computed], control: str) -> tuple[Level, bool] | None:
    """What the lists show of a control: how far it is covered, and whether it took a match."""
    computed = coverage.get(control)
    return computed and (computed.effective, computed.indirect)


def statement(control: str, status: str, organization_id: str = ALPHA) -> dict[str, Any]:
    """Replaces the world's own statement where there is one."""
    return {"id": f"say-{control}", "organizationId": organization_id, "controlId": control, "coverageStatus": status}


def match(source: str, target: str, level: str, match_id: str | None = None) -> dict[str, Any]:
    return {
        "id": match_id or f"{source}->{target}",
        "sourceControlId": source,
        "targetControlId": target,
        "matchLevel": level,
    }


NONE, PARTIAL, FULL = Level


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(
            {"controlCoverages": [statement("sun.A.2", "FULL")]},
            {"sun.A.2": (FULL, False), "moon.A.2": (FULL, True), "sun.A": (PARTIAL, False)},
            id="statement raised",
        ),
        pytest.param(
            {"controlCoverages": [statement("sun.A.1", "NONE")]},
            {"sun.A.1": (NONE, False), "moon.A.1": (NONE, False), "own.A.2": (NONE, False)},
            id="statement lowered",
        ),
        pytest.param(
            {"controlCoverages": [{"id": "say-sun.A.1", "controlId": "sun.A.9"}]},
            {"sun.A.1": (NONE, False), "sun.A.9": (FULL, False), "moon.A.1": (NONE, False)},
            id="statement moved to another control",
        ),
        pytest.param(
            {"controlCoverages": [{"id": "say-sun.A.1", "isApplicable": False, "justification": "Not ours."}]},
            {"sun.A.1": (NONE, False), "moon.A.1": (NONE, False), "own.A.2": (NONE, False)},
            id="statement that the control does not apply",
        ),
        pytest.param(
            {
                "controlCoverages": [
                    statement(f"sun.A.{number}", "NONE") | {"isApplicable": False, "justification": "Not ours."}
                    for number in range(2, 13)
                ]
            },
            {"sun.A": (FULL, False), "sun.A.2": (NONE, False)},
            id="all other children do not apply",
        ),
        pytest.param(
            {"controlMatches": [match("moon.A.2", "sun.A.2", "FULL")]},
            {"moon.A.2": (PARTIAL, True)},
            id="match back tells that the source lies within",
        ),
        pytest.param(
            {"controlCoverages": [statement("own.A.1", "FULL")]},
            {"own.A.1": (FULL, False), "own.A": (PARTIAL, False)},
            id="statement added",
        ),
        pytest.param(
            {"controlCoverages": [statement(f"moon.A.{number}", "FULL") for number in range(1, 13)]},
            {"moon.A": (FULL, False), "moon.A.1": (FULL, False)},
            id="all children stated",
        ),
        pytest.param(
            {"controlMatches": [match("sun.A.1", "moon.A.9", "PARTIAL")]},
            {"moon.A.9": (PARTIAL, True)},
            id="match added",
        ),
        pytest.param(
            {"controlMatches": [match("sun.A.1", "moon.A.1", "PARTIAL")]},
            {"moon.A.1": (PARTIAL, True), "own.A.2": (NONE, False)},
            id="match weakened",
        ),
        pytest.param(
            {"controlMatches": [match("sun.A.1", "moon.A.8", "FULL", "sun.A.1->moon.A.1")]},
            {"moon.A.1": (NONE, False), "moon.A.8": (FULL, True), "own.A.2": (NONE, False)},
            id="match led to another target of the same framework",
        ),
        pytest.param(
            {"controlMatches": [match("sun.A.1", "star.A.1", "FULL", "sun.A.1->moon.A.1")]},
            {"moon.A.1": (NONE, False), "own.A.2": (NONE, False)},
            id="match led to a framework that is not adopted",
        ),
        pytest.param(
            {"controlMatches": [match("sun.A.9", "moon.A.1", "FULL", "sun.A.1->moon.A.1")]},
            {"moon.A.1": (NONE, False)},
            id="match led from another source",
        ),
        pytest.param(
            {"controlMatches": [match("star.A.1", "moon.A.1", "FULL", "sun.A.1->moon.A.1")]},
            {"moon.A.1": (NONE, False)},
            id="match led from a framework that is not adopted",
        ),
        pytest.param(
            {
                "controls": [
                    {"id": "sun.A.1", "parentId": None},
                    {"id": "sun.A.2", "type": "CATEGORY"},
                    {"id": "sun.A.3", "parentId": "sun.A.2"},
                ]
            },
            {"sun.A.2": (FULL, False), "sun.A": (PARTIAL, False), "moon.A.2": (FULL, True)},
            id="controls with other parents",
        ),
        pytest.param(
            {"controls": [{"id": "sun.new", "frameworkId": "fw-sun", "name": "New", "parentId": "sun.A.1"}]},
            {"sun.new": (NONE, False), "sun.A.1": (FULL, False)},
            id="control added",
        ),
        pytest.param(
            {
                "controlCoverages": [statement("star.A.4", "FULL") | {"id": "mine"}],
                "frameworkAdoptions": [{"id": "new", "organizationId": ALPHA, "frameworkId": "fw-star"}],
            },
            {"star.A.4": (FULL, False), "moon.A.4": (FULL, True)},
            id="framework adopted",
        ),
        pytest.param(
            {"frameworkAdoptions": [{"id": "adopt-sun", "frameworkId": "fw-star"}]},
            {"star.A.4": (NONE, False), "moon.A.1": (NONE, False), "sun.A.1": None},
            id="adoption moved to another framework",
        ),
    ],
)
def test_coverage_follows_what_is_loaded(
    database: Database, document: dict[str, Any], expected: dict[str, tuple[Level, bool] | None]
) -> None:
    before = shown(database)
    world.load(database, document)
    after = shown(database)
    assert {name: found(after[ALPHA], name) for name in expected} == expected
    assert after[ALPHA] != before[ALPHA]
    assert after[BETA] == before[BETA]


def test_only_controls_of_adopted_frameworks_have_coverage(database: Database) -> None:
    coverage = shown(database)
    assert {name.partition(".")[0] for name in coverage[ALPHA]} == {"sun", "moon", "own"}
    assert {name.partition(".")[0] for name in coverage[BETA]} == {"foreign", "star"}


def test_a_statement_counts_for_its_own_organization_only(database: Database) -> None:
    world.load(database, {"frameworkAdoptions": [{"id": "new", "organizationId": BETA, "frameworkId": "fw-sun"}]})
    coverage = shown(database)
    assert coverage[ALPHA]["sun.A.1"].effective is FULL
    assert coverage[BETA]["sun.A.1"].effective is NONE


def test_a_shared_match_counts_for_every_organization_that_adopted_both_ends(database: Database) -> None:
    adoptions = [{"id": f"b-{name}", "organizationId": BETA, "frameworkId": name} for name in ("fw-sun", "fw-moon")]
    said = {"id": "b", "organizationId": BETA, "controlId": "sun.A.9", "coverageStatus": "FULL"}
    world.load(database, {"frameworkAdoptions": adoptions, "controlCoverages": [said]})
    world.load(database, {"controlMatches": [match("sun.A.9", "moon.A.9", "FULL")]})
    coverage = shown(database)
    assert found(coverage[BETA], "moon.A.9") == (FULL, True)
    assert found(coverage[ALPHA], "moon.A.9") == (NONE, False)


def written_organizations(database: Database, document: dict[str, Any]) -> set[str]:
    """The organizations whose coverage a load writes, seen in the statements that it executes."""
    written: set[str] = set()

    def work(unit: UnitOfWork) -> None:
        execute_many = unit.execute_many

        def note(statement: Statement, parameters: Sequence[Parameters]) -> None:
            if str(EffectiveCoverage.__tablename__) in str(statement):
                written.update(name for name in (ALPHA, BETA) if name in repr(parameters))
            execute_many(statement, parameters)

        unit.execute_many = note  # type: ignore[method-assign]
        loading.load(unit, world.rows(document))

    change(database, work)
    return written


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"controlCoverages": [statement("sun.A.2", "FULL")]}, {ALPHA}),
        ({"controls": [{"id": "star.new", "frameworkId": "fw-star", "name": "New"}]}, {BETA}),
        ({"labels": [{"id": "l", "organizationId": ALPHA, "name": "L"}]}, set()),
        ({"controls": [{"id": "sun.A.2", "name": "Renamed"}]}, set()),
        ({"controlCoverages": [{"id": "say-sun.A.2", "coverageGap": "Another."}]}, set()),
    ],
)
def test_only_rows_that_differ_are_written(database: Database, document: dict[str, Any], expected: set[str]) -> None:
    assert written_organizations(database, document) == expected
    shown(database)


@pytest.mark.parametrize(
    ("document", "computed"),
    [
        ({"controls": [{"id": "sun.A.2", "name": "Renamed"}]}, False),
        ({"controls": [{"id": "sun.A.2", "parentId": None}]}, True),
        ({"controlCoverages": [{"id": "say-sun.A.2", "coverageGap": "Another."}]}, False),
        ({"controlCoverages": [{"id": "say-sun.A.2", "coverageStatus": "FULL"}]}, True),
        ({"frameworkAdoptions": [{"id": "adopt-sun", "adoptedAt": "2026-01-01"}]}, False),
        ({"frameworkAdoptions": [{"id": "adopt-sun", "frameworkId": "fw-star"}]}, True),
        ({"controlMatches": [{"id": "sun.A.3->moon.A.3", "matchLevel": "FULL"}]}, True),
    ],
)
def test_only_what_coverage_follows_from_has_it_computed(
    database: Database, document: dict[str, Any], computed: bool
) -> None:
    told: set[str] = set()
    change(database, lambda unit: loading.load(unit, world.rows(document), lambda step, *_: told.add(step)))
    assert ("Computing coverage" in told) == computed
    shown(database)


def test_what_was_tampered_with_is_mended(database: Database) -> None:
    right = shown(database)

    tamper(
        database,
        "DELETE FROM effective_coverage WHERE control_id = 'sun.A.1'",
        "UPDATE effective_coverage SET status = 2 WHERE control_id = 'moon.A.12'",
        "UPDATE effective_coverage SET control_id = 'star.A' WHERE control_id = 'own.A'",
    )
    assert database.read_now(stored) != right
    assert change(database, lambda unit: recompute(unit, ALPHA)) == 4
    assert shown(database) == right
    assert change(database, lambda unit: recompute(unit, ALPHA)) == 0


def test_imported_frameworks_and_their_mapping_let_coverage_flow_once_adopted(
    database: Database, tmp_path: Path
) -> None:
    def library(name: str, **objects: Any) -> Path:
        path = tmp_path / f"{name}.yaml"
        path.write_text(json.dumps({"urn": f"urn:x:library:{name}", "version": 1, "objects": objects}))
        return path

    def framework(name: str) -> dict[str, Any]:
        nodes = [
            {"urn": f"urn:x:{name}:1", "assessable": False, "name": "Top"},
            {"urn": f"urn:x:{name}:1.1", "assessable": True, "name": "One", "parent_urn": f"urn:x:{name}:1"},
        ]
        return {"urn": f"urn:x:framework:{name}", "ref_id": name, "name": name, "requirement_nodes": nodes}

    relation = {
        "source_requirement_urn": "urn:x:one:1.1",
        "target_requirement_urn": "urn:x:two:1.1",
        "relationship": "intersect",
    }
    paths = [
        library("one", framework=framework("one")),
        library("two", framework=framework("two")),
        library("map", requirement_mapping_sets=[{"requirement_mappings": [relation]}]),
    ]
    before = shown(database)
    published = importing.read_published(paths)
    change(database, lambda unit: import_for_all(unit, published, skip_unknown=False))
    assert shown(database) == before
    change(database, lambda unit: adopt(unit, ALPHA, ["one", "two"]))
    world.load(database, {"controlCoverages": [statement("urn:x:one:1.1", "FULL")]})
    coverage = shown(database)[ALPHA]
    assert found(coverage, "urn:x:one:1") == (FULL, False)
    assert found(coverage, "urn:x:two:1.1") == (PARTIAL, True)
    assert found(coverage, "urn:x:two:1") == (PARTIAL, True)


# --- Any load at all


class Undo(Exception):
    """Rolls a transaction back once it has been looked at."""


_CONTROLS = [f"{name}.A.{number}" for name in ("sun", "moon", "star") for number in range(1, 5)]
_FRAMEWORKS = ("fw-sun", "fw-moon", "fw-star")
_OWNED = {ALPHA: "own.A.1", BETA: "foreign.A.1"}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, list[dict[str, Any]]]:
    """A small bundle that changes what coverage follows from; ids are drawn from a few, so that loads update."""
    control, organization = st.sampled_from(_CONTROLS), st.sampled_from([ALPHA, BETA])
    said, levels = st.sampled_from(["NONE", "PARTIAL", "FULL"]), st.sampled_from(["PARTIAL", "FULL"])
    assessed: dict[tuple[str, str], dict[str, Any]] = {}
    for owner, drawn, status in draw(st.lists(st.tuples(organization, control, said), max_size=3)):
        name = draw(st.sampled_from([drawn, _OWNED[owner]]))
        if (owner, name) not in {(ALPHA, "sun.A.1"), (ALPHA, "sun.A.2"), (ALPHA, "sun.A.3"), (BETA, "star.A.4")}:
            row = statement(name, status, owner)
            assessed[owner, name] = row | {"id": f"h-{owner}-{name}"}
        else:
            kept = "say-foreign" if owner == BETA else f"say-{name}"
            assessed[owner, name] = {"id": kept, "coverageStatus": status}
    matches = {
        name: match(source, target, level, name)
        for name, source, target, level in draw(
            st.lists(
                st.tuples(st.sampled_from(["m1", "sun.A.1->moon.A.1", "sun.A.2->moon.A.2"]), control, control, levels),
                max_size=2,
            )
        )
    }
    adoptions = {
        (owner, name): {"id": f"h-{owner}-{name}", "organizationId": owner, "frameworkId": name}
        for owner, name in draw(st.lists(st.tuples(organization, st.sampled_from(_FRAMEWORKS)), max_size=2))
        if (owner, name) not in {(ALPHA, "fw-sun"), (ALPHA, "fw-moon"), (BETA, "fw-star")}
    }
    controls = {
        name: {"id": name, "parentId": draw(st.sampled_from([None, name.rpartition(".")[0]]))}
        for name in draw(st.lists(control, max_size=2))
    }
    whole = {
        "controls": list(controls.values()),
        "controlMatches": list(matches.values()),
        "frameworkAdoptions": list(adoptions.values()),
        "controlCoverages": list(assessed.values()),
    }
    # One or two arrays a load: what brings one organization up to date would hide that another change does not.
    return {array: whole[array] for array in draw(st.sets(st.sampled_from(sorted(whole)), min_size=1, max_size=2))}


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(loads=st.lists(documents(), min_size=1, max_size=3))
def test_after_any_loads_what_is_stored_is_what_follows(database: Database, loads: list[dict[str, Any]]) -> None:
    def work(unit: UnitOfWork) -> None:
        for document in loads:
            loading.load(unit, world.rows(document))
            assert stored(unit) == afresh(unit)
        raise Undo

    with pytest.raises(Undo):
        change(database, work)


def test_there_is_something_to_compute(database: Database) -> None:
    total = database.read_now(lambda transaction: len(transaction.scalars(select(Control.id))))
    assert total == 65
    assert {len(controls) for controls in shown(database).values()} == {39, 26}
