"""Which user a person of the provider becomes, and with which roles."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from normata.events.model import AuditEvent
from normata.identity.model import Invitation, Membership, User
from normata.identity.sign_in_model import ExternalIdentity
from tests import stored, world
from tests.console.browser import Browser, text_of
from tests.console.single_sign_on import assert_refused, back, begun, instance_of, invited, logged, sign_in
from tests.databases import on_both
from tests.identity.openid.forging import Forger, running_forger
from tests.served import Served

EMAIL = world.USERS["editor"]
NEW = "grace@example.org"


@pytest.fixture
def forger() -> Iterator[Forger]:
    """The provider, which knows nobody yet."""
    with running_forger() as running:
        yield running


@pytest.fixture
def instance(database_url: str, forger: Forger) -> Iterator[Served]:
    """The shipped application with this provider."""
    with instance_of(database_url, forger.issuer) as application:
        yield application


def knows(forger: Forger, subject: str, email: str, *groups: str) -> None:
    forger.person = {"sub": subject, "email": email, "email_verified": True, "name": "Grace", "groups": list(groups)}


def arrives(instance: Served, forger: Forger) -> str:
    """What the page of somebody's account says who signs in."""
    browser = Browser(instance)
    answer = sign_in(browser, forger)
    assert answer.status_code == 303, text_of(answer)
    return text_of(browser.get("/account/"))


def refused_as(instance: Served, forger: Forger, cause: str) -> None:
    browser = Browser(instance)
    with logged() as log:
        assert_refused(browser, sign_in(browser, forger), log, cause)


def roles(instance: Served, user_id: str) -> dict[str, str]:
    """The organizations that somebody is a member of, with their roles."""
    rows = stored.rows(instance.database, Membership, user_id=user_id)
    return {row["organization_id"]: row["role"] for row in rows if row["removed_at"] is None}


# --- Addresses


def test_an_address_leads_to_a_user_once(instance: Served, forger: Forger) -> None:
    knows(forger, "first", EMAIL)
    assert "Editor" in arrives(instance, forger)
    (identity,) = stored.rows(instance.database, ExternalIdentity)
    assert (identity["user_id"], identity["issuer"], identity["subject"]) == ("user-editor", forger.issuer, "first")

    knows(forger, "second", EMAIL)  # the provider has given the address to somebody else
    refused_as(instance, forger, "other_identity")
    assert len(stored.rows(instance.database, ExternalIdentity)) == 1


@on_both
def test_whoever_is_invited_becomes_a_user_and_a_member(instance: Served, forger: Forger) -> None:
    invited(instance, NEW.upper(), "viewer")
    invited(instance, NEW, "admin", world.BETA)
    knows(forger, "grace", NEW)
    page = arrives(instance, forger)
    for told in ("Grace", "Alpha", "Viewer", "Beta", "Admin"):
        assert told in page
    (user,) = stored.rows(instance.database, User, email_folded=NEW)
    assert user["name"] == "Grace"
    assert roles(instance, user["id"]) == {world.ALPHA: "viewer", world.BETA: "admin"}
    assert all(row["accepted_at"] for row in stored.rows(instance.database, Invitation, email_folded=NEW))

    assert "Grace" in arrives(instance, forger)  # again
    assert len(stored.rows(instance.database, ExternalIdentity)) == 1
    told = repr(stored.rows(instance.database, AuditEvent))
    assert NEW not in told
    assert "'grace'" not in told


MEANS = {
    "password": "INSERT INTO password (user_id, hash, changed_at) VALUES ('user-editor', 'x', '2026-01-02 00:00:00')",
    "passkey": "INSERT INTO passkey (id, user_id, credential_id, credential, sign_count, name, created_at)"
    " VALUES ('p', 'user-editor', 'x', 'x', 0, 'x', '2026-01-02 00:00:00')",
    "session": "INSERT INTO session (id, user_id, digest, means, created_at, last_used_at, expires_at, address,"
    " user_agent) VALUES ('s', 'user-editor', 'x', 'link', '2026-01-02 00:00:00', '2026-01-02 00:00:00', {}, '', '')",
    "token": "INSERT INTO access_token (id, user_id, digest, scope, created_at, expires_at)"
    " VALUES ('t', 'user-editor', 'x', 'read', '2026-01-02 00:00:00', {})",
}


