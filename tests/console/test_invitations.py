"""Accepting an invitation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from normata.core.http.roles import Role
from normata.identity.invitations import invitations
from normata.identity.model import Invitation, Membership, User
from normata.identity.sign_in_model import Session
from tests import stored
from tests.console.browser import Browser, is_refused, text_of
from tests.databases import change, on_both
from tests.served import Served, run_sql, served
from tests.world import ALPHA

SignIn = Callable[[Browser, str], None]

NEW = "Nora.New@alpha.example"


def invite(instance: Served, email: str = NEW, role: Role = "editor") -> str:
    """The secret of a new invitation to alpha."""
    return change(instance.database, lambda unit: invitations.invite(unit, ALPHA, email, role)).secret


@on_both
def test_somebody_new_accepts_and_is_signed_in(browser: Browser, instance: Served) -> None:
    secret = invite(instance)
    for _ in range(2):  # a scanner of mail opens it, too
        page = text_of(browser.get(f"/sign-in/invitation/?secret={secret}"))
        assert "Alpha" in page
        assert NEW in page
        assert "Editor" in page
    assert stored.rows(instance.database, Invitation, accepted_at=None)

    answer = browser.post("/sign-in/invitation/", secret=secret, name=" Nora New ")

    assert (answer.status_code, answer.headers["location"]) == (303, f"/app/?joined={ALPHA}&new=true")
    led_on = browser.get(answer.headers["location"])
    assert (led_on.status_code, led_on.headers["location"]) == (303, "/app/alpha/?done=joined")
    assert "To be able to sign in next time" in text_of(browser.get(led_on.headers["location"]))
    (user,) = stored.rows(instance.database, User, email=NEW)
    assert user["name"] == "Nora New"
    (member,) = stored.rows(instance.database, Membership, user_id=user["id"])
    assert (member["organization_id"], member["role"]) == (ALPHA, "editor")
    (session,) = stored.sessions(instance.database)
    assert (session["user_id"], session["means"]) == (user["id"], "invitation")
    page = text_of(browser.get("/account/"))
    assert "Nora New" in page
    assert "You have no way to sign in again" in page
    assert browser.post("/account/password/", password="a heron stands in the reeds").status_code == 303
    assert "You have no way to sign in again" not in text_of(browser.get("/account/"))


def test_who_is_signed_in_as_somebody_else_accepts_for_a_new_person(
    browser: Browser, instance: Served, sign_in: SignIn
) -> None:
    """An owner tries the link in their own browser, and is the new person there from then on."""
    sign_in(browser, "owner")
    assert browser.post("/sign-in/invitation/", secret=invite(instance), name="Nora").status_code == 303
    (user,) = stored.rows(instance.database, User, email=NEW)
    (member,) = stored.rows(instance.database, Membership, user_id=user["id"])
    assert member["organization_id"] == ALPHA
    (session,) = stored.rows(instance.database, Session, ended_at=None, user_id=user["id"])
    assert session["means"] == "invitation"


def test_an_invitation_is_accepted_once(browser: Browser, instance: Served) -> None:
    secret = invite(instance)
    browser.post("/sign-in/invitation/", secret=secret, name="Nora")
    other = Browser(instance)
    assert is_refused(other.get(f"/sign-in/invitation/?secret={secret}"))
    assert is_refused(other.post("/sign-in/invitation/", secret=secret, name="Mallory"))
    assert other.cookies == {}


@pytest.mark.parametrize("column", ["expires_at", "revoked_at"])
def test_one_that_is_over_is_refused(browser: Browser, instance: Served, column: str) -> None:
    secret = invite(instance)
    run_sql(instance.database, f"UPDATE invitation SET {column} = '2026-01-01T00:00:00.000Z'")
    assert is_refused(browser.post("/sign-in/invitation/", secret=secret, name="Nora"))
    assert is_refused(browser.post("/sign-in/invitation/", secret="A" * 43, name="Nora"))
    assert is_refused(browser.post("/sign-in/invitation/", secret="short", name="Nora"))
    assert stored.rows(instance.database, User, email=NEW) == []


def test_who_has_an_account_must_sign_in_to_it(browser: Browser, instance: Served, sign_in: SignIn) -> None:
    # Whoever invites somebody knows the link: it must not let them in as that person, nor make a member of somebody
    # else who has come by the account with this address.
    secret = invite(instance, "owner@beta.example", "viewer")
    asked = browser.get(f"/sign-in/invitation/?secret={secret}")
    assert "An account with this address exists" in text_of(asked)
    assert "<form" not in asked.text
    for other in (None, "viewer"):
        if other:
            sign_in(browser, other)
        assert is_refused(browser.post("/sign-in/invitation/", secret=secret))
    assert stored.rows(instance.database, Membership, user_id="user-foreigner", organization_id=ALPHA) == []
    sign_in(browser, "foreigner")
    assert "<form" in browser.get(f"/sign-in/invitation/?secret={secret}").text
    accepted = browser.post("/sign-in/invitation/", secret=secret)
    assert browser.get(accepted.headers["location"]).headers["location"] == "/app/alpha/?done=member"
    page = text_of(browser.get("/app/alpha/?done=member"))
    assert "You are a member now." in page
    assert "sign in next time" not in page
    page = text_of(browser.get("/account/"))
    assert "Alpha" in page
    assert "Beta" in page


def test_accepting_signs_out_who_was_signed_in(browser: Browser, instance: Served, sign_in: SignIn) -> None:
    sign_in(browser, "viewer")
    secret = invite(instance)
    assert "You are signed in as Viewer" in text_of(browser.get(f"/sign-in/invitation/?secret={secret}"))
    assert browser.post("/sign-in/invitation/", secret=secret, name="Nora").status_code == 303
    assert [row["user_id"] for row in stored.sessions(instance.database, ended_at=None)] != ["user-viewer"]
    assert len(stored.sessions(instance.database, ended_at=None)) == 1


def test_where_local_sign_in_is_off_the_page_says_so(sqlite_url: str) -> None:
    with served(sqlite_url, local_sign_in=False) as instance:
        browser, secret = Browser(instance), invite(instance)
        page = browser.get(f"/sign-in/invitation/?secret={secret}")
        assert "Signing in here requires single sign-on" in text_of(page)
        assert "<form" not in page.text
        assert is_refused(browser.post("/sign-in/invitation/", secret=secret, name="Nora"))
