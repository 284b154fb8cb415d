"""What the page of an incident shows: its steps, its time, and the next step with what is missing to close it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from normata.console import pictures
from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.forms import Entry, entry_of
from normata.console.app.records.notice import Clock, clock_of, time_between
from normata.console.filters import moment_text, words, zone_name
from normata.console.markdown import markdown
from normata.console.texts import text
from normata.core.db.types import now
from normata.incidents.closing import needed_to_close
from normata.records.fields import Field, fields_of
from normata.records.kinds import Incident

NOTIFY, CONTAIN, RESOLVE, CLOSE = "notify", "contain", "resolve", "close"
# The fields that each step asks for, the first of them with the time that it is now; and the status that it sets.
FIELDS_OF: Mapping[str, tuple[str, ...]] = {
    NOTIFY: ("authorityNotifiedAt", "notificationNotes"),
    CONTAIN: (),
    RESOLVE: ("resolvedAt", "rootCause"),
    CLOSE: ("closedAt", "lessonsLearned"),
}
STATUS_OF = {CONTAIN: "CONTAINED", RESOLVE: "RESOLVED", CLOSE: "CLOSED"}
_OPEN, _OVER = ("OPEN", "TRIAGED"), ("RESOLVED", "CLOSED")
_TONES = {
    **dict.fromkeys(("OCCURRED", "DETECTED"), "none"),
    **dict.fromkeys(("REPORTED", "RATED", "BREACH", "STATUS"), "partial"),
    **dict.fromkeys(("CONTAINED", "AUTHORITY_NOTIFIED", "DATA_SUBJECTS_NOTIFIED", "RESOLVED", "CLOSED"), "full"),
}
_MOMENTS = ("OCCURRED", "DETECTED", "AUTHORITY_NOTIFIED", "DATA_SUBJECTS_NOTIFIED", "RESOLVED", "CLOSED")
_TOKENS = ("RATED", "STATUS")  # whose text is a value


class Stage(NamedTuple):
    """A step of an incident: its state (done, now or empty), when it was done, and what it waits for."""

    name: str
    state: str
    at: str | None
    about: str


class Line(NamedTuple):
    """An entry of the timeline, with its rendered text.

    ``who`` has done it; ``recorded_by`` has recorded a moment that a field has, at ``recorded_at``. They may be empty.
    """

    at: str
    tone: str
    who: str
    recorded_by: str
    what: str
    written: Markup | None
    recorded_at: str | None
    task_id: str | None


class IncidentView(NamedTuple):
    """What the page of an incident has besides those of others. The clock is null without a deadline."""

    clock: Clock | None
    needed: Mapping[str, bool]
    stages: Sequence[Stage]
    spans: Markup | None
    lines: Sequence[Line]
    is_complete: bool
    next_step: str | None
    entries: Sequence[Entry]
    zone: str


async def incident_view(page_request: OrganizationRequest, incident: Mapping[str, Any]) -> IncidentView:
    """What the page of an incident shows now, the newest entries of its timeline first."""
    found = await page_request.ask_one(ApiQuery("getIncidentTimeline", id=incident["id"]))
    at, zone = now(), zone_name()
    contained = next((one["at"] for one in found["items"] if one["type"] == "CONTAINED"), None)
    stages = list(_stages(incident, contained))
    is_to_do = page_request.may("editor") and incident["archivedAt"] is None
    next_step = next((one.name for one in stages if one.state == "now"), None) if is_to_do else None
    needed = needed_to_close(incident)
    return IncidentView(
        clock_of(incident, at),
        needed,
        stages,
        _spans(incident, contained, at),
        [_line(one) for one in reversed(found["items"])],
        found["isComplete"],
        next_step,
        [_entry(field, incident, at, zone) for field in step_fields(next_step)],
        zone,
    )


def step_fields(step: str | None) -> Sequence[Field]:
    """The fields that a step asks for, in their order."""
    by_name = {field.name: field for field in fields_of(Incident)}
    return [by_name[name] for name in FIELDS_OF.get(step or "", ())]


def _entry(field: Field, incident: Mapping[str, Any], at: str, zone: str) -> Entry:
    return entry_of(field, incident[field.name] or (at if field.sort == "moment" else None), zone)


def _stages(incident: Mapping[str, Any], contained: str | None) -> Iterator[Stage]:
    status = incident["status"]
    done = {"detect": (bool(incident["detectedAt"]) or status != "OPEN", incident["detectedAt"])}
    done[CONTAIN] = (status not in _OPEN, contained)
    if incident["isPersonalDataBreach"] or incident["notificationDeadline"]:
        done[NOTIFY] = (bool(incident["authorityNotifiedAt"]), incident["authorityNotifiedAt"])
    done[RESOLVE] = (status in _OVER, incident["resolvedAt"])
    done[CLOSE] = (status == "CLOSED", incident["closedAt"])
    following = next((name for name, (is_done, _) in done.items() if not is_done and name != "detect"), None)
    waits = {RESOLVE: "rootCause", CLOSE: "lessonsLearned"}
    for name, (is_done, at) in done.items():
        missing = waits.get(name)
        about = text(f"incident.waits.{missing}") if missing and not incident[missing] else ""
        state = "done" if is_done else "now" if name == following else ""
        yield Stage(name, state, at, about)


def _spans(incident: Mapping[str, Any], contained: str | None, at: str) -> Markup | None:
    """How long the incident was unnoticed, open, and contained: null if it does not say when it began."""
    ends = [
        ("undetected", "none", incident["occurredAt"]),
        ("open", "partial", incident["detectedAt"] or incident["createdAt"]),
        ("contained", "full", contained),
    ]
    known = [(name, tone, start) for name, tone, start in ends if start]
    over = incident["resolvedAt"] or incident["closedAt"]
    last = over or at
    spans = []
    for place, (name, tone, start) in enumerate(known):
        end = known[place + 1][2] if place + 1 < len(known) else last
        if end > start:
            spans.append(pictures.Span(text(f"incident.span.{name}", time=time_between(start, end)), start, end, tone))
    if not incident["occurredAt"] or not spans:
        return None
    return pictures.spans(
        name=text("incident.course"),
        about=", ".join(one.label for one in spans),
        parts=spans,
        ends=[moment_text(one.start) for one in spans],
    )


def _line(entry: Mapping[str, Any]) -> Line:
    kind, content = entry["type"], entry["text"]
    is_task = kind.startswith("TASK_")
    what = text(f"incident.line.{kind}", value=words(content) if kind in _TOKENS else content or "")
    name, is_moment = entry["user"]["name"] if entry["user"] else "", kind in _MOMENTS
    return Line(
        entry["at"],
        _TONES.get(kind, "info"),
        "" if is_moment else name,
        name if is_moment else "",
        what,
        markdown(content) if content and kind not in _TOKENS and not is_task else None,
        entry["recordedAt"] if is_moment else None,
        entry["record"]["id"] if is_task else None,
    )
