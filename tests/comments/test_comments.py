"""Comments on records and controls: who writes them, who is notified, and what stays of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from httpx2 import Response

from normata.comments.model import Comment
from normata.identity.tokens import tokens
from normata.links.model import OWNS
from normata.notifications.about_comments import mentioned_names
from normata.notifications.model import Notification
from normata.records.kinds import Finding, Task
from normata.wiring import changes_of
from tests import stored
from tests.records.living import make
from tests.served import Served, refused
from tests.world import ALPHA

_VIEWER = {"memberId": "member-viewer", "userId": "user-viewer", "name": "Viewer"}
CONTROL = {"kind": "controls", "id": "sun.A.1"}


def _write(service: Served, about: dict[str, str], text: str = "Well", user: str = "editor") -> Response:
    body = {"organizationId": ALPHA, "about": about, "text": text}
    return service.client.post("/comments/", json=body, headers=service.bearer(user))


def _made(service: Served, about: dict[str, str], text: str = "Well", user: str = "editor") -> dict[str, Any]:
    answer = _write(service, about, text, user)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def _task(service: Served, **values: Any) -> dict[str, str]:
    made = make(service, Task, service.bearer("editor"), title="Count the keys", **values).json()
    return {"kind": "tasks", "id": made["id"]}


def _notified(service: Served, about: dict[str, str]) -> set[tuple[str, str]]:
    found = stored.rows(service.database, Notification)
    return {(row["user_id"], row["type"]) for row in found if row["payload"]["entityId"] == about["id"]}


def _items(service: Served, **query: str) -> list[dict[str, Any]]:
    query = {"organizationId": ALPHA, **query}
    answer = service.client.get("/comments/", params=query, headers=service.bearer("auditor"))
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_everybody_but_an_auditor_writes_and_all_read(service: Served) -> None:
    about = _task(service)
    refused(_write(service, about, user="auditor"), 403, "forbidden")
    refused(_write(service, about, user="foreigner"), 404, "not_found")
    first, second = _made(service, about, "First", "viewer"), _made(service, about, "Second")
    assert _items(service, **about) == [first, second]
    assert (first["author"], first["about"]) == (_VIEWER, about)
    assert [one["id"] for one in _items(service)][:2] == [second["id"], first["id"]]
    assert stored.events(service.database, entity_id=first["id"])[0]["action"] == "create"


def test_only_its_author_changes_or_removes_it(service: Served) -> None:
    client, mine = service.client, service.bearer("viewer")
    comment = _made(service, _task(service), "Fisrt", "viewer")
    path = f"/comments/{comment['id']}/"
    for user in ("owner", "editor"):
        refused(client.patch(path, json={"text": "Other"}, headers=service.bearer(user)), 403, "forbidden")
        refused(client.delete(path, headers=service.bearer(user)), 403, "forbidden")
    refused(client.patch(path, json={"text": "Other"}, headers=service.bearer("foreigner")), 404, "not_found")
    stale = client.patch(path, json={"text": "Other"}, headers=mine | {"If-Match": '"other"'})
    refused(stale, 412, "precondition_failed")
    changed = client.patch(path, json={"text": "First"}, headers=mine).json()
    assert changed == comment | {"text": "First", "updatedAt": changed["updatedAt"]}
    assert changed["updatedAt"] > comment["updatedAt"]
    assert client.delete(path, headers=mine).json() is None
    refused(client.delete(path, headers=mine), 404, "not_found")
    events = stored.events(service.database, entity_id=comment["id"])
    assert [event["action"] for event in events] == ["create", "update", "delete"]
    assert "Fisrt" in events[1]["body"]
    assert "First" in events[2]["body"]


@pytest.mark.parametrize(
    ("about", "place"),
    [
        ({"kind": "tasks", "id": "nothing"}, "about/id"),
        ({"kind": "tasks", "id": "tasks-live-org-beta"}, "about/id"),
        ({"kind": "controls", "id": "foreign.A.1"}, "about/id"),
        ({"kind": "memberships", "id": "member-editor"}, "about/kind"),
    ],
)
def test_what_one_cannot_comment_on(about: dict[str, str], place: str, service: Served) -> None:
    before = stored.rows(service.database, Comment)
    [fault] = refused(_write(service, about), 400, "validation")["errors"]
    assert fault["name"] == place
    for text in ("", "  \n "):
        refused(_write(service, CONTROL, text), 400, "validation")
    refused(_write(service, {"kind": "tasks", "id": f"tasks-archived-{ALPHA}"}), 409, "archived")
    assert stored.rows(service.database, Comment) == before
    assert stored.events(service.database, organization_id=ALPHA) == []


def test_who_follows_is_notified(service: Served) -> None:
    about = _task(service, assigneeMemberId="member-admin")
    _made(service, about, "Does it matter?", "viewer")
    assert _notified(service, about) >= {("user-admin", "comment.commented")}
    _made(service, about, "It does.")
    assert ("user-viewer", "comment.commented") in _notified(service, about)
    assert ("user-editor", "comment.commented") not in _notified(service, about)

    finding = make(service, Finding, service.bearer("editor"), name="Doors").json()
    link = {"from": {"kind": "memberships", "id": "member-owner"}, "to": {"kind": "auditItems", "id": finding["id"]}}
    body = {"organizationId": ALPHA, **link, "relation": OWNS}
    assert service.client.post("/links/", json=body, headers=service.bearer("editor")).status_code == 201
    _made(service, link["to"])
    assert ("user-owner", "comment.commented") in _notified(service, link["to"])


def test_who_is_mentioned_is_notified_once(service: Served) -> None:
    about = _task(service)
    comment = _made(service, about, "Thanks, @viewer! Not you, a@admin.example; nor @editorial, @Owners.")
    assert _notified(service, about) == {("user-viewer", "comment.mentioned")}
    path, text = f"/comments/{comment['id']}/", "@Viewer and @ADMIN@alpha.example"
    assert service.client.patch(path, json={"text": text}, headers=service.bearer("editor")).status_code == 200
    found = [(row["user_id"], row["type"]) for row in stored.rows(service.database, Notification)]
    assert found.count(("user-viewer", "comment.mentioned")) == 1
    assert ("user-admin", "comment.mentioned") in found


class _Names(set[str]):
    """Names that count how often one went through all of them."""

    passes = 0

    def __iter__(self) -> Iterator[str]:
        self.passes += 1
        return super().__iter__()


def test_many_mentions_are_not_compared_with_all_names() -> None:
    """A text of 10,000 signs in an organization of 10,000 people would keep others from writing for a minute."""
    names = _Names({"dana", "dana demo", "dana@demo.example", "x", "demo"})
    text = "@x-@xy " * 1000 + "@Dana Demo, a@demo"
    assert mentioned_names(text, names) == {"x", "dana demo"}
    assert names.passes == 1


def test_a_service_account_does_not_comment(service: Served) -> None:
    token = changes_of(service.database).make_now(
        lambda unit: tokens.create(unit, email=f"robot-{ALPHA}", scope="write", lifetime=None)
    )
    body = {"organizationId": ALPHA, "about": CONTROL, "text": "Well"}
    answer = service.client.post("/comments/", json=body, headers={"Authorization": f"Bearer {token}"})
    assert "service account" in refused(answer, 403, "forbidden")["detail"]
