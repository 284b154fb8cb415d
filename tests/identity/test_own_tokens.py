"""Tokens over HTTP: one's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from normata.core.changes.idempotency import IdempotencyKey
from normata.core.db.types import format_timestamp
from normata.core.http.roles import SCOPES
from normata.identity.model import AccessToken
from normata.identity.tokens import tokens
from tests import stored
from tests.databases import on_both
from tests.identity.token_requests import (
    IN_ALPHA,
    OWN,
    WANTED,
    account,
    admin,
    bearer,
    guest_of_beta,
    id_of,
    listed,
    make,
    sees,
)
from tests.served import Served, refused
from tests.world import ALPHA, BETA, TOKENS

# --- Making


@on_both
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


def test_a_narrowed_token_is_told_of_no_other_organization(service: Served) -> None:
    """Not even of where else its user is a member, nor can it do what an operator may."""
    guest_of_beta(service)
    narrowed = admin(service, "editor", ALPHA)
    me = service.client.get("/me/", headers=narrowed).json()
    assert [one["id"] for one in me["organizations"]] == [ALPHA]
    assert me["organizationId"] == ALPHA
    assert [one["id"] for one in service.client.get("/organizations/", headers=narrowed).json()["items"]] == [ALPHA]
    refused(service.client.get(f"/organizations/{BETA}/", headers=narrowed), 404, "not_found")
    wide = service.client.get("/me/", headers=admin(service, "editor")).json()
    assert {one["id"] for one in wide["organizations"]} == {ALPHA, BETA}


def test_a_narrowed_token_does_not_run_the_instance(service: Served) -> None:
    member = {"id": "member-operator", "organizationId": ALPHA, "userId": "user-operator", "role": "owner"}
    service.load({"memberships": [member]})
    body = {"name": "Gamma", "slug": "gamma", "ownerEmail": "gamma@example.org"}
    response = service.client.post("/organizations/", json=body, headers=admin(service, "operator", ALPHA))
    assert "narrowed" in refused(response, 403, "forbidden")["detail"]
    assert service.client.post("/organizations/", json=body, headers=admin(service, "operator")).status_code == 201


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
        problem = refused(service.client.post(path, json=WANTED, headers=keyed), 409, "answer_not_stored")
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
    assert (response.json()["status"], answer["name"], answer["token"]) == (201, "Export", None)
    assert "nrm_" not in response.text
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


@on_both
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
