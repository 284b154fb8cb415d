"""What a dry run says of coverage, held against what the same request then does. Both over HTTP."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from normata.core.db.database import Database
from normata.core.http import dry_run
from normata.records.kinds import Policy
from tests import mostly_sqlite, stored
from tests.catalogs.test_centralized_imports import LIBRARY, PIERS, Operator, mapping
from tests.client import TestClient
from tests.coverage.assessing import Json, Stating, done
from tests.databases import on_both
from tests.served import run_sql
from tests.world import ALPHA, YESTERDAY, record_id

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

NOTHING: Json = {"count": 0, "controls": []}
FRAMEWORKS = ("fw-sun", "fw-moon", "fw-star", "fw-own")
# The requirements that they select, by framework.
BASELINES: dict[str, dict[str, range]] = {
    "sun": {"few": range(1, 4), "most": range(1, 10)},
    "moon": {"few": range(2, 4), "most": range(3, 13)},
}
POLICY = record_id(Policy, "live")


@dataclass(frozen=True)
class Asked:
    """A request of the admin of alpha that changes something."""

    method: str
    path: str
    body: Json | None = None
    in_body: bool = False  # whether the body names the organization
    in_query: bool = True  # else whether the query does

    def send(self, stating: Stating, **query: str) -> Any:
        """The answer, which must be a success."""
        organization = {"organizationId": ALPHA}
        body = (organization | (self.body or {})) if self.in_body else self.body
        response = stating.client.request(
            self.method,
            self.path,
            params=organization | query if self.in_query and not self.in_body else query,
            json=body,
            headers=stating.headers,
        )
        assert response.is_success, (self, response.text[:500])
        return response.json()


def shown(stating: Stating) -> dict[str, Json]:
    """The controls of adopted frameworks as the list of coverage has them, in its order."""
    found: dict[str, Json] = {}
    for page in range(1, 100):
        items = stating.covered(page=str(page))
        found |= {one["id"]: one for one in items}
        if len(items) < 100:
            return found
    raise AssertionError("the list does not end")


def held(stating: Stating, asked: Asked) -> Json:
    """A dry run of a request, held against what the request then does."""
    before = shown(stating)
    planned: Json = asked.send(stating, dryRun="true")
    assert shown(stating) == before
    asked.send(stating)
    after = shown(stating)
    assert moves(planned) == {
        control: change for control in before.keys() | after.keys() if (change := moved(before, after, control))
    }
    assert planned["coverage"]["count"] == len(planned["coverage"]["controls"])
    conflicts = planned["conflicts"]
    assert ids(conflicts["appearing"]) == in_conflict(after) - in_conflict(before)
    assert ids(conflicts["disappearing"]) == in_conflict(before) - in_conflict(after)
    assert ids(planned["stale"]) == stale(after) - stale(before)
    for one in planned["coverage"]["controls"]:
        control = after.get(one["controlId"]) or before[one["controlId"]]
        named = {"identifier": control["identifier"], "name": control["name"], "frameworkId": control["frameworkId"]}
        assert {name: one[name] for name in named} == named
        assert one["organizationId"] == ALPHA
    order = [one["controlId"] for one in planned["coverage"]["controls"]]
    if order and set(order) <= after.keys():
        assert order == [control for control in after if control in set(order)]
    return planned


def moves(planned: Json) -> dict[str, tuple[str, str]]:
    return {one["controlId"]: (one["from"], one["to"]) for one in planned["coverage"]["controls"]}


def moved(before: dict[str, Json], after: dict[str, Json], control: str) -> tuple[str, str] | None:
    """From which effective status to which a control has moved; null where it has not."""
    one, other = (
        found[control]["effectiveCoverageStatus"] if control in found else "NONE" for found in (before, after)
    )
    return None if one == other else (one, other)


def ids(found: Json) -> set[str]:
    assert found["count"] == len(found["controls"])
    return {one["controlId"] for one in found["controls"]}


def in_conflict(found: dict[str, Json]) -> set[str]:
    return {control for control, item in found.items() if item["conflict"] is not None}


def stale(found: dict[str, Json]) -> set[str]:
    return {control for control, item in found.items() if item["coverage"]["stale"]}


# --- Whatever is asked


def any_request(rng: random.Random, stating: Stating, matches: list[str]) -> Asked:
    """Something that changes coverage. ``matches`` are those that alpha sees."""
    controls = list(shown(stating)) or ["sun.A.1"]
    control = rng.choice(controls)
    statement: Json = {"coverageStatus": rng.choice([None, "NONE", "PARTIAL", "FULL", "FULL"])}
    if rng.random() < 0.15:
        statement = {"isApplicable": False, "justification": "We have no such thing."}
    elif rng.random() < 0.15:  # which takes it in, where it is outside of the baseline
        statement |= {"isApplicable": True, "justification": "We want it."}
    kinds = {"put": 30, "clear": 10, "patch": 15, "adoption": 12, "baseline": 15, "aside": 15, "own": 12, "archive": 6}
    match rng.choices([*kinds], [*kinds.values()])[0]:
        case "put":
            path = f"/controls/{rng.choice([one for one in controls if not is_mandatory(one)])}/coverage/"
            asked = Asked("PUT", path, statement, in_body=True)
        case "clear":
            asked = Asked("DELETE", f"/controls/{control}/coverage/")
        case "patch":
            chosen = rng.sample(controls, min(4, len(controls)))
            many = [{"controlId": one, "coverageStatus": rng.choice(["NONE", "PARTIAL", "FULL"])} for one in chosen]
            asked = Asked("PATCH", "/controls/coverage/", {"assessments": many}, in_body=True)
        case "adoption":
            framework = rng.choice(FRAMEWORKS)
            asked = Asked(rng.choice(["PUT", "DELETE"]), f"/frameworks/{framework}/adoption/")
        case "baseline":
            name = rng.choice(sorted(BASELINES))
            baseline = rng.choice([None, *(f"{name}:{one}" for one in BASELINES[name])])
            asked = Asked("PUT", f"/frameworks/fw-{name}/adoption/", {"baseline": baseline})
        case "archive":
            asked = Asked("POST", f"/policies/{POLICY}/archive/", in_query=False)
        case "aside":
            path = f"/matches/{rng.choice(matches)}/set-aside/"
            asked = Asked("PUT", path, {"justification": "Not so."}) if rng.random() < 0.6 else Asked("DELETE", path)
        case _:
            source, target = rng.sample([f"{name}.A.{number}" for name in ("sun", "moon") for number in range(1, 9)], 2)
            made = {"sourceControlId": source, "targetControlId": target, "matchLevel": rng.choice(["PARTIAL", "FULL"])}
            asked = Asked("POST", "/matches/", {"matches": [made | {"justification": "So it is."}]}, in_body=True)
    return asked


def baselines() -> dict[str, list[Json]]:
    """Baselines of the world's frameworks."""
    made = [(name, one, numbers) for name, found in BASELINES.items() for one, numbers in found.items()]
    return {
        "baselines": [{"id": f"{name}:{one}", "frameworkId": f"fw-{name}", "name": one} for name, one, _ in made],
        "baselineControls": [
            {"id": f"{name}:{one}:{number}", "baselineId": f"{name}:{one}", "controlId": f"{name}.A.{number}"}
            for name, one, numbers in made
            for number in numbers
        ],
    }


