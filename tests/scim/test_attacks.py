"""What a provider, or somebody with its token, must not be able to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from httpx2 import Response

from normata.events.model import AuditEvent
from normata.identity.model import Membership, User
from normata.identity.provisioning_model import ProvisionedGroupMember
from normata.identity.sign_in_model import Session
from tests import stored, world
from tests.console.single_sign_on import instance_of
from tests.databases import on_both
from tests.identity.openid.forging import running_forger
from tests.scim.dialogue import GROUP, PATCH_OP, USER, send
from tests.served import Headers, Served
from tests.world import ALPHA, BETA


def person(user_name: str, **more: Any) -> dict[str, Any]:
    """A person as a provider sends them."""
    return {"schemas": [USER], "userName": user_name, "displayName": "Somebody", "active": True} | more


def patched(service: Served, headers: Headers, path: str, *operations: dict[str, Any]) -> Response:
    """The answer to a PATCH with these operations."""
    return send(service, headers, "PATCH", path, {"schemas": [PATCH_OP], "Operations": list(operations)})


def refused(response: Response, status: int, scim_type: str | None = None) -> str:
    """The detail of a refusal in the form of SCIM."""
    assert response.status_code == status, response.text[:500]
    assert response.headers["content-type"] == "application/scim+json"
    error = response.json()
    assert (error["status"], error.get("scimType")) == (str(status), scim_type)
    detail: str = error["detail"]
    return detail


def made(service: Served, headers: Headers, user_name: str = "new@alpha.example", **more: Any) -> str:
    """The id of a new person."""
    response = send(service, headers, "POST", "/Users", person(user_name, **more))
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def events(service: Served) -> int:
    return len(stored.rows(service.database, AuditEvent))


INACTIVE = {"op": "replace", "path": "active", "value": False}


# --- Tokens


@on_both
def test_a_token_does_one_or_the_other(service: Served, provider: Headers) -> None:
    for method, path in (
        ("GET", "/me/"),
        ("GET", f"/tasks/?organizationId={ALPHA}"),
        ("DELETE", "/members/member-viewer/"),
    ):
        assert service.client.request(method, path, headers=provider).status_code == 403, path
    for scope in ("read", "write", "admin"):
        refused(send(service, service.bearer("owner", scope=scope, organization=ALPHA), "GET", "/Users"), 403)
    response = send(service, {}, "GET", "/Users")
    refused(response, 401)
    assert response.headers["www-authenticate"].startswith("Bearer")
    service.sql("UPDATE membership SET role = 'editor' WHERE id = 'member-admin'")
    refused(send(service, provider, "GET", "/Users"), 403)
    service.sql("UPDATE organization SET removed_at = '2026-01-01T00:00:00.000Z' WHERE id = 'org-alpha'")
    service.sql("UPDATE membership SET removed_at = '2026-01-01T00:00:00.000Z' WHERE organization_id = 'org-alpha'")
    refused(send(service, provider, "GET", "/Users"), 403)


@pytest.mark.parametrize(
    ("user", "organization", "scope", "status"),
    [
        ("admin", ALPHA, "admin", 201),
        ("owner", ALPHA, "admin", 201),
        ("admin", None, "admin", 403),  # it would reach all organizations
        ("editor", ALPHA, "admin", 403),
        ("viewer", ALPHA, "admin", 403),
        ("admin", ALPHA, "write", 403),
    ],
)
def test_who_makes_a_token(service: Served, user: str, organization: str | None, scope: str, status: int) -> None:
    body = {"name": "Provider", "scope": "scim", "organizationId": organization}
    response = service.client.post("/me/tokens/", json=body, headers=service.bearer(user, scope=scope))
    assert response.status_code == status, response.text


# --- Other organizations and other people's accounts


@on_both
def test_what_belongs_to_others_is_not_there(service: Served, provider: Headers) -> None:
    for path in (
        "/Users/member-foreigner",
        "/Users/robot-org-alpha",
        "/Groups/group-org-beta",
        "/Users/%00",
        "/Users/a%2Fb",
    ):
        refused(send(service, provider, "GET", path), 404)
        refused(patched(service, provider, path, INACTIVE), 404)
        refused(send(service, provider, "DELETE", path), 404)
    listed = send(service, provider, "GET", "/Users?count=1000").json()
    assert listed["totalResults"] == len(listed["Resources"]) == 5
    group = {"schemas": [GROUP], "displayName": "g", "members": [{"value": "member-foreigner"}]}
    refused(send(service, provider, "POST", "/Groups", group), 400, "invalidValue")
    add = {"op": "add", "path": "members", "value": [{"value": "member-foreigner"}]}
    refused(patched(service, provider, "/Groups/group-org-alpha", add), 400, "invalidValue")
    assert {row["organization_id"] for row in stored.rows(service.database, ProvisionedGroupMember)} == {ALPHA, BETA}


@on_both
def test_no_account_elsewhere_is_taken_over(service: Served, provider: Headers) -> None:
    before = {row["id"]: row for row in stored.rows(service.database, User)}
    count = events(service)
    for who in ("foreigner", "nobody", "operator"):
        detail = refused(send(service, provider, "POST", "/Users", person(world.USERS[who].upper())), 409, "uniqueness")
        assert "Invite" in detail
    assert {row["id"]: row for row in stored.rows(service.database, User)} == before
    assert events(service) == count


@on_both
def test_names_follow_only_where_nobody_else_relies_on_the_account(service: Served, provider: Headers) -> None:
    """And no address ever changes."""
    own = made(service, provider)
    rename = {"op": "replace", "value": {"displayName": "Another", "userName": "other@alpha.example"}}

    def account(member_id: str) -> tuple[str, str]:
        member = stored.row(service.database, Membership, member_id)
        user = stored.row(service.database, User, member["user_id"])
        return user["name"], user["email"]

    assert patched(service, provider, f"/Users/{own}", rename).status_code == 204
    assert account(own) == ("Another", "new@alpha.example")
    assert send(service, provider, "GET", f"/Users/{own}").json()["userName"] == "other@alpha.example"
    user_id = stored.row(service.database, Membership, own)["user_id"]
    guest = {"id": "guest", "organizationId": BETA, "userId": user_id, "role": "viewer"}
    service.load({"memberships": [guest]})
    again = {"op": "replace", "path": "displayName", "value": "A third"}
    assert patched(service, provider, f"/Users/{own}", again).status_code == 204
    assert account(own)[0] == "Another"
    before = account("member-viewer")  # whom people have invited
    assert patched(service, provider, "/Users/member-viewer", again).status_code == 204
    assert account("member-viewer") == before
    refused(patched(service, provider, "/Users/member-viewer", rename), 409, "uniqueness")  # the other one's


# --- Ending and bringing back


@on_both
def test_who_is_set_inactive_is_out_at_once(service: Served, provider: Headers) -> None:
    reading, narrowed = service.bearer("editor"), service.bearer("editor", organization=ALPHA)
    service.sql("UPDATE session SET expires_at = '2126-01-01T00:00:00.000Z'")
    tasks = f"/tasks/?organizationId={ALPHA}"
    assert service.client.get(tasks, headers=reading).status_code == 200
    assert patched(service, provider, "/Users/member-editor", INACTIVE).status_code == 204
    assert service.client.get(tasks, headers=reading).status_code == 404
    assert service.client.get(tasks, headers=narrowed).status_code == 401
    assert all(row["ended_at"] for row in stored.rows(service.database, Session, user_id="user-editor"))
    count = events(service)
    assert patched(service, provider, "/Users/member-editor", INACTIVE).status_code == 204
    whole = send(service, provider, "GET", "/Users/member-editor").json()
    assert send(service, provider, "PUT", "/Users/member-editor", whole).status_code == 200
    assert events(service) == count


@on_both
def test_owners_stay_unless_an_owner_lets_go(service: Served, provider: Headers) -> None:
    refused(patched(service, provider, "/Users/member-owner", INACTIVE), 409)
    refused(send(service, provider, "DELETE", "/Users/member-owner"), 409)
    owner = {"id": "second", "organizationId": ALPHA, "userId": "user-nobody", "role": "owner"}
    service.load({"memberships": [owner]})
    refused(patched(service, provider, "/Users/second", INACTIVE), 403)
    theirs = service.bearer("owner", scope="scim", organization=ALPHA)
    assert patched(service, theirs, "/Users/second", INACTIVE).status_code == 204
    # A group of admins does not make owners less, nor anybody an owner.
    group: dict[str, Any] = {"schemas": [GROUP], "displayName": "normata-viewer", "externalId": "normata-owner"}
    group |= {"members": [{"value": "member-owner"}, {"value": "member-editor"}]}
    assert send(service, provider, "POST", "/Groups", group).status_code == 201
    roles = {row["id"]: row["role"] for row in stored.rows(service.database, Membership, organization_id=ALPHA)}
    assert (roles["member-owner"], roles["member-editor"]) == ("owner", "editor")


def test_an_end_that_an_admin_has_set_stays(service: Served, provider: Headers) -> None:
    service.sql("UPDATE membership SET expires_at = '2026-01-01T00:00:00.000Z' WHERE id = 'member-editor'")
    assert send(service, provider, "GET", "/Users/member-editor").json()["active"] is False
    refused(patched(service, provider, "/Users/member-editor", INACTIVE | {"value": True}), 409)
    refused(send(service, provider, "GET", "/Users/member-gone"), 404)


@pytest.fixture
def mapped(database_url: str) -> Iterator[Served]:
    """The application with a provider, whose groups have roles by a setting."""
    with running_forger() as forger:
        roles = "people=alpha:editor, chiefs=alpha:owner"
        with instance_of(database_url, forger.issuer, oidc_roles=roles) as instance:
            yield instance


@on_both
def test_the_mapping_of_single_sign_on_gives_roles(mapped: Served) -> None:
    """And not the names that have them without it. No group makes an owner."""
    headers = mapped.bearer("admin", scope="scim", organization=ALPHA)
    for name, role in (("people", "editor"), ("normata-admin", "editor"), ("chiefs", "admin")):
        group = {"schemas": [GROUP], "displayName": name, "members": [{"value": "member-viewer"}]}
        assert send(mapped, headers, "POST", "/Groups", group).status_code == 201
        assert stored.row(mapped.database, Membership, "member-viewer")["role"] == role


# --- Races and bombs


@on_both
def test_racing_requests_make_one_person(service: Served, provider: Headers) -> None:
    names = ["racer@alpha.example", "RACER@alpha.example"] * 4
    with ThreadPoolExecutor(len(names)) as threads:
        answers = list(threads.map(lambda name: send(service, provider, "POST", "/Users", person(name)), names))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    assert len(stored.rows(service.database, User, email_folded="racer@alpha.example")) == 1


@pytest.mark.parametrize(
    ("filter_", "scim_type"),
    [
        ("(" * 900 + 'userName eq "a"' + ")" * 900, None),
        ("not (" * 100 + 'userName eq "a"' + ")" * 100, "invalidFilter"),
        (" or ".join(['userName eq "a"'] * 5_000), "invalidFilter"),
        ("userName eq", "invalidFilter"),
        ('password eq "x"', "invalidFilter"),
        ('title co "x"', "invalidFilter"),
        ('active eq "maybe"', "invalidFilter"),
        ('userName gt "a"', "invalidFilter"),
        ('userName eq "a\\u0000"', "invalidFilter"),
        ('userName co "%"', None),
        ('not (userName sw "a") and active eq true', None),
        ('externalId pr or groups.value eq "x"', None),
    ],
)
def test_filters(service: Served, provider: Headers, filter_: str, scim_type: str | None) -> None:
    body = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:SearchRequest"], "filter": filter_}
    response = send(service, provider, "POST", "/Users/.search", body)
    if scim_type is None:
        assert response.status_code == 200, response.text
        assert response.json()["totalResults"] < 5
    else:
        refused(response, 400, scim_type)


@pytest.mark.parametrize(
    ("body", "scim_type"),
    [
        (person(""), "invalidValue"),
        (person("no-address"), "invalidValue"),
        (person("a\0@alpha.example"), "invalidValue"),
        (person("b@alpha.example", displayName="\u202e"), "invalidValue"),
        (person("c@alpha.example", displayName="x" * 501), "invalidValue"),
        (person("d@alpha.example", emails=[{"value": "x@alpha.example"}] * 21), "invalidValue"),
        ({"schemas": [USER]}, "invalidValue"),
        ([], "invalidSyntax"),
    ],
)
def test_people_that_cannot_be(service: Served, provider: Headers, body: Any, scim_type: str) -> None:
    count = len(stored.rows(service.database, User))
    refused(send(service, provider, "POST", "/Users", body), 400, scim_type)
    assert len(stored.rows(service.database, User)) == count


def test_bodies_that_are_none(service: Served, provider: Headers) -> None:
    for content in (b"", b"{", b"[" * 100_000, b'{"schemas":' + b"[" * 500 + b"]" * 500 + b"}", b"\xff", b"null", b"1"):
        response = service.client.post("/scim/v2/Users", content=content, headers=provider)
        assert response.status_code == 400, (content[:20], response.text[:200])
        assert response.headers["content-type"] == "application/scim+json"
    many = [{"op": "add", "path": "displayName", "value": str(number)} for number in range(1_001)]
    refused(patched(service, provider, "/Users/member-viewer", *many), 400, "tooMany")
    assert json.loads(send(service, provider, "GET", "/Nothing").content)["status"] == "404"
