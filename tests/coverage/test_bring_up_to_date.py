"""Coverage that follows a change in the database: right after any change, at the cost of what it touches."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from threading import Barrier
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import bindparam, delete, insert, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.database import Database
from normata.core.db.transaction import Parameters, Statement
from normata.core.schema.table import new_id, sql_table
from normata.coverage import stored_graph
from normata.coverage.engine import Level
from normata.coverage.prospect import Former, prospect_of
from normata.coverage.recompute import (
    Touched,
    bring_up_to_date,
    coverage_with,
    current_coverage,
    is_current,
    stored_coverage,
)
from normata.frameworks.baseline_model import Baseline, BaselineControl
from normata.frameworks.counting import is_requirement
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, EffectiveCoverage, FrameworkAdoption
from tests import world
from tests.coverage import definition
from tests.coverage.test_explain import known
from tests.databases import change, open_url
from tests.world import ALPHA, BETA

NONE, PARTIAL, FULL = Level
_STATED, _MATCH = sql_table(ControlCoverage), sql_table(ControlMatch)
_ADOPTION, _CONTROL = sql_table(FrameworkAdoption), sql_table(Control)
_BASELINE, _SELECTED, _EFFECTIVE = sql_table(Baseline), sql_table(BaselineControl), sql_table(EffectiveCoverage)


class Undo(Exception):
    """Rolls a transaction back once it has been looked at."""


def state(
    unit: UnitOfWork,
    control: str,
    status: str | None,
    organization_id: str = ALPHA,
    *,
    applies: bool | None = None,
) -> None:
    """Say something of a control, whatever was said before."""
    key = (_STATED.c.organization_id == organization_id) & (_STATED.c.control_id == control)
    unit.rows(delete(_STATED).where(key))
    row = {"id": new_id(), "organization_id": organization_id, "control_id": control, "coverage_status": status}
    unit.rows(insert(_STATED).values(**row, is_applicable=applies, reasons=[]))
    unit.publish(Change("assess", ControlCoverage, organization_id, row["id"], row))


# --- Any sequence of changes


def restate(unit: UnitOfWork, rng: random.Random) -> Touched:
    control = rng.choice(unit.scalars(select(_CONTROL.c.id).order_by(_CONTROL.c.id)))
    if rng.random() < 0.2:
        unit.rows(delete(_STATED).where(_STATED.c.organization_id == ALPHA, _STATED.c.control_id == control))
    else:
        status = rng.choice([None, "NONE", "PARTIAL", "FULL", "FULL"])
        state(unit, control, status, applies=rng.choice([None, None, None, True, False]))
    return Touched(assessed=[control], decided=[control])


def retype(unit: UnitOfWork, rng: random.Random) -> Touched:
    """Make a control a category, decomposed or mandatory, or no longer that."""
    control = rng.choice(unit.scalars(select(_CONTROL.c.id).order_by(_CONTROL.c.id)))
    values = {
        "type": rng.choice(["CATEGORY", "CONTROL", "CONTROL"]),
        "is_decomposed": rng.random() < 0.3,
        "is_mandatory": rng.random() < 0.3,
    }
    unit.rows(update(_CONTROL).where(_CONTROL.c.id == control).values(**values))
    return Touched(controls=[control])


def rematch(unit: UnitOfWork, rng: random.Random) -> Touched:
    found = unit.rows(select(_MATCH).order_by(_MATCH.c.id))
    if rng.random() < 0.3:
        one = rng.choice(found)
        unit.rows(delete(_MATCH).where(_MATCH.c.id == one.id))
        return Touched(matches=[one.source_control_id, one.target_control_id])
    controls = unit.scalars(select(_CONTROL.c.id).where(_CONTROL.c.id.like("%.A.%")).order_by(_CONTROL.c.id))
    source, target = rng.sample(controls, 2)
    for ends in ((source, target), (target, source)):
        row = {"id": new_id(), "organization_id": rng.choice([None, ALPHA, BETA])}
        row |= {"source_control_id": ends[0], "target_control_id": ends[1]}
        unit.rows(insert(_MATCH).values(**row, match_level=rng.choice(["PARTIAL", "FULL"])))
    return Touched(matches=[source, target])


def move(unit: UnitOfWork, rng: random.Random) -> Touched:
    one = rng.choice(unit.rows(select(_CONTROL.c.id, _CONTROL.c.parent_id, _CONTROL.c.framework_id)))
    category = f"{one.framework_id.removeprefix('fw-')}.A"
    parent = rng.choice([None, category, f"{category}.1"])
    if parent != one.id:
        unit.rows(update(_CONTROL).where(_CONTROL.c.id == one.id).values(parent_id=parent))
    return Touched(controls=[one.id] if one.parent_id is None else [one.id, one.parent_id])


def readopt(unit: UnitOfWork, rng: random.Random) -> Touched:
    framework = rng.choice(["fw-sun", "fw-moon", "fw-star", "fw-own"])
    key = (_ADOPTION.c.organization_id == ALPHA) & (_ADOPTION.c.framework_id == framework)
    if unit.scalar(select(_ADOPTION.c.id).where(key)):
        unit.rows(delete(_ADOPTION).where(key))
    else:
        row = {"id": new_id(), "organization_id": ALPHA, "framework_id": framework, "adopted_at": unit.moment}
        unit.rows(insert(_ADOPTION).values(**row))
    return Touched(frameworks=[framework])


def rebase(unit: UnitOfWork, rng: random.Random) -> Touched:
    """Adopt another baseline of a framework, or none."""
    framework = rng.choice(["fw-sun", "fw-moon", "fw-star", "fw-own"])
    baseline = rng.choice([None, baseline_of(unit, framework)])
    key = (_ADOPTION.c.organization_id == ALPHA) & (_ADOPTION.c.framework_id == framework)
    unit.rows(update(_ADOPTION).where(key).values(baseline_id=baseline))
    return Touched(frameworks=[framework])


def baseline_of(unit: UnitOfWork, framework: str) -> str:
    """A baseline of a framework, which is made where there is none."""
    name = f"baseline of {framework}"
    if not unit.scalar(select(_BASELINE.c.id).where(_BASELINE.c.id == name)):
        row = {"id": name, "framework_id": framework, "identifier": "B", "slug": "b", "name": "B", "position": 0}
        unit.rows(insert(_BASELINE).values(**row, created_at=unit.moment, updated_at=unit.moment))
    return name


def reselect(unit: UnitOfWork, rng: random.Random) -> Touched:
    """Take a control into a baseline of its framework, or out of it."""
    one = rng.choice(unit.rows(select(_CONTROL.c.id, _CONTROL.c.framework_id).order_by(_CONTROL.c.id)))
    baseline = baseline_of(unit, one.framework_id)
    key = (_SELECTED.c.baseline_id == baseline) & (_SELECTED.c.control_id == one.id)
    found = unit.rows(select(_SELECTED).where(key))
    if found:
        retired = None if found[0].retired_at else unit.moment
        unit.rows(update(_SELECTED).where(key).values(retired_at=retired))
    else:
        unit.rows(insert(_SELECTED).values(id=new_id(), baseline_id=baseline, control_id=one.id))
    return Touched(controls=[one.id])


def by_definition(unit: UnitOfWork) -> dict[str, tuple[int, bool]]:
    """How far each control is covered and whether it applies, as the design has it."""
    facts = known(unit)
    statuses = {name: row.coverage_status for name, row in facts.assessed.items()}
    controls = {
        name: replace(control, assessed=None if statuses.get(name) is None else int(Level[statuses[name]]))
        for name, control in facts.controls.items()
    }
    matches = [
        (one.source_control_id, one.target_control_id, int(Level[one.match_level])) for one in facts.matches.values()
    ]
    levels, counted = definition.effective(controls, matches), definition.applicable(controls)
    return {name: (levels[name], name in counted) for name in controls}


def look_ahead(unit: UnitOfWork, framework: str, baseline: str | None) -> None:
    """What an adoption would lead to is what follows from everything, computed anew."""
    key = (_ADOPTION.c.organization_id == ALPHA) & (_ADOPTION.c.framework_id == framework)
    adoption = unit.row(select(_ADOPTION).where(key))
    was: Former = "new" if adoption is None else "same" if adoption.baseline_id == baseline else "other"
    before, after = stored_coverage(unit, ALPHA), coverage_with(unit, ALPHA, framework, baseline)
    found = prospect_of(unit, ALPHA, framework, baseline, was)
    own = set(unit.scalars(select(_CONTROL.c.id).where(_CONTROL.c.framework_id == framework)))
    stored = unit.rows(
        select(_EFFECTIVE.c.control_id, _EFFECTIVE.c.applies).where(_EFFECTIVE.c.organization_id == ALPHA)
    )
    expected = {row.control_id: (before[row.control_id], row.applies) for row in stored if row.control_id in own}
    assert found.own.keys() <= own
    expected |= {control: (ranked.computed, ranked.applies) for control, ranked in found.own.items()}
    assert expected == {control: (after[control].computed, after[control].applies) for control in own}
    levels = {control: (one.effective, after[control].computed.effective) for control, one in before.items()}
    assert found.others == {one: found for one, found in levels.items() if one not in own and found[0] != found[1]}


STEPS: Sequence[Callable[[UnitOfWork, random.Random], Touched]] = (
    *(restate, restate, restate, rematch, rematch),
    *(move, readopt, retype, rebase, rebase, reselect, reselect),
)


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_after_any_changes_what_is_stored_is_what_follows(database: Database, rng: random.Random) -> None:
    def work(unit: UnitOfWork) -> None:
        for _ in range(6):
            with patch.object(stored_graph, "_MANY", rng.choice([0, 500])):  # with matches read either way
                bring_up_to_date(unit, ALPHA, rng.choice(STEPS)(unit, rng))
            assert stored_coverage(unit, ALPHA) == current_coverage(unit, ALPHA)
            assert is_current(unit, ALPHA)
            stored = unit.rows(select(_EFFECTIVE).where(_EFFECTIVE.c.organization_id == ALPHA))
            assert {row.control_id: (Level[row.status], row.applies) for row in stored} == by_definition(unit)
            framework = rng.choice(["fw-sun", "fw-moon", "fw-star", "fw-own"])
            look_ahead(unit, framework, rng.choice([None, baseline_of(unit, framework)]))
        raise Undo

    with pytest.raises(Undo):
        change(database, work)


def test_a_framework_that_was_assessed_in_full_before_would_be_full_again(database: Database) -> None:
    """Its groups as well."""

    def work(unit: UnitOfWork) -> None:
        for framework in ("fw-sun", "fw-moon", "fw-star", "fw-own"):
            of_framework = (_ADOPTION.c.organization_id == ALPHA) & (_ADOPTION.c.framework_id == framework)
            unit.rows(delete(_ADOPTION).where(of_framework))
            requirements = select(_CONTROL.c.id).where(_CONTROL.c.framework_id == framework, is_requirement())
            for control in unit.scalars(requirements):
                state(unit, control, "FULL")
            bring_up_to_date(unit, ALPHA, Touched(frameworks=[framework]))
            look_ahead(unit, framework, None)
        raise Undo

    with pytest.raises(Undo):
        change(database, work)


# --- What it costs


class Counted:
    """Counts the rows that a unit of work reads and writes of coverage, and the statements that it takes."""

    def __init__(self, unit: UnitOfWork) -> None:
        self.read = self.written = self.assessed = 0
        rows, execute_many = unit.rows, unit.execute_many

        def note_rows(statement: Statement, parameters: Parameters = {}) -> list[Any]:  # noqa: B006 - never changed
            found = rows(statement, parameters)
            self.read += len(found)
            self.assessed += 1
            return found

        def note_many(statement: Statement, parameters: Sequence[Parameters]) -> None:
            self.written += len(parameters)
            self.assessed += 1
            execute_many(statement, parameters)

        unit.rows, unit.execute_many = note_rows, note_many  # type: ignore[method-assign]


def large_framework(controls: int) -> dict[str, list[dict[str, Any]]]:
    """A framework with categories of ten controls, each of which matches the next both ways, adopted by alpha."""
    rows: list[dict[str, Any]] = []
    matches = []
    for number in range(controls):
        category = f"big-{number // 10}"
        if number % 10 == 0:
            rows.append({"id": category, "frameworkId": "big", "name": category, "type": "CATEGORY"})
        rows.append({"id": f"{category}.{number}", "frameworkId": "big", "name": "C", "parentId": category})
        if number % 10 != 0:
            ends = (f"{category}.{number - 1}", f"{category}.{number}")
            for source, target in (ends, ends[::-1]):
                match = {"id": f"{source}->{target}", "sourceControlId": source, "targetControlId": target}
                matches.append(match | {"matchLevel": "FULL"})
    return {
        "frameworks": [{"id": "big", "name": "Big"}],
        "controls": rows,
        "controlMatches": matches,
        "frameworkAdoptions": [{"id": "a-big", "organizationId": ALPHA, "frameworkId": "big"}],
    }


def test_one_statement_reads_and_writes_what_it_touches(database: Database) -> None:
    """Of 2,200 controls, one category of ten that are all equal to one another."""
    world.load(database, large_framework(2_000))

    def work(unit: UnitOfWork, status: str) -> Counted:
        state(unit, "big-100.1005", status)
        counted = Counted(unit)
        assert bring_up_to_date(unit, ALPHA, Touched(assessed=["big-100.1005"])) == 11
        written = counted.written, counted.read, counted.assessed
        assert stored_coverage(unit, ALPHA) == current_coverage(unit, ALPHA)
        counted.written, counted.read, counted.assessed = written
        return counted

    for status in ("FULL", "NONE"):
        counted = change(database, partial(work, status=status))
        assert counted.written == 11
        assert counted.read < 120
        assert counted.assessed < 40


def test_one_statement_that_nothing_hangs_on_costs_next_to_nothing(database: Database) -> None:
    def work(unit: UnitOfWork) -> tuple[int, int, int]:
        state(unit, "sun.A.9", "PARTIAL")
        counted = Counted(unit)
        assert bring_up_to_date(unit, ALPHA, Touched(assessed=["sun.A.9"])) == 1
        return counted.read, counted.written, counted.assessed

    read, written, assessed = change(database, work)
    assert read <= 10
    assert written == 1
    assert assessed <= 12


def test_what_touches_much_is_computed_as_a_whole(database: Database) -> None:
    """A framework of more controls than an update follows; either way it is right."""
    document = large_framework(1_000)
    adoption = document.pop("frameworkAdoptions")[0]
    world.load(database, document)

    def work(unit: UnitOfWork) -> int:
        row = {"id": adoption["id"], "organization_id": ALPHA, "framework_id": "big", "adopted_at": unit.moment}
        unit.rows(insert(_ADOPTION).values(**row))
        unit.publish(Change("adopt", FrameworkAdoption, ALPHA, "a-big", row))
        written = bring_up_to_date(unit, ALPHA, Touched(frameworks=["big"]))
        assert stored_coverage(unit, ALPHA) == current_coverage(unit, ALPHA)
        return written

    assert change(database, work) == 1_100


def test_only_what_differs_is_written(database: Database) -> None:
    def work(unit: UnitOfWork) -> int:
        return bring_up_to_date(unit, ALPHA, Touched(assessed=["sun.A.1"], matches=["sun.A.2", "moon.A.2"]))

    assert change(database, work) == 0


def test_the_coverage_of_others_is_left_alone(database: Database) -> None:
    def work(unit: UnitOfWork) -> None:
        state(unit, "star.A.4", "NONE", BETA)
        before = stored_coverage(unit, BETA)
        bring_up_to_date(unit, ALPHA, Touched(assessed=["star.A.4"]))
        assert stored_coverage(unit, BETA) == before
        bring_up_to_date(unit, BETA, Touched(assessed=["star.A.4"]))
        assert stored_coverage(unit, BETA)["star.A.4"].effective is NONE

    change(database, work)


# --- Two at once


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_of_two_changes_at_once_neither_is_lost(database: Database, database_url: str) -> None:
    """Both have written before either looks. The category is FULL only if the later one sees the earlier one."""
    others = [
        {"id": f"o{number}", "organizationId": ALPHA, "controlId": f"own.A.{number}", "coverageStatus": "FULL"}
        for number in range(3, 13)
    ]
    world.load(database, {"controlCoverages": others})
    written = Barrier(2)

    def one(control: str) -> None:
        def work(unit: UnitOfWork) -> None:
            state(unit, control, "FULL")
            written.wait(timeout=20)
            bring_up_to_date(unit, ALPHA, Touched(assessed=[control]))

        with closing(open_url(database_url)) as mine:
            change(mine, work)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(one, ["own.A.1", "own.A.2"]))
    coverage = database.read_now(lambda transaction: stored_coverage(transaction, ALPHA))
    assert coverage["own.A"].effective is FULL
    assert coverage == database.read_now(lambda transaction: current_coverage(transaction, ALPHA))


def test_every_row_of_it_belongs_to_a_control(database: Database) -> None:
    """A control that is gone leaves no coverage behind: the reference would forbid it."""

    def work(unit: UnitOfWork) -> None:
        gone = "own.A.12"
        unit.rows(delete(_CONTROL).where(_CONTROL.c.id == bindparam("id")), {"id": gone})
        unit.publish(Change("remove", Control, ALPHA, gone))
        bring_up_to_date(unit, ALPHA, Touched(controls=[gone, "own.A"]))
        assert stored_coverage(unit, ALPHA) == current_coverage(unit, ALPHA)

    change(database, work)
    statement = select(EffectiveCoverage.control_id).where(EffectiveCoverage.control_id == "own.A.12")
    assert database.read_now(lambda transaction: transaction.scalars(statement)) == []
