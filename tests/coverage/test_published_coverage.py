"""Published catalogs and mappings, assessed over HTTP: what is shown is what follows by definition."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

import pytest

from normata.bundle import loading
from normata.catalogs.reading import read_published
from normata.catalogs.stored import StoredCatalogs
from normata.catalogs.unknown import rows_to_load
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.fields import REASONS
from normata.frameworks.model import EffectiveCoverage
from tests import stored
from tests.coverage import definition
from tests.coverage.assessing import SILENCE, Json, Stating, assert_consistent, done
from tests.databases import build, change
from tests.served import Served, served
from tests.world import ALPHA, USERS

pytestmark = pytest.mark.long

FILES = (
    "nist-csf-1.1",
    "nist-csf-2.0",
    "nist-sp-800-66-rev2",
    "map-nist-csf-1.1-nist-csf-2.0",
    "mapping-nist-sp-800-66-rev2-to-nist-csf-2.0",
)
HIGH_BASELINE = "NIST_SP-800-53_rev5_HIGH-baseline-resolved-profile_catalog-min.json"
STEPS = 40
LEVELS = ("NONE", "PARTIAL", "FULL")

ORGANIZATION = {
    "organizations": [{"id": ALPHA, "name": "Alpha", "slug": "alpha"}],
    "users": [{"id": "user-admin", "email": USERS["admin"]}],
    "memberships": [{"id": "member-admin", "organizationId": ALPHA, "userId": "user-admin", "role": "admin"}],
}


@contextmanager
def served_with(paths: Sequence[Path], folder: Path) -> Iterator[Served]:
    """The application over published catalogs and mappings, and an organization that has recorded nothing."""
    url = f"sqlite:///{folder / 'published.db'}"
    build(url, with_world=False)
    files = read_published([*paths])
    with served(url) as service:

        def work(unit: UnitOfWork) -> None:
            rows, left_out = rows_to_load(files, StoredCatalogs(unit))
            assert left_out == []
            loading.load(unit, rows, sync=True)

        change(service.database, work)
        service.load(ORGANIZATION)
        yield service


@pytest.fixture
def published(catalogs: Path, tmp_path: Path) -> Iterator[Served]:
    """Three catalogs and two mappings."""
    with served_with([catalogs / "ciso-assistant" / f"{name}.yaml" for name in FILES], tmp_path) as service:
        yield service


# --- What follows


@dataclass
class Said:
    """What the lists show of the catalogs, what is said of them, and what follows from it."""

    frameworks: dict[str, str]  # of each control
    controls: dict[str, definition.Control]  # as catalogs have them
    into: dict[str, list[tuple[str, str]]]  # the matches that lead to each control: source, level
    adopted: set[str]
    assessed: dict[str, Json] = field(default_factory=dict)

    @classmethod
    def shown(cls, listed: Mapping[str, Json]) -> Said:
        """The catalogs as the list of controls shows them, once all are adopted."""
        into = {
            control: [(match["matchedControl"]["id"], match["matchLevel"]) for match in item["sourceMatches"]]
            for control, item in listed.items()
        }
        return cls(
            frameworks={control: item["frameworkId"] for control, item in listed.items()},
            controls={
                control: definition.Control(
                    item["parentId"], is_category=item["type"] == "CATEGORY", is_mandatory=item["isMandatory"]
                )
                for control, item in listed.items()
            },
            into=into,
            adopted={item["frameworkId"] for item in listed.values()},
        )

    @property
    def matches(self) -> list[tuple[str, str, int]]:
        """The matches between controls of adopted frameworks."""
        return [
            (source, target, LEVELS.index(level))
            for target, found in self.into.items()
            for source, level in found
            if {self.frameworks[source], self.frameworks[target]} <= self.adopted
        ]

    @property
    def assessed_controls(self) -> dict[str, definition.Control]:
        """The controls of adopted frameworks, with what is recorded of them."""
        found = {}
        for name, control in self.controls.items():
            if self.frameworks[name] in self.adopted:
                said = self.assessed.get(name, SILENCE)
                status = said["coverageStatus"]
                found[name] = replace(
                    control, assessed=None if status is None else LEVELS.index(status), decision=said["isApplicable"]
                )
        return found


# --- What is done


def a_statement(rng: random.Random) -> Json:
    """A whole statement."""
    said: Json = {"coverageStatus": rng.choice([None, "NONE", "PARTIAL", "FULL", "FULL"])}
    said["coverageGap"] = rng.choice([None, "Two sites are missing."])
    said["reasons"] = rng.sample(REASONS, rng.randint(0, 2))
    said["isApplicable"] = rng.choices([None, True, False], [70, 15, 15])[0]
    said["justification"] = "We have nothing of the kind." if said["isApplicable"] is False else None
    return said


def take_a_step(rng: random.Random, stating: Stating, said: Said) -> None:
    """State something, take it back, or adopt or leave a framework; ``said`` takes note."""
    within_reach = [control for control, framework in said.frameworks.items() if framework in said.adopted]
    stated = [control for control in said.assessed if said.frameworks[control] in said.adopted]
    match rng.choices(["put", "delete", "patch", "leave or adopt"], [30, 12, 12, 6])[0]:
        case "put":
            control, statement = rng.choice(within_reach), a_statement(rng)
            done(stating.put(control, **{name: value for name, value in statement.items() if value != SILENCE[name]}))
            said.assessed[control] = statement
        case "delete":
            control = rng.choice(stated or within_reach)
            done(stating.delete(control))
            said.assessed.pop(control, None)
        case "patch":
            changes = {}
            for control in rng.sample(within_reach, min(len(within_reach), rng.choice([2, 10, 60]))):
                kept = rng.sample(["coverageStatus", "coverageGap", "reasons"], rng.randint(0, 2))
                changes[control] = {name: value for name, value in a_statement(rng).items() if name not in kept}
            done(stating.patch(*({"controlId": control} | change for control, change in changes.items())))
            for control, changed in changes.items():
                said.assessed[control] = said.assessed.get(control, SILENCE) | changed
        case _:
            framework = rng.choice(sorted(set(said.frameworks.values())))
            if framework in said.adopted and len(said.adopted) > 1:
                done(stating.leave(framework))
                said.adopted.remove(framework)
            else:
                done(stating.adopt(framework))
                said.adopted.add(framework)


def own_matches(rng: random.Random, said: Said) -> list[Json]:
    """Where the mappings see overlap only, the organization judges some of it differently: one contains the other.

    All that is published is overlap, so these are the only matches that are FULL.
    """
    pairs = sorted((source, target) for target, found in said.into.items() for source, _ in found)
    return [
        {
            "id": f"own-{number}",
            "organizationId": ALPHA,
            "sourceControlId": source,
            "targetControlId": target,
            "matchLevel": "FULL",
        }
        for number, (source, target) in enumerate(rng.sample(pairs, len(pairs) // 8))
    ]


@pytest.mark.long
def test_every_effective_status_is_what_follows(published: Served) -> None:
    rng = random.Random(11)  # noqa: S311  the same steps every time
    stating = Stating(published.client, published.bearer("admin"))
    for framework in published.listing("/frameworks/", "admin").items():
        done(stating.adopt(framework["id"]))
    said = Said.shown(stating.listed())
    assert (len(said.adopted), len(said.controls) > 400, sum(map(len, said.into.values())) > 500) == (3, True, True)
    assert not any(level == 2 for *_, level in said.matches), "all that is published is overlap"
    published.load({"controlMatches": own_matches(rng, said)})
    said = Said.shown(stating.listed())
    assert any(level == 2 for *_, level in said.matches)
    seen: Counter[tuple[str, bool]] = Counter()
    for number in range(STEPS):
        take_a_step(rng, stating, said)
        listed = stating.listed()
        controls, matches = said.assessed_controls, said.matches
        levels, own = definition.effective(controls, matches), definition.own(controls)
        expected = {control: LEVELS[level] for control, level in levels.items()}
        shown = {control: item["effectiveCoverageStatus"] for control, item in listed.items()}
        assert shown == expected, f"after step {number}"
        indirect = {control: item["isIndirectlyCovered"] for control, item in listed.items()}
        assert indirect == {control: level > own[control] for control, level in levels.items()}, f"after step {number}"
        rows = stored.rows(published.database, EffectiveCoverage)
        assert {row["control_id"] for row in rows if row["applies"]} == definition.applicable(controls)
        in_conflict = {row["control_id"] for row in rows if row["conflict"]}
        assert in_conflict == definition.conflicts(controls, matches), f"after step {number}"
        for control, item in listed.items():
            statement = said.assessed.get(control, SILENCE)
            assert item["coverage"] == {
                "coverageStatus": statement["coverageStatus"] or "NONE",
                "coverageGap": statement["coverageGap"],
            }
        seen.update((expected[control], indirect[control]) for control in expected)
    assert set(seen) == {("NONE", False)} | {(level, lifted) for level in LEVELS[1:] for lifted in (False, True)}
    assert_consistent(published.database)


# --- What an auditor counts


def adopted(service: Served) -> tuple[Stating, str, dict[str, Json]]:
    """The one framework, adopted by the organization: who assesses it, its id, and its controls by identifier."""
    stating = Stating(service.client, service.bearer("admin"))
    [framework] = service.listing("/frameworks/", "admin").items()
    done(stating.adopt(framework["id"]))
    return stating, framework["id"], {item["identifier"]: item for item in stating.listed().values()}


def test_all_requirements_of_800_171_are_110(catalogs: Path, tmp_path: Path) -> None:
    """There each requirement has a child, which is a text about it."""
    with served_with([catalogs / "ciso-assistant" / "nist-800-171-rev2.yaml"], tmp_path) as service:
        stating, framework, _ = adopted(service)
        requirements = [name for name, item in stating.listed().items() if item["type"] == "CONTROL"]
        done(stating.patch(*({"controlId": name, "coverageStatus": "FULL"} for name in requirements)))
        counts = stating.summary(framework)
        assert (len(requirements), counts["requirements"], counts["effective"]["full"]) == (110, 110, 110)
        assert stating.gaps(framework) == []


def test_enhancements_of_800_53_do_not_make_up_for_their_base(catalogs: Path, tmp_path: Path) -> None:
    """OSCAL has enhancements below the control that they enhance."""
    with served_with([catalogs / "oscal" / HIGH_BASELINE], tmp_path) as service:
        stating, framework, controls = adopted(service)
        base = controls["AC-2"]
        enhancements = [item["id"] for item in controls.values() if item["parentId"] == base["id"]]
        assert len(enhancements) > 3
        done(stating.patch(*({"controlId": name, "coverageStatus": "FULL"} for name in enhancements)))
        done(stating.put(base["id"], coverageStatus="NONE", coverageGap="All of it."))
        assert stating.effective()[base["id"]] == "NONE"
        assert base["id"] in {gap["id"] for gap in stating.gaps(framework)}
        answer = service.client.get(
            f"/frameworks/{quote(framework, safe='')}/statement-of-applicability/",
            params={"organizationId": ALPHA},
            headers=stating.headers,
        )
        entries = {entry["id"]: entry for entry in done(answer)["controls"]}
        assert entries[base["id"]]["effectiveCoverageStatus"] == "NONE"
        assert {*enhancements} < entries.keys()
