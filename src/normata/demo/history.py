"""The history of the demo's records and assessments, before the state in its bundles: who, when and why.

A bundle has only one state of a record. This module has the steps to it: each record is created with the values known
then, and changed at its own dates. Reasons and mistakes are in ``history.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from normata.core.schema.fields import parse_timestamp
from normata.demo.entitlements import reviewed
from normata.demo.moments import between, day_after, parsed
from normata.demo.vendors import doings as vendor_doings

Values = Mapping[str, Any]
Action = Literal[
    "create", "change", "draft", "send", "answer", "submit", "approve", "publish", "acknowledge", "retire",
    "accept", "verify", "repeat", "review", "finish", "finalize", "archive", "restore",
]  # fmt: skip

OFFICER = "user-ines"  # looks after what nobody is responsible for
_DEPUTY = "user-dana"  # assigns work to her
_CHECKS = "user-tomasz"
_ASSESSORS = ("user-ines", "user-tomasz", "user-lukas", "user-femke", "user-priya")

# A date of a record, the fields that are written with it, and the status from then on.
_DATED: Mapping[str, tuple[tuple[str, ...], str | None]] = {
    "detectedAt": ((), "TRIAGED"),
    "authorityNotifiedAt": (("notificationNotes",), "CONTAINED"),
    "dataSubjectsNotifiedAt": ((), None),
    "resolvedAt": (("rootCause",), "RESOLVED"),
    "closedAt": (("lessonsLearned",), "CLOSED"),
    "lastReviewedAt": ((), "IN_REVIEW"),
    "finishedAt": (("notes",), None),
    "ended": ((), None),
}
_LATER = ("causes", "correction", "measures")  # written once they are known
_DETAILS = ("description", "extendedPlural", "extended", "notes", "findings", "content", "color", "instructions")
_FIRST_STATUS = {
    "tasks": "TODO",
    "auditItems": "OPEN",
    "assets": "ACTIVE",
    "integration-checks": "UNKNOWN",
    "incidents": "OPEN",
    "vendors": "PROSPECTIVE",
    "risks": "OPEN",
    "records": "DRAFT",
}
_IN_BETWEEN = {
    ("tasks", "DONE"): "IN_PROGRESS",
    ("tasks", "BLOCKED"): "IN_PROGRESS",
    ("tasks", "CANCELLED"): "BLOCKED",
    ("auditItems", "CLOSED"): "IN_PROGRESS",
    ("auditItems", "VERIFIED"): "IN_PROGRESS",
    ("integration-checks", "PASSED"): "WARNING",
    ("integration-checks", "FAILED"): "PASSED",
    ("integration-checks", "WARNING"): "PASSED",
    ("integration-checks", "ERROR"): "PASSED",
    ("risks", "MONITORED"): "IN_TREATMENT",
    ("vendors", "TERMINATED"): "ACTIVE",
    ("vendors", "IN_ASSESSMENT"): "ACTIVE",
}
_RESPONSIBLE = ("assigneeMemberId", "ownerId", "approverId", "coordinatorId")


class Step(NamedTuple):
    """An action on a record at a moment: with ``values``, or with a ``reason``."""

    moment: str
    action: Action
    kind: str
    record_id: str
    by: str
    values: Values | None = None
    reason: str | None = None


class Batch(NamedTuple):
    """Assessments that somebody made at a moment, each with its ``controlId``."""

    moment: str
    by: str
    assessments: Sequence[Values]


@cache
def _story() -> Mapping[str, Any]:
    found: dict[str, Any] = json.loads((Path(__file__).parent / "history.json").read_text("utf-8"))
    return found


# --- Records


def steps(records: Mapping[str, Sequence[Values]]) -> list[Step]:
    """The steps that lead to the records, by kind, in the order of their moments."""
    plain = [(kind, with_milliseconds(record)) for kind, array in records.items() for record in array]
    created = {record["id"]: record["createdAt"] for _, record in plain}
    found = [step for kind, record in plain for step in _life(kind, record, created)]
    order = get_args(Action)
    return sorted(found, key=lambda step: (step.moment, order.index(step.action)))


def _life(kind: str, record: Values, created: Mapping[str, str]) -> Iterator[Step]:
    record_id = record["id"]
    member = next((record[name] for name in _RESPONSIBLE if record.get(name)), None)
    responsible = str(member).replace("member-", "user-") if member else None
    worker = _CHECKS if kind == "integration-checks" else responsible or OFFICER
    creator = _DEPUTY if responsible == OFFICER else OFFICER
    if kind == "policies":
        yield from _policy_life(record, creator, worker)
        yield from _archiving(kind, record)
        return
    if kind == "vendor-assessments":
        for moment, action, by, values in vendor_doings(record, creator, worker):
            yield Step(moment, action, kind, record_id, by, values)
        yield from _archiving(kind, record)
        return
    ours = (*_OURS, "finishedAt") if kind == "risk-reviews" or record_id in reviewed() else _OURS
    final = {name: value for name, value in record.items() if name not in ours and value is not None}
    changes = _changes(kind, record, final, created)
    latest = {name: value for values in changes.values() for name, value in values.items()}
    first = {name: value for name, value in final.items() if name not in latest}
    first |= _story()["earlier"].get(record_id, {})
    if "status" in final:
        first["status"] = _FIRST_STATUS[kind] if changes or record.get("finalizedAt") else final["status"]
    if "shortId" in record:
        first["shortId"] = record["shortId"]
    if record_id not in _story()["following"].values():
        yield Step(record["createdAt"], "create", kind, record_id, creator, first)
    for moment, values in sorted(changes.items()):
        yield Step(moment, "change", kind, record_id, worker, values)
    if record.get("acceptedAt"):
        yield Step(record["acceptedAt"], "accept", kind, record_id, worker)
    if record.get("verifiedAt"):
        by = record["verifiedById"].replace("member-", "user-")
        note = record.get("verificationNote")
        yield Step(record["verifiedAt"], "verify", kind, record_id, by, {"note": note})
    for outcome in _story()["outcomes"].get(record_id, ()):
        values = {name: outcome[name] for name in ("riskId", "outcome", "note")}
        yield Step(parse_timestamp(outcome["at"]), "review", kind, record_id, outcome["by"], values)
    if frequency := _story()["repeats"].get(record_id):
        yield Step(day_after(record["createdAt"], 1), "repeat", kind, record_id, worker, {"frequency": frequency})
    if kind == "risk-reviews" and "finishedAt" in record:
        yield Step(record["finishedAt"], "finish", kind, record_id, worker)
    if record.get("finalizedAt"):
        yield Step(record["finalizedAt"], "finalize", kind, record_id, worker)
    yield from _archiving(kind, record)


def _archiving(kind: str, record: Values) -> Iterator[Step]:
    record_id = record["id"]
    if mistake := _story()["mistaken"].get(record_id):
        wrong, right = mistake["archived"], mistake["restored"]
        yield Step(parse_timestamp(wrong["at"]), "archive", kind, record_id, wrong["by"], reason=wrong["reason"])
        yield Step(parse_timestamp(right["at"]), "restore", kind, record_id, right["by"])
    if record.get("archivedAt"):
        why = _story()["archived"][record_id]
        yield Step(record["archivedAt"], "archive", kind, record_id, why["by"], reason=why["reason"])


def _policy_life(record: Values, creator: str, approver: str) -> Iterator[Step]:
    """The steps of a policy: its versions, the last of which is in force, and the draft of the next one."""

    def step(moment: str, action: Action, by: str, **values: Any) -> Step:
        return Step(moment, action, "policies", record["id"], by, values)

    start, end, text = record["createdAt"], record["updatedAt"], record.get("content", "")
    approved, texts = record.get("lastApprovedAt"), _texts(record)
    known = {name: record[name] for name in ("title", "slug", "order", "approverId")}
    if "nextReviewAt" in record:
        known["nextReviewAt"] = f"{day_after(start, 365)[:10]}T08:00:00.000Z"
    yield step(start, "create", creator, **known, content=texts[0])
    if approved is None:
        if texts[0] != text:
            yield step(end, "change", creator, content=text)
        return
    for number, following in enumerate(texts[1:], 1):
        begun = 0.38 * (number - 1)
        yield step(between(start, approved, begun + 0.08), "submit", creator if number == 1 else _CHECKS)
        yield step(between(start, approved, begun + 0.1), "approve", approver, version=number)
        yield step(between(start, approved, begun + 0.12), "publish", creator, roles=[])
        yield step(between(start, approved, 0.8 * number / (len(texts) - 1)), "draft", _CHECKS, content=following)
    yield step(between(start, approved, 0.9), "submit", _CHECKS)
    yield step(approved, "approve", approver, version=int(record["currentVersion"]))
    is_retired = record["status"] == "RETIRED"
    published = record["lastReviewedAt"]
    yield step(published, "publish", creator, **({"roles": []} if is_retired else {}))
    if is_retired:
        yield step(between(approved, end, 0.9), "retire", creator)
        return
    reluctant = _story()["reluctant"].get(record["id"], ())
    for days, user in enumerate(one for one in (*_ASSESSORS, _DEPUTY) if one not in reluctant):
        version = int(record["currentVersion"])
        yield step(day_after(published, 1 + days), "acknowledge", user, version=version)
    if draft := _story()["drafts"].get(record["id"]):
        yield step(parse_timestamp(draft["written"]), "draft", draft["by"], content=draft["content"])
        if "submitted" in draft:
            yield step(parse_timestamp(draft["submitted"]), "submit", draft["by"])


def _texts(record: Values) -> Sequence[str]:
    """The texts of the versions of a policy, the last of which it has now."""
    text: str = record.get("content", "")
    if found := _story()["texts"].get(record["id"]):
        return [*found, text]
    first = "\n\n".join(text.split("\n\n")[:-1]) or text  # the last paragraph came later
    is_written_twice = "lastApprovedAt" not in record or record["currentVersion"] == "2"
    return [first, text] if is_written_twice else [text]


_OURS = (
    *("id", "organizationId", "shortId", "createdAt", "updatedAt", "archivedAt"),
    *("acceptedAt", "acceptedById", "verifiedAt", "verifiedById", "verifiedByName", "verificationNote"),
    *("finalizedAt", "finalizedBy", "lastAssessmentId"),
)


def _changes(kind: str, record: Values, final: Values, created: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What was changed of a record, by the moment."""
    start = record["createdAt"]
    end = record.get("updatedAt") or record.get("finishedAt") or start
    if end == record.get("archivedAt"):  # earlier changes have a closing date of their own
        dated = [str(final[name]) for name in _DATED if name in final]
        end = max([*(moment for moment in dated if start < moment < end), between(start, end, 0.6)])
    end = min(end, record.get("finalizedAt") or end)  # what a final record says does not change
    if end <= start:
        return {}
    changes: dict[str, dict[str, Any]] = {}

    def change(moment: str, name: str, value: Any) -> None:
        changes.setdefault(min(max(moment, start), end), {})[name] = value

    if meanwhile := _IN_BETWEEN.get((kind, final.get("status", ""))):
        change(between(start, end, 0.4), "status", meanwhile)
    if verified := record.get("verifiedAt"):  # it takes what is resolved
        change(between(start, verified, 0.8), "status", "RESOLVED")
    if record.get("verifiedAt") or record.get("finalizedAt"):
        by_steps = (("status", "VERIFIED"), ("status", "FINALIZED"))
        final = {name: value for name, value in final.items() if (name, value) not in by_steps}
    for name, (others, status) in _DATED.items():
        if (moment := final.get(name)) is None or moment <= start:
            continue
        for other in (name, *(one for one in others if one in final)):
            change(moment, other, final[other])
        if status and moment < end and status != record["status"]:
            change(moment, "status", status)
    for name in _LATER:
        if name in final:
            change(between(start, end, 0.5), name, final[name])
    earlier = _story()["earlier"].get(record["id"], {})
    for name, value in final.items():
        is_unknown = name.endswith("Id") and created.get(str(value), "") > start
        if is_unknown or name in earlier or (name == "status" and value != _FIRST_STATUS[kind]):
            change(end, name, value)
    last = changes.get(end, {})
    if not any(final[name] == value for name, value in last.items() if name in final) and record.get("updatedAt"):
        detail = next((name for name in _DETAILS if name in final), None)
        if detail is not None:
            change(end, detail, final[detail])
    return changes


