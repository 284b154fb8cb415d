"""An address that only looks like another one leads to nobody, wherever people are looked up by their address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from argon2 import PasswordHasher

from normata.core.schema.addresses import email_key
from normata.erasure.erasing import erase
from normata.erasure.person import ErasureRequest
from normata.events.keys import Signer
from normata.identity import users
from normata.identity.invitations.invitations import INVITATIONS_OF_ADDRESS, revoke_of_address
from normata.identity.model import Invitation, User
from normata.identity.sign_in import passwords
from normata.identity.sign_in_model import ExternalIdentity
from normata.identity.tokens import tokens
from normata.records.kinds import Task
from normata.settings import Settings
from tests import stored, world
from tests.console.browser import Browser, is_refused, text_of
from tests.console.single_sign_on import assert_refused, instance_of, invited, logged, sign_in
from tests.databases import change, on_both
from tests.files.rows import contents
from tests.identity.inviting import as_service
from tests.identity.openid.forging import Forger, running_forger
from tests.served import Served

KATE = "kate@grossbank.example"
LOOK_ALIKES = {
    "sharp s": "kate@großbank.example",
    "full-width k": "\uff4bate@grossbank.example",
    "Kelvin sign": "\u212aate@grossbank.example",
}
GERMAN, A_LABEL = LOOK_ALIKES["sharp s"], "Kate@xn--grobank-2va.example"
PASSWORD = "a heron stands in the reeds"
look_alikes = pytest.mark.parametrize("other", LOOK_ALIKES.values(), ids=LOOK_ALIKES)


@pytest.fixture
def forger() -> Iterator[Forger]:
    """The provider."""
    with running_forger() as running:
        yield running


@pytest.fixture
def instance(database_url: str, forger: Forger) -> Iterator[Served]:
    """The shipped application with this provider."""
    with instance_of(database_url, forger.issuer) as application:
        yield application


def add(instance: Served, email: str = KATE, user_id: str = "user-kate") -> None:
    """Make a user with an address."""
    change(instance.database, lambda unit: users.create(unit, user_id, email=email, name="Kate"))


def refused_as(instance: Served, forger: Forger, email: str, cause: str) -> None:
    forger.person = {"sub": "other", "email": email, "email_verified": True, "name": "Mallory"}
    browser = Browser(instance)
    with logged() as log:
        assert_refused(browser, sign_in(browser, forger), log, cause)


@look_alikes
@on_both
def test_single_sign_on_accepts_nobody_elses_invitation(instance: Served, forger: Forger, other: str) -> None:
    invited(instance, KATE)
    refused_as(instance, forger, other, "not_invited")
    assert [row["accepted_at"] for row in stored.rows(instance.database, Invitation, email=KATE)] == [None]


@look_alikes
@on_both
def test_single_sign_on_takes_nobody_elses_account(instance: Served, forger: Forger, other: str) -> None:
    add(instance)
    refused_as(instance, forger, other, "not_invited")
    assert stored.rows(instance.database, ExternalIdentity) == []


def test_single_sign_on_knows_an_address_by_its_a_labels(instance: Served, forger: Forger) -> None:
    add(instance, GERMAN)
    forger.person = {"sub": "kate", "email": A_LABEL, "email_verified": True, "name": "Kate"}
    browser = Browser(instance)
    assert sign_in(browser, forger).status_code == 303
    assert "Kate" in text_of(browser.get("/account/"))


def test_an_address_without_a_domain_is_not_verified(instance: Served, forger: Forger) -> None:
    invited(instance, KATE)
    refused_as(instance, forger, "kate@grossbank\u3002example", "email_not_verified")


@look_alikes
def test_passwords_are_of_one_address(instance: Served, other: str) -> None:
    add(instance)
    hashed = PasswordHasher(1, 1024, 1).hash(PASSWORD)
    change(instance.database, lambda unit: passwords.store(unit, "user-kate", hashed))
    browser = Browser(instance)
    assert is_refused(browser.post("/sign-in/password/", email=other, password=PASSWORD))
    assert browser.post("/sign-in/password/", email=KATE.upper(), password=PASSWORD).status_code == 303


@look_alikes
@on_both
def test_two_people_with_look_alikes_are_two(instance: Served, other: str) -> None:
    """Each has their own account, invitations and membership."""
    database = instance.database
    add(instance)
    add(instance, other, "user-other")
    for email in (KATE, other):
        invited(instance, email)
        found = database.read_now(partial(users.named, name=email))
        assert found is not None
        assert found.email == email
    assert [row.email for row in look_up(instance, other)] == [other]
    change(database, lambda unit: revoke_of_address(unit, other))
    assert [row.email for row in look_up(instance, KATE)] == [KATE]
    with pytest.raises(tokens.NoSuchUser):
        make_token(instance, "kate@großbank.example\u200d")
    make_token(instance, KATE)


@look_alikes
def test_the_erasure_of_one_leaves_the_other(instance: Served, other: str) -> None:
    add(instance)
    add(instance, other, "user-other")
    invited(instance, other)
    signer, files = Signer(Settings().event_key_file), contents()
    change(instance.database, lambda unit: erase(unit, ErasureRequest(KATE), signer, files))
    assert [row["email"] for row in stored.rows(instance.database, User, id="user-kate")] == [None]
    assert [row["email"] for row in stored.rows(instance.database, User, id="user-other")] == [other]
    assert [row["email"] for row in stored.rows(instance.database, Invitation, email=other)] == [other]


def test_an_erasure_finds_every_way_to_write_an_address(instance: Served) -> None:
    invited(instance, A_LABEL)
    add(instance, GERMAN)
    task = {"id": "task-of-kate", "organizationId": world.ALPHA, "title": f"Write to {A_LABEL} and {GERMAN}"}
    instance.load({"tasks": [task]})
    signer, files = Signer(Settings().event_key_file), contents()
    change(instance.database, lambda unit: erase(unit, ErasureRequest(GERMAN), signer, files))
    (row,) = stored.rows(instance.database, Task, id="task-of-kate")
    assert row["title"] == "Write to [erased] and [erased]"
    assert stored.rows(instance.database, Invitation, email=A_LABEL) == []


def look_up(instance: Served, email: str) -> Sequence[Any]:
    """The open invitations to an address."""
    return as_service(instance.url, lambda service: service.look_up(INVITATIONS_OF_ADDRESS, email_key(email)))


def make_token(instance: Served, email: str) -> None:
    """Make a token as the command does."""
    change(instance.database, lambda unit: tokens.create(unit, email=email, scope="read", lifetime=timedelta(hours=1)))


@on_both
def test_members_and_invitations_are_found_by_address(service: Served) -> None:
    """In any case, as people are; a text that is no address finds nobody."""
    headers = service.bearer("admin", scope="admin")
    for path in ("/members/", "/invitations/"):
        for address in ("new@alpha.example", "new@alpha.exampl", "other@alpha.example"):
            body = {"organizationId": world.ALPHA, "email": address, "role": "viewer"}
            assert service.client.post("/invitations/", json=body, headers=headers).status_code == 201

        def found(*emails: str, path: str = path) -> set[str]:
            answer = service.client.get(
                path, params={"organizationId": world.ALPHA, "email": [*emails]}, headers=headers
            )
            assert answer.status_code == 200, answer.text
            assert answer.json()["total"] == len(answer.json()["items"])
            return {item["email"] for item in answer.json()["items"]}

        known = ("admin@alpha.example", "viewer@alpha.example")
        one, other = known if path == "/members/" else ("new@alpha.example", "other@alpha.example")
        assert found(one) == found(one.upper()) == {one}
        assert found(one, other, "nobody@alpha.example") == {one, other}
        assert found("nobody@alpha.example", "alpha.example", "", "%") == set()
