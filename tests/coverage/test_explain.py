"""Explanations from the database: every claim has a proof, and each step of it is checked by the rules alone."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from sqlalchemy import select

from normata.adoption.adoption import adopt
from normata.catalogs import reading
from normata.catalogs.importing import import_for_all
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.coverage.engine import Level, Place, compute
from normata.coverage.explain import explain
from normata.coverage.explained import Explanation, Step
from normata.errors import NotFound
from normata.frameworks.baselines import baselines_of_adoptions, selected_controls
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, FrameworkAdoption
from tests import world
from tests.coverage import definition
from tests.databases import change, open_url
from tests.world import ALPHA, BETA

NONE, PARTIAL, FULL = Level


class Known(NamedTuple):
    """What an organization's coverage follows from, read past the code that explains it."""

    controls: dict[str, definition.Control]
    matches: dict[str, Any]
    assessed: dict[str, Any]
    below: dict[str, set[str]]  # the applicable requirements below each group

    def levels(self, changed: dict[str, Level] | None = None) -> dict[str, Level]:
        """How far each control is covered, computed from scratch, with other statements."""
        assessed = {
            control: Level[row.coverage_status] for control, row in self.assessed.items() if row.coverage_status
        } | (changed or {})
        matches = [
            (row.source_control_id, row.target_control_id, Level[row.match_level]) for row in self.matches.values()
        ]
        places = {name: Place(control.parent, control.is_group) for name, control in self.controls.items()}
        return {
            control: found.effective for control, found in compute(places, matches, assessed, self.left_out()).items()
        }

    def left_out(self) -> set[str]:
        """The controls that do not apply."""
        return self.controls.keys() - definition.applicable(self.controls)


def known(transaction: Transaction, organization_id: str = ALPHA) -> Known:
    control, match, assessed = sql_table(Control), sql_table(ControlMatch), sql_table(ControlCoverage)
    adopted = select(FrameworkAdoption.framework_id).where(FrameworkAdoption.organization_id == organization_id)
    rows = transaction.rows(select(*control.c).where(control.c.framework_id.in_(adopted)))
    stated = {
        row.control_id: row
        for row in transaction.rows(select(*assessed.c).where(assessed.c.organization_id == organization_id))
    }
    baselines = baselines_of_adoptions(transaction, organization_id)
    selected = selected_controls(transaction, baselines.values())
    controls = {
        row.id: definition.Control(
            row.parent_id,
            is_category=row.type == "CATEGORY",
            is_decomposed=row.is_decomposed,
            is_mandatory=row.is_mandatory,
            in_baseline=row.framework_id not in baselines or row.id in selected,
            decision=stated[row.id].is_applicable if row.id in stated else None,
        )
        for row in rows
    }
    below: defaultdict[str, set[str]] = defaultdict(set)
    for name in definition.applicable(controls):
        for group in () if controls[name].is_group else definition.above(name, controls):
            if controls[group].is_group:
                below[group].add(name)
    return Known(
        controls,
        {row.id: row for row in transaction.rows(select(*match.c)) if row.organization_id in (None, organization_id)},
        stated,
        below,
    )


def verify(facts: Known, proof: list[Step], control: str, status: str) -> None:
    """Check a proof step by step. It knows the rules and what is stored, and nothing of what was computed."""
    shown: set[tuple[str, str]] = set()
    for step in proof:
        premises = {(premise.control_id, premise.level) for premise in step.premises}
        assert premises <= shown
        assert step.control.id in facts.controls
        assessment = facts.assessed.get(step.control.id)
        assert assessment is None or assessment.is_applicable is not False
        if step.rule == "ASSESSMENT":
            assert not premises
            assert assessment is not None
            assert step.assessed == assessment.coverage_status
            assert Level[assessment.coverage_status] >= Level[step.level] > NONE
        elif step.rule == "MATCH":
            assert step.match is not None
            [(source, source_level)] = premises
            match = facts.matches[step.match.id]
            assert (match.source_control_id, match.target_control_id) == (source, step.control.id)
            if source_level == "FULL":
                assert Level[match.match_level] >= Level[step.level]
            else:
                assert step.level == "PARTIAL"
                assert step.match_back is not None
                back = facts.matches[step.match_back.id]
                assert (back.source_control_id, back.target_control_id) == (step.control.id, source)
                assert back.match_level == "FULL"
        else:
            assert step.rule == "ROLL_UP"
            children = {name for name, _ in premises}
            if step.level == "FULL":
                assert children <= facts.below[step.control.id]
                assert step.premise_count == len(facts.below[step.control.id]) > 0
                assert {level for _, level in premises} == {"FULL"}
            else:
                assert len(children) == step.premise_count == 1
                assert children <= facts.below[step.control.id]
        shown.add((step.control.id, step.level))
        assert step.rule == "ROLL_UP" or step.premise_count == len(step.premises)
    assert (proof[-1].control.id, proof[-1].level) == (control, status)


