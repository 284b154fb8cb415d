"""People whom a provider maintains over SCIM, and who sign in with its groups."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from normata.identity.model import Invitation, Membership, User
from tests import stored
from tests.console.single_sign_on import instance_of, invited
from tests.console.test_single_sign_on_people import arrives, knows, refused_as, roles
from tests.databases import on_both
from tests.identity.openid.forging import Forger, running_forger
from tests.scim.dialogue import GROUP, PATCH_OP, USER, send
from tests.served import Headers, Served
from tests.world import ALPHA, BETA

NEW = "grace@example.org"
_MAPPING = "staff=alpha:viewer, writers=alpha:editor, staff=beta:viewer"


@pytest.fixture
def forger() -> Iterator[Forger]:
    """The provider, which knows nobody yet."""
    with running_forger() as running:
        yield running


@pytest.fixture
def instance(database_url: str, forger: Forger) -> Iterator[Served]:
    """The application, whose people join by groups."""
    with instance_of(database_url, forger.issuer, oidc_roles=_MAPPING, oidc_join="groups") as application:
        yield application


@pytest.fixture
def provider(instance: Served) -> Headers:
    """The header of the provider's token for alpha."""
    return instance.bearer("admin", scope="scim", organization=ALPHA)


def made(instance: Served, provider: Headers) -> tuple[str, str]:
    """The ids of the membership and of the account of a person whom the provider creates."""
    body = {"schemas": [USER], "userName": NEW, "displayName": "Grace", "active": True}
    answer = send(instance, provider, "POST", "/Users", body)
    assert answer.status_code == 201, answer.text
    member_id = str(answer.json()["id"])
    return member_id, str(stored.row(instance.database, Membership, member_id)["user_id"])


def sets(instance: Served, provider: Headers, path: str, operation: dict[str, Any]) -> None:
    answer = send(instance, provider, "PATCH", path, {"schemas": [PATCH_OP], "Operations": [operation]})
    assert answer.status_code == 204, answer.text


@on_both
def test_signing_in_ends_nothing_that_the_provider_has_begun(
    instance: Served, provider: Headers, forger: Forger
) -> None:
    """Groups of SCIM count, and those of the ID token; who has none of either stays a viewer."""
    member_id, user_id = made(instance, provider)
    for groups, role in (((), "viewer"), (("writers",), "editor"), ((), "viewer")):
        knows(forger, "grace", NEW, *groups)
        arrives(instance, forger)
        assert roles(instance, user_id) == {ALPHA: role}
    group = {"schemas": [GROUP], "displayName": "writers", "members": [{"value": member_id}]}
    assert send(instance, provider, "POST", "/Groups", group).status_code == 201
    assert roles(instance, user_id) == {ALPHA: "editor"}
    arrives(instance, forger)
    assert roles(instance, user_id) == {ALPHA: "editor"}
    knows(forger, "grace", NEW, "staff")
    arrives(instance, forger)
    assert roles(instance, user_id) == {ALPHA: "editor", BETA: "viewer"}


@on_both
def test_whom_the_provider_has_ended_does_not_come_back_by_groups(
    instance: Served, provider: Headers, forger: Forger
) -> None:
    """But elsewhere they stay, and people may invite them again."""
    member_id, user_id = made(instance, provider)
    knows(forger, "grace", NEW, "staff", "writers")
    arrives(instance, forger)
    for active, expected in ((False, {BETA: "viewer"}), (True, {ALPHA: "editor", BETA: "viewer"})):
        sets(instance, provider, f"/Users/{member_id}", {"op": "replace", "path": "active", "value": active})
        arrives(instance, forger)
        assert roles(instance, user_id) == expected
    sets(instance, provider, f"/Users/{member_id}", {"op": "replace", "path": "active", "value": False})
    invited(instance, NEW, "viewer")
    arrives(instance, forger)
    assert roles(instance, user_id)[ALPHA] == "editor"


@on_both
def test_an_invitation_and_a_provider_at_once(instance: Served, provider: Headers, forger: Forger) -> None:
    """The invitation that was open stays one to the same person."""
    invited(instance, NEW, "editor")
    member_id, user_id = made(instance, provider)
    knows(forger, "grace", NEW)
    arrives(instance, forger)
    assert stored.row(instance.database, Membership, member_id)["removed_at"] is None
    assert len(stored.rows(instance.database, User, email_folded=NEW)) == 1
    assert set(roles(instance, user_id)) == {ALPHA}
    assert len(stored.rows(instance.database, Invitation, email_folded=NEW)) == 1


@on_both
def test_who_joins_twice_at_once_becomes_one_member(instance: Served, forger: Forger) -> None:
    knows(forger, "grace", NEW, "staff", "writers")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: arrives(instance, forger), range(4)))
    (user,) = stored.rows(instance.database, User, email_folded=NEW)
    assert roles(instance, user["id"]) == {ALPHA: "editor", BETA: "viewer"}
    assert len(stored.rows(instance.database, Membership, user_id=user["id"])) == 2


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("writers", {ALPHA: "editor"}),  # a text instead of a list of one
        ([["writers"], {"name": "staff"}, None, 7, "writers"], {ALPHA: "editor"}),
        ([*(f"group {number}" for number in range(1_000)), "writers"], {ALPHA: "editor"}),
        ("writers,staff", None),
        ({"writers": True}, None),
        (None, None),
        ([" writers", "WRITERS"], None),
    ],
)
def test_claims_of_all_sorts(instance: Served, forger: Forger, groups: object, expected: dict[str, str] | None) -> None:
    knows(forger, "grace", NEW)
    forger.person["groups"] = groups
    if expected is None:
        refused_as(instance, forger, "not_invited")
        assert stored.rows(instance.database, User, email_folded=NEW) == []
    else:
        arrives(instance, forger)
        (user,) = stored.rows(instance.database, User, email_folded=NEW)
        assert roles(instance, user["id"]) == expected