def is_mandatory(control: str) -> bool:
    """Whether the world makes a control mandatory: it cannot be excluded then."""
    return int(control.rpartition(".")[2]) % 2 == 0 if control[-1].isdigit() else False


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 3])
@on_both
def test_it_says_what_then_happens(alpha: Stating, database: Database, seed: int) -> None:
    """Any sequence of changes: each is tried, compared with what is stored, and then made."""
    stored.load(database, baselines())
    rng = random.Random(seed)  # noqa: S311
    query = {"organizationId": ALPHA, "published": "true", "limit": "100"}
    answer = done(alpha.client.get("/matches/", params=query, headers=alpha.headers))
    matches = [one["id"] for one in answer["items"]]
    made: set[tuple[str, str]] = set()
    seen = {"moved": 0, "appearing": 0, "baselines": 0}
    is_live = True
    for _ in range(30):
        asked = any_request(rng, alpha, matches)
        if asked.path == "/matches/":
            (one,) = (asked.body or {})["matches"]
            pair = one["sourceControlId"], one["targetControlId"]
            if pair in made:  # a pair has one match of its own
                continue
            made.add(pair)
        if "/policies/" in asked.path:
            asked = replace(asked, path=f"/policies/{POLICY}/{'archive' if is_live else 'restore'}/")
            is_live = not is_live
        planned = held(alpha, asked)
        seen["baselines"] += asked.body is not None and asked.body.get("baseline") is not None
        seen["moved"] += planned["coverage"]["count"]
        seen["appearing"] += planned["conflicts"]["appearing"]["count"]
    assert all(seen.values()), "the steps are worth trying"


