"""The tables and lookups that the pages use, for the rights in the database."""

from __future__ import annotations

from normata.identity import users
from normata.identity.calendar import CALENDAR_WRITES
from normata.identity.invitations import invitations
from normata.identity.openid.groups import GROUP_WRITES, ORGANIZATION_LOOKUP
from normata.identity.openid.identities import ADDRESS_LOOKUP, DISCONNECT_WRITES, IDENTITY_LOOKUP, IDENTITY_WRITES
from normata.identity.preferences import PREFERENCES_WRITES
from normata.identity.sessions import sessions
from normata.identity.sessions.lookup import SESSION_LOOKUP
from normata.identity.sign_in import attempts as sign_in_attempts
from normata.identity.sign_in import links as sign_in_links
from normata.identity.sign_in import passkeys, passwords
from normata.identity.sign_in.attempt_counts import COUNT_WRITES
from normata.identity.tokens import tokens
from normata.vendors.links import PAGE_WRITES, VENDOR_ANSWERS_LOOKUP, VENDOR_LINK_LOOKUP

SIGN_IN_WRITES = (
    *sessions.BEGIN_WRITES,
    *sessions.END_WRITES,
    *sign_in_links.CREATE_WRITES,
    *sign_in_links.USE_WRITES,
    *users.RENAME_WRITES,
    *PREFERENCES_WRITES,
    *sign_in_attempts.BEGIN_WRITES,
    *sign_in_attempts.FINISH_WRITES,
    *COUNT_WRITES,
    *passwords.SET_WRITES,
    *passwords.REHASH_WRITES,
    *passkeys.ADD_WRITES,
    *passkeys.USE_WRITES,
    *passkeys.REMOVE_WRITES,
    *invitations.ACCEPTING_WRITES,
    *tokens.CREATION_WRITES,
    *tokens.REVOCATION_WRITES,
    *CALENDAR_WRITES,
    *IDENTITY_WRITES,
    *DISCONNECT_WRITES,
    *GROUP_WRITES,
    *PAGE_WRITES,
)
SIGN_IN_LOOKUPS = (
    SESSION_LOOKUP,
    sign_in_links.SIGN_IN_LINK_LOOKUP,
    passwords.PASSWORD_BY_EMAIL,
    passwords.PASSWORD_OF_USER,
    passkeys.PASSKEY_LOOKUP,
    IDENTITY_LOOKUP,
    ADDRESS_LOOKUP,
    ORGANIZATION_LOOKUP,
    VENDOR_LINK_LOOKUP,
    VENDOR_ANSWERS_LOOKUP,
)
