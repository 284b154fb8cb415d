"""How often questionnaires are used, removing unused ones, and loading answers to them."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import Response

from normata.bundle import loading
from normata.vendors.model import Questionnaire, VendorAnswer
from tests import stored
from tests.bundle.documents import faults
from tests.databases import change
from tests.served import Served, refused
from tests.vendors.rows import PARTS, answer_row, questionnaire_row
from tests.vendors.test_assessments import begin, sent, step
from tests.world import ALPHA, BETA, rows

FREE, USED = f"free-{ALPHA}", f"used-{ALPHA}"


def remove(service: Served, questionnaire: str, user: str = "editor", query: str = "") -> Response:
    return service.client.delete(f"/questionnaires/{questionnaire}/{query}", headers=service.bearer(user))


def listed(service: Served) -> dict[str, dict[str, Any]]:
    answer = service.client.get("/questionnaires/", params={"organizationId": ALPHA}, headers=service.bearer("viewer"))
    return {one["id"]: one for one in answer.json()["items"]}


def test_the_list_says_how_often_each_is_used(service: Served) -> None:
    before = listed(service)
    assert (before[FREE]["assessments"], before[FREE]["isFixed"]) == (0, False)
    assert before[USED]["isFixed"]
    draft = begin(service, questionnaireId=FREE)
    assert (listed(service)[FREE]["assessments"], listed(service)[FREE]["isFixed"]) == (1, False)
    assert step(service, draft, "send").status_code == 200
    assert listed(service)[FREE]["isFixed"]
    sent(service)  # with the one of the service
    [ours] = [one for one in listed(service).values() if one["edition"]]
    assert (ours["assessments"], ours["isFixed"]) == (1, True)


def test_an_unused_one_is_removed(service: Served) -> None:
    assert remove(service, FREE, query="?dryRun=true").status_code == 200
    assert FREE in listed(service)
    refused(remove(service, FREE, "viewer"), 403, "forbidden")
    refused(remove(service, f"free-{BETA}"), 404, "not_found")
    assert remove(service, FREE).json() is None
    refused(remove(service, FREE), 404, "not_found")
    assert FREE not in listed(service)
    [event] = [one for one in stored.events(service.database, entity_id=FREE) if one["action"] == "delete"]
    assert event["entity_type"] == "Questionnaire"


@pytest.mark.parametrize("archived", [False, True], ids=["draft", "archived"])
def test_one_that_an_assessment_has_stays(archived: bool, service: Served) -> None:
    draft = begin(service, questionnaireId=FREE)
    if archived:
        assert step(service, draft, "archive").status_code == 200
    problem = refused(remove(service, FREE), 409, "wrong_state")
    assert (problem["state"], problem["allowed"]) == ("IN_USE", ["UNUSED"])
    assert stored.row(service.database, Questionnaire, FREE)["name"] == f"Ask {FREE}"


def test_a_load_takes_answers_to_questions_that_were_asked(service: Served) -> None:
    """Also where the same load brings the questionnaire, or changes it."""
    new = questionnaire_row("new", ALPHA) | {"parts": PARTS[1:]}
    of_new = {"id": "new", "organizationId": ALPHA, "title": "New", "status": "SENT", "questionnaireId": "new"}
    draft = {"id": "draft", "organizationId": ALPHA, "title": "Draft"}
    known = answer_row("known", ALPHA, "sent") | {"value": "NOT_APPLICABLE"}
    document = {
        "questionnaires": [new],
        "vendor-assessments": [of_new, draft],
        "vendorAnswers": [
            known,
            answer_row("unknown", ALPHA, "sent") | {"question": "unknown"},
            answer_row("odd", ALPHA, "sent") | {"question": "reviews", "value": "Often"},
            answer_row("asked", ALPHA) | {"assessmentId": "new", "question": "where", "value": "In Kiel"},
            answer_row("elsewhere", ALPHA) | {"assessmentId": "new"},
            answer_row("without", ALPHA) | {"assessmentId": "draft"},
        ],
    }
    reason = "is not the id of a question of the assessment's questionnaire"
    assert faults(service.database, document) == [
        f"/vendorAnswers/1/question: {reason}",
        "/vendorAnswers/2/value: must be one of Yearly, Never, NOT_APPLICABLE",
        *(f"/vendorAnswers/{index}/question: {reason}" for index in (4, 5)),
    ]
    document["vendorAnswers"] = [known, document["vendorAnswers"][3]]
    change(service.database, lambda unit: loading.load(unit, rows(document)))
    assert stored.row(service.database, VendorAnswer, "asked")["value"] == "In Kiel"
