"""The deadline of a breach is 72 hours after its detection, until somebody sets another one."""

from __future__ import annotations

from typing import Any

import pytest

from normata.records.kinds import Incident
from tests import stored
from tests.records.living import change, make
from tests.served import Served
from tests.world import ALPHA

DETECTED, DEADLINE = "2026-10-14T07:20:00.000Z", "2026-10-17T07:20:00.000Z"
LATER, LATER_DEADLINE = "2026-10-15T00:00:00.000Z", "2026-10-18T00:00:00.000Z"
OTHER = "2026-10-16T12:00:00.000Z"
BREACH = {"isPersonalDataBreach": True, "detectedAt": DETECTED}


def _made(service: Served, **values: Any) -> dict[str, Any]:
    answer = make(service, Incident, service.bearer("editor"), name="Report sent to the wrong port", **values)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def _changed(service: Served, incident: dict[str, Any], **values: Any) -> Any:
    answer = change(service, Incident, incident["id"], service.bearer("editor"), **values)
    assert answer.status_code == 200, answer.text
    return answer.json()["notificationDeadline"]


def test_it_follows_the_breach_and_its_detection(service: Served) -> None:
    incident = _made(service, detectedAt=DETECTED)
    assert incident["notificationDeadline"] is None
    assert _changed(service, incident, isPersonalDataBreach=True) == DEADLINE
    event = stored.events(service.database, entity_id=incident["id"])[-1]
    assert "notificationDeadline" in str(event)
    # What was read can be sent back with another detection, as the form of the console does.
    assert _changed(service, incident, detectedAt="2026-10-15", notificationDeadline=DEADLINE) == LATER_DEADLINE
    assert _changed(service, incident, detectedAt=None) is None
    assert _changed(service, incident, detectedAt="9999-12-31T07:20:00.000Z") is None  # the calendar ends before
    assert _changed(service, incident, detectedAt=DETECTED) == DEADLINE
    assert _changed(service, incident, isPersonalDataBreach=False) is None


@pytest.mark.parametrize("by_hand", [OTHER, None])
def test_one_that_is_set_by_hand_stays(by_hand: str | None, service: Served) -> None:
    incident = _made(service, **BREACH)
    assert incident["notificationDeadline"] == DEADLINE
    assert _changed(service, incident, notificationDeadline=by_hand) == by_hand
    assert _changed(service, incident, detectedAt=LATER) == by_hand
    assert _changed(service, incident, isPersonalDataBreach=False) == by_hand
    assert _made(service, **BREACH, notificationDeadline=OTHER)["notificationDeadline"] == OTHER


def test_one_change_of_several_sets_it_and_neither_load_nor_restore(service: Served) -> None:
    editor = service.bearer("editor")
    incident = _made(service, detectedAt=DETECTED)
    records = [{"kind": "incidents", "id": incident["id"]}]
    body = {"organizationId": ALPHA, "records": records, "values": {"isPersonalDataBreach": True}}
    answer = service.client.post("/changes/", json=body, headers=editor)
    assert answer.status_code == 200, answer.text
    assert stored.row(service.database, Incident, incident["id"])["notification_deadline"] == DEADLINE

    row = {"id": "incident-loaded", "organizationId": ALPHA, "name": "An old one", "archivedAt": LATER, **BREACH}
    service.load({"incidents": [row]})
    restored = service.client.post("/incidents/incident-loaded/restore/", headers=editor)
    assert (restored.status_code, restored.json()["notificationDeadline"]) == (200, None)
    # It has none by decision of whoever loaded it, so a later detection does not give it one.
    assert _changed(service, row, detectedAt=LATER) is None
