"""Published catalogs, adopted together and changed by several people at once: what is stored is what follows.

Four writers race, through two processes' worth of the application: two members of one organization, one of another, and
an operator who imports. Then the inputs are read from the database, whatever order they were made in, and the brute
force of :mod:`tests.coverage.definition` says what must be stored. With ``NORMATA_TEST_COVERAGE=all`` it is everything
that is published, for some minutes.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from pathlib import Path
from threading import Barrier
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from normata.catalogs.importing import import_for_all
from normata.catalogs.reading import read_published
from normata.core.db.database import Database
from normata.coverage.lapses import lapse
from normata.frameworks.baseline_model import Baseline, BaselineControl
from normata.frameworks.model import (
    Control,
    ControlCoverage,
    ControlMatch,
    EffectiveCoverage,
    FrameworkAdoption,
    SetAsideMatch,
)
from tests import mostly_sqlite, stored
from tests.catalogs.test_centralized_imports import Operator
from tests.coverage import definition
from tests.coverage.assessing import Json, Stating, assert_consistent, done
from tests.databases import change, on_both
from tests.served import Served, served
from tests.world import ALPHA, BETA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

ALL = os.environ.get("NORMATA_TEST_COVERAGE") == "all"
ROUNDS, STEPS = (12, 25) if ALL else (2, 5)
MAPPING, WITH_BASELINES = "map-nist-csf-1.1-nist-csf-2.0", "cmmc-2.0"
FEW = ("nist-csf-1.1", "nist-csf-2.0", WITH_BASELINES, MAPPING)
LEVELS = ("NONE", "PARTIAL", "FULL")
REVIEW, AFTERWARDS = "2100-01-01", "2101-01-01T00:00:00.000Z"

Step = Callable[[], None]


class Member:
    """A member of an organization, who alone assesses some of its controls, and knows what was said of them last."""

    def __init__(self, number: int, stating: Stating, controls: Sequence[Json], baselines: Sequence[Json]) -> None:
        self.rng, self.name = random.Random(number), f"member {number}"  # noqa: S311
        self.stating, self.baselines = stating, baselines
        self.controls = [row["id"] for row in controls]
        self.frameworks = sorted({row["framework_id"] for row in controls})
        self.said: dict[str, tuple[str, bool | None]] = {}  # the gap and the decision of each assessment
        self.pairs: set[tuple[str, str]] = set()
        self.own: list[str] = []
        self.number = 0

    def assess(self) -> None:
        """Assess one control, or many."""
        several = self.rng.choice([1, 1, 20])
        items = {control: self._statement() for control in self.rng.sample(self.controls, several)}
        answer = self.stating.patch(*({"controlId": control, **values} for control, values in items.items()))
        if self.accepted(answer):
            self.said |= {control: (one["coverageGap"], one["isApplicable"]) for control, one in items.items()}

    def _statement(self) -> Json:
        self.number += 1
        decision = self.rng.choices([None, True, False], [70, 15, 15])[0]
        return {
            "coverageStatus": self.rng.choice([None, *LEVELS, "FULL"]),
            "coverageGap": f"{self.name}, {self.number}",
            "isApplicable": decision,
            "justification": None if decision is None else "So it is.",
            "reviewBy": self.rng.choice([None, REVIEW]),
        }

    def clear(self) -> None:
        """Clear an assessment."""
        control = self.rng.choice([*self.said, *self.controls[:3]])
        if self.accepted(self.stating.delete(control)):
            self.said.pop(control, None)

    def adopt(self) -> None:
        """Adopt a framework, with another baseline or with none, or leave one."""
        if self.rng.random() < 0.25:
            self.accepted(self.stating.leave(self.rng.choice(self.frameworks)))
            return
        one = self.rng.choice(self.baselines)
        chosen = self.rng.choice([None, one["id"]])
        self.accepted(self.stating.adopt(one["framework_id"], baseline=chosen))
        self.accepted(self.stating.adopt(self.rng.choice(self.frameworks)))

    def judge(self) -> None:
        """Set a published match aside or take it up, or make a match of one's own or take it back."""
        if self.rng.random() < 0.5:
            query = {"organizationId": self.stating.organization_id, "published": "true", "limit": "100"}
            found = done(self._send("GET", "/matches/", params=query))["items"]
            if found:
                path = f"/matches/{quote(self.rng.choice(found)['id'], safe='')}/set-aside/"
                self.accepted(self._change("PUT", path, {"justification": "Not here."}))
                if self.rng.random() < 0.3:
                    self.accepted(self._change("DELETE", path))
        elif self.own and self.rng.random() < 0.3:
            self.accepted(self._change("DELETE", f"/matches/{self.own.pop()}/"))
        else:
            source, target = self.rng.sample(self.controls, 2)
            if (source, target) not in self.pairs:
                self.pairs.add((source, target))
                match = {"sourceControlId": source, "targetControlId": target, "justification": "The same."}
                match["matchLevel"] = self.rng.choice(["PARTIAL", "FULL", "FULL"])
                body = {"organizationId": self.stating.organization_id, "matches": [match]}
                answer = self._send("POST", "/matches/", json=body)
                if self.accepted(answer):
                    self.own.append(answer.json()["items"][0]["id"])

    def _change(self, method: str, path: str, body: Json | None = None) -> Any:
        return self._send(method, path, params={"organizationId": self.stating.organization_id}, json=body)

    def _send(self, method: str, path: str, **more: Any) -> Any:
        return self.stating.client.request(method, path, headers=self.stating.headers, **more)

    @staticmethod
    def accepted(answer: Any) -> bool:
        """Whether a request was carried out. It may be refused: somebody else may have left the framework."""
        assert answer.status_code in {200, 201, 400, 404, 409}, answer.text[:500]
        return bool(answer.is_success)


