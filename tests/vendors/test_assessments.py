"""A questionnaire is sent, answered, submitted, perhaps reopened, and reviewed: each step from its state."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from httpx2 import Response

from normata.records.assurance import VendorAssessment
from normata.records.kinds import Vendor
from normata.vendors.model import VendorAnswer
from normata.vendors.questions import MAX_QUESTIONS, questions_of, standard
from tests import stored
from tests.records.living import change, make
from tests.served import Served, refused, served
from tests.vendors.rows import PARTS
from tests.world import ALPHA, record_id

VENDOR = record_id(Vendor, "live")
REVIEW: dict[str, Any] = {"inherentProbability": 4, "inherentImpact": 5, "residualProbability": 2, "residualImpact": 3}
REVIEW |= {"inherentReason": "Much data.", "residualReason": "Good answers.", "nextAssessmentAt": "2030-01-01"}


def begin(service: Served, **values: Any) -> str:
    answer = make(service, VendorAssessment, service.bearer("editor"), title="Autumn", vendorId=VENDOR, **values)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def step(
    service: Served, assessment: str, name: str, user: str = "editor", *, query: str = "", **body: Any
) -> Response:
    return service.client.post(
        f"/vendor-assessments/{assessment}/{name}/{query}", json=body or None, headers=service.bearer(user)
    )


def say(service: Served, assessment: str, user: str = "editor", **values: str | None) -> Response:
    answers = [{"question": key.replace("_", "-"), "value": value} for key, value in values.items()]
    path = f"/vendor-assessments/{assessment}/answers/"
    return service.client.put(path, json={"answers": answers}, headers=service.bearer(user))


def read(service: Served, assessment: str, user: str = "viewer") -> dict[str, Any]:
    path = f"/vendor-assessments/{assessment}/answers/"
    answer = service.client.get(path, params={"organizationId": ALPHA}, headers=service.bearer(user))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def sent(service: Served, **values: Any) -> str:
    assessment = begin(service, **values)
    assert step(service, assessment, "send").status_code == 200
    return assessment


def ended(service: Served, **values: Any) -> str:
    assessment = sent(service, **values)
    assert step(service, assessment, "submit").status_code == 200
    return assessment


def test_the_questionnaire_of_the_service_has_thirty_questions_in_five_parts() -> None:
    assert [len(part["questions"]) for part in standard()] == [6, 6, 6, 6, 6]
    assert {question["kind"] for question in questions_of(standard())} == {"YES_NO", "CHOICE", "TEXT"}


def test_its_whole_life(service: Served) -> None:
    assessment = begin(service)
    before = read(service, assessment)
    assert (before["status"], before["questionnaireId"], before["unanswered"], before["score"]) == (
        "DRAFT",
        None,
        30,
        None,
    )
    found = step(service, assessment, "send").json()
    assert (found["status"], bool(found["sentAt"])) == ("SENT", True)
    assert read(service, assessment)["questionnaireId"] == found["questionnaireId"] is not None
    answers = say(
        service, assessment, gov_policy="YES", gov_risks="NO", gov_training="NOT_APPLICABLE", data_where="Kiel"
    )
    assert answers.status_code == 200, answers.text
    part, *_ = answers.json()["parts"]
    # 3 * 100 + 2 * 0, over 5.
    assert (part["score"], part["answered"], part["unanswered"], part["notApplicable"]) == (60, 3, 3, 1)
    assert part["questions"][0]["answeredById"] == "member-editor"
    assert answers.json()["parts"][2]["score"] is None
    submitted = step(service, assessment, "submit", "owner").json()
    assert (submitted["status"], submitted["score"], submitted["submittedById"]) == ("SUBMITTED", 60, "member-owner")
    refused(say(service, assessment, gov_policy="NO"), 409, "wrong_state")
    reviewed = step(service, assessment, "review", **REVIEW).json()
    assert reviewed.items() >= (REVIEW | {"status": "REVIEWED", "nextAssessmentAt": "2030-01-01T00:00:00.000Z"}).items()
    assert reviewed["reviewedById"] == "member-editor"
    vendor = stored.row(service.database, Vendor, VENDOR)
    assert (vendor["inherent_probability"], vendor["residual_impact"]) == (4, 3)
    assert vendor["last_assessment_id"] == assessment
    events = [one["action"] for one in stored.events(service.database, entity_id=assessment)]
    assert events == ["create", "send", "submit", "review"]
    assert stored.events(service.database, entity_id=VENDOR)[-1]["action"] == "review"


def test_a_later_review_supersedes_the_one_before(service: Served) -> None:
    first, second = ended(service), ended(service)
    assert step(service, first, "review", **REVIEW).status_code == 200
    assert step(service, second, "review", residualProbability=1).status_code == 200
    assert stored.row(service.database, VendorAssessment, first)["status"] == "SUPERSEDED"
    vendor = stored.row(service.database, Vendor, VENDOR)
    assert (vendor["last_assessment_id"], vendor["residual_probability"], vendor["inherent_impact"]) == (
        second,
        1,
        None,
    )
    due = service.client.get(
        "/due/",
        params={"organizationId": ALPHA, "kind": "vendor-assessments", "limit": 1000},
        headers=service.bearer("viewer"),
    )
    assert first not in due.text


@pytest.mark.parametrize(
    ("name", "state", "allowed"),
    [
        ("send", "sent", ["DRAFT"]),
        ("submit", "live", ["SENT"]),
        ("reopen", "answered", ["SUBMITTED"]),
        ("review", "sent", ["SUBMITTED"]),
    ],
)
def test_each_step_takes_its_state(name: str, state: str, allowed: list[str], service: Served) -> None:
    body: dict[str, Any] = {"reason": "Again"} if name == "reopen" else dict(REVIEW) if name == "review" else {}
    problem = refused(step(service, record_id(VendorAssessment, state), name, "owner", **body), 409, "wrong_state")
    assert problem["allowed"] == allowed
    archived = record_id(VendorAssessment, "archived")
    refused(step(service, archived, name, "owner", **body), 409, "archived")
    refused(step(service, record_id(VendorAssessment, state, "org-beta"), name, "owner", **body), 404, "not_found")
    refused(step(service, archived, name, "viewer", **body), 403, "forbidden")


def test_submitted_answers_are_reopened_by_admins(service: Served) -> None:
    assessment = ended(service)
    refused(step(service, assessment, "reopen", reason="Old"), 403, "forbidden")
    refused(step(service, assessment, "reopen", "admin", reason=" "), 400, "validation")
    found = step(service, assessment, "reopen", "admin", reason="Old answers").json()
    assert (found["status"], found["submittedAt"], found["reopeningReason"]) == ("SENT", None, "Old answers")
    assert say(service, assessment, gov_policy="NO").status_code == 200


def test_answers_fit_their_questions(service: Served) -> None:
    assessment = sent(service)
    path = f"/vendor-assessments/{assessment}/answers/"
    answers = [
        {"question": "gov-policy", "value": "MAYBE"},
        {"question": "unknown", "value": "YES"},
        {"question": "gov-risks"},
        {"question": "gov-risks", "value": "YES"},
        {"question": "gov-certificate", "value": "Trust us"},
    ]
    problem = refused(
        service.client.put(path, json={"answers": answers}, headers=service.bearer("editor")), 400, "validation"
    )
    assert [one["name"] for one in problem["errors"]] == [
        *("answers/0/value", "answers/1/question", "answers/3/question", "answers/4/value")
    ]
    assert stored.rows(service.database, VendorAnswer, assessment_id=assessment) == []
    for value in ("YES", "YES", None, None):  # repeated, and taken back
        assert say(service, assessment, gov_policy=value).status_code == 200
    [row] = {
        one["entity_id"]
        for one in stored.events(service.database, entity_type="VendorAnswer")
        if one["action"] == "delete"
    }
    assert [one["action"] for one in stored.events(service.database, entity_id=row)] == ["answer", "delete"]


def test_a_dry_run_sends_nothing_and_a_key_sends_once(service: Served) -> None:
    assessment = begin(service)
    assert step(service, assessment, "send", query="?dryRun=true").json()["answer"]["status"] == "SENT"
    assert read(service, assessment)["status"] == "DRAFT"
    headers = service.bearer("editor") | {"Idempotency-Key": '"one"'}
    path = f"/vendor-assessments/{assessment}/send/"
    first, again = (service.client.post(path, headers=headers) for _ in range(2))
    assert (first.status_code, again.status_code, first.json()) == (200, 200, again.json())


def test_of_two_who_submit_at_once_one_does(service: Served) -> None:
    assessment = sent(service)
    with served(service.url) as other, ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda one: step(one, assessment, "submit"), (service, other)))
    assert sorted(one.status_code for one in answers) == [200, 409]


def test_what_steps_set_is_not_written_by_hand(service: Served) -> None:
    assessment = begin(service)
    for values in ({"status": "SENT"}, {"score": 3}, {"residualImpact": 2}):
        problem = refused(
            change(service, VendorAssessment, assessment, service.bearer("owner"), **values), 400, "validation"
        )
        assert problem["errors"][0]["code"] == "read_only"
    problem = refused(change(service, Vendor, VENDOR, service.bearer("owner"), lastAssessmentId="x"), 400, "validation")
    assert problem["errors"][0]["code"] == "read_only"
    assert step(service, assessment, "send").status_code == 200
    refused(change(service, VendorAssessment, assessment, service.bearer("owner"), vendorId=None), 409, "wrong_state")


def test_an_own_questionnaire_stays_as_it_was_sent(service: Served) -> None:
    body = {"organizationId": ALPHA, "name": "Ours", "parts": PARTS}
    made = service.client.post("/questionnaires/", json=body, headers=service.bearer("editor")).json()
    path, headers = f"/questionnaires/{made['id']}/", service.bearer("editor")
    assessment = begin(service, questionnaireId=made["id"])
    assert service.client.patch(path, json={"name": "Ours, 2"}, headers=headers).json()["name"] == "Ours, 2"
    assert step(service, assessment, "send").status_code == 200
    refused(service.client.patch(path, json={"name": "Ours, 3"}, headers=headers), 409, "wrong_state")
    assert [one["name"] for one in read(service, assessment)["parts"]] == ["Access", "Data"]
    assert say(service, assessment, reviews="Yearly").json()["parts"][0]["score"] == 80
    copied = service.client.post("/questionnaires/", json={"organizationId": ALPHA, "name": "Copy"}, headers=headers)
    assert (copied.json()["parts"], copied.json()["edition"]) == (standard(), None)


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [{"name": "A", "questions": [{"id": "x", "text": "?"}, {"id": "x", "text": "?"}]}],
        [{"name": "A", "questions": [{"id": "x", "text": "?", "kind": "CHOICE"}]}],
        [{"name": "A", "questions": [{"id": "X", "text": "?"}]}],
        [
            {"name": "A", "questions": [{"id": f"x{number}", "text": "?"} for number in range(150)]},
            {"name": "B", "questions": [{"id": f"y{number}", "text": "?"} for number in range(MAX_QUESTIONS - 149)]},
        ],
    ],
    ids=["none", "same ids", "no choices", "id", "too many"],
)
def test_a_questionnaire_is_whole(parts: list[Any], service: Served) -> None:
    body = {"organizationId": ALPHA, "name": "Ours", "parts": parts}
    refused(service.client.post("/questionnaires/", json=body, headers=service.bearer("editor")), 400, "validation")
