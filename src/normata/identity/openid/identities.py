"""Finding the user of a provider's identity.

A person is identified by an issuer and a subject; the email address is used only at the first sign-in. It gives a
person the invitations to this address, or a user who was invited and has never signed in with this provider. So the
provider must have verified the address, and it gives nothing else:

- A user who has signed in with this provider before, as another subject, is not connected with a new one: the provider
  may have given the address of somebody who left to somebody else.
- An operator is never connected by an address. They connect their account themselves, after signing in by other means.
- Neither is an account that is already in use, with a password, a passkey, a token or a session. Nobody has proved that
  the address is theirs: the person who accepted an earlier invitation, even the inviting admin, may have set these up.
  After a connection they would see everything that the owner of the address gets later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, insert, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of, update_of
from normata.core.db.database import Database
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import Transaction
from normata.core.db.types import UtcTimestamp, now, text
from normata.core.schema.addresses import email_key
from normata.core.schema.table import new_id, sql_table
from normata.errors import NotFound
from normata.identity import users
from normata.identity.errors import SignInRefused
from normata.identity.invitations.invitations import ACCEPTING_WRITES, INVITATIONS_OF_ADDRESS, accept
from normata.identity.model import Operator, User
from normata.identity.openid.person import Person
from normata.identity.sign_in_model import ExternalIdentity

CONNECT_WRITES = (insert_of(ExternalIdentity),)
DISCONNECT_WRITES = (delete_of(ExternalIdentity),)
IDENTITY_WRITES = (*CONNECT_WRITES, update_of(ExternalIdentity, "last_used_at"), *ACCEPTING_WRITES)


class Known(NamedTuple):
    """The user of a person, or the one that they become.

    ``identity_id`` is null if the user must first be connected with the person. ``invitations`` are those that the
    person accepts by signing in; ``is_new`` is true if this creates the user.
    """

    user_id: str
    user_name: str
    identity_id: str | None
    invitations: tuple[Any, ...] = ()
    is_new: bool = False

    @property
    def organizations(self) -> tuple[str, ...]:
        """The organizations that the person joins by signing in."""
        return tuple(row.organization_id for row in self.invitations)


async def find(database: Database, person: Person, *, joins: bool = False) -> Known:
    """The user of a person, or the one that they may become, without an invitation if the person ``joins`` by a group.

    Raises SignInRefused, and Unavailable.
    """
    invited = await _invitations(database, person)
    try:
        known = await _connected(database, person, invited)
        return known or await _to_connect(database, person, invited, joins=joins)
    except SignInRefused:
        # Another tab of theirs may have signed them in between these reads.
        known = await _connected(database, person, await _invitations(database, person))
        if known is None:
            raise
        return known


async def _connected(database: Database, person: Person, invited: Sequence[Any]) -> Known | None:
    """The user that the person is connected with, null for none."""
    for row in await database.look_up(IDENTITY_LOOKUP, person.issuer, person.subject):
        return _known(row, row.identity_id, invited)
    return None


async def _to_connect(database: Database, person: Person, invited: tuple[Any, ...], *, joins: bool) -> Known:
    """The user that the person may be connected with, or becomes. Raises SignInRefused."""
    if person.email is None:
        raise SignInRefused("email_not_verified")
    for row in await database.look_up(ADDRESS_LOOKUP, email_key(person.email), person.issuer):
        if row.operator is not None:
            raise SignInRefused("operator_not_connected")
        if row.other_identity is not None:
            raise SignInRefused("other_identity")
        if row.removed_at is None and _is_in_use(row):
            raise SignInRefused("account_not_connected")
        return _known(row, None, invited)
    if not invited and not joins:
        raise SignInRefused("not_invited")
    return Known(new_id(), person.name or person.email, None, invited, is_new=True)


def _is_in_use(user: Any) -> bool:
    """Whether the account is already in use without the provider."""
    until = [moment for moment in (user.session_until, user.token_until) if moment is not None]
    return user.credential is not None or any(moment > now() for moment in until)


def _known(user: Any, identity_id: str | None, invited: Sequence[Any]) -> Known:
    """An existing user with their invitations. A removed user may have been invited again."""
    theirs = tuple(invitation for invitation in invited if invitation.user_id == user.user_id)
    if user.removed_at is not None and not theirs:
        raise SignInRefused("user_removed")
    return Known(user.user_id, user.user_name, identity_id, theirs)


async def _invitations(database: Database, person: Person) -> tuple[Any, ...]:
    """The open invitations to the address that the provider has verified."""
    if person.email is None:
        return ()
    found = await database.look_up(INVITATIONS_OF_ADDRESS, email_key(person.email))
    return tuple(row for row in found if row.expires_at > now())


def sign_in(unit: UnitOfWork, known: Known, person: Person) -> None:
    """Sign in as the user who was found: accept the invitations, or without any make a new user; connect the person.

    ``unit`` has the user and the organizations of ``known`` in its scope, and may write IDENTITY_WRITES. Raises
    SignInRefused where the user may not be connected any more, and InvitationClosed.
    """
    user_id = None if known.is_new else known.user_id
    if known.is_new and not known.invitations:
        users.create(unit, known.user_id, email=person.email, name=person.name or "")
    for invitation in known.invitations:
        user_id = accept(unit, invitation._replace(user_id=user_id), person.name or "")
    if known.identity_id is None:
        _require_connectable(unit, known.user_id)
        connect(unit, known.user_id, person)
        return
    used = unit.row(_USE, {"identity": known.identity_id, "moment": unit.moment})
    if used is None:
        raise SignInRefused("user_removed")
    row = used._asdict()
    unit.publish(Change("use", ExternalIdentity, None, used.id, row, changed=("last_used_at",)))


def connect(unit: UnitOfWork, user_id: str, person: Person) -> None:
    """Connect a person with a user. Raises SignInRefused if another person of the provider is connected with this user.

    Two people with one address, who sign in at the same time, must not both become the user.
    """
    unit.lock(f"identities of {user_id}")
    if unit.scalar(_OTHER, {"user": user_id, "issuer": person.issuer}) is not None:
        raise SignInRefused("other_identity")
    row = {
        "id": new_id(),
        "user_id": user_id,
        "issuer": person.issuer,
        "created_at": unit.moment,
        "last_used_at": unit.moment,
    }
    unit.rows(_CONNECT, row | {"subject": person.subject})
    unit.publish(Change("connect", ExternalIdentity, None, row["id"], row))


def disconnect(unit: UnitOfWork, user_id: str, identity_id: str) -> None:
    """Disconnect a person of a provider from their user. Raises NotFound."""
    row = unit.row(_DISCONNECT, {"identity": identity_id, "user": user_id})
    if row is None:
        raise NotFound
    unit.publish(Change("disconnect", ExternalIdentity, None, row.id, None, row._asdict()))


async def require_unknown(database: Database, person: Person) -> None:
    """Raise SignInRefused if a person is already connected with a user, even a removed one."""
    if await database.look_up(IDENTITY_LOOKUP, person.issuer, person.subject):
        raise SignInRefused("identity_taken")


def own(transaction: Transaction, user_id: str) -> list[Any]:
    """The connected identities of a user, the oldest first; without the subjects."""
    return transaction.rows(_OWN, {"user": user_id})


def _require_connectable(unit: UnitOfWork, user_id: str) -> None:
    """Check again within the transaction: operators and removed users are not connected by an address."""
    parameters = {"user": user_id}
    if unit.scalar(_OPERATOR, parameters) is not None:
        raise SignInRefused("operator_not_connected")
    user = unit.row(_USER_ROW, parameters)
    if user is None or user.removed_at is not None:
        raise SignInRefused("user_removed")


def _identity(issuer: str, subject: str, *, source: str, number: str) -> str:
    return (
        f"SELECT {number and number + ','} identity.id AS identity_id, account.id AS user_id,"  # noqa: S608 - built from constants
        " account.name AS user_name, account.removed_at"
        f" FROM {source and source + ' JOIN'} external_identity AS identity"
        f" {source and f'ON identity.issuer = {issuer} AND identity.subject = {subject}'}"
        " JOIN user_account AS account ON account.id = identity.user_id"
        f" WHERE identity.issuer = {issuer} AND identity.subject = {subject}"
        f" ORDER BY {number and number + ','} identity.id"
    )


def _address(email: str, issuer: str, *, source: str, number: str) -> str:
    return (
        f"SELECT {number and number + ','} account.id AS user_id, account.name AS user_name, account.removed_at,"  # noqa: S608 - built from constants
        " operator.user_id AS operator,"
        " (SELECT identity.id FROM external_identity AS identity WHERE identity.user_id = account.id"
        f" AND identity.issuer = {issuer} ORDER BY identity.id LIMIT 1) AS other_identity,"
        " CASE WHEN EXISTS (SELECT 1 FROM password WHERE password.user_id = account.id)"
        " OR EXISTS (SELECT 1 FROM passkey WHERE passkey.user_id = account.id)"
        " OR EXISTS (SELECT 1 FROM access_token AS token WHERE token.user_id = account.id"
        " AND token.revoked_at IS NULL AND token.expires_at IS NULL) THEN account.id END AS credential,"
        " (SELECT max(session.expires_at) FROM session WHERE session.user_id = account.id"
        " AND session.ended_at IS NULL) AS session_until,"
        " (SELECT max(token.expires_at) FROM access_token AS token WHERE token.user_id = account.id"
        " AND token.revoked_at IS NULL) AS token_until"
        f" FROM {source and source + ' JOIN'} user_account AS account {source and f'ON account.email_folded = {email}'}"
        " LEFT JOIN operator ON operator.user_id = account.id"
        f" WHERE account.email_folded = {email} AND account.organization_id IS NULL"
        f" ORDER BY {number and number + ','} account.id"
    )


# Nobody is signed in yet, so these bypass row-level security. They return one row at most: the provider's person, or
# the user with an address in the form of `email_key`.
IDENTITY_LOOKUP = Lookup(
    name="normata_identity_lookup",
    arguments=("of_issuer", "of_subject"),
    columns={"identity_id": text(), "user_id": text(), "user_name": text(), "removed_at": UtcTimestamp()},
    select=_identity,
)
ADDRESS_LOOKUP = Lookup(
    name="normata_address_lookup",
    arguments=("wanted", "of_issuer"),
    columns={
        "user_id": text(),
        "user_name": text(),
        "removed_at": UtcTimestamp(),
        "operator": text(),
        "other_identity": text(),
        "credential": text(),
        "session_until": UtcTimestamp(),
        "token_until": UtcTimestamp(),
    },
    select=_address,
)

_TABLE, _USER, _RUNS = sql_table(ExternalIdentity), sql_table(User), sql_table(Operator)
_SHOWN = [_TABLE.c[name] for name in ("id", "user_id", "issuer", "created_at", "last_used_at")]
_CONNECT = insert(_TABLE).values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
_USE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("identity"))
    .values(last_used_at=bindparam("moment", type_=_TABLE.c.last_used_at.type))
    .returning(*_SHOWN)
)
_DISCONNECT = (
    delete(_TABLE).where(_TABLE.c.id == bindparam("identity"), _TABLE.c.user_id == bindparam("user")).returning(*_SHOWN)
)
_OWN = select(*_SHOWN).where(_TABLE.c.user_id == bindparam("user")).order_by(_TABLE.c.created_at, _TABLE.c.id)
_OTHER = select(_TABLE.c.id).where(_TABLE.c.user_id == bindparam("user"), _TABLE.c.issuer == bindparam("issuer"))
_OPERATOR = select(_RUNS.c.user_id).where(_RUNS.c.user_id == bindparam("user"))
_USER_ROW = select(_USER.c.id, _USER.c.removed_at).where(_USER.c.id == bindparam("user"))