@pytest.mark.parametrize("means", MEANS)
@on_both
def test_an_account_that_somebody_can_act_with_is_not_given_away_by_its_address(
    instance: Served, forger: Forger, means: str
) -> None:
    """They may have accepted an invitation to an address that is not theirs."""
    instance.sql(MEANS[means].format("'2126-01-02T00:00:00.000Z'"))
    knows(forger, "ada", EMAIL)
    refused_as(instance, forger, "account_not_connected")
    assert stored.rows(instance.database, ExternalIdentity) == []


@pytest.mark.parametrize("means", ["session", "token"])
def test_what_has_expired_is_in_nobodys_way(instance: Served, forger: Forger, means: str) -> None:
    instance.sql(MEANS[means].format("'2026-01-03T00:00:00.000Z'"))
    knows(forger, "ada", EMAIL)
    assert "Editor" in arrives(instance, forger)


@pytest.mark.parametrize("is_connected", [True, False])
def test_whoever_has_an_account_accepts_invitations_as_well(
    instance: Served, forger: Forger, is_connected: bool
) -> None:
    knows(forger, "ada", EMAIL)
    if is_connected:
        arrives(instance, forger)
    invited(instance, EMAIL, "admin", world.BETA)
    invited(instance, NEW, "admin", world.BETA)  # for somebody else
    arrives(instance, forger)
    assert roles(instance, "user-editor") == {world.ALPHA: "editor", world.BETA: "admin"}

    knows(forger, "ada", NEW)  # they have another address at the provider now, which is invited: not as this user
    arrives(instance, forger)
    assert stored.rows(instance.database, User, email_folded=NEW) == []


@pytest.mark.parametrize("end", ["revoked_at", "expires_at"])
def test_an_invitation_that_is_over_lets_nobody_in(instance: Served, forger: Forger, end: str) -> None:
    invited(instance, NEW)
    instance.sql(f"UPDATE invitation SET {end} = '2026-01-02 00:00:00.000'")
    knows(forger, "grace", NEW)
    refused_as(instance, forger, "not_invited")
    assert stored.rows(instance.database, User, email_folded=NEW) == []


@on_both
def test_an_operator_is_not_given_away_by_an_address(instance: Served, forger: Forger) -> None:
    instance.sql("INSERT INTO operator (user_id, since) VALUES ('user-editor', '2026-01-02 00:00:00.000')")
    knows(forger, "ada", EMAIL)
    refused_as(instance, forger, "operator_not_connected")
    assert stored.rows(instance.database, ExternalIdentity) == []


@pytest.mark.parametrize("is_connected", [True, False])
def test_whoever_was_removed_stays_out_until_invited_again(
    instance: Served, forger: Forger, is_connected: bool
) -> None:
    knows(forger, "ada", EMAIL)
    if is_connected:
        arrives(instance, forger)
    instance.sql(
        "UPDATE user_account SET removed_at = '2026-01-02 00:00:00.000' WHERE id = 'user-editor'",
        "UPDATE membership SET removed_at = '2026-01-02 00:00:00.000' WHERE user_id = 'user-editor'",
    )
    refused_as(instance, forger, "user_removed")
    invited(instance, EMAIL, "viewer")
    assert "Viewer" in arrives(instance, forger)
    assert roles(instance, "user-editor") == {world.ALPHA: "viewer"}
    assert len(stored.rows(instance.database, ExternalIdentity)) == 1