def check(transaction: Transaction, facts: Known, levels: dict[str, Level], control: str) -> Explanation:
    """Explain a control, and check everything that the explanation claims but for its effects and lifts."""
    found = explain(transaction, ALPHA, control)
    orjson.dumps(asdict(found))
    level = levels[control]
    assert found.effective_coverage_status == level.name
    assert found.is_proved
    if level == NONE:
        assert not found.proof
        assert not found.others
        return found
    verify(facts, found.proof, control, level.name)
    for proof in found.others:
        verify(facts, proof, control, level.name)
        assert sum(step.rule == "ASSESSMENT" for step in proof) == 1
    return found


def test_every_claim_of_the_world_is_proved(database: Database) -> None:
    document: dict[str, list[dict[str, Any]]] = {
        "controlMatches": [
            {"id": "mine", "organizationId": ALPHA, "sourceControlId": "moon.A.2", "targetControlId": "sun.A.2",
             "matchLevel": "FULL", "justification": "Compared."},
        ],
        "controlCoverages": [
            {"id": "na", "organizationId": ALPHA, "controlId": "own.A.7", "isApplicable": False, "justification": "No."}
        ],
    }  # fmt: skip
    world.load(database, document)

    def work(transaction: Transaction) -> dict[str, Explanation]:
        facts = known(transaction)
        levels = facts.levels()
        return {control: check(transaction, facts, levels, control) for control in facts.controls}

    found = database.read_now(work)
    assert [step.rule for step in found["own.A"].proof] == ["ASSESSMENT", "MATCH", "MATCH", "ROLL_UP"]
    partial = found["moon.A.2"].proof[-1]
    assert (partial.level, partial.rule) == ("PARTIAL", "MATCH")
    assert partial.match is not None
    assert not partial.match.is_own
    assert partial.match_back is not None
    assert (partial.match_back.id, partial.match_back.is_own, partial.match_back.justification) == (
        "mine", True, "Compared.",
    )  # fmt: skip
    left_out = found["own.A.7"]
    assert (left_out.effective_coverage_status, left_out.lifts, left_out.effects.count) == ("NONE", [], 0)
    assert left_out.assessment is not None
    assert (left_out.assessment.is_applicable, left_out.assessment.justification) == (False, "No.")
    effects = found["sun.A.1"].effects
    assert effects.count == 3
    assert {(one.control.id, one.level, one.without) for one in effects.items} == {
        ("moon.A.1", "FULL", "NONE"),
        ("own.A.2", "FULL", "NONE"),
        ("own.A", "PARTIAL", "NONE"),
    }
    assert found["moon.A.3"].lifts == [], "its one source is FULL, and the match says no more"
    assert [(one.control.id, one.level, one.needs, one.gives) for one in found["moon.A.2"].lifts] == [
        ("sun.A.2", "PARTIAL", "FULL", "FULL")
    ]
    assert found["sun.A"].lacking_count == 10


@pytest.mark.parametrize("control", ["foreign.A.1", "nothing"])
def test_what_cannot_be_seen_is_not_explained(database: Database, control: str) -> None:
    with pytest.raises(NotFound):
        database.read_now(lambda transaction: explain(transaction, ALPHA, control))


def test_what_is_not_adopted_has_no_status(database: Database) -> None:
    found = database.read_now(lambda transaction: explain(transaction, ALPHA, "star.A.4"))
    assert (found.effective_coverage_status, found.proof, found.lifts) == (None, [], [])


def test_nothing_of_another_organization_is_told(database: Database) -> None:
    """Beta has adopted the same, says more, and has a match of its own that would lift the control."""
    world.load(
        database,
        {
            "frameworkAdoptions": [
                {"id": f"b-{name}", "organizationId": BETA, "frameworkId": name} for name in ("fw-sun", "fw-moon")
            ],
            "controlCoverages": [
                {"id": "b", "organizationId": BETA, "controlId": "moon.A.9", "coverageStatus": "FULL"}
            ],
            "controlMatches": [
                {"id": "betas", "organizationId": BETA, "sourceControlId": "sun.A.9", "targetControlId": "moon.A.9",
                 "matchLevel": "FULL"},
            ],
        },
    )  # fmt: skip
    found = database.read_now(lambda transaction: explain(transaction, ALPHA, "moon.A.9"))
    assert (found.effective_coverage_status, found.assessment, found.lifts) == ("NONE", None, [])
    theirs = database.read_now(lambda transaction: explain(transaction, BETA, "moon.A.9"))
    assert theirs.assessment is not None


# --- Published catalogs


def fixpoint_of(
    facts: Known, matches: list[tuple[str, str, Level]], assessed: dict[str, Level], left_out: set[str]
) -> dict[str, Level]:
    """How far each control is covered by the rules as they are written: sets of controls, grown until they stay."""
    controls = facts.controls.keys() - left_out
    inside = [(source, target, how) for source, target, how in matches if {source, target} <= controls]
    whole = {(source, target) for source, target, how in inside if how == FULL}
    below = {control: facts.below.get(control, set()) for control in controls}
    full: set[str] = set()
    partial: set[str] = set()
    while True:
        size = len(full) + len(partial)
        full |= {control for control in controls if assessed.get(control) == FULL}
        full |= {target for source, target in whole if source in full}
        full |= {control for control in controls if below[control] and below[control] <= full}
        partial |= full | {control for control in controls if assessed.get(control) == PARTIAL}
        partial |= {target for source, target, _ in inside if source in full}
        partial |= {target for source, target, _ in inside if source in partial and (target, source) in whole}
        partial |= {control for control in controls if below[control] & partial}
        if size == len(full) + len(partial):
            return {
                control: FULL if control in full else PARTIAL if control in partial else NONE
                for control in facts.controls
            }


