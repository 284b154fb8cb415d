"""A year of an organization, played over HTTP: what is read as of a day of it is what was read on that day."""

from __future__ import annotations

import io
import json
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from normata.bundle.dumping import dump
from normata.core.changes import job_runner
from normata.core.db.types import format_timestamp, now
from normata.coverage.recompute import is_current
from normata.frameworks.model import ControlCoverage
from normata.history.past import Past
from tests import stored
from tests.catalogs.test_retirement import mapping
from tests.coverage.test_rewording import library
from tests.history.answers import Answers, answers, of, without
from tests.served import Served, served

YEAR = "org-year"
DOCKS, PIERS, OWN = "urn:docks", "urn:piers", "fw-year"
FRAMEWORKS = (DOCKS, PIERS, OWN)
LOCKS, LAMPS, ROPES = "urn:docks:1.1", "urn:docks:1.2", "urn:docks:1.3"
PIER, STAIRS, RAILS = _PIERS = ("urn:piers:1", "urn:piers:2", "urn:piers:3")
TEXTS = {
    "urn:docks:1": ("Berths", "All about berths."),
    LOCKS: ("Locks", "Berths are locked at night."),
    LAMPS: ("Lamps", "Lamps are lit at night."),
    ROPES: ("Ropes", "Ropes are checked."),
}
EARLIER, LATER = "Berths are locked at night.", "Berths are locked, always."
NEWER = TEXTS | {LOCKS: ("Locks", LATER), "urn:docks:1.4": ("Boats", "Boats are counted.")}
BOTH, WITHDRAWN = ((LOCKS, PIER), (LAMPS, STAIRS)), ((LAMPS, STAIRS),)
_OF_EACH = ("full", "partial", "none", "excluded")  # the counts where several frameworks are told of
_COUNTS = (*_OF_EACH, "conflicts", "stale")
# What is today's in an answer of the past (the version is that of a framework), and what says when it was read.
TODAYS = ("date", "lastSyncAt", "log", "updatedAt", "plannedBy", "version", "recordedLater")


class Day(NamedTuple):
    """A day of the year: a moment of it, what was answered then, and a copy that was made then."""

    moment: str
    answers: Answers
    copy: dict[str, Any]


