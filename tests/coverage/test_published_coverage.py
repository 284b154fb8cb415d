"""Published catalogs and mappings, stated over HTTP: what is shown is what follows, by a brute force of its own."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from normata.bundle import loading
from normata.catalogs.reading import read_published
from normata.catalogs.stored import StoredCatalogs
from normata.catalogs.unknown import rows_to_load
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.fields import REASONS
from tests.coverage.assessing import SILENCE, Json, Stating, assert_consistent, done
from tests.databases import build, change
from tests.served import Served, served
from tests.world import ALPHA, USERS

FILES = (
    "nist-csf-1.1",
    "nist-csf-2.0",
    "nist-sp-800-66-rev2",
    "map-nist-csf-1.1-nist-csf-2.0",
    "mapping-nist-sp-800-66-rev2-to-nist-csf-2.0",
)
STEPS = 40

ORGANIZATION = {
    "organizations": [{"id": ALPHA, "name": "Alpha", "slug": "alpha"}],
    "users": [{"id": "user-admin", "email": USERS["admin"]}],
    "memberships": [{"id": "member-admin", "organizationId": ALPHA, "userId": "user-admin", "role": "admin"}],
}


@pytest.fixture
def published(catalogs: Path, tmp_path: Path) -> Iterator[Served]:
    """The application over three published catalogs and two mappings, and an organization that has said nothing."""
    url = f"sqlite:///{tmp_path / 'published.db'}"
    build(url, with_world=False)
    files = read_published([catalogs / "ciso-assistant" / f"{name}.yaml" for name in FILES])
    with served(url) as service:

        def work(unit: UnitOfWork) -> None:
            rows, left_out = rows_to_load(files, StoredCatalogs(unit))
            assert left_out == []
            loading.load(unit, rows, sync=True)

        change(service.database, work)
        service.load(ORGANIZATION)
        yield service


# --- What follows, by the rules of docs/api.md alone


@dataclass
class Said:
    """What the lists show of the catalogs, what is said of them, and what follows from it."""

    frameworks: dict[str, str]  # of each control
    parents: dict[str, str | None]
    into: dict[str, list[tuple[str, str]]]  # the matches that lead to each control: source, level
    full: set[tuple[str, str]]  # the matches with the level FULL
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
            parents={control: item["parentId"] for control, item in listed.items()},
            into=into,
            full={(source, target) for target, found in into.items() for source, level in found if level == "FULL"},
            adopted={item["frameworkId"] for item in listed.values()},
        )

    def follows(self, *, with_matches: bool = True) -> dict[str, str]:
        """The status of every control of the adopted frameworks: the rules, again and again until nothing changes."""
        controls = [control for control, framework in self.frameworks.items() if framework in self.adopted]
        said = {control: self.assessed.get(control, SILENCE) for control in controls}
        applicable = [control for control in controls if said[control]["isApplicable"]]
        children = defaultdict(list)
        for control in applicable:
            children[self.parents[control]].append(control)
        status = dict.fromkeys(controls, "NONE")

        def judged(control: str) -> str:
            stated = said[control]["coverageStatus"]
            below = [status[child] for child in children[control]]
            sources = [pair for pair in self.into[control] if with_matches and pair[0] in status]
            if stated == "FULL" or any(level == status[source] == "FULL" for source, level in sources):
                return "FULL"
            if below and set(below) == {"FULL"}:
                return "FULL"
            if stated == "PARTIAL" or set(below) & {"PARTIAL", "FULL"}:
                return "PARTIAL"
            for source, _ in sources:
                within = (control, source) in self.full
                if status[source] == "FULL" or (status[source] == "PARTIAL" and within):
                    return "PARTIAL"
            return "NONE"

        while True:
            following = {control: judged(control) for control in applicable}
            if following.items() <= status.items():
                return status
            status |= following


# --- What is done


def a_statement(rng: random.Random) -> Json:
    """A whole statement."""
    said: Json = {"coverageStatus": rng.choice(["NONE", "PARTIAL", "FULL", "FULL"])}
    said["coverageGap"] = rng.choice([None, "Two sites are missing."])
    said["reasons"] = rng.sample(REASONS, rng.randint(0, 2))
    said["isApplicable"] = rng.random() < 0.85
    said["justification"] = None if said["isApplicable"] else "We have nothing of the kind."
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


@pytest.mark.parametrize("judged", ["as published", "with matches of its own"])
def test_every_effective_status_is_what_follows(published: Served, judged: str) -> None:
    rng = random.Random(11)  # noqa: S311  the same steps every time
    stating = Stating(published.client, published.bearer("admin"))
    for framework in published.listing("/frameworks/", "admin").items():
        done(stating.adopt(framework["id"]))
    said = Said.shown(stating.listed())
    assert (len(said.adopted), len(said.parents) > 400, sum(map(len, said.into.values())) > 500) == (3, True, True)
    if judged != "as published":
        published.load({"controlMatches": own_matches(rng, said)})
        said = Said.shown(stating.listed())
    assert bool(said.full) == (judged != "as published")
    seen: Counter[tuple[str, bool]] = Counter()
    for number in range(STEPS):
        take_a_step(rng, stating, said)
        listed = stating.listed()
        expected, alone = said.follows(), said.follows(with_matches=False)
        shown = {control: item["effectiveCoverageStatus"] for control, item in listed.items()}
        assert shown == expected, f"after step {number}"
        indirect = {control: item["isIndirectlyCovered"] for control, item in listed.items()}
        assert indirect == {control: expected[control] != alone[control] for control in expected}, (
            f"after step {number}"
        )
        for control, item in listed.items():
            statement = said.assessed.get(control, SILENCE)
            assert item["coverage"] == {name: statement[name] for name in ("coverageStatus", "coverageGap")}
        seen.update((expected[control], indirect[control]) for control in expected)
    lifted = {("PARTIAL", True)} | ({("FULL", True)} if said.full else set())
    assert set(seen) == {("NONE", False), ("PARTIAL", False), ("FULL", False)} | lifted
    assert_consistent(published.database)
