"""Tokens over HTTP: one's own, those of service accounts, and those that reach an organization."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx2 import Response

from normata.changes.idempotency import IdempotencyKey
from normata.db.types import format_timestamp
from normata.identity import tokens
from normata.identity.model import AccessToken
from normata.identity.roles import SCOPES
from tests import stored
from tests.served import Headers, Served, refused
from tests.world import ALPHA, BETA, TOKENS

OWN = "/me/tokens/"
WANTED = {"name": "Export", "scope": "read"}
IN_ALPHA, IN_BETA = {"organizationId": ALPHA}, {"organizationId": BETA}


def admin(service: Served, user: str = "admin", organization: str | None = None) -> Headers:
    """The header of a token that may manage tokens."""
    return service.bearer(user, scope="admin", organization=organization)


def guest_of_beta(service: Served, user: str = "editor") -> None:
    """Make a user of alpha a viewer of beta, too."""
    guest = {"id": f"guest-{user}", "organizationId": BETA, "userId": f"user-{user}", "role": "viewer"}
    service.load({"memberships": [guest]})


def make(service: Served, headers: Headers, **wanted: Any) -> dict[str, Any]:
    """A token of one's own, as it was answered."""
    response = service.client.post(OWN, json=WANTED | wanted, headers=headers)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


def bearer(made: dict[str, Any]) -> Headers:
    """The header with a token that was made."""
    return {"Authorization": f"Bearer {made['token']}"}


def id_of(service: Served, headers: Headers) -> str:
    """The id of the token of a header."""
    digest = tokens.digest(headers["Authorization"].removeprefix("Bearer "))
    (row,) = stored.tokens(service.database, digest=digest)
    return str(row["id"])


def account(service: Served, user: str = "admin", organization: str = ALPHA, role: str = "editor") -> str:
    """The id of a new service account."""
    body = {"organizationId": organization, "name": "Inventory", "role": role}
    response = service.client.post("/service-accounts/", json=body, headers=admin(service, user))
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def sees(service: Served, headers: Headers, organization: str) -> bool:
    """Whether a token reaches an organization: 200 or 404."""
    response = service.client.get("/frameworks/", params={"organizationId": organization}, headers=headers)
    assert response.status_code in (200, 404)
    return response.status_code == 200


def listed(response: Response) -> list[str]:
    """The ids of the tokens in a list, but for those of the world."""
    assert response.status_code == 200, response.text
    assert response.json()["total"] == len(response.json()["items"])
    return [item["id"] for item in response.json()["items"] if item["id"] not in TOKENS]


# --- Making


def test_a_token_is_shown_once_and_works(service: Served) -> None:
    response = service.client.post(OWN, json=WANTED, headers=admin(service, "viewer"))
    made = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == f"{OWN}{made['id']}/"
    assert response.headers["cache-control"] == "no-store"
    assert "etag" not in response.headers
    token = made.pop("token")
    assert tokens.is_well_formed(token)
    assert sees(service, {"Authorization": f"Bearer {token}"}, ALPHA)
    (row,) = stored.tokens(service.database, id=made["id"])
    assert row["digest"] == tokens.digest(token)
    assert (row["user_id"], row["scope"], row["name"], row["organization_id"]) == (
        "user-viewer",
        "read",
        "Export",
        None,
    )
    shown = service.client.get(response.headers["location"], headers=admin(service, "viewer"))
    assert shown.json() | {"lastUsedAt": None} == made
    (event,) = stored.events(service.database, action="create")
    assert (event["entity_id"], event["user_id"], event["organization_id"]) == (made["id"], "user-viewer", None)
    assert token not in str(stored.everything(service.database))
    assert row["digest"] not in str(stored.events(service.database))