def test_an_address_of_a_service_account_or_none_leads_nowhere(instance: Served, forger: Forger) -> None:
    instance.sql("UPDATE user_account SET organization_id = 'org-alpha' WHERE id = 'user-editor'")
    knows(forger, "ada", EMAIL)
    refused_as(instance, forger, "not_invited")


def test_a_new_session_takes_the_place_of_the_old_one(instance: Served, forger: Forger) -> None:
    knows(forger, "ada", EMAIL)
    browser = Browser(instance)
    assert sign_in(browser, forger).status_code == 303
    before = browser.cookies["normata-session"]
    assert sign_in(browser, forger).status_code == 303
    assert browser.cookies["normata-session"] != before
    other = Browser(instance)
    other.client.cookies.set("normata-session", before)
    assert other.get("/account/").status_code == 303


@on_both
def test_four_tabs_of_one_new_person_at_once_are_one_user(instance: Served, forger: Forger) -> None:
    invited(instance, NEW)
    knows(forger, "grace", NEW)
    tabs = [Browser(instance) for _ in range(4)]
    answers = [forger.authorize(begun(tab)) for tab in tabs]
    with ThreadPoolExecutor(len(tabs)) as threads:
        pages = list(threads.map(back, tabs, answers))
    assert [page.status_code for page in pages] == [303] * 4
    assert len(stored.rows(instance.database, User, email_folded=NEW)) == 1
    assert len(stored.rows(instance.database, ExternalIdentity)) == 1


@on_both
def test_two_people_with_one_address_at_once_are_not_one_user(instance: Served, forger: Forger) -> None:
    knows(forger, "", EMAIL)
    subjects = iter(["a", "b", "c", "d"])
    forger.sign = lambda header, claims: forger.signed(header, {**claims, "sub": next(subjects)})
    tabs = [Browser(instance) for _ in range(4)]
    answers = [forger.authorize(begun(tab)) for tab in tabs]
    with ThreadPoolExecutor(len(tabs)) as threads:
        pages = list(threads.map(back, tabs, answers))
    assert sorted(page.status_code for page in pages) == [303, 403, 403, 403]
    assert len(stored.rows(instance.database, ExternalIdentity)) == 1


# --- Groups


@pytest.fixture
def with_groups(database_url: str, forger: Forger) -> Iterator[Served]:
    """The application, where groups give roles in one organization; another that is named there is none."""
    given = "staff=alpha:viewer, admins=org-alpha:admin, chiefs=alpha:owner, staff=beta:viewer, staff=gamma:viewer"
    with instance_of(database_url, forger.issuer, oidc_roles=given) as application:
        application.sql("DELETE FROM provisioned_person")  # whom SCIM maintains stays without a group
        yield application


def arrive_with(instance: Served, forger: Forger, user: str, *groups: str) -> dict[str, str]:
    """The roles of a user of the world who signs in with these groups."""
    knows(forger, f"subject-{user}", world.USERS[user], *groups)
    arrives(instance, forger)
    return roles(instance, f"user-{user}")


@on_both
def test_groups_give_roles_and_take_them(with_groups: Served, forger: Forger) -> None:
    # The editor's role is no group's, so it stays.
    assert arrive_with(with_groups, forger, "editor") == {world.ALPHA: "editor"}
    assert arrive_with(with_groups, forger, "editor", "staff") == {world.ALPHA: "editor", world.BETA: "viewer"}
    assert arrive_with(with_groups, forger, "editor", "admins", "staff") == {world.ALPHA: "admin", world.BETA: "viewer"}
    assert arrive_with(with_groups, forger, "editor", "staff") == {world.ALPHA: "viewer", world.BETA: "viewer"}
    assert arrive_with(with_groups, forger, "editor", "others") == {}
    assert arrive_with(with_groups, forger, "editor", "chiefs") == {world.ALPHA: "owner"}
    # Nobody is a member twice.
    assert len(stored.rows(with_groups.database, Membership, user_id="user-editor")) == 2


