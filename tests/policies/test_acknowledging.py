"""Who is asked to acknowledge a published policy, who has done it, and when the next review is due; both databases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from normata.core.changes.jobs import DueJob, Job
from normata.core.changes.unit_of_work import Actor, UnitOfWork, follow
from normata.core.db.transaction import Transaction
from normata.notifications.model import Notification
from normata.policies import acknowledging
from normata.policies.acknowledging import ACKNOWLEDGEMENT_JOBS
from normata.policies.model import PolicyVersion
from normata.wiring import SUBSCRIBERS
from tests import stored
from tests.policies.steps import Policies
from tests.served import refused
from tests.world import ALPHA

PEOPLE = ["member-admin", "member-editor", "member-owner", "member-viewer"]


def _run(policies: Policies, policy: str, moment: str) -> str | None:
    """Run the job of the published version at a moment; when it is due again."""
    [version] = stored.rows(policies.service.database, PolicyVersion, policy_id=policy, state="PUBLISHED")
    job = DueJob(ALPHA, ACKNOWLEDGEMENT_JOBS.name, version["id"], 1, "claim", moment)

    def work(transaction: Transaction) -> str | None:
        actor = Actor(command=ACKNOWLEDGEMENT_JOBS.name)
        unit = UnitOfWork(transaction, actor, None, ACKNOWLEDGEMENT_JOBS.writes, moment)
        following = ACKNOWLEDGEMENT_JOBS.run(unit, job)
        follow(unit, SUBSCRIBERS)
        return following

    return policies.service.database.write_now(work)


def _asked(policies: Policies, key: str = "acknowledge") -> list[str]:
    rows = stored.rows(policies.service.database, Notification, type=f"policy.{key}")
    return sorted(str(row["user_id"]) for row in rows)


def _listed(policies: Policies, policy: str, **query: Any) -> Any:
    path = f"/policies/{policy}/acknowledgements/"
    params = {"organizationId": ALPHA} | query
    return policies.service.client.get(path, params=params, headers=policies.headers("auditor")).json()


def test_members_are_asked_reminded_and_listed(policies: Policies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acknowledging, "AT_ONCE", 3)
    policy = policies.make()
    published = policies.published(policy)
    [job] = stored.rows(policies.service.database, Job, type=ACKNOWLEDGEMENT_JOBS.name)
    assert (job["owner"], job["due_at"]) == (ALPHA, published["updatedAt"])
    now = "2126-01-01T00:00:00.000Z"
    assert _run(policies, policy, now) == now
    assert _run(policies, policy, now) == "2126-01-02T00:00:00.000Z"
    assert _asked(policies) == [f"user-{member.removeprefix('member-')}" for member in PEOPLE]
    listed = _listed(policies, policy)
    assert (listed["version"], [one["memberId"] for one in listed["items"]]) == (1, PEOPLE)
    assert {one["requestedAt"] for one in listed["items"]} == {now}
    done = policies.done("acknowledge", policy, "viewer", version=1)
    assert policies.done("acknowledge", policy, "viewer", version=1) == done
    assert policies.events(policy).count("acknowledge") == 1
    assert refused(policies.step("acknowledge", policy, "viewer", version=2), 409, "wrong_version")["version"] == 1
    refused(policies.step("acknowledge", policy, "foreigner", version=1), 404, "not_found")
    refused(policies.step("acknowledge", policy, "auditor", version=1), 403, "forbidden")
    [mine] = _listed(policies, policy, state="DONE")["items"]
    assert (mine["memberId"], mine["acknowledgedVersion"]) == ("member-viewer", 1)
    assert _listed(policies, policy, state="OPEN")["total"] == 3
    assert _listed(policies, policy, memberId="member-viewer")["items"] == [mine]
    # Those who have not are reminded after a week, and not twice.
    week = "2126-01-08T00:00:00.000Z"
    assert _run(policies, policy, week) == week
    assert _run(policies, policy, week) != week
    assert _asked(policies, "acknowledge_again") == ["user-admin", "user-editor", "user-owner"]
    # The next version is another one to be read. Only viewers are asked for it.
    policies.draft(policy, "PUT", content="Next.")
    policies.approved(policy, 2)
    policies.done("publish", policy, acknowledgingRoles=["viewer"])
    [mine] = _listed(policies, policy)["items"]
    assert (mine["acknowledgedAt"], mine["acknowledgedVersion"]) == (None, 1)
    assert refused(policies.step("acknowledge", policy, "viewer", version=1), 409, "wrong_version")["version"] == 2
    policies.done("retire", policy)
    refused(policies.step("acknowledge", policy, "viewer", version=2), 409, "wrong_state")


def test_nobody_is_requested_where_nobody_is_named(policies: Policies) -> None:
    policy = policies.make()
    policies.approved(policy)
    policies.done("publish", policy, acknowledgingRoles=[])
    assert stored.rows(policies.service.database, Job, type=ACKNOWLEDGEMENT_JOBS.name) == []
    assert _listed(policies, policy)["items"] == []


@pytest.mark.parametrize(
    ("last", "following", "months"),
    [("2026-01-31", "2026-07-31", 6), (None, "2026-07-31", 12), ("2025-02-28", "2026-02-28", 12), (None, None, None)],
)
def test_a_publication_moves_the_next_review(
    last: str | None, following: str | None, months: int | None, policies: Policies
) -> None:
    policy = policies.make(lastReviewedAt=last, nextReviewAt=following)
    published = policies.published(policy)
    assert published["lastReviewedAt"] == published["updatedAt"]
    if months is None:
        assert published["nextReviewAt"] is None
        return
    year, month = (int(part) for part in published["updatedAt"][:7].split("-"))
    year, month = divmod(year * 12 + month - 1 + months, 12)
    assert published["nextReviewAt"].startswith(f"{year}-{month + 1:02}")


def test_an_editor_reminds_those_who_have_not(policies: Policies, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policies.make()
    refused(policies.step("remind", policy), 409, "wrong_state")
    policies.published(policy)
    assert policies.done("remind", policy) == {"reminded": 0, "hasMore": False}  # nobody was asked yet
    _run(policies, policy, "2026-01-01T00:00:00.000Z")
    policies.done("acknowledge", policy, "viewer", version=1)
    refused(policies.step("remind", policy, "viewer"), 403, "forbidden")
    refused(policies.step("remind", policy, "foreigner"), 404, "not_found")
    tried = policies.step("remind", policy, query={"dryRun": "true"})
    assert tried.json()["answer"] == {"reminded": 3, "hasMore": False}
    monkeypatch.setattr(acknowledging, "AT_ONCE", 2)
    assert policies.done("remind", policy) == {"reminded": 2, "hasMore": True}
    assert policies.done("remind", policy) == {"reminded": 1, "hasMore": False}
    assert policies.done("remind", policy) == {"reminded": 0, "hasMore": False}  # nobody twice within a day
    assert sorted(_asked(policies, "acknowledge_again")) == ["user-admin", "user-owner"]  # and not who reminds
    assert policies.events(policy).count("ask_again") == 2


def test_a_review_that_changes_nothing_moves_the_next_one(policies: Policies) -> None:
    dates = {"lastReviewedAt": "2026-01-10T00:00:00.000Z", "nextReviewAt": "2026-07-10T08:00:00.000Z"}
    policy = policies.make(**dates)
    approved = policies.approved(policy)
    for user in ("editor", "auditor"):
        refused(policies.step("review", policy, user), 403, "forbidden")
    policies.hire("robot")
    policies.service.sql(f"UPDATE membership SET role = 'admin' WHERE id = 'member-robot-{ALPHA}'")
    refused(policies.step("review", policy, "robot"), 403, "forbidden")
    reviewed = policies.done("review", policy, "viewer", note="Nothing to change.")  # who is the approver
    at = reviewed["updatedAt"]
    year, month = divmod(int(at[:4]) * 12 + int(at[5:7]) - 1 + 6, 12)
    assert reviewed["nextReviewAt"].startswith(f"{year}-{month + 1:02}")
    changed = {name for name, value in reviewed.items() if value != approved[name]}
    assert changed == {"lastReviewedAt", "nextReviewAt", "updatedAt"}
    assert reviewed["lastReviewedAt"] == at
    [event] = stored.events(policies.service.database, entity_id=policy, action="review")
    body = json.loads(event["body"])
    assert (body["counts"]["version"], body["reason"]) == (1, "Nothing to change.")
    assert policies.done("review", policy, "admin")["nextReviewAt"] == reviewed["nextReviewAt"]