@pytest.fixture
def service(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The application, whose jobs are not waited for as long as usual, over the world with one organization more."""
    monkeypatch.setattr(job_runner, "_PAUSE", 0.3)
    monkeypatch.setattr(job_runner, "_FIND_EVERY", 0.3)
    with served(database_url, page_cache_mib=1) as opened:
        opened.load(
            {
                "organizations": [{"id": YEAR, "name": "Year", "slug": "year"}],
                "memberships": [{"id": "member-year", "organizationId": YEAR, "userId": "user-admin", "role": "admin"}],
                "frameworks": [{"id": OWN, "organizationId": YEAR, "identifier": "OWN-YEAR", "name": "Own"}],
                "controls": [{"id": "year.1", "frameworkId": OWN, "identifier": "1", "name": "Own rule"}],
            }
        )
        yield opened


class Year:
    """What its admin and the operator do, in the steps of the story."""

    def __init__(self, service: Served) -> None:
        self.service = service
        self.admin = service.bearer("admin")
        self._operator = service.bearer("operator")

    def send(self, method: str, path: str, body: Any = None) -> Any:
        is_named = path.startswith("/organizations/") or (isinstance(body, dict) and "organizationId" in body)
        query = {} if is_named else {"organizationId": YEAR}
        response = self.service.client.request(method, path, params=query, json=body, headers=self.admin)
        assert response.is_success, response.text
        return response.json()

    def assess(self, control: str, **values: Any) -> None:
        self.send(
            "PATCH", "/controls/coverage/", {"organizationId": YEAR, "assessments": [{"controlId": control, **values}]}
        )

    def get(self, path: str, query: dict[str, str]) -> Any:
        response = self.service.client.get(path, params=query, headers=self.admin)
        assert response.is_success, response.text
        return response.json()

    def bring(self, *documents: dict[str, Any]) -> None:
        """Import catalogs for all."""
        for document in documents:
            response = self.service.client.post("/catalogs/", json=document, headers=self._operator)
            assert response.is_success, response.text

    def adopt(self, framework: str, **body: Any) -> None:
        self.send("PUT", f"/frameworks/{framework}/adoption/", body or None)

    def leave(self, framework: str) -> None:
        self.send("DELETE", f"/frameworks/{framework}/adoption/")

    def match(self, source: str) -> str:
        """The path of the match that leads from a control."""
        query = {"organizationId": YEAR, "published": "true", "control": source}
        items = self.service.client.get("/matches/", params=query, headers=self.admin).json()["items"]
        (found,) = (one["id"] for one in items if one["sourceControl"]["id"] == source)
        return f"/matches/{found}/"

    def pass_review(self, control: str) -> str:
        """Have an assessment's review be due very soon, and wait for it. Returns the moment at which it was due."""
        due = format_timestamp(datetime.now(UTC) + timedelta(milliseconds=150))
        self.assess(control, reviewBy=due)
        while now() <= due:
            time.sleep(0.01)
        return due

    def choose(self, what: str) -> None:
        """Choose what becomes of stale assessments."""
        self.send("PATCH", f"/organizations/{YEAR}/", {"staleAssessments": what})

    def wait_for(self, control: str, status: str | None) -> None:
        """Wait until the service's jobs have changed the status of an assessment."""
        for _ in range(1_000):
            if self.send("GET", f"/controls/{control}/")["coverage"]["coverageStatus"] == status:
                return
            time.sleep(0.05)
        raise AssertionError("no job has done it")

    def support(self, control: str, **values: Any) -> tuple[str, str]:
        """Link a new piece of evidence to a control; its id and that of the link."""
        piece = self.make("/evidence/", {"name": f"About {control}", "type": "NOTE", **values})
        ends = {"from": {"kind": "evidence", "id": piece}, "to": {"kind": "controls", "id": control}}
        return piece, self.make("/links/", {"relation": "SUPPORTS", **ends})

    def do(self, method: str, path: str) -> None:
        """Send a request without a body or a query."""
        response = self.service.client.request(method, path, headers=self.admin)
        assert response.is_success, response.text

    def make(self, path: str, body: dict[str, Any]) -> str:
        """The id of what a request makes."""
        return str(self.send("POST", path, {"organizationId": YEAR, **body})["id"])

    def copy(self) -> dict[str, Any]:
        """A dump, without the past."""
        written = io.StringIO()
        self.service.database.read_now(lambda transaction: dump(transaction, YEAR, written))
        copy: dict[str, Any] = json.loads(written.getvalue())
        del copy["history"]
        return copy

    def days(self) -> Iterator[str]:
        """The story, day by day: what is done on each one. Each day differs from the one before."""
        yield from self._days_of_spring()
        yield from self._days_of_autumn()
        yield from self._days_of_winter()

    def _days_of_spring(self) -> Iterator[str]:
        piers = [{"urn": one, "ref_id": one[-1], "name": f"Pier {one[-1]}", "assessable": True} for one in _PIERS]
        framework = {"urn": PIERS, "ref_id": "PIERS", "name": "Pier Rules", "requirement_nodes": piers}
        self.bring(
            library(TEXTS, 1),
            {"urn": "urn:piers:library", "name": "Pier Rules", "version": 1, "objects": {"framework": framework}},
            mapping(*BOTH, version=1),
        )
        self.adopt(DOCKS)
        self.adopt(OWN)
        self.assess(LOCKS, coverageStatus="FULL")
        self.assess(LAMPS, coverageStatus="FULL", reviewBy="2031-01-01")
        self.assess(ROPES, coverageStatus="NONE", coverageGap="Nobody does.")
        yield "frameworks are adopted and assessed"
        self.adopt(PIERS)
        self.assess(PIER, coverageStatus="PARTIAL", coverageGap="One side.")
        match = {"sourceControlId": RAILS, "targetControlId": "year.1", "matchLevel": "FULL", "justification": "So."}
        self.send("POST", "/matches/", {"organizationId": YEAR, "matches": [match]})
        self.assess(RAILS, coverageStatus="PARTIAL", coverageGap="Low.")
        yield "another framework is adopted, which follows from the first and contradicts it, with a match of one's own"
        self.bring(library(NEWER, 2))
        yield "a text changes, and a control is new"
        self.send("POST", f"/controls/{LOCKS}/coverage/confirm/", {"organizationId": YEAR})
        self.send("PUT", f"{self.match(LAMPS)}set-aside/", {"justification": "They are not alike."})
        yield "the assessment is confirmed, and a match is set aside"
        self.send("DELETE", f"{self.match(LAMPS)}set-aside/")
        self.due = self.pass_review(LAMPS)
        yield "a review passes, which is flagged"
        self.choose("LAPSE")
        self.wait_for(LAMPS, None)
        self.lapsed_by = now()
        yield "what was not reviewed lapses"

    def _days_of_autumn(self) -> Iterator[str]:
        self.bring(mapping(*WITHDRAWN, version=2))
        yield "a mapping withdraws a pair"
        self.service.load(
            {
                "baselines": [{"id": "small", "frameworkId": PIERS, "name": "Small"}],
                "baselineControls": [{"id": "small-1", "baselineId": "small", "controlId": STAIRS}],
            }
        )
        self.adopt(PIERS, baseline="small")
        yield "a framework is adopted with a baseline"
        self.service.load(
            {
                "controls": [{"id": LAMPS, "frameworkId": DOCKS, "parentId": None}],  # until the next import
                "baselineControls": [{"id": "small-2", "baselineId": "small", "controlId": RAILS}],
            }
        )
        yield "the baseline changes, and a requirement is in another place"
        self.leave(DOCKS)
        yield "a framework is left"
        self.bring(library({**NEWER, "urn:docks:1.5": ("Watch", "Somebody watches.")}, 3), mapping(*BOTH, version=1))
        self.adopt(DOCKS)
        self.assess("urn:docks:1.4", isApplicable=False, justification="We have none.")
        yield "it is adopted again, with what has changed meanwhile"
        self.choose("FLAG")
        self.wait_for(LAMPS, "FULL")
        self.send("DELETE", f"{self.match(RAILS)}")
        yield "what had lapsed counts again, and the own match is deleted"
        self.send("DELETE", f"/controls/{LOCKS}/coverage/")
        self.service.load({"controls": [{"id": RAILS, "frameworkId": PIERS, "type": "CATEGORY"}]})
        yield "an assessment is cleared, and a requirement becomes a category"
        self.assess(LOCKS, coverageStatus="PARTIAL", coverageGap="Again.")
        task = {"organizationId": YEAR, "title": "Ropes", "deadline": "2031-01-01"}
        (ropes,) = stored.rows(self.service.database, ControlCoverage, organization_id=YEAR, control_id=ROPES)
        self.send("POST", "/tasks/", task | {"controlCoverageId": ropes["id"]})
        yield "it is assessed again"

    def _days_of_winter(self) -> Iterator[str]:
        """With evidence that expires, is archived and is unlinked, where stale assessments are flagged, then lapse."""
        for choice, status in (("FLAG", "FULL"), ("LAPSE", None)):
            self.choose(choice)
            self.assess(LAMPS, coverageStatus="NONE", coverageGap="Dark.", reviewBy=None)
            self.assess(LAMPS, coverageStatus="FULL", coverageGap=None)
            first, _ = self.support(LAMPS, collectedAt="2026-03-01")
            _, second = self.support(LAMPS, validUntil="2031-01-01")
            yield f"{choice}: a control has two pieces of evidence"
            self.do("POST", f"/evidence/{first}/archive/")
            yield f"{choice}: one of them is archived"
            self.do("DELETE", f"/links/{second}/")
            self.wait_for(LAMPS, status)
            yield f"{choice}: the other one is unlinked"
            soon = format_timestamp(datetime.now(UTC) + timedelta(milliseconds=300))
            third, _ = self.support(LAMPS, validUntil=soon)
            self.send("POST", f"/controls/{LAMPS}/coverage/confirm/", {"organizationId": YEAR})
            while now() <= soon:
                time.sleep(0.01)
            self.wait_for(LAMPS, status)
            yield f"{choice}: another one supports what was confirmed, and expires"
            self.do("POST", f"/evidence/{first}/restore/")
            yield f"{choice}: the first one is restored, which ends what is flagged, and no lapse"
            for piece in (first, third):
                self.do("POST", f"/evidence/{piece}/archive/")


@pytest.mark.long
def test_a_year(service: Served, empty_sqlite_template: Path, tmp_path: Path) -> None:
    """Every list, report and explanation as of a day is as it was then, and as a copy of that day has it."""
    year = Year(service)
    days: dict[str, Day] = {}
    for name in year.days():
        time.sleep(0.003)
        days[name] = Day(now(), answers(service, year.admin, YEAR, FRAMEWORKS), year.copy())
        time.sleep(0.003)
    assert len(days) >= 12
    for name, day in days.items():
        past = answers(service, year.admin, YEAR, FRAMEWORKS, day.moment)
        assert past.keys() == day.answers.keys(), name
        for path, answer in day.answers.items():
            assert without(past[path], *TODAYS) == _in_todays_words(answer), f"{name}: {path}"
        assert service.database.read_now(_follows(day.moment)), name
    for one, other in pairwise(days.values()):
        assert without(one.answers, *TODAYS) != without(other.answers, *TODAYS)  # else less is compared than it seems
    require_series_and_changes(year, list(days.values()))
    require_lapse(year)
    for number, (name, day) in enumerate(days.items()):
        shutil.copy(empty_sqlite_template, copy := tmp_path / f"copy-{number}.db")
        with served(f"sqlite:///{copy}") as copied:
            copied.load(day.copy)
            again = answers(copied, copied.bearer("admin"), YEAR, FRAMEWORKS)
        assert again.keys() == day.answers.keys()
        for path, answer in day.answers.items():
            assert without(again[path], *TODAYS) == without(answer, *TODAYS), f"a copy, {name}: {path}"


def _in_todays_words(answer: Any) -> Any:
    """An answer of then as it is given now: its texts are today's."""
    return json.loads(json.dumps(without(answer, *TODAYS)).replace(EARLIER, LATER))


def _follows(moment: str) -> Callable[[Any], bool]:
    """Whether the coverage of a moment is what follows from scratch from what held then."""
    return lambda transaction: is_current(Past(transaction, YEAR, moment), YEAR)


def require_series_and_changes(year: Year, days: list[Day]) -> None:
    """What is counted over time, and what is said to have changed, agree with the answers of the days."""
    total = 0
    for day, later in zip(days, days[3:], strict=False):
        query = {"organizationId": YEAR, "from": day.moment, "to": later.moment}
        for name in FRAMEWORKS:
            series = year.get(f"/frameworks/{name}/coverage/history/", query)
            points = [_counted(point) for point in series["points"]]
            assert points == [_expected(summary) for summary in _summaries(name, day, later)]
        together = {one["frameworkId"]: one["points"] for one in year.get("/coverage/history/", query)["frameworks"]}
        assert {
            name: [_counted(point) for point in points if point["isAdopted"]] for name, points in together.items()
        } == {
            name: [_expected(summary)[: len(_OF_EACH)] for summary in _summaries(name, day, later) if summary != 404]
            for name in FRAMEWORKS
            if _summaries(name, later) != [404]
        }
        changes = year.get("/coverage/changes/", query)
        earlier, since = _statuses(day.answers), _statuses(later.answers)
        assert {item["id"]: (item["before"], item["after"]) for item in changes["items"]} == {
            control: (earlier.get(control), since.get(control))
            for control in earlier.keys() | since.keys()
            if earlier.get(control) != since.get(control)
        }
        for item in changes["items"]:
            assert all(day.moment < at <= later.moment for at in item["changedAt"])
            assert {event["at"] for event in item["events"]} <= set(item["changedAt"])
            assert item["changedAt"]
        total += changes["total"]
    assert total > 20


def require_lapse(year: Year) -> None:
    """An assessment is stale as of the moment of its review, and has lapsed as of the moment of its lapse."""
    before = format_timestamp(datetime.fromisoformat(year.due) - timedelta(milliseconds=1))
    stale = [{"reason": "REVIEW_OVERDUE", "since": year.due}]
    for moment, status, lapsed, reasons, effective, implemented in (
        (before, "FULL", None, [], "FULL", "YES"),
        (year.due, "FULL", None, stale, "FULL", "YES"),
        (year.lapsed_by, None, "FULL", stale, "NONE", "NOT_ASSESSED"),
    ):
        query = {"organizationId": YEAR, "asOf": moment}
        control = year.get(f"/controls/{LAMPS}/", query)
        found = control["coverage"]
        assert (found["coverageStatus"], found["lapsedStatus"], found["stale"]) == (status, lapsed, reasons)
        assert found["lapsedAt"] == (lapsed and year.due)
        assert control["effectiveCoverageStatus"] == effective
        assert year.get(f"/controls/{LAMPS}/coverage/", query)["assessment"]["stale"] == reasons
        listed = year.get("/coverage/", query | {"isStale": "true"})["items"]
        assert [one["id"] for one in listed] == [LAMPS] * bool(reasons)
        assert year.get(f"/frameworks/{DOCKS}/coverage/", query)["counts"]["stale"] == len(reasons)
        rows = year.get(f"/frameworks/{DOCKS}/statement-of-applicability/", query)["controls"]
        row = {one["id"]: one for one in rows}
        assert (row[LAMPS]["implemented"], row[LAMPS]["stale"]) == (implemented, reasons)
        assert (row[ROPES]["implemented"], row[ROPES]["plannedBy"]) == ("NO", "2031-01-01T00:00:00.000Z"), "today's"


def _counted(point: Any) -> Any:
    """The counts of a point of a series, null while the framework was not adopted."""
    return [point[name] for name in _COUNTS if name in point] if point["isAdopted"] else None


def _summaries(framework: str, *days: Day) -> list[Any]:
    """What the summary of a framework was on these days."""
    return [of(day.answers, f"/frameworks/{framework}/coverage/", YEAR) for day in days]


def _expected(summary: Any) -> Any:
    """The same of a summary of the framework, which is 404 while it was not adopted."""
    if summary == 404:
        return None
    counts = summary["counts"]
    by_status = [counts["effective"][name] for name in ("full", "partial", "none")]
    return [*by_status, counts["notApplicable"], counts["conflicts"], counts["stale"]]


def _statuses(answers: Answers) -> dict[str, str]:
    """The effective status of each control among answers."""
    return {item["id"]: item["effectiveCoverageStatus"] for item in of(answers, "/coverage/", YEAR)["items"]}