@on_both
def test_the_last_owner_stays_whatever_the_groups_say(with_groups: Served, forger: Forger) -> None:
    with logged() as log:
        assert arrive_with(with_groups, forger, "owner", "others") == {world.ALPHA: "owner"}
    assert [line["organizations"] for line in log.lines if line["event"] == "sign_in_last_owner_not_demoted"] == [
        ["org-alpha"]
    ]
    arrive_with(with_groups, forger, "editor", "chiefs")
    assert arrive_with(with_groups, forger, "owner", "others") == {}


def test_groups_leave_the_end_that_an_admin_has_set(with_groups: Served, forger: Forger) -> None:
    """And bring nobody back who is out since then."""
    for end, role in (("2126-01-01T00:00:00.000Z", "admin"), ("2026-01-01T00:00:00.000Z", "admin")):
        with_groups.sql(f"UPDATE membership SET expires_at = '{end}' WHERE id = 'member-editor'")
        assert arrive_with(with_groups, forger, "editor", "admins" if end > "2100" else "staff")[world.ALPHA] == role
        assert stored.row(with_groups.database, Membership, "member-editor")["expires_at"] == end


def test_groups_do_not_invite(with_groups: Served, forger: Forger) -> None:
    knows(forger, "grace", NEW, "admins")
    refused_as(with_groups, forger, "not_invited")


@on_both
def test_whom_groups_give_a_role_joins_without_an_invitation(database_url: str, forger: Forger) -> None:
    """Nobody else does, and no account of another is taken over by that."""
    given = "staff=alpha:viewer, admins=alpha:admin, staff=gamma:viewer"
    with instance_of(database_url, forger.issuer, oidc_roles=given, oidc_join="groups") as instance:
        for subject, email, groups, cause in (
            ("grace", NEW, (), "not_invited"),
            ("grace", NEW, ("others",), "not_invited"),
            ("operator", world.USERS["operator"], ("staff",), "operator_not_connected"),
        ):
            knows(forger, subject, email, *groups)
            refused_as(instance, forger, cause)
        knows(forger, "grace", NEW, "staff", "admins")
        forger.person["email_verified"] = False
        refused_as(instance, forger, "email_not_verified")
        knows(forger, "grace", NEW, "staff", "admins")
        assert "Grace" in arrives(instance, forger)
        (made,) = stored.rows(instance.database, User, email=NEW)
        assert roles(instance, made["id"]) == {world.ALPHA: "admin"}
        knows(forger, "another", NEW, "staff")
        refused_as(instance, forger, "other_identity")
        instance.sql(f"UPDATE user_account SET removed_at = '{world.EARLIER}' WHERE id = '{made['id']}'")
        knows(forger, "another", NEW, "staff")
        refused_as(instance, forger, "other_identity")


def test_groups_that_are_elsewhere_take_nothing(with_groups: Served, forger: Forger) -> None:
    arrive_with(with_groups, forger, "editor", "admins")
    del forger.person["groups"]
    forger.person["_claim_names"] = {"groups": "src1"}
    refused_as(with_groups, forger, "groups_elsewhere")
    assert roles(with_groups, "user-editor") == {world.ALPHA: "admin"}


def test_an_organization_that_is_none_is_told_in_the_log(with_groups: Served, forger: Forger) -> None:
    with logged() as log:
        arrive_with(with_groups, forger, "viewer", "staff")
    assert [line["organizations"] for line in log.lines if line["event"] == "sign_in_organization_unknown"] == [
        ["gamma"]
    ]


@on_both
def test_roles_by_groups_are_in_the_log_of_events(with_groups: Served, forger: Forger) -> None:
    arrive_with(with_groups, forger, "editor", "admins")
    events = stored.events(with_groups.database, entity_type="Membership", organization_id=world.ALPHA)
    assert [(event["action"], event["user_id"]) for event in events] == [("update", "user-editor")]
