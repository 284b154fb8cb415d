"""Every operation there is, and the rights in the database that follow from them."""

from __future__ import annotations

from normata.changes.idempotency import KEY_WRITES, OLDEST_KEYS
from normata.changes.unit_of_work import all_writes, update_of
from normata.console.writes import SIGN_IN_LOOKUPS, SIGN_IN_WRITES
from normata.db.security import Security
from normata.events.sealing import SEALING_WRITES
from normata.identity.invitations import ACCEPTING_WRITES, INVITATION_LOOKUP, INVITATIONS_OF_ADDRESS
from normata.identity.model import AccessToken
from normata.identity.organizations import NEXT_ORGANIZATIONS
from normata.identity.sign_in_model import Session
from normata.identity.token_lookup import TOKEN_LOOKUP
from normata.notifications.reminders import REMINDER_WRITES
from normata.tables import Table
from normata.web.api import (
    adoption,
    archive,
    due,
    events,
    every_kind,
    explanation,
    frameworks,
    imports,
    invitations,
    me,
    members,
    names,
    notifications,
    organizations,
    own_frameworks,
    own_matches,
    records,
    reports,
    service_accounts,
    sessions,
    statements,
    tokens,
)
from normata.web.operation import ChangeOperation, Operation
from normata.wiring import SUBSCRIBERS

OPERATIONS: tuple[Operation, ...] = (
    *frameworks.OPERATIONS,
    *own_frameworks.OPERATIONS,
    *imports.OPERATIONS,
    *adoption.OPERATIONS,
    *own_matches.OPERATIONS,
    *statements.OPERATIONS,
    *explanation.OPERATIONS,
    *reports.OPERATIONS,
    *notifications.OPERATIONS,
    *due.OPERATIONS,
    *events.OPERATIONS,
    *records.OPERATIONS,
    *every_kind.OPERATIONS,
    *archive.OPERATIONS,
    *names.OPERATIONS,
    *tokens.OPERATIONS,
    *me.OPERATIONS,
    *sessions.OPERATIONS,
    *organizations.OPERATIONS,
    *members.OPERATIONS,
    *invitations.OPERATIONS,
    *service_accounts.OPERATIONS,
)

SECURITY = Security(
    writes=all_writes(
        [
            *(write for one in OPERATIONS if isinstance(one, ChangeOperation) for write in one.writes),
            # Beside the requests.
            update_of(AccessToken, "last_used_at"),
            update_of(Session, "last_used_at"),
            *SEALING_WRITES,
            *REMINDER_WRITES,
            *SIGN_IN_WRITES,
            *KEY_WRITES,  # by whatever comes with a key, see web/changing.py
            *ACCEPTING_WRITES,  # by the pages to sign in
        ],
        SUBSCRIBERS,
    ),
    lookups=(
        TOKEN_LOOKUP,
        OLDEST_KEYS,
        NEXT_ORGANIZATIONS,
        INVITATION_LOOKUP,
        INVITATIONS_OF_ADDRESS,
        *SIGN_IN_LOOKUPS,
    ),
    partly_readable={
        str(mapper.class_.__tablename__): mapper.class_.readable
        for mapper in Table.registry.mappers
        if mapper.class_.readable is not None
    },
)