@pytest.fixture(scope="module")
def published(catalogs: Path, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """CSF 1.1, CSF 2.0 and SP 800-66 with both mappings, adopted by alpha, which says something of a third of CSF 1.1.

    A few of the published matches have one of alpha's own beside them, so that all rules are met.
    """
    path = tmp_path_factory.mktemp("published") / "normata.db"
    path.write_bytes(sqlite_template.read_bytes())
    database = open_url(f"sqlite:///{path}")
    folder = catalogs / "ciso-assistant"
    files = [
        folder / f"{name}.yaml"
        for name in (
            "nist-csf-1.1",
            "nist-csf-2.0",
            "nist-sp-800-66-rev2",
            "map-nist-csf-1.1-nist-csf-2.0",
            "mapping-nist-sp-800-66-rev2-to-nist-csf-2.0",
        )
    ]
    rows = reading.read(files)
    change(database, lambda unit: import_for_all(unit, reading.read_published(files), skip_unknown=False))
    frameworks = [row.values["id"] for row in rows if row.array == "frameworks"]
    change(database, lambda unit: adopt(unit, ALPHA, frameworks))
    rng = random.Random(11)  # noqa: S311 - the same every time
    controls = [row.values["id"] for row in rows if row.array == "controls"]
    parents = {row.values.get("parentId") for row in rows if row.array == "controls"}
    leaves = [control for control in controls if control not in parents]
    assessed = [
        {
            "id": f"p{number}",
            "organizationId": ALPHA,
            "controlId": control,
            "coverageStatus": rng.choice(["NONE", "PARTIAL", "FULL", "FULL"]),
            "isApplicable": rng.random() < 0.9,
            "justification": "So it is.",
        }
        for number, control in enumerate(rng.sample(leaves, len(leaves) // 4))
    ]
    own = [
        {**row.values, "id": f"own-{number}", "organizationId": ALPHA, "matchLevel": "FULL"}
        for number, row in enumerate(rng.sample([row for row in rows if row.array == "controlMatches"], 300))
    ]
    world.load(database, {"controlCoverages": assessed, "controlMatches": own})
    yield database
    database.close()


@pytest.fixture(scope="module")
def read_published(published: Database) -> Callable[[Callable[[Transaction, Known, dict[str, Level]], None]], None]:
    """Runs a test over the published catalogs, with what is known of them."""

    def run(work: Callable[[Transaction, Known, dict[str, Level]], None]) -> None:
        def read(transaction: Transaction) -> None:
            facts = known(transaction)
            work(transaction, facts, facts.levels())

        published.read_now(read)

    return run


@pytest.mark.long
def test_every_claim_of_published_catalogs_is_proved(read_published: Any) -> None:
    def work(transaction: Transaction, facts: Known, levels: dict[str, Level]) -> None:
        matches = [
            (row.source_control_id, row.target_control_id, Level[row.match_level]) for row in facts.matches.values()
        ]
        assessed = {
            control: Level[row.coverage_status] for control, row in facts.assessed.items() if row.coverage_status
        }
        left_out = facts.left_out()
        assert levels == fixpoint_of(facts, matches, assessed, left_out)
        rules: set[tuple[str, str, bool]] = set()
        for control in facts.controls:
            found = check(transaction, facts, levels, control)
            rules |= {(step.rule, step.level, step.match_back is not None) for step in found.proof}
        assert rules == {
            *((rule, level, False) for rule in ("ASSESSMENT", "MATCH", "ROLL_UP") for level in ("PARTIAL", "FULL")),
            ("MATCH", "PARTIAL", True),
        }

    read_published(work)


@pytest.mark.long
def test_effects_and_lifts_of_published_catalogs_are_true(read_published: Any) -> None:
    def work(transaction: Transaction, facts: Known, levels: dict[str, Level]) -> None:
        rng = random.Random(3)  # noqa: S311 - the same every time
        told = 0
        for control in rng.sample(sorted(facts.controls), 60):
            found = explain(transaction, ALPHA, control)
            if control in facts.assessed:
                without = facts.levels({control: NONE})
                lost = {name for name in levels if name != control and without[name] < levels[name]}
                assert found.effects.count in (None, len(lost))
                assert {one.control.id for one in found.effects.items} <= lost
            for lift in found.lifts[:3]:
                after = facts.levels({lift.control.id: Level[lift.needs]})
                assert after[control] >= Level[lift.gives] > levels[control]
                told += 1
            assert [len(lift.path) for lift in found.lifts] == sorted(len(lift.path) for lift in found.lifts)
        assert told > 20

    read_published(work)
