"""Tokens over HTTP: those of service accounts, and those that reach an organization."""

from __future__ import annotations

import pytest

from tests import stored
from tests.databases import on_both
from tests.identity.token_requests import (
    IN_ALPHA,
    IN_BETA,
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
from tests.served import Headers, Served, refused
from tests.world import ALPHA, BETA

# --- Of an organization


@on_both
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


@on_both
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


@on_both
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


@on_both
def test_admins_do_not_revoke_what_reaches_further(service: Served) -> None:
    wide, there = id_of(service, service.bearer("editor")), ""
    guest_of_beta(service)
    there = id_of(service, service.bearer("editor", organization=BETA))
    foreign = id_of(service, service.bearer("foreigner"))
    for headers in (admin(service), admin(service, "owner"), admin(service, "admin", ALPHA)):
        refused(service.client.delete(f"/tokens/{wide}/", headers=headers), 409, "token_spans_organizations")
        for token_id in (there, foreign, "gone"):
            refused(service.client.delete(f"/tokens/{token_id}/", headers=headers), 404, "not_found")
    refused(
        service.client.delete(f"/tokens/{wide}/", headers=admin(service, "foreigner")), 409, "token_spans_organizations"
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


@on_both
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


@pytest.mark.parametrize("organization", [ALPHA, "alpha", None])
def test_a_token_of_a_service_account_may_name_its_organization(service: Served, organization: str | None) -> None:
    path = f"/service-accounts/{account(service)}/tokens/"
    response = service.client.post(path, json=WANTED | {"organizationId": organization}, headers=admin(service))
    assert response.status_code == 201, response.text
    assert response.json()["organizationId"] == ALPHA


def test_a_token_of_a_service_account_names_no_other_organization(service: Served) -> None:
    guest_of_beta(service)
    path = f"/service-accounts/{account(service)}/tokens/"
    for organization in (BETA, "beta", "none"):
        response = service.client.post(path, json=WANTED | {"organizationId": organization}, headers=admin(service))
        refused(response, 404, "not_found")


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