@pytest.mark.parametrize(
    ("expiry", "lifetime"),
    [
        ({}, timedelta(days=90)),
        ({"expiresAt": None}, None),
        ({"expiresAt": timedelta(hours=1)}, timedelta(hours=1)),
        ({"expiresAt": timedelta(days=365)}, timedelta(days=365)),
    ],
)
def test_it_expires_when_it_is_told_to(service: Served, expiry: dict[str, Any], lifetime: timedelta | None) -> None:
    moment = datetime.now(UTC)
    said = {name: value and format_timestamp(moment + value) for name, value in expiry.items()}
    made = make(service, admin(service), **said)
    if lifetime is None:
        assert made["expiresAt"] is None
    else:
        assert abs(datetime.fromisoformat(made["expiresAt"]) - moment - lifetime) < timedelta(seconds=10)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ({"expiresAt": "2020-01-01"}, "expiresAt"),
        ({"expiresAt": "2999-01-01T00:00:00Z"}, "expiresAt"),
        ({"expiresAt": "soon"}, "expiresAt"),
        ({"name": " "}, "name"),
        ({"name": None}, "name"),
        ({"scope": "all"}, "scope"),
        ({"lifetime": 3}, "lifetime"),
        ({"organizationId": ""}, "organizationId"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(service: Served, wanted: dict[str, Any], name: str) -> None:
    before = stored.everything(service.database)
    headers = admin(service)
    del before[str(AccessToken.__tablename__)]
    response = service.client.post(OWN, json=WANTED | wanted, headers=headers)
    (fault,) = refused(response, 400, "validation")["errors"]
    assert (fault["in"], fault["name"]) == ("body", name)
    after = stored.everything(service.database)
    assert len(after.pop(str(AccessToken.__tablename__))) == len(TOKENS) + 1
    assert after == before


@pytest.mark.parametrize("scope", ["read", "write"])
def test_only_a_token_that_may_manage_makes_tokens(service: Served, scope: str) -> None:
    """So none makes one of a larger scope than its own."""
    headers = service.bearer("owner", scope=scope)
    for wanted in SCOPES:
        response = service.client.post(OWN, json=WANTED | {"scope": wanted}, headers=headers)
        assert scope in refused(response, 403, "forbidden")["detail"]
    assert [make(service, admin(service), scope=wanted)["scope"] for wanted in SCOPES] == list(SCOPES)


def test_a_token_is_narrowed_to_an_organization_by_its_id_or_slug(service: Served) -> None:
    guest_of_beta(service)
    headers = admin(service, "editor")
    for name in (ALPHA, "alpha"):
        made = make(service, headers, organizationId=name)
        assert made["organizationId"] == ALPHA
        assert (sees(service, bearer(made), ALPHA), sees(service, bearer(made), BETA)) == (True, False)
    for unnarrowed in ({}, {"organizationId": None}):
        made = make(service, headers, **unnarrowed)
        assert made["organizationId"] is None
        assert (sees(service, bearer(made), ALPHA), sees(service, bearer(made), BETA)) == (True, True)
    for unknown in ("org-gone", "gamma"):
        refused(service.client.post(OWN, json=WANTED | {"organizationId": unknown}, headers=headers), 404, "not_found")
    for foreign in (BETA, "beta"):
        response = service.client.post(OWN, json=WANTED | {"organizationId": foreign}, headers=admin(service))
        refused(response, 404, "not_found")


def test_a_narrowed_token_makes_none_that_reaches_further(service: Served) -> None:
    guest_of_beta(service)
    narrowed = admin(service, "editor", ALPHA)
    for said in ({}, {"organizationId": None}, {"organizationId": ALPHA}, {"organizationId": "alpha"}):
        made = make(service, narrowed, **said, scope="admin")
        assert made["organizationId"] == ALPHA
        assert not sees(service, bearer(made), BETA)
        assert make(service, bearer(made))["organizationId"] == ALPHA
    for beyond in (BETA, "beta"):
        response = service.client.post(OWN, json=WANTED | {"organizationId": beyond}, headers=narrowed)
        refused(response, 404, "not_found")


def test_who_is_a_member_of_nothing_may_have_tokens(service: Served) -> None:
    made = make(service, admin(service, "nobody"))
    assert not sees(service, bearer(made), ALPHA)
    assert service.client.get(OWN, headers=bearer(made)).json()["total"] == 2


def test_with_a_key_the_secret_is_not_kept(service: Served) -> None:
    """A repeat makes no second token, and cannot be told the first one."""
    headers = admin(service)
    for path in (OWN, f"/service-accounts/{account(service)}/tokens/"):
        keyed = headers | {"Idempotency-Key": path[1:4]}
        first = service.client.post(path, json=WANTED, headers=keyed)
        token = first.json()["token"]
        assert sees(service, bearer(first.json()), ALPHA)
        count = len(stored.tokens(service.database))
        problem = refused(service.client.post(path, json=WANTED, headers=keyed), 409, "answer_not_kept")
        assert "secret" in problem["detail"]
        assert len(stored.tokens(service.database)) == count
        assert token not in str(stored.everything(service.database))
        response = service.client.post(path, json=WANTED | {"name": "Other"}, headers=keyed)
        refused(response, 422, "key_reused")
    kept = stored.everything(service.database)[str(IdempotencyKey.__tablename__)]
    assert [row["body"] for row in kept] == [None, None]


def test_a_dry_run_makes_no_token(service: Served) -> None:
    headers = admin(service)
    response = service.client.post(OWN, params={"dryRun": "true"}, json=WANTED, headers=headers)
    answer = response.json()["answer"]
    assert (response.json()["status"], answer["name"]) == (201, "Export")
    refused(service.client.get(OWN, headers={"Authorization": f"Bearer {answer['token']}"}), 401, "unauthenticated")
    assert listed(service.client.get(OWN, headers=headers)) == [id_of(service, headers)]


# --- One's own


def test_ones_own_are_listed_newest_first(service: Served) -> None:
    headers, other = admin(service, "editor"), admin(service, "viewer")
    made = [make(service, headers, name=name)["id"] for name in ("one", "two", "three")]
    own = id_of(service, headers)
    assert listed(service.client.get(OWN, headers=headers)) == [*reversed(made), own]
    assert listed(service.client.get(OWN, headers=other)) == [id_of(service, other)]
    answer = service.client.get(OWN, headers=service.bearer("editor", scope="read"))
    assert len(listed(answer)) == 5
    assert {name for item in answer.json()["items"] for name in item} == {
        *("id", "userId", "organizationId", "name", "scope", "createdAt", "expiresAt", "lastUsedAt", "revokedAt")
    }
    assert not any(digest["digest"] in answer.text for digest in stored.tokens(service.database))
    service.client.delete(f"{OWN}{made[0]}/", headers=headers)
    service.sql(f"UPDATE access_token SET expires_at = '2026-01-01' WHERE id = '{made[1]}'")
    active = service.client.get(OWN, params={"activeOnly": "true"}, headers=headers).json()["items"]
    assert not {made[0], made[1]} & {item["id"] for item in active}
    assert len([item for item in active if item["id"] not in TOKENS]) == 3


def test_a_token_is_revoked_at_once_and_twice_is_harmless(service: Served) -> None:
    headers = admin(service, "viewer")
    made = make(service, headers)
    first = service.client.delete(f"{OWN}{made['id']}/", headers=headers)
    assert first.status_code == 200
    assert first.json()["revokedAt"] is not None
    refused(service.client.get(OWN, headers=bearer(made)), 401, "unauthenticated")
    again = service.client.delete(f"{OWN}{made['id']}/", headers=headers)
    assert again.json() == first.json()
    assert len(stored.events(service.database, action="revoke")) == 1
    assert service.client.delete(f"{OWN}{id_of(service, headers)}/", headers=headers).is_success
    refused(service.client.get(OWN, headers=headers), 401, "unauthenticated")


def test_what_others_have_is_not_there(service: Served) -> None:
    """Nor is what reaches further than the token of the request."""
    guest_of_beta(service)
    headers, narrowed = admin(service, "editor"), admin(service, "editor", ALPHA)
    beyond = [id_of(service, admin(service, "editor", BETA)), id_of(service, headers)]
    for asking, ids in (
        (headers, [id_of(service, admin(service, "viewer")), id_of(service, admin(service, "foreigner")), "gone"]),
        (narrowed, [*beyond, id_of(service, admin(service, "owner", ALPHA))]),
    ):
        for token_id in ids:
            for method in ("GET", "DELETE"):
                refused(service.client.request(method, f"{OWN}{token_id}/", headers=asking), 404, "not_found")
    assert listed(service.client.get(OWN, headers=narrowed)) == [id_of(service, narrowed)]
    assert service.client.delete(f"{OWN}{beyond[0]}/", headers=headers).is_success
    assert not stored.tokens(service.database, id=beyond[1])[0]["revoked_at"]


# --- Of an organization


def test_admins_see_every_token_that_reaches_their_organization(service: Served) -> None:
    """And nothing of what other organizations have, nor what people call the tokens that reach both."""
    guest_of_beta(service)
    headers = admin(service)
    wide = make(service, admin(service, "editor"), name="Beta's secret plan")["id"]
    here = make(service, admin(service, "editor"), organizationId=ALPHA, name="Alpha's")["id"]
    there = make(service, admin(service, "editor"), organizationId=BETA)["id"]
    foreign = id_of(service, admin(service, "foreigner"))
    nobody = id_of(service, admin(service, "nobody"))
    answer = service.client.get("/tokens/", params=IN_ALPHA, headers=headers)
    shown = {item["id"]: item for item in answer.json()["items"]}
    assert shown.keys() >= {wide, here, id_of(service, headers)}
    assert not shown.keys() & {there, foreign, nobody}
    assert (shown[wide]["name"], shown[here]["name"]) == (None, "Alpha's")
    assert (shown[wide]["userId"], shown[wide]["organizationId"]) == ("user-editor", None)
    assert "secret plan" not in answer.text
    for token_id in (wide, here):
        one = service.client.get(f"/tokens/{token_id}/", params=IN_ALPHA, headers=headers)
        assert one.json() == shown[token_id]
    for token_id in (there, foreign, nobody, "gone"):
        refused(service.client.get(f"/tokens/{token_id}/", params=IN_ALPHA, headers=headers), 404, "not_found")
    filtered = service.client.get("/tokens/", params=IN_ALPHA | {"userId": "user-editor"}, headers=headers)
    assert {wide, here} <= set(listed(filtered))
    assert {item["userId"] for item in filtered.json()["items"]} == {"user-editor"}
    both = service.client.get("/tokens/", params=IN_BETA, headers=admin(service, "foreigner"))
    assert {wide, there, foreign} <= set(listed(both))
    assert here not in listed(both)


def test_tokens_of_who_has_left_are_listed_only_where_they_were_narrowed(service: Served) -> None:
    wide = id_of(service, service.bearer("editor"))
    here = id_of(service, service.bearer("editor", organization=ALPHA))
    headers = admin(service)
    assert service.client.delete("/members/member-editor/", headers=headers).is_success
    found = service.client.get("/tokens/", params=IN_ALPHA | {"userId": "user-editor"}, headers=headers)
    assert listed(found) == [here]
    assert found.json()["items"][0]["revokedAt"] is not None
    refused(service.client.get(f"/tokens/{wide}/", params=IN_ALPHA, headers=headers), 404, "not_found")
    refused(service.client.delete(f"/tokens/{wide}/", headers=headers), 404, "not_found")


def test_admins_revoke_what_is_narrowed_to_their_organization(service: Served) -> None:
    guest_of_beta(service)
    headers, victim = admin(service), service.bearer("editor", organization=ALPHA)
    token_id = id_of(service, victim)
    answer = service.client.delete(f"/tokens/{token_id}/", headers=headers)
    assert (answer.status_code, answer.json()["id"]) == (200, token_id)
    refused(service.client.get(OWN, headers=victim), 401, "unauthenticated")
    assert service.client.delete(f"/tokens/{token_id}/", headers=headers).json() == answer.json()
    (event,) = stored.events(service.database, entity_id=token_id)
    assert (event["action"], event["organization_id"], event["user_id"]) == ("revoke", ALPHA, "user-admin")


def test_admins_do_not_revoke_what_reaches_further(service: Served) -> None:
    wide, there = id_of(service, service.bearer("editor")), ""
    guest_of_beta(service)
    there = id_of(service, service.bearer("editor", organization=BETA))
    foreign = id_of(service, service.bearer("foreigner"))
    for headers in (admin(service), admin(service, "owner"), admin(service, "admin", ALPHA)):
        refused(service.client.delete(f"/tokens/{wide}/", headers=headers), 409, "token_reaches_further")
        for token_id in (there, foreign, "gone"):
            refused(service.client.delete(f"/tokens/{token_id}/", headers=headers), 404, "not_found")
    refused(
        service.client.delete(f"/tokens/{wide}/", headers=admin(service, "foreigner")), 409, "token_reaches_further"
    )
    assert all(row["revoked_at"] is None for row in stored.tokens(service.database))


@pytest.mark.parametrize("user", ["viewer", "editor"])
def test_others_do_neither(service: Served, user: str) -> None:
    headers = admin(service, user)
    mine, theirs = id_of(service, headers), id_of(service, service.bearer("owner", organization=ALPHA))
    refused(service.client.get("/tokens/", params=IN_ALPHA, headers=headers), 403, "forbidden")
    for token_id in (mine, theirs):
        refused(service.client.get(f"/tokens/{token_id}/", params=IN_ALPHA, headers=headers), 403, "forbidden")
        assert (
            "admin"
            in refused(service.client.delete(f"/tokens/{token_id}/", headers=headers), 403, "forbidden")["detail"]
        )
    assert all(row["revoked_at"] is None for row in stored.tokens(service.database))


# --- Of service accounts


def test_a_service_account_gets_tokens_of_its_organization(service: Served) -> None:
    account_id = account(service)
    headers = admin(service)
    response = service.client.post(f"/service-accounts/{account_id}/tokens/", json=WANTED, headers=headers)
    made = response.json()
    assert response.status_code == 201, response.text
    assert (made["userId"], made["organizationId"]) == (account_id, ALPHA)
    assert response.headers["location"] == f"/tokens/{made['id']}/"
    shown = service.client.get(response.headers["location"], params=IN_ALPHA, headers=headers)
    assert shown.json()["name"] == "Export"
    assert (sees(service, bearer(made), ALPHA), sees(service, bearer(made), BETA)) == (True, False)
    (event,) = stored.events(service.database, entity_id=made["id"])
    assert (event["action"], event["organization_id"], event["user_id"]) == ("create", ALPHA, "user-admin")
    assert service.client.delete(f"/tokens/{made['id']}/", headers=headers).is_success
    refused(service.client.get(OWN, headers=bearer(made)), 401, "unauthenticated")


def test_a_service_account_makes_tokens_of_its_own_that_are_narrowed(service: Served) -> None:
    account_id = account(service)
    path = f"/service-accounts/{account_id}/tokens/"
    made = service.client.post(path, json=WANTED | {"scope": "admin"}, headers=admin(service)).json()
    own = make(service, bearer(made), organizationId=None)
    assert (own["userId"], own["organizationId"]) == (account_id, ALPHA)
    refused(service.client.get("/tokens/", params=IN_ALPHA, headers=bearer(made)), 403, "forbidden")


def test_who_may_not_makes_none_of_a_service_account(service: Served) -> None:
    guest_of_beta(service, "admin")
    here, there = account(service), account(service, "foreigner", BETA)
    removed = account(service)
    assert service.client.delete(f"/service-accounts/{removed}/", headers=admin(service)).is_success
    before = len(stored.tokens(service.database))
    cases: list[tuple[str, Headers, int]] = [
        (here, {}, 401),
        (here, service.bearer("owner", scope="write"), 403),
        (here, admin(service, "editor"), 403),
        (here, admin(service, "viewer"), 403),
        (here, admin(service, "foreigner"), 404),
        (here, admin(service, "nobody"), 404),
        (there, admin(service, "owner"), 404),
        (there, admin(service), 403),
        (there, admin(service, "admin", ALPHA), 404),
        (removed, admin(service), 404),
        ("user-editor", admin(service), 404),
        ("user-admin", admin(service), 404),
        ("gone", admin(service), 404),
    ]
    for account_id, headers, status in cases:
        response = service.client.post(f"/service-accounts/{account_id}/tokens/", json=WANTED, headers=headers)
        assert response.status_code == status, (account_id, status, response.text)
    made = len(stored.tokens(service.database)) - before
    assert made == sum(bool(headers) for _, headers, _ in cases), "none but those that the test itself has made"


# --- Without a token


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", OWN), ("POST", OWN), ("GET", f"{OWN}x/"), ("DELETE", f"{OWN}x/")),
        *(("GET", "/tokens/"), ("GET", "/tokens/x/"), ("DELETE", "/tokens/x/")),
        ("POST", "/service-accounts/x/tokens/"),
    ],
)
def test_nobody_is_told_anything_without_a_token(service: Served, method: str, path: str) -> None:
    refused(service.client.request(method, path, params=IN_ALPHA), 401, "unauthenticated")
