"""A policy from its draft to the version in force, the next one and its end, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from threading import Barrier
from typing import Any

import pytest

from normata.cli.check import faults
from normata.events.content import values_of
from normata.operations import SECURITY
from normata.policies.model import PolicyVersion
from tests import stored
from tests.policies.steps import APPROVER, TEXT, Policies
from tests.served import refused
from tests.world import ALPHA


def test_from_a_draft_to_the_second_version_in_force(policies: Policies) -> None:
    policy = policies.make()
    submitted = policies.done("submit", policy)
    assert submitted["status"] == "IN_REVIEW"
    assert policies.draft(policy).json()["number"] == 1
    approved = policies.done("approve", policy, "viewer", version=1)
    known = {name: approved[name] for name in ("status", "currentVersion", "lastApprovedBy", "content")}
    assert known == {"status": "APPROVED", "currentVersion": "1", "lastApprovedBy": "Viewer", "content": TEXT}
    assert approved["lastApprovedAt"] == approved["updatedAt"]
    assert policies.done("publish", policy)["status"] == "PUBLISHED"
    # The next text leaves what is in force as it is, until it is published.
    next_text = TEXT.replace("door", "doors and windows")
    draft = policies.draft(policy, "PUT", content=next_text).json()
    assert (draft["state"], draft["number"], draft["content"]) == ("DRAFT", None, next_text)
    assert policies.approved(policy, 2) == policies.read(policy)
    before = policies.read(policy)
    assert (before["status"], before["currentVersion"], before["content"]) == ("PUBLISHED", "1", TEXT)
    after = policies.done("publish", policy)
    assert (after["status"], after["currentVersion"], after["content"]) == ("PUBLISHED", "2", next_text)
    second, first = policies.versions(policy)
    assert (second["number"], second["state"], first["state"]) == (2, "PUBLISHED", "SUPERSEDED")
    assert (first["content"], first["changes"]) == (TEXT, None)
    assert second["changes"] == [
        {"change": "REMOVED", "paragraph": 2, "text": "Lock the door."},
        {"change": "ADDED", "paragraph": 2, "text": "Lock the doors and windows."},
    ]
    assert second["contentSha256"] == sha256(next_text.encode()).hexdigest()
    people = ("editedById", "submittedById", "approvedById")
    assert [second[name] for name in people] == ["member-editor", "member-editor", APPROVER]
    assert [first[name] for name in people] == ["member-admin", "member-editor", APPROVER]
    assert policies.done("retire", policy)["status"] == "RETIRED"
    assert policies.events(policy) == [
        *("create", "submit", "approve", "publish", "draft", "submit", "approve", "publish", "retire"),
    ]
    [event] = [one for one in stored.events(policies.service.database, entity_id=policy) if one["action"] == "retire"]
    assert values_of(event["body"])["counts"] == {"version": 2, "contentSha256": second["contentSha256"]}
    database = policies.service.database
    assert database.read_now(lambda transaction: list(faults(database, transaction, SECURITY))) == []


def test_what_is_rejected_or_withdrawn_is_a_draft_again(policies: Policies) -> None:
    policy = policies.make()
    policies.done("submit", policy)
    assert refused(policies.change(policy, content="Other."), 409, "wrong_state")["state"] == "IN_REVIEW"
    assert policies.change(policy, order=7).status_code == 200
    rejected = policies.done("reject", policy, "viewer", version=1, reason=" Say who. ")
    assert rejected["status"] == "DRAFT"
    [event] = [one for one in stored.events(policies.service.database, entity_id=policy) if one["action"] == "reject"]
    assert values_of(event["body"])["reason"] == "Say who."
    assert policies.change(policy, content="Other.", title="All doors").json()["content"] == "Other."
    policies.done("submit", policy)
    # What was read was another text.
    for step in ({"name": "approve"}, {"name": "reject", "reason": "No."}):
        assert (
            refused(policies.step(policy=policy, user="viewer", version=1, **step), 409, "wrong_version")["version"]
            == 2
        )
    assert policies.done("withdraw", policy)["status"] == "DRAFT"
    approved = policies.approved(policy, 3)
    assert (approved["content"], approved["currentVersion"]) == ("Other.", "3")
    [only] = policies.versions(policy)
    assert (only["number"], only["title"]) == (3, "All doors")
    # The same for the draft of the next version, which can be given up as well.
    policies.draft(policy, "PUT", content="Next.")
    policies.done("submit", policy)
    refused(policies.draft(policy, "PUT", content="Later."), 409, "wrong_state")
    refused(policies.draft(policy, "DELETE"), 409, "wrong_state")
    policies.done("reject", policy, "viewer", version=4, reason="No.")
    assert policies.draft(policy).json()["reason"] == "No."
    assert policies.draft(policy, "DELETE").status_code == 200
    refused(policies.draft(policy), 404, "not_found")
    refused(policies.draft(policy, "DELETE"), 404, "not_found")
    policies.draft(policy, "PUT", content="Again.")
    assert policies.approved(policy, 5)["currentVersion"] == "5"
    assert [one["number"] for one in policies.versions(policy)] == [5, 3]


_STEPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("submit", "editor", {}),
    ("withdraw", "editor", {}),
    ("approve", "viewer", {"version": 1}),
    ("reject", "viewer", {"version": 1, "reason": "No."}),
    ("publish", "editor", {}),
    ("review", "viewer", {}),
    ("retire", "editor", {}),
)
_FROM = {
    "submit": ["DRAFT"],
    "withdraw": ["IN_REVIEW"],
    "approve": ["IN_REVIEW"],
    "reject": ["IN_REVIEW"],
    "publish": ["APPROVED"],
    "review": ["APPROVED", "PUBLISHED"],
    "retire": ["APPROVED", "PUBLISHED"],
}


def test_each_step_names_the_state_that_it_is_refused_from(policies: Policies) -> None:
    policy = policies.make()
    for state, made in (
        ("DRAFT", lambda: None),
        ("IN_REVIEW", lambda: policies.done("submit", policy)),
        ("APPROVED", lambda: policies.done("approve", policy, "viewer", version=1)),
        ("PUBLISHED", lambda: policies.done("publish", policy)),
        ("RETIRED", lambda: policies.done("retire", policy)),
    ):
        made()
        for step, user, body in _STEPS:
            answer = policies.step(step, policy, user, query={"dryRun": "true"}, **body)
            if state in _FROM[step]:
                assert answer.status_code == 200, (step, state, answer.text)
            else:
                problem = refused(answer, 409, "wrong_state")
                assert (problem["state"], problem["allowed"]) == (state, _FROM[step]), step
        assert policies.read(policy)["status"] == state
    archived = policies.service.client.post(f"/policies/{policy}/archive/", headers=policies.headers("editor"))
    assert archived.status_code == 200
    for step, user, body in _STEPS:
        refused(policies.step(step, policy, user, **body), 409, "archived")
    refused(policies.draft(policy, "PUT", content=""), 409, "archived")


def test_who_approves(policies: Policies) -> None:
    policy = policies.make()
    policies.done("submit", policy)
    for user in ("owner", "admin", "editor"):
        for step, body in (("approve", {}), ("reject", {"reason": "No."})):
            assert (
                "approver" in refused(policies.step(step, policy, user, version=1, **body), 403, "forbidden")["detail"]
            )
    refused(policies.step("approve", policy, "foreigner", version=1), 404, "not_found")
    # Nobody their own work, unless the organization allows it.
    own = policies.make("admin", approverId="member-admin")
    policies.done("submit", own, "editor")
    assert "last edited" in refused(policies.step("approve", own, "admin", version=1), 403, "forbidden")["detail"]
    allowed = {"allowsSelfApproval": True}
    answer = policies.service.client.patch(f"/organizations/{ALPHA}/", json=allowed, headers=policies.headers("admin"))
    assert answer.json()["allowsSelfApproval"] is True
    assert policies.done("approve", own, "admin", version=1)["status"] == "APPROVED"


def test_nobody_approves_their_own_work_behind_a_service_account(policies: Policies) -> None:
    """An admin may make one, and have it write and submit what they have written themselves."""
    policies.hire("robot")
    policy = policies.make("admin", approverId="member-admin")
    assert policies.change(policy, "robot", content=f"{TEXT} ").status_code == 200
    policies.done("submit", policy, "robot")
    assert "last edited" in refused(policies.step("approve", policy, "admin", version=1), 403, "forbidden")["detail"]
    policies.done("withdraw", policy)
    assert policies.change(policy, content=TEXT).status_code == 200
    policies.done("submit", policy, "robot")
    policies.done("approve", policy, "admin", version=2)
    for user in ("admin", "robot"):
        assert policies.draft(policy, "PUT", user, content=f"By {user}").status_code == 200
    policies.done("submit", policy, "robot")
    refused(policies.step("approve", policy, "admin", version=3), 403, "forbidden")


def test_nobody_approves_what_an_account_of_theirs_has_written(policies: Policies) -> None:
    """Whoever made it, or the token that it used, may have done it all."""
    client, admin = policies.service.client, policies.headers("admin")
    made = client.post(
        "/service-accounts/", json={"organizationId": ALPHA, "name": "Writer", "role": "editor"}, headers=admin
    ).json()
    for user in ("admin", "owner"):
        answer = client.post(
            f"/service-accounts/{made['id']}/tokens/",
            json={"scope": "write", "name": user},
            headers=policies.headers(user),
        )
        assert answer.status_code == 201, answer.text
        policies.allow(f"writer-{user}", answer.json()["token"])
        policy = policies.make(f"writer-{user}", approverId=None)
        assert policies.change(policy, approverId=f"member-{user}", user="owner").status_code == 200
        policies.done("submit", policy, f"writer-{user}")
        assert (
            "service account" in refused(policies.step("approve", policy, user, version=1), 403, "forbidden")["detail"]
        )


def test_the_title_is_frozen_in_review(policies: Policies) -> None:
    policy = policies.make()
    assert policies.change(policy, title="Gates").status_code == 200
    policies.done("submit", policy)
    assert refused(policies.change(policy, title="Doors"), 409, "wrong_state")["state"] == "IN_REVIEW"
    assert policies.change(policy, order=3).status_code == 200
    policies.done("approve", policy, "viewer", version=1)
    assert policies.change(policy, title="Doors").status_code == 200
    policies.draft(policy, "PUT", content="Next.")
    policies.done("submit", policy)
    assert refused(policies.change(policy, title="Gates"), 409, "wrong_state")["allowed"] == ["DRAFT"]
    policies.done("withdraw", policy)
    assert policies.change(policy, title="Gates").status_code == 200


@pytest.mark.parametrize("approver", [None, "member-auditor", f"member-robot-{ALPHA}"])
def test_without_somebody_who_can_approve_nothing_is_submitted(approver: str | None, policies: Policies) -> None:
    policies.service.load({"policies": [{"id": "p", "organizationId": ALPHA, "title": "P", "approverId": approver}]})
    refused(policies.step("submit", "p"), 409, "no_approver")


def test_an_admin_names_the_approver_on_every_way(policies: Policies) -> None:
    service, editor = policies.service, policies.headers("editor")
    body = {"organizationId": ALPHA, "title": "Doors"}
    assert service.client.post("/policies/", json=body | {"approverId": None}, headers=editor).status_code == 201
    refused(service.client.post("/policies/", json=body | {"approverId": APPROVER}, headers=editor), 403, "forbidden")
    policy = policies.make()
    other = {"approverId": "member-owner"}
    refused(policies.change(policy, **other), 403, "forbidden")
    assert policies.change(policy, approverId=APPROVER, title="Gates").status_code == 200
    many = {"organizationId": ALPHA, "records": [{"kind": "policies", "id": policy}], "values": other}
    refused(service.client.post("/changes/", json=many, headers=editor), 403, "forbidden")
    assert service.client.post("/changes/", json=many, headers=policies.headers("admin")).status_code == 200
    policies.done("submit", policy)
    for answer in (
        policies.change(policy, "admin", approverId=APPROVER),
        service.client.post(
            "/changes/", json=many | {"values": {"approverId": None}}, headers=policies.headers("admin")
        ),
    ):
        assert refused(answer, 409, "wrong_state")["state"] == "IN_REVIEW"
    handed, path = {"toMemberId": APPROVER, "kinds": ["policies"]}, "/members/member-owner/handover/"
    answer = service.client.post(path, json=handed, headers=policies.headers("admin"))
    assert refused(answer, 409, "wrong_state")["state"] == "IN_REVIEW"
    policies.done("withdraw", policy)
    refused(service.client.post(path, json=handed, headers=editor), 403, "forbidden")
    for state in ("reviewed", "rejected", "withdrawn"):  # those of the world that are in review
        policies.done("withdraw", f"policies-{state}-{ALPHA}")
    assert service.client.post(path, json=handed, headers=policies.headers("admin")).json()["left"] == 0
    assert policies.read(policy)["approverId"] == APPROVER


def test_what_follows_from_steps_is_not_written_by_hand(policies: Policies) -> None:
    policy = policies.make()
    published = policies.published(policy)
    others = {"status": "DRAFT", "currentVersion": "9", "lastApprovedAt": None, "lastApprovedBy": "Somebody"}
    for name, value in others.items():
        [fault] = refused(policies.change(policy, "owner", **{name: value}), 400, "validation")["errors"]
        assert (fault["name"], fault["code"]) == (name, "read_only")
    assert policies.change(policy, **{name: published[name] for name in (*others, "content")}).json() == published
    problem = refused(policies.change(policy, "owner", content="Other."), 409, "wrong_state")
    assert problem["state"] == "PUBLISHED"
    assert f"/policies/{policy}/draft/" in problem["detail"]


def test_of_two_approvals_at_once_one_succeeds(policies: Policies) -> None:
    policy = policies.make()
    policies.done("submit", policy)
    policies.headers("viewer")
    together = Barrier(2)

    def approve(_: int) -> int:
        together.wait()
        return policies.step("approve", policy, "viewer", version=1).status_code

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(approve, range(2))) == [200, 409]
    assert policies.events(policy).count("approve") == 1
    assert [one["state"] for one in stored.rows(policies.service.database, PolicyVersion, policy_id=policy)] == [
        "APPROVED"
    ]


def test_a_policy_that_was_loaded_as_approved_begins_with_an_imported_version(policies: Policies) -> None:
    known = {"organizationId": ALPHA, "title": "P", "approverId": APPROVER, "content": TEXT}
    approval = {"lastApprovedAt": "2025-10-13T11:08:28.000Z", "lastApprovedBy": "Somebody", "currentVersion": "3.2"}
    policies.service.load({"policies": [known | approval | {"id": "p", "status": "PUBLISHED"}]})
    before = policies.read("p")
    assert {name: before[name] for name in approval} == approval
    [version] = policies.versions("p")
    assert (version["number"], version["state"], version["isImported"]) == (3, "PUBLISHED", True)
    assert (version["approvedAt"], version["approvedById"]) == (approval["lastApprovedAt"], None)
    policies.draft("p", "PUT", content="Next.")
    assert policies.published("p", 4)["currentVersion"] == "4"
    policies.service.load({"policies": [known | {"id": "q", "status": "IN_REVIEW", "slug": "q"}]})
    assert policies.done("approve", "q", "viewer", version=1)["status"] == "APPROVED"


def test_a_step_with_a_key_is_done_once(policies: Policies) -> None:
    policy = policies.make()
    headers = policies.headers("editor") | {"Idempotency-Key": "once"}
    path = f"/policies/{policy}/submit/"
    first, again = (policies.service.client.post(path, headers=headers) for _ in range(2))
    assert (first.status_code, again.status_code, again.json()) == (200, 200, first.json())
    assert policies.events(policy).count("submit") == 1
