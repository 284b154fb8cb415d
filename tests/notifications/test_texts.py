"""The English texts: one for each key that a rule can make, and none besides; what they fill in is there."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from normata.comments.model import Comment
from normata.core.changes.unit_of_work import Actor, Change
from normata.core.db.database import Database
from normata.core.schema.wire import columns
from normata.coverage.lapses import LAPSES
from normata.coverage.published import ConflictsFound, CoverageLost, RulesChanged, WordingsChanged
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage
from normata.identity.mail_choices import NOTIFICATION_TYPES
from normata.links.model import Link
from normata.notifications.about_records import Reminded, Which
from normata.notifications.message import Message
from normata.notifications.model import NotificationPayload
from normata.notifications.subscriber import RULES
from normata.notifications.texts import ENGLISH
from normata.policies.acknowledgement_model import Acknowledgement
from normata.policies.acknowledging import AcknowledgementsRequested
from normata.policies.versions import PolicyStep
from normata.records.assurance import VendorAssessment
from normata.records.base import Restorable
from normata.records.due.queries import due_dates
from normata.records.kinds import Finding, Policy, Record, Task
from normata.soa_versions.model import SoaVersion
from normata.webhooks.model import Webhook
from tests import stored
from tests.databases import change, open_url
from tests.served import Served
from tests.world import ALPHA, USERS, record_id

TEXTS: dict[str, str] = json.loads(ENGLISH.read_text("utf-8"))
_STEPS: dict[type[Restorable], tuple[str, ...]] = {
    Finding: ("verify",),
    Record: ("finalize",),
    VendorAssessment: ("submit",),
}
WHICHES: tuple[Which, ...] = ("soon", "now")
SOMEBODY = Actor("user-editor", "Editor", "token", "request")
JOB = Actor(command=LAPSES.name)


@pytest.fixture(scope="module")
def world(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """The test world, in which somebody owns a record of each kind without a column for that."""
    opened = open_url(f"sqlite:///{shutil.copy(sqlite_template, tmp_path_factory.mktemp('texts') / 'world.db')}")
    kinds = [kind for kind in Restorable.kinds if kind.responsible is None]
    link = {"organizationId": ALPHA, "fromKind": "memberships", "fromId": "member-viewer", "relation": "OWNS"}
    rows = {kind.path: [{"id": "row", "organizationId": ALPHA, kind.title_column(): "Row"}] for kind in kinds}
    rows["links"] = [link | {"id": kind.path, "toKind": kind.path, "toId": "row"} for kind in kinds]
    stored.load(opened, rows)
    yield opened
    opened.close()


def changes() -> Iterator[Change]:
    """A change of each sort that a rule takes, of each kind, about which somebody is to be told."""
    for kind in Restorable.kinds:
        row = {column.name: "2026-11-20T00:00:00.000Z" for column in columns(kind)}
        row |= {"id": "row", "organization_id": ALPHA}
        if kind.responsible is None:
            ends = {"from_kind": "memberships", "from_id": "member-viewer", "to_kind": kind.path, "to_id": "row"}
            yield Change("create", Link, ALPHA, kind.path, ends | {"relation": "OWNS"})
        for action in ("create", "update", "archive", "restore", *_STEPS.get(kind, ())):
            yield Change(action, kind, ALPHA, "row", row, dict.fromkeys(row))
        for date in due_dates():
            for which in WHICHES if date.kind is kind else ():
                yield Reminded("remind", kind, ALPHA, "row", row, row, what=date.column, which=which)
    comment = {"id": "row", "organization_id": ALPHA, "about_kind": "tasks", "about_id": record_id(Task, "live")}
    yield Change("create", Comment, ALPHA, "row", comment | {"text": f"@{USERS['viewer']}, what do you think?"})
    version = {"id": "row", "title": "For the audit", "approver_id": "member-viewer"}
    yield Change("create", SoaVersion, ALPHA, "row", version)
    policy = {"id": f"policies-reviewed-{ALPHA}", "title": "Doors", "approver_id": "member-viewer"}
    for action in ("submit", "approve", "reject"):
        step = PolicyStep(action, Policy, ALPHA, policy["id"], policy, policy, counts={"version": 1})
        yield replace(step, submitted_by_id="member-viewer")
    for action in ("ask", "ask_again"):
        yield AcknowledgementsRequested(
            action, Acknowledgement, ALPHA, policy=policy, number=1, member_ids=["member-viewer"]
        )
    assessment = {"control_id": "sun.A.1", "owner_id": "member-viewer", "review_by": "2026-11-20T00:00:00.000Z"}
    yield Change("assess", ControlCoverage, ALPHA, "say-sun.A.1", assessment)
    for which in WHICHES:
        yield Reminded(
            "remind", ControlCoverage, ALPHA, "say-sun.A.1", assessment, assessment, what="review_by", which=which
        )
    yield CoverageLost("lose", EffectiveCoverage, ALPHA, controls=("sun.A.1", "moon.A.2"))
    yield ConflictsFound("conflict", EffectiveCoverage, ALPHA, controls=("sun.A.1", "moon.A.2"))
    yield WordingsChanged("reword", Control, ALPHA, counts={}, stale=("sun.A.1", "moon.A.2"))
    yield RulesChanged("compute", ControlCoverage, ALPHA)
    for stop in ("FAILED", "GONE"):
        webhook = {"id": "row", "origin": "https://receiver.example", "disabled_reason": stop}
        yield Change("disable", Webhook, ALPHA, "row", webhook, webhook)


def payloads(database: Database) -> list[dict[str, Any]]:
    """What is told of each of these changes."""
    return [message.payload for message in messages(database)]


def messages(database: Database) -> list[Message]:
    """The notifications of each of these changes."""
    return change(
        database,
        lambda unit: [
            message
            for one in changes()
            for actor in ((SOMEBODY, JOB) if one.action == "lose" else (SOMEBODY,))
            for message in RULES[one.action](unit, one, actor)
        ],
    )


def test_every_rule_is_asked() -> None:
    assert {one.action for one in changes()} == RULES.keys(), "make a change of each action above"


def test_each_key_has_a_text_and_each_text_a_key(world: Database) -> None:
    made = {payload[name] for payload in payloads(world) for name in ("titleKey", "bodyKey")}
    assert made == TEXTS.keys()


def test_people_can_choose_when_each_type_is_mailed(world: Database) -> None:
    assert {message.type for message in messages(world)} == set(NOTIFICATION_TYPES)


def test_what_a_text_fills_in_is_among_the_params(world: Database) -> None:
    """And a title, or its body, uses each: a param that no text shows would be of no use."""
    found = payloads(world)
    assert len(found) > 40
    for payload in found:
        NotificationPayload.model_validate(payload)
        used: set[str] = set()
        for name in ("titleKey", "bodyKey"):
            text = TEXTS[payload[name]]
            used |= {field for _, field, _, _ in Formatter().parse(text) if field is not None}
            assert text.format(**payload["params"]).strip()
        assert used <= payload["params"].keys()
        assert used >= payload["params"].keys() - {"dueOn", "dueAt"}


def test_texts_are_sentences() -> None:
    for key, text in TEXTS.items():
        assert re.fullmatch(r"notifications\.[a-z_]+\.[a-z_]+\.(title|body)", key)
        assert text.endswith(".") == key.endswith(".body"), text


@pytest.mark.parametrize("path", ["/notifications/texts/", "/notifications/texts"])
def test_everybody_may_fetch_them(path: str, shared: Served) -> None:
    response = shared.client.get(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"].startswith("public")
    assert response.json() == TEXTS
    tag = response.headers["etag"]
    again = shared.client.get(path, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
