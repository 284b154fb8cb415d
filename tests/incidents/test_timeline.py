"""The timeline of an incident: from its fields and events, the comments on it, and the tasks that belong to it."""

from __future__ import annotations

from typing import Any

from normata.records.kinds import Incident, Task
from tests.records.living import change, make
from tests.risks.rating import read
from tests.served import Served, refused
from tests.world import ALPHA, BETA, record_id


def _made(service: Served, kind: Any, **values: Any) -> str:
    answer = make(service, kind, service.bearer("editor"), **values)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def _timeline(service: Served, incident: str) -> dict[str, Any]:
    return read(service, f"/incidents/{incident}/timeline/")


def _entries(service: Served, incident: str) -> list[tuple[str, str | None, str | None]]:
    return [
        (one["type"], one["text"], one["user"] and one["user"]["name"]) for one in _timeline(service, incident)["items"]
    ]


def test_it_says_what_happened_who_says_so_and_when(service: Served) -> None:
    incident = _made(service, Incident, name="A report went astray", occurredAt="2026-01-01T08:00:00Z", severity="LOW")
    owner = service.bearer("owner")
    detected = {"detectedAt": "2026-01-02T09:20:00Z", "severity": "HIGH", "isPersonalDataBreach": True}
    assert change(service, Incident, incident, owner, **detected).is_success
    assert _timeline(service, incident)["missing"] == [
        *("authorityNotifiedAt", "rootCause", "lessonsLearned", "resolvedAt"),
    ]
    assert change(service, Incident, incident, owner, status="CONTAINED").is_success
    notified = {"authorityNotifiedAt": "2026-01-03T09:00:00Z", "notificationNotes": "By the form."}
    assert change(service, Incident, incident, owner, **notified).is_success
    about = {"organizationId": ALPHA, "about": {"kind": "incidents", "id": incident}, "text": "It was **deleted**."}
    assert service.client.post("/comments/", json=about, headers=service.bearer("viewer")).status_code == 201
    task = _made(service, Task, title="Show the customer's number", incidentId=incident)
    linked = _made(service, Task, title="Train the sellers")
    ends = {"from": {"kind": "tasks", "id": linked}, "to": {"kind": "incidents", "id": incident}}
    link = {"organizationId": ALPHA, "relation": "RELATES", **ends}
    assert service.client.post("/links/", json=link, headers=owner).status_code == 201
    for status in ("DONE", "TODO", "DONE"):
        assert change(service, Task, task, owner, status=status).is_success
    resolved = {"status": "RESOLVED", "resolvedAt": "2126-01-04T09:00:00Z", "rootCause": "Similar names."}
    assert change(service, Incident, incident, owner, **resolved).is_success
    assert _entries(service, incident) == [
        ("OCCURRED", None, "Editor"),
        ("DETECTED", None, "Owner"),
        ("AUTHORITY_NOTIFIED", "By the form.", "Owner"),
        ("REPORTED", None, "Editor"),
        ("RATED", "HIGH", "Owner"),
        ("BREACH", None, "Owner"),
        ("CONTAINED", None, "Owner"),
        ("COMMENT", "It was **deleted**.", "Viewer"),
        ("TASK_ADDED", "Show the customer's number", "Editor"),
        ("TASK_ADDED", "Train the sellers", "Editor"),
        ("TASK_DONE", "Show the customer's number", "Owner"),
        ("ROOT_CAUSE", "Similar names.", "Owner"),
        ("RESOLVED", None, "Owner"),
    ]
    found = _timeline(service, incident)
    assert (found["isComplete"], found["missing"]) == (True, ["lessonsLearned"])
    moments = [one["at"] for one in found["items"]]
    assert moments == sorted(moments)
    first = found["items"][0]
    assert first["at"] == "2026-01-01T08:00:00.000Z" < first["recordedAt"]
    assert found["items"][8]["record"] == {"kind": "tasks", "id": task}
    # Closing what misses something is not refused.
    assert change(service, Incident, incident, owner, status="CLOSED", closedAt="2126-01-05").is_success
    assert _entries(service, incident)[-1] == ("CLOSED", None, "Owner")


def test_what_was_loaded_has_no_events(service: Served) -> None:
    """What is there by its fields is there all the same."""
    row = {"id": "old", "organizationId": ALPHA, "name": "Loaded", "lessonsLearned": "Ask twice.", "status": "CLOSED"}
    service.load({"incidents": [row | {"occurredAt": "2026-01-01T08:00:00Z", "closedAt": "2026-01-05T08:00:00Z"}]})
    service.sql("DELETE FROM unsealed_event", "DELETE FROM audit_event WHERE entity_id = 'old'")
    assert _entries(service, "old") == [
        ("OCCURRED", None, None),
        ("CLOSED", None, None),
        ("LESSONS_LEARNED", "Ask twice.", None),
    ]
    assert {one["recordedAt"] for one in _timeline(service, "old")["items"]} == {None}


def test_who_reads_it(service: Served) -> None:
    """Everybody in the organization, of an archived one, too; and nobody else."""
    assert _timeline(service, record_id(Incident, "archived"))["isComplete"]
    path = f"/incidents/{record_id(Incident, 'live', BETA)}/timeline/"
    for incident in (path, "/incidents/unknown/timeline/"):
        answer = service.client.get(incident, params={"organizationId": ALPHA}, headers=service.bearer("viewer"))
        refused(answer, 404, "not_found")