@on_both
def test_an_assessment_says_whom_it_lifts_and_what_it_contradicts(alpha: Stating) -> None:
    planned = held(alpha, Asked("PUT", "/controls/sun.A.2/coverage/", {"coverageStatus": "FULL"}, in_body=True))
    assert moves(planned)["moon.A.2"] == ("NONE", "FULL")
    planned = held(alpha, Asked("PUT", "/controls/moon.A.2/coverage/", {"coverageStatus": "NONE"}, in_body=True))
    assert moves(planned) == {}
    assert ids(planned["conflicts"]["appearing"]) == {"moon.A.2"}
    planned = held(alpha, Asked("DELETE", "/frameworks/fw-moon/adoption/"))
    assert ids(planned["conflicts"]["disappearing"]) == {"moon.A.2"}
    assert moves(planned)["moon.A.2"] == ("FULL", "NONE"), "what is not adopted is not covered"


@on_both
def test_what_becomes_stale_is_said(alpha: Stating) -> None:
    done(alpha.put("sun.A.3", coverageStatus="FULL", reviewBy="2100-01-01T00:00:00.000Z"))
    with_review: Json = {"assessments": [{"controlId": "sun.A.3", "reviewBy": "2026-01-01"}]}
    planned = held(alpha, Asked("PATCH", "/controls/coverage/", with_review, in_body=True))
    assert ids(planned["stale"]) == set(), "it was assessed after that day"
    assert moves(planned) == {}


def test_an_assessment_of_long_ago_becomes_stale(alpha: Stating, database: Database) -> None:
    done(alpha.put("sun.A.3", coverageStatus="FULL"))
    run_sql(database, "UPDATE control_coverage SET assessed_at = NULL WHERE control_id = 'sun.A.3'")
    late: Json = {"assessments": [{"controlId": "sun.A.3", "reviewBy": YESTERDAY}]}
    planned = held(alpha, Asked("PATCH", "/controls/coverage/", late, in_body=True))
    assert ids(planned["stale"]) == {"sun.A.3"}


# --- Catalogs


@pytest.fixture
def docks(operator: Operator, alpha: Stating) -> None:
    """Two published frameworks that alpha has adopted, of which it covers the first."""
    for library in (LIBRARY, PIERS):
        done(operator.send(library))
    for framework in ("urn:docks", "urn:piers"):
        done(alpha.adopt(framework))
    done(alpha.put("urn:docks:1.1", coverageStatus="FULL"))


@pytest.fixture
def operator(client: TestClient, bearer: Callable[..., dict[str, str]]) -> Operator:
    return Operator(client, bearer("operator", scope="admin"))


@on_both
@pytest.mark.usefixtures("docks")
def test_an_upload_of_mappings_says_what_it_lifts(alpha: Stating) -> None:
    planned = held(alpha, Asked("POST", "/imports/", mapping("urn:piers:1", "equal")))
    assert moves(planned) == {"urn:piers:1": ("NONE", "FULL")}


@on_both
@pytest.mark.usefixtures("docks")
def test_an_operator_reads_nothing_of_organizations(alpha: Stating, operator: Operator) -> None:
    planned = done(operator.send(mapping("urn:piers:1", "equal"), dryRun="true"))
    assert planned["coverage"] == NOTHING
    assert planned["conflicts"] == {"appearing": NOTHING, "disappearing": NOTHING}
    assert ALPHA not in str(planned)
    done(operator.send(mapping("urn:piers:1", "equal")))
    assert alpha.effective()["urn:piers:1"] == "FULL"


# --- Many, and none


def test_of_many_the_first_are_named_and_all_are_counted(alpha: Stating, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dry_run.MAX_EFFECTS == 500
    monkeypatch.setattr(dry_run, "MAX_EFFECTS", 3)
    many: Json = {"assessments": [{"controlId": f"moon.A.{n}", "coverageStatus": "FULL"} for n in range(3, 10)]}
    planned = Asked("PATCH", "/controls/coverage/", many, in_body=True).send(alpha, dryRun="true")
    assert planned["coverage"]["count"] >= 7
    assert len(planned["coverage"]["controls"]) == 3


def test_what_has_nothing_to_do_with_coverage_has_no_effects(alpha: Stating) -> None:
    made = Asked("POST", "/tasks/", {"title": "Look"}, in_body=True).send(alpha, dryRun="true")
    assert (made["coverage"], made["stale"]) == (NOTHING, NOTHING)
    assert made["conflicts"] == {"appearing": NOTHING, "disappearing": NOTHING}