def following(record_id: str) -> str | None:
    """The id of the record that follows a recurring one; null if the demo does not have it."""
    found: str | None = _story()["following"].get(record_id)
    return found


def files_of(step: Step) -> Sequence[str] | None:
    """The names of the files that a record has from a step on; null if it changes none."""
    versions = _story()["files"].get(step.record_id, ())
    number = ("create", "change").index(step.action) if step.action in {"create", "change"} else len(versions)
    return versions[number] if number < len(versions) else None


# --- Assessments


def assessments(
    rows: Sequence[Values], adopted: Mapping[str, str], framework: Mapping[str, str], findings: Sequence[Values]
) -> Iterator[Batch]:
    """The steps by which controls got the assessments in ``rows``, in the order of their moments.

    Every framework is assessed within ten months of its adoption (``adopted``, by id); ``framework`` has that of each
    control. A third of the full assessments were partial first, and controls with a finding were assessed as covered
    before it.
    """
    apart = _story()["assessed"]  # each by itself
    batches = [
        Batch(apart[row["controlId"]]["at"], apart[row["controlId"]]["by"], [_assessment(row)])
        for row in rows
        if row["controlId"] in apart
    ]
    found = {one["controlId"]: one["createdAt"] for one in findings if one.get("controlId")}
    for number, (framework_id, start) in enumerate(adopted.items()):
        assessed = [
            row
            for row in rows
            if framework[row["controlId"]] == framework_id and _says_something(row) and row["controlId"] not in apart
        ]
        size = -(-len(assessed) // 10)
        members = cycle(_ASSESSORS[number:] + _ASSESSORS[:number])
        for month, at in enumerate(range(0, len(assessed), size)):
            batch = assessed[at : at + size]
            moment = day_after(start, 14 + 28 * month)
            first = [{**row, **_ON_THE_WAY} if _was_partial(place, row) else row for place, row in enumerate(batch)]
            for place, row in enumerate(batch):
                if row["coverageStatus"] == "PARTIAL" and found.get(row["controlId"], "") > moment:
                    first[place] = {**row, **_AS_THOUGHT}
                    batches.append(Batch(found[row["controlId"]], OFFICER, [_assessment(row)]))
            later = [row for place, row in enumerate(batch) if _was_partial(place, row)]
            by = next(members)
            batches.append(Batch(moment, by, [_assessment(row) for row in first]))
            if later:
                batches.append(Batch(day_after(start, 25 + 28 * month), by, [_assessment(row) for row in later]))
    yield from sorted(batches, key=lambda batch: batch.moment)


_AS_THOUGHT = {"coverageStatus": "FULL", "coverageGap": None}
_ON_THE_WAY = {"coverageStatus": "PARTIAL", "coverageGap": "Written down and begun; not yet checked in practice."}


def _says_something(row: Values) -> bool:
    return bool(row["coverageStatus"] or row.get("coverageGap"))


def _was_partial(place: int, row: Values) -> bool:
    return place % 3 == 0 and row["coverageStatus"] == "FULL"


def _assessment(row: Values) -> Values:
    return {name: row.get(name) for name in ("controlId", "coverageStatus", "coverageGap")}


# --- Versions of the statement of applicability


class Statement(NamedTuple):
    """A version that somebody made some days after the end, or, without a title, approved."""

    days: int
    by: str
    title: str | None = None
    framework_id: str = ""
    approver_id: str | None = None


def statements() -> list[Statement]:
    """The versions that were made, and the approval of each after it."""
    return [Statement(**one) for one in _story()["statements"]]


# --- Notifications


def readings(until: str) -> Iterator[tuple[str, str]]:
    """When each user reads their notifications: every month; the demo's user not in the two before ``until``."""
    for number, user in enumerate((_DEPUTY, *_ASSESSORS)):
        days = range(40 + number, (parsed(until) - parsed(_FIRST_READING)).days - (60 if user == _DEPUTY else 5), 30)
        yield from ((day_after(_FIRST_READING, day), user) for day in days)


_FIRST_READING = "2025-01-13T06:40:00.000Z"


# --- Moments


def with_milliseconds(record: Values) -> Values:
    """A record with its moments in the program's format, so that they compare as texts."""
    return {name: parse_timestamp(value) if _is_moment(value) else value for name, value in record.items()}


def _is_moment(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", value) is not None


def reminder_days(records: Mapping[str, Sequence[Values]], until: str) -> list[str]:
    """The mornings of the seventh day before a record's due date, and of the due date itself, up to a moment."""
    names = ("deadline", "dueDate", "nextReviewAt", "contractExpiry", "notificationDeadline", "started")
    due = {str(one[name])[:10] for array in records.values() for one in array for name in names if one.get(name)}
    days = {date.fromisoformat(day) - timedelta(days=before) for day in due for before in (7, 0)}
    mornings = (f"{day.isoformat()}T05:00:00.000Z" for day in sorted(days))
    return [morning for morning in mornings if morning <= until]
