"""The operation of incidents beyond those of all records."""

from __future__ import annotations

from normata.core.http.operation import Operation, ReadOperation
from normata.core.schema.paging import OrganizationQuery
from normata.incidents.timeline import IncidentTimeline, timeline
from normata.records.kinds import Incident

_DANA = {"id": "user-dana", "name": "Dana Demo"}

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path=f"/{Incident.path}/{{id}}/timeline/",
        operation_id="getIncidentTimeline",
        tag="Incidents",
        summary="Show the timeline of an incident",
        description="""\
What happened, in the order of time: when it occurred, was detected, notified, resolved and closed, from its fields;
when it was reported, rated and contained, and its cause and lessons, from its events; the comments on it, which are how
one adds to it; and when tasks that belong to it, or are linked with it, were made and done. `missing` has what should
be there before it is closed: `rootCause`, `lessonsLearned`, `resolvedAt`, and `authorityNotifiedAt` of a personal data
breach. Closing it without is not refused.""",
        about=Incident,
        id_description="The id of the incident, live or archived.",
        query=OrganizationQuery,
        build=lambda transaction, request: timeline(transaction, request.query, request.id),
        answer=IncidentTimeline,
        answer_description="The timeline.",
        example={
            "items": [
                {
                    "at": "2026-10-14T09:20:00.000Z",
                    "type": "DETECTED",
                    "text": None,
                    "user": _DANA,
                    "recordedAt": "2026-10-14T09:50:12.301Z",
                    "record": None,
                },
                {
                    "at": "2026-10-14T15:31:08.115Z",
                    "type": "COMMENT",
                    "text": "The recipient confirmed that the report was deleted.",
                    "user": _DANA,
                    "recordedAt": "2026-10-14T15:31:08.115Z",
                    "record": {"kind": "comments", "id": "comment-report-deleted"},
                },
            ],
            "isComplete": True,
            "missing": ["authorityNotifiedAt", "rootCause", "lessonsLearned", "resolvedAt"],
        },
    ),
)
