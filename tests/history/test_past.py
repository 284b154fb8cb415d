"""Any moment of the past: what is read as of it is what was read at it."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from normata.bundle.dumping import dump
from normata.core.db.types import now
from normata.coverage.recompute import is_current
from tests import world
from tests.served import Headers, Served, served

ALPHA = world.ALPHA
FRAMEWORKS = ("fw-sun", "fw-moon", "fw-own", "fw-star")
Answers = dict[str, Any]


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a copy of the world."""
    with served(database_url) as opened:
        yield opened


def answers(service: Served, headers: Headers, moment: str | None = None) -> Answers:
    """Every list, report and explanation of coverage, now or as of a moment; the status of one that is refused."""
    found: Answers = {}

    def ask(path: str, **query: str) -> Any:
        query = {"organizationId": ALPHA, **query} | ({} if moment is None else {"asOf": moment})
        response = service.client.get(path, params=query, headers=headers)
        assert response.status_code in (200, 404), response.text
        found[f"{path} {sorted(query.items() - {('asOf', moment)})}"] = (
            response.json() if response.status_code == 200 else response.status_code
        )
        assert ("memento-datetime" in response.headers) == (moment is not None and response.status_code == 200)
        return response.json()

    controls = ask("/controls/")["items"]
    ask("/controls/", sortColumn="effectiveCoverageStatus", sortDirection="desc")
    ask("/controls/", limit="5", page="2")
    ask("/coverage/")
    ask("/coverage/", isInConflict="true")
    ask("/coverage/", isStale="true")
    ask("/coverage/", effectiveCoverageStatus="FULL", limit="5")
    for framework in FRAMEWORKS:
        for report in ("coverage", "gaps", "statement-of-applicability"):
            ask(f"/frameworks/{framework}/{report}/")
    for control in controls:
        ask(f"/controls/{control['id']}/")
        ask(f"/controls/{control['id']}/coverage/")
    return found


def without(value: Any, *names: str) -> Any:
    """A JSON value without members of these names."""
    if isinstance(value, dict):
        return {name: without(one, *names) for name, one in value.items() if name not in names}
    return [without(one, *names) for one in value] if isinstance(value, list) else value


def counted(point: Any) -> Any:
    """The counts of a point of a series, null while the framework was not adopted."""
    names = ("full", "partial", "none", "excluded", "conflicts", "stale")
    return [point[name] for name in names if name in point] if point["isAdopted"] else None


def expected(summary: Any) -> Any:
    """The same of a summary of the framework, which is 404 while it was not adopted."""
    if summary == 404:
        return None
    counts = summary["counts"]
    by_status = [counts["effective"][name] for name in ("full", "partial", "none")]
    return [*by_status, counts["notApplicable"], counts["conflicts"], counts["stale"]]


def summary_of(answers: Answers, framework: str) -> Any:
    """The summary of a framework among answers."""
    return answers[f"/frameworks/{framework}/coverage/ [('organizationId', '{ALPHA}')]"]


def statuses(answers: Answers) -> dict[str, str]:
    """The effective status of each control among answers."""
    items = answers[f"/coverage/ [('organizationId', '{ALPHA}')]"]["items"]
    return {item["id"]: item["effectiveCoverageStatus"] for item in items}


