"""Members over HTTP: the list, roles, leaving, and what is left to hand over."""

from __future__ import annotations

import pytest

from normata.identity.model import Membership
from tests import stored
from tests.served import Headers, Served, refused
from tests.world import ALPHA

QUERY = {"organizationId": ALPHA}


def admin(service: Served, user: str = "admin") -> Headers:
    """The header of a token that may manage people."""
    return service.bearer(user, scope="admin")


def test_members_are_listed_by_name(service: Served) -> None:
    answer = service.client.get("/members/", params=QUERY, headers=service.bearer("viewer"))
    assert [(item["id"], item["name"], item["role"]) for item in answer.json()["items"]] == [
        (f"member-{role}", role.title(), role) for role in ("admin", "editor", "owner", "viewer")
    ]
    assert answer.json()["items"][0]["email"] == "admin@alpha.example"


def test_a_role_is_changed(service: Served) -> None:
    headers = admin(service)
    before = service.client.get("/members/member-viewer/", params=QUERY, headers=headers)
    patch = {"role": "editor"}
    stale = service.client.patch("/members/member-viewer/", json=patch, headers=headers | {"If-Match": '"nonsense"'})
    refused(stale, 412, "precondition_failed")
    answer = service.client.patch(
        "/members/member-viewer/", json=patch, headers=headers | {"If-Match": before.headers["etag"]}
    )
    assert (answer.status_code, answer.json()) == (200, before.json() | patch)
    (event,) = stored.events(service.database, entity_id="member-viewer")
    assert (event["action"], event["organization_id"]) == ("update", ALPHA)
    again = service.client.get("/members/member-viewer/", params=QUERY, headers=headers)
    assert (again.json(), again.headers["etag"]) == (answer.json(), answer.headers["etag"])


@pytest.mark.parametrize(
    ("user", "member", "role"),
    [
        ("admin", "member-owner", "viewer"),  # who has a larger role
        ("admin", "member-viewer", "owner"),  # gets a larger one
        ("admin", "member-admin", "owner"),  # gives it to themselves
        ("editor", "member-viewer", "viewer"),
        ("viewer", "member-viewer", "admin"),
    ],
)
def test_nobody_gives_or_takes_a_larger_role_than_their_own(service: Served, user: str, member: str, role: str) -> None:
    response = service.client.patch(f"/members/{member}/", json={"role": role}, headers=admin(service, user))
    refused(response, 403, "forbidden")


def test_nobody_removes_who_has_a_larger_role(service: Served) -> None:
    for user, member in (("admin", "member-owner"), ("editor", "member-viewer"), ("viewer", "member-editor")):
        refused(service.client.delete(f"/members/{member}/", headers=admin(service, user)), 403, "forbidden")
    assert stored.rows(service.database, Membership, removed_at=None, organization_id=ALPHA).__len__() == 4


def test_the_last_owner_stays(service: Served) -> None:
    headers = admin(service, "owner")
    refused(service.client.delete("/members/member-owner/", headers=headers), 409, "last_owner")
    response = service.client.patch("/members/member-owner/", json={"role": "admin"}, headers=headers)
    refused(response, 409, "last_owner")
    assert service.client.patch("/members/member-admin/", json={"role": "owner"}, headers=headers).is_success
    assert service.client.delete("/members/member-owner/", headers=headers).is_success
    refused(service.client.get("/members/", params=QUERY, headers=headers), 404, "not_found")


def test_everybody_may_leave(service: Served) -> None:
    headers = admin(service, "viewer")
    response = service.client.delete("/members/member-viewer/", headers=headers)
    assert response.status_code == 200, response.text
    refused(service.client.get("/members/", params=QUERY, headers=headers), 404, "not_found")


def test_removing_ends_everything_at_once(service: Served) -> None:
    """The sessions of the user, and what is narrowed to the organization; other tokens see it no more."""
    token = service.token("editor")
    service.load({"organizations": [{"id": "org-more", "name": "More"}]})
    service.load({"memberships": [{"id": "more", "organizationId": "org-more", "userId": "user-editor"}]})
    service.sql(
        "INSERT INTO session (id, user_id, digest, means, created_at, last_used_at, expires_at, address, user_agent)"
        " SELECT 's1', 'user-editor', digest, 'link', created_at, created_at, created_at, '', ''"
        " FROM access_token LIMIT 1"
    )
    own = service.bearer("editor")
    narrowed = service.token("editor")
    digest = __import__("normata.identity.tokens", fromlist=["digest"]).digest(narrowed)
    service.sql(f"UPDATE access_token SET organization_id = '{ALPHA}' WHERE digest = '{digest}'")
    answer = service.client.delete("/members/member-editor/", headers=admin(service))
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["member"]["removedAt"] is not None
    assert told["responsibilities"]["tasks"] == 1
    refused(service.client.get("/members/", params=QUERY, headers=own), 404, "not_found")
    assert service.client.get("/members/", params={"organizationId": "org-more"}, headers=own).is_success
    refused(service.client.get("/me/", headers={"Authorization": f"Bearer {narrowed}"}), 401, "unauthenticated")
    again = service.client.delete("/members/member-editor/", headers=admin(service))
    assert again.json() == told
    del token