class Importer:
    """An operator who imports other versions of a mapping and of a catalog, and the clock by which reviews pass."""

    def __init__(self, rng: random.Random, operator: Operator, database: Database, catalogs: Path) -> None:
        self.rng, self.operator, self.database = rng, operator, database
        self.lapsed = 0
        self.mapping, self.catalog = (
            json.loads(json.dumps(yaml.load(path.read_text("utf-8"), yaml.CSafeLoader), default=str))
            for path in (catalogs / "ciso-assistant" / f"{name}.yaml" for name in (MAPPING, WITH_BASELINES))
        )

    def import_mapping(self) -> None:
        """A version with other pairs: some are retired, and some are back."""
        library = deepcopy(self.mapping)
        mappings = library["objects"]["requirement_mapping_set"]["requirement_mappings"]
        mappings[:] = [one for one in mappings if self.rng.random() < 0.7]
        self._send(library)

    def import_catalog(self) -> None:
        """A version whose baselines select others."""
        library = deepcopy(self.catalog)
        for node in library["objects"]["framework"]["requirement_nodes"]:
            if node.get("implementation_groups") and self.rng.random() < 0.2:
                node["implementation_groups"] = self.rng.choice([["L1"], ["L2"], ["L1", "L2"], []])
        self._send(library)

    def _send(self, library: Json) -> None:
        version = str(self.rng.randrange(2, 10**6))
        answer = self.operator.send(library | {"version": version})
        assert answer.status_code == 200, answer.text[:500]

    def lapse(self) -> None:
        """What a job does once reviews have passed; or what it undoes once the organization wants no more of it."""
        choice = self.rng.choice(["LAPSE", "LAPSE", "FLAG"])
        stored.load(self.database, {"organizations": [{"id": ALPHA, "staleAssessments": choice}]})
        self.lapsed += change(self.database, lambda unit: lapse(unit, ALPHA, AFTERWARDS))


def expected(database: Database, organization_id: str) -> tuple[dict[str, definition.Control], definition.Matches]:
    """The controls and matches that count for an organization, from rows of which none is computed."""
    adopted = {
        row["framework_id"]: row["baseline_id"]
        for row in stored.rows(database, FrameworkAdoption, organization_id=organization_id)
    }
    selected = {
        (row["baseline_id"], row["control_id"])
        for row in stored.rows(database, BaselineControl)
        if row["retired_at"] is None
    }
    said = {row["control_id"]: row for row in stored.rows(database, ControlCoverage, organization_id=organization_id)}
    controls = {}
    for row in stored.rows(database, Control):
        if row["framework_id"] in adopted:
            baseline, assessment = adopted[row["framework_id"]], said.get(row["id"], {})
            status = assessment.get("coverage_status")
            controls[row["id"]] = definition.Control(
                row["parent_id"],
                is_category=row["type"] == "CATEGORY",
                is_decomposed=row["is_decomposed"],
                is_mandatory=row["is_mandatory"],
                in_baseline=baseline is None or (baseline, row["id"]) in selected,
                assessed=None if status is None else LEVELS.index(status),
                decision=assessment.get("is_applicable"),
            )
    aside = {row["match_id"] for row in stored.rows(database, SetAsideMatch, organization_id=organization_id)}
    matches = [
        (row["source_control_id"], row["target_control_id"], LEVELS.index(row["match_level"]))
        for row in stored.rows(database, ControlMatch)
        if row["retired_at"] is None and row["id"] not in aside and row["organization_id"] in (None, organization_id)
    ]
    return controls, [match for match in matches if {match[0], match[1]} <= controls.keys()]