def test_a_year(service: Served) -> None:
    """What was adopted, assessed, mapped, retired, set aside, left and cleared is as it was then."""
    admin = service.bearer("admin")

    def send(method: str, path: str, body: Any = None) -> None:
        response = service.client.request(method, path, params={"organizationId": ALPHA}, json=body, headers=admin)
        assert response.is_success, response.text

    def load(**arrays: Any) -> Callable[[], None]:
        return lambda: service.load(arrays)

    def assess(control: str, **values: Any) -> Callable[[], None]:
        return lambda: send(
            "PATCH", "/controls/coverage/", {"organizationId": ALPHA, "assessments": [{"controlId": control, **values}]}
        )

    match = {"id": "sun.A.2->moon.A.2", "sourceControlId": "sun.A.2", "targetControlId": "moon.A.2"}
    steps: list[Callable[[], None]] = [
        lambda: None,
        assess("sun.A.2", coverageStatus="FULL", coverageGap=None),
        assess("moon.A.1", coverageStatus="NONE", coverageGap="Nothing is done."),
        load(frameworkAdoptions=[{"id": "adopt-star", "organizationId": ALPHA, "frameworkId": "fw-star"}]),
        assess("star.A.4", coverageStatus="PARTIAL", coverageGap="Half."),
        load(controlMatches=[match | {"matchLevel": "FULL", "retiredAt": now()}]),
        lambda: send("PUT", "/matches/sun.A.1->moon.A.1/set-aside/", {"justification": "They are not alike."}),
        load(
            controls=[
                {"id": "sun.A.1.1", "frameworkId": "fw-sun", "parentId": "sun.A.1", "name": "A part"},
                {"id": "sun.A.3", "frameworkId": "fw-sun", "type": "CATEGORY"},
                {"id": "moon.A.3", "frameworkId": "fw-moon", "isMandatory": True},
            ],
            baselines=[{"id": "small", "frameworkId": "fw-moon", "name": "Small"}],
            baselineControls=[{"id": "small-1", "baselineId": "small", "controlId": "moon.A.1"}],
        ),
        load(
            frameworkAdoptions=[
                {"id": "adopt-moon", "organizationId": ALPHA, "frameworkId": "fw-moon", "baselineId": "small"}
            ]
        ),
        lambda: send("DELETE", "/controls/sun.A.1/coverage/"),
        assess("sun.A.1", coverageStatus="PARTIAL", coverageGap="Again.", reviewBy="2026-01-01"),
        lambda: send("DELETE", "/matches/sun.A.1->moon.A.1/set-aside/"),
        load(baselineControls=[{"id": "small-2", "baselineId": "small", "controlId": "moon.A.5"}]),
        lambda: send("DELETE", "/frameworks/fw-star/adoption/"),
        lambda: send("PUT", "/frameworks/fw-star/adoption/"),
    ]
    read: list[tuple[str, Answers]] = []
    total = 0
    for step in steps:
        step()
        assert service.database.read_now(lambda transaction: is_current(transaction, ALPHA))
        time.sleep(0.003)
        read.append((now(), answers(service, admin)))
        time.sleep(0.003)
    changing = ("date", "log", "updatedAt")
    for number, (moment, then) in enumerate(read):
        past = answers(service, admin, moment)
        assert past.keys() == then.keys()
        for path, answer in then.items():
            assert without(past[path], *changing) == without(answer, *changing), f"step {number}: {path}"
    states = [without(then, *changing) for _, then in read]
    unchanged = [number for number, (one, next_one) in enumerate(pairwise(states)) if one == next_one]
    assert unchanged == []  # else the test compares less than it seems
    adopted = [name for name in FRAMEWORKS if any(summary_of(then, name) != 404 for _, then in read)]
    for (moment, then), (later, after) in zip(read, read[3:], strict=False):
        query = {"organizationId": ALPHA, "from": moment, "to": later}
        for name in adopted:
            series = service.client.get(f"/frameworks/{name}/coverage/history/", params=query, headers=admin)
            points = [counted(point) for point in series.json()["points"]]
            assert points == [expected(summary_of(one, name)) for one in (then, after)]
        together = service.client.get("/coverage/history/", params=query, headers=admin).json()["frameworks"]
        assert {
            one["frameworkId"]: [counted(point)[:4] for point in one["points"] if point["isAdopted"]]
            for one in together
        } == {
            name: [expected(summary_of(one, name))[:4] for one in (then, after) if summary_of(one, name) != 404]
            for name in adopted
            if summary_of(after, name) != 404
        }
        changes = service.client.get("/coverage/changes/", params=query, headers=admin).json()
        earlier, since = statuses(then), statuses(after)
        assert {item["id"]: (item["before"], item["after"]) for item in changes["items"]} == {
            control: (earlier.get(control), since.get(control))
            for control in earlier.keys() | since.keys()
            if earlier.get(control) != since.get(control)
        }
        for item in changes["items"]:
            assert all(moment < at <= later for at in item["changedAt"])
            assert {event["at"] for event in item["events"]} <= set(item["changedAt"])
            assert item["changedAt"]
        total += changes["total"]
    assert total > 20


@pytest.mark.parametrize("has_past", [True, False])
def test_a_dump_brings_the_past_along(service: Served, empty_url: str, tmp_path: Path, *, has_past: bool) -> None:
    """Another database answers of the past as the first did; without the array its past begins with the load."""
    admin = service.bearer("admin")
    moments = []
    for status in ("FULL", "NONE", "PARTIAL"):
        body = {"organizationId": ALPHA, "assessments": [{"controlId": "sun.A.2", "coverageStatus": status}]}
        assert service.client.patch("/controls/coverage/", json=body, headers=admin).is_success
        time.sleep(0.003)
        moments.append(now())
    service.load({"controls": [{"id": "sun.A.3", "frameworkId": "fw-sun", "type": "CATEGORY"}]})
    expected_then = [without(answers(service, admin, moment), "log") for moment in moments]
    written = io.StringIO()
    service.database.read_now(lambda transaction: dump(transaction, ALPHA, written))
    bundle = json.loads(written.getvalue())
    if not has_past:
        del bundle["history"]
    (file := tmp_path / "alpha.json").write_text(json.dumps(bundle), "utf-8")
    with served(empty_url) as other:
        other.load(json.loads(file.read_text("utf-8")))
        reader = other.bearer("admin")
        if has_past:
            assert [without(answers(other, reader, moment), "log") for moment in moments] == expected_then
            again = io.StringIO()
            other.database.read_now(lambda transaction: dump(transaction, ALPHA, again))
            assert json.loads(again.getvalue()) == bundle
            return
        query = {"organizationId": ALPHA, "asOf": moments[0]}
        refused = other.client.get("/controls/", params=query, headers=reader)
        assert refused.status_code == 400
        (fault,) = refused.json()["errors"]
        assert (fault["name"], fault["code"]) == ("asOf", "past_unknown")
        since = fault["message"].split()[2].rstrip(",")
        assert other.client.get("/controls/", params=query | {"asOf": since}, headers=reader).is_success
        assert other.client.get("/controls/", params=query | {"asOf": "2999-01-01"}, headers=reader).status_code == 400
