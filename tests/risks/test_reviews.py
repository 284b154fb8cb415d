"""A review lists the risks that its filter selects, records the outcome of each, and keeps it when it is finished."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from httpx2 import Response

from normata.records.assurance import Risk
from normata.records.kinds import RiskReview
from normata.risks.review_model import RiskReviewOutcome
from tests import stored
from tests.records.living import change, make
from tests.risks.rating import add, read
from tests.served import Served, refused, served
from tests.world import ALPHA, record_id


def _review(service: Served, **values: Any) -> str:
    answer = make(service, RiskReview, service.bearer("editor"), **{"title": "Autumn review"} | values)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def _items(service: Served, review: str, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read(service, f"/risk-reviews/{review}/items/", **query)["items"]
    return found


def _say(
    service: Served, review: str, risk: str, outcome: str = "CONFIRMED", user: str = "editor", **more: Any
) -> Response:
    body = {"riskId": risk, "outcome": outcome} | more
    return service.client.post(f"/risk-reviews/{review}/outcomes/", json=body, headers=service.bearer(user))


def _finish(service: Served, review: str, user: str = "editor") -> Response:
    return service.client.post(f"/risk-reviews/{review}/finish/", headers=service.bearer(user))


@pytest.fixture
def risks(service: Served) -> dict[str, str]:
    """The only open risks: one of each level, by its name, and one without ratings."""
    service.sql("UPDATE risk SET status = 'CLOSED'")
    rated = {"LOW": (1, 2), "MEDIUM": (2, 3), "HIGH": (3, 4), "CRITICAL": (5, 5), "NONE": (None, None)}
    return {level: add(service, name=level, residual=pair) for level, pair in rated.items()}


@pytest.mark.parametrize(
    ("wanted", "listed"),
    [
        ("ALL", ["CRITICAL", "HIGH", "MEDIUM", "LOW", "NONE"]),
        ("HIGH", ["HIGH"]),
        ("LOW", ["LOW"]),
        ("OF_THE_PLANT", ["CRITICAL", "HIGH", "MEDIUM", "LOW", "NONE"]),
    ],
)
def test_its_filter_selects_risks(wanted: str, listed: list[str], service: Served, risks: dict[str, str]) -> None:
    assert set(listed) <= risks.keys()
    found = _items(service, _review(service, priorityFilter=wanted))
    assert [one["name"] for one in found] == listed
    assert [one["level"] for one in found] == [None if name == "NONE" else name for name in listed]
    assert {one["outcome"] for one in found} == {None}


def test_an_outcome_is_an_event_and_moves_the_next_review(service: Served, risks: dict[str, str]) -> None:
    review, risk = _review(service, priorityFilter="HIGH"), risks["HIGH"]
    said = _say(service, review, risk, note="As before.", nextReviewAt="2030-01-01").json()
    assert (said["id"], said["outcome"], said["note"], said["level"]) == (risk, "CONFIRMED", "As before.", "HIGH")
    assert (said["recordedById"], said["nextReviewAt"]) == ("member-editor", "2030-01-01T00:00:00.000Z")
    assert stored.row(service.database, Risk, risk)["next_review_at"] == "2030-01-01T00:00:00.000Z"
    # It stays listed when it is rated lower in the review, and a later outcome takes the place of the first.
    change(service, Risk, risk, service.bearer("editor"), residualProbability=1)
    assert [one["residualProbability"] for one in _items(service, review)] == [3]
    again = _say(service, review, risk, "REASSESSED", "owner").json()
    assert (again["outcome"], again["note"], again["recordedById"]) == ("REASSESSED", None, "member-owner")
    assert (again["residualProbability"], again["level"]) == (1, "LOW")
    assert _items(service, review) == [again]
    (row,) = stored.rows(service.database, RiskReviewOutcome, risk_review_id=review)
    events = stored.events(service.database, entity_id=row["id"])
    assert [(one["action"], one["user_id"]) for one in events] == [("record", "user-editor"), ("record", "user-owner")]
    assert stored.events(service.database, entity_id=risk)[-2]["action"] == "update"
    assert _items(service, review, isOpen="true") == []
    assert _items(service, review, isOpen="false") == [again]


def test_what_it_refuses(service: Served, risks: dict[str, str]) -> None:
    review, risk = _review(service, priorityFilter="HIGH"), risks["HIGH"]
    for user in ("viewer", "auditor"):
        refused(_say(service, review, risk, user=user), 403, "forbidden")
        refused(_finish(service, review, user), 403, "forbidden")
    for other in (risks["LOW"], "unknown", record_id(Risk, "live", "org-beta"), record_id(Risk, "archived")):
        [fault] = refused(_say(service, review, other), 400, "validation")["errors"]
        assert fault["name"] == "riskId"
    for outcome, code in (("NOT_REVIEWED", "read_only"), ("ACCEPTED", "not_accepted")):
        [fault] = refused(_say(service, review, risk, outcome), 400, "validation")["errors"]
        assert (fault["name"], fault["code"]) == ("outcome", code)
    change(service, Risk, risk, service.bearer("editor"), ownerId="member-owner")
    assert service.client.post(f"/risks/{risk}/accept/", headers=service.bearer("owner")).status_code == 200
    assert _say(service, review, risk, "ACCEPTED").json()["acceptedAt"] is not None
    archived = _review(service)
    service.client.post(f"/risk-reviews/{archived}/archive/", headers=service.bearer("editor"))
    refused(_say(service, archived, risk), 409, "archived")
    refused(_finish(service, archived), 409, "archived")


def test_a_finished_review_stays_as_it_was(service: Served, risks: dict[str, str]) -> None:
    editor = service.bearer("editor")
    review = _review(service)
    assert _say(service, review, risks["HIGH"], note="Two makers now.").status_code == 200
    finished = _finish(service, review).json()
    assert finished["finishedAt"] is not None
    events = stored.events(service.database, entity_id=review)
    assert (events[-1]["action"], events[-1]["user_id"]) == ("finish", "user-editor")
    before = _items(service, review)
    outcomes = {one["name"]: (one["outcome"], one["note"]) for one in before}
    assert outcomes == dict.fromkeys(risks, ("NOT_REVIEWED", None)) | {"HIGH": ("CONFIRMED", "Two makers now.")}
    recorded = stored.rows(service.database, RiskReviewOutcome, risk_review_id=review)
    assert all(stored.events(service.database, entity_id=one["id"])[-1]["action"] == "record" for one in recorded)
    for response in (_finish(service, review), _say(service, review, risks["LOW"])):
        refused(response, 409, "wrong_state")
    change(service, Risk, risks["HIGH"], editor, name="Another", residualProbability=1, status="CLOSED")
    service.client.post(f"/risks/{risks['LOW']}/archive/", headers=editor)
    add(service, residual=(5, 5))
    levels = {"riskLevels": [["LOW"] * 5] * 5}
    assert service.client.patch(f"/organizations/{ALPHA}/", json=levels, headers=service.bearer("owner")).is_success
    assert _items(service, review) == [one | {"isLive": one["id"] != risks["LOW"]} for one in before]
    # A dump and a load keep it.
    assert change(service, RiskReview, review, editor, finishedAt=finished["finishedAt"], notes="Done.").is_success
    for value in (None, "2026-01-01"):
        [fault] = refused(change(service, RiskReview, review, editor, finishedAt=value), 400, "validation")["errors"]
        assert (fault["name"], fault["code"]) == ("finishedAt", "read_only")


def test_of_two_who_finish_at_once_one_does(service: Served, risks: dict[str, str]) -> None:
    review = _review(service)
    with served(service.url) as other, ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda one: _finish(one, review), (service, other)))
    assert sorted(one.status_code for one in answers) == [200, 409]
    assert len(stored.rows(service.database, RiskReviewOutcome, risk_review_id=review)) == len(risks)
