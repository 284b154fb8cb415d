"""Invitations: who is invited, and what accepting makes of them."""

from __future__ import annotations

import pytest

from normata.core.db.database import Database
from normata.core.schema.addresses import email_key
from normata.errors import AlreadyMember, InvitationClosed
from normata.identity.invitations import invitations
from normata.identity.invitations.invitations import INVITATIONS_OF_ADDRESS
from normata.identity.model import Invitation, Membership, User
from tests import stored
from tests.databases import change, on_both, tamper
from tests.identity.inviting import accept, accept_found, as_service, find, invite
from tests.world import ALPHA, BETA, USERS


@on_both
def test_who_is_new_becomes_a_user_and_a_member(database: Database, database_url: str) -> None:
    invited = invite(database, "New.Person@example.org", "admin")
    user_id = accept(database_url, invited.secret, " New Person ")
    user = stored.row(database, User, user_id)
    assert (user["email"], user["name"], user["removed_at"]) == ("New.Person@example.org", "New Person", None)
    (member,) = stored.rows(database, Membership, user_id=user_id)
    assert (member["organization_id"], member["role"], member["removed_at"]) == (ALPHA, "admin", None)
    row = stored.row(database, Invitation, invited.invitation.id)
    assert row["accepted_at"] is not None
    assert invited.secret not in str(row)
    events = {(event["action"], event["entity_type"]) for event in stored.events(database)}
    assert events == {("accept", "Invitation"), ("create", "User"), ("create", "Membership")}
    assert invited.secret not in str(stored.everything(database))


def test_who_gives_no_name_is_called_by_the_address(database: Database, database_url: str) -> None:
    user_id = accept(database_url, invite(database, "new@example.org").secret, "  ")
    assert stored.row(database, User, user_id)["name"] == "new@example.org"


def test_who_has_an_account_already_keeps_it(database: Database, database_url: str) -> None:
    """However the address is spelled; and is asked for no name."""
    invited = invite(database, USERS["foreigner"].upper(), "viewer")
    found = find(database_url, invited.secret)
    assert found is not None
    assert (found.user_id, found.user_name, found.organization_name) == ("user-foreigner", "Foreigner", "Alpha")
    assert accept_found(database_url, found, "Another Name") == "user-foreigner"
    assert stored.row(database, User, "user-foreigner")["name"] == "Foreigner"
    members = stored.rows(database, Membership, user_id="user-foreigner")
    assert {(member["organization_id"], member["role"]) for member in members} == {(ALPHA, "viewer"), (BETA, "owner")}


@on_both
def test_who_was_a_member_becomes_one_again(database: Database, database_url: str) -> None:
    """By the same membership, since records name it, but with the new role."""
    tamper(
        database,
        "UPDATE membership SET removed_at = '2026-05-06 07:08:09.123' WHERE id = 'member-editor'",
        "UPDATE user_account SET removed_at = '2026-05-06 07:08:09.123' WHERE id = 'user-editor'",
    )
    accept(database_url, invite(database, USERS["editor"], "viewer").secret)
    member = stored.row(database, Membership, "member-editor")
    assert (member["role"], member["removed_at"]) == ("viewer", None)
    assert stored.row(database, User, "user-editor")["removed_at"] is None


def test_an_invitation_is_good_once(database: Database, database_url: str) -> None:
    found = find(database_url, invite(database, "new@example.org").secret)
    accept_found(database_url, found)
    with pytest.raises(InvitationClosed):
        accept_found(database_url, found)


def test_an_expired_invitation_is_no_good(database: Database, database_url: str) -> None:
    invited = invite(database, "new@example.org")
    found = find(database_url, invited.secret)
    tamper(database, "UPDATE invitation SET expires_at = '2026-05-06 07:08:09.123'")
    assert find(database_url, invited.secret) is None
    with pytest.raises(InvitationClosed):
        accept_found(database_url, found)


def test_a_revoked_invitation_is_no_good(database: Database, database_url: str) -> None:
    invited = invite(database, "new@example.org")
    found = find(database_url, invited.secret)
    for _ in range(2):  # twice is harmless
        change(database, lambda unit: invitations.revoke(unit, invited.invitation.id))
    assert find(database_url, invited.secret) is None
    with pytest.raises(InvitationClosed):
        accept_found(database_url, found)


def test_what_was_accepted_cannot_be_revoked(database: Database, database_url: str) -> None:
    invited = invite(database, "new@example.org")
    accept(database_url, invited.secret)
    with pytest.raises(InvitationClosed):
        change(database, lambda unit: invitations.revoke(unit, invited.invitation.id))


def test_to_invite_again_ends_the_earlier_invitation(database: Database, database_url: str) -> None:
    first, second = (invite(database, email) for email in ("new@example.org", "NEW@example.org"))
    elsewhere = invite(database, "new@example.org", organization_id=BETA)
    assert find(database_url, first.secret) is None
    assert find(database_url, second.secret) is not None
    assert find(database_url, elsewhere.secret) is not None


def test_a_member_cannot_be_invited(database: Database) -> None:
    with pytest.raises(AlreadyMember) as raised:
        invite(database, USERS["viewer"].title())
    assert raised.value.conflicting_id == "member-viewer"


def test_nothing_is_found_without_the_secret(database: Database, database_url: str) -> None:
    invited = invite(database, "new@example.org")
    for secret in ("", "x", invited.secret[:-1], invited.secret + "x", "\ud800"):
        assert find(database_url, secret) is None


def test_open_invitations_are_found_by_the_address(database: Database, database_url: str) -> None:
    """For a provider that has found out that somebody has it."""
    for organization_id in (ALPHA, BETA):
        invite(database, "New@example.org", organization_id=organization_id)
    invite(database, "other@example.org")

    rows = as_service(
        database_url, lambda service: service.look_up(INVITATIONS_OF_ADDRESS, email_key("NEW@example.org"))
    )
    assert [row.organization_id for row in rows] == [ALPHA, BETA]


def test_an_invitation_to_an_organization_that_is_removed_is_no_good(database: Database, database_url: str) -> None:
    invited = invite(database, "new@example.org")
    tamper(database, f"UPDATE organization SET removed_at = '2026-05-06 07:08:09.123' WHERE id = '{ALPHA}'")
    assert find(database_url, invited.secret) is None