def assert_as_defined(database: Database, organization_id: str) -> set[str]:
    """Hold what is stored against the definition and the engine; returns what there was to see."""
    controls, matches = expected(database, organization_id)
    levels, own = definition.effective(controls, matches), definition.own(controls)
    conflicts, applicable = definition.conflicts(controls, matches), definition.applicable(controls)
    found = {
        row["control_id"]: (row["status"], row["own"], row["is_indirect"], row["applies"], row["conflict"] is not None)
        for row in stored.rows(database, EffectiveCoverage, organization_id=organization_id)
    }
    assert found == {
        name: (LEVELS[level], LEVELS[own[name]], level > own[name], name in applicable, name in conflicts)
        for name, level in levels.items()
    }
    assert_consistent(database, organization_id)
    outside = any(not one.in_baseline and name not in applicable for name, one in controls.items())
    seen = {"lifted": levels != own, "conflict": bool(conflicts), "outside": outside}
    return {name for name, is_so in seen.items() if is_so}


@contextmanager
def racing(url: str, catalogs: Path) -> Iterator[tuple[Served, list[Member], Importer]]:
    """Published catalogs that two organizations have adopted, and those who are going to change things."""
    paths = [catalogs / "ciso-assistant" / f"{name}.yaml" for name in FEW]
    if ALL:
        paths = sorted(path for path in catalogs.rglob("*") if path.suffix in {".yaml", ".json"})
    with ExitStack() as stack:
        services = [stack.enter_context(served(url)) for _ in range(2)]
        database = services[0].database
        change(database, lambda unit: import_for_all(unit, read_published(paths), skip_unknown=False))
        controls = [row for row in stored.rows(database, Control) if row["organization_id"] is None]
        published = {row["framework_id"] for row in controls}
        baselines = stored.rows(database, Baseline)
        members = []
        for number, (user, organization_id) in enumerate((("admin", ALPHA), ("owner", ALPHA), ("foreigner", BETA))):
            service = services[number % 2]
            mine = controls if organization_id == BETA else controls[number::2]
            stating = Stating(service.client, service.bearer(user), organization_id)
            members.append(Member(number, stating, mine, baselines))
        for member in members[1:]:
            for framework in sorted(published):
                done(member.stating.adopt(framework))
        operator = Operator(services[1].client, services[1].bearer("operator", scope="admin"))
        yield services[0], members, Importer(random.Random(9), operator, services[1].database, catalogs)  # noqa: S311


@pytest.mark.long
@on_both
def test_whoever_is_first_what_is_stored_is_what_follows(database_url: str, catalogs: Path) -> None:
    with racing(database_url, catalogs) as (service, members, importer), ThreadPoolExecutor(4) as threads:
        kinds = [
            *([one.assess, one.assess, one.assess, one.clear, one.adopt, one.judge, one.judge] for one in members),
            [importer.import_mapping, importer.import_catalog, importer.lapse, importer.lapse],
        ]
        seen = set[str]()
        for number in range(ROUNDS):
            barrier = Barrier(len(kinds))

            def race(steps: Sequence[Step], barrier: Barrier = barrier) -> None:
                barrier.wait(60)
                for step in steps:
                    step()

            rng = random.Random(number)  # noqa: S311  the same steps every time, in whatever order
            turns = [rng.choices(steps, k=STEPS) for steps in kinds]
            for future in [threads.submit(race, steps) for steps in turns]:
                future.result(300)
            for organization_id in (ALPHA, BETA):
                seen |= assert_as_defined(service.database, organization_id)
            for member in members:
                rows = stored.rows(service.database, ControlCoverage, organization_id=member.stating.organization_id)
                mine = {row["control_id"]: row for row in rows if row["control_id"] in {*member.controls}}
                for control, said in member.said.items():
                    assert (mine[control]["coverage_gap"], mine[control]["is_applicable"]) == said
        assert seen == {"lifted", "conflict", "outside"}, "the steps are worth trying"
        retired = [row for row in stored.rows(service.database, ControlMatch) if row["retired_at"] is not None]
        assert (bool(retired), bool(importer.lapsed)) == (True, True)
