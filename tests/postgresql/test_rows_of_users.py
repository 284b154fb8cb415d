"""Rows that belong to users: PostgreSQL itself keeps others from them."""

from __future__ import annotations

import pytest
from sqlalchemy import Table as SqlTable

from normata.core.db.transaction import NO_TENANT, TenantScope
from normata.core.db.types import UtcTimestamp
from normata.tables import Table
from tests.core.db.sessions import Service, Session, run
from tests.postgresql.row_level import IN_ALPHA, IN_BETA
from tests.world import ALPHA, BETA

TABLES = Table.metadata.sorted_tables

# What belongs to users: they see their own. Beside it stands what else they see of it.
USERS_OWN = {
    "user_account": "members see each other",
    "access_token": "members see each other's, but for the digests",
    "provisioned_person": "members see what their organization's provider says of each other",
    "idempotency_key": "members see what was done in their organization",
    "operator": "",
    "password": "",
    "passkey": "",
    "external_identity": "",
    "sign_in_link": "",
    "calendar_address": "",
    "session": "",
}


@pytest.mark.parametrize("table", [table for table in TABLES if table.name in USERS_OWN], ids=str)
def test_what_is_users_own_is_theirs_alone(service: Service, admin: Session, table: SqlTable) -> None:
    """Members of an organization see of each other what stands above, and of strangers nothing."""
    owner = table.info["owned_by"]
    for user in ("user-editor", "user-foreigner"):
        add_row_of(admin, table, user)
    count = f'SELECT count(*) FROM "{table.name}" WHERE "{owner}" = '
    for user, stranger in (("user-editor", "user-foreigner"), ("user-foreigner", "user-editor")):
        scope = TenantScope(users=(user,))
        assert service.read(run(f"{count}'{user}'"), scope)[0][0] > 0
        assert service.read(run(f"{count}'{stranger}'"), scope)[0][0] == 0
    for scope, is_seen in ((TenantScope((ALPHA,)), USERS_OWN[table.name] != ""), (IN_BETA, False), (NO_TENANT, False)):
        assert bool(service.read(run(f"{count}'user-editor'"), scope)[0][0]) is is_seen


def test_who_may_change_an_organization_may_end_its_members_sessions(service: Service, admin: Session) -> None:
    """And sees them for that; who may but read it does not."""
    add_row_of(admin, Table.metadata.tables["session"], "user-editor")
    count = "SELECT count(*) FROM session WHERE user_id = 'user-editor'"
    assert service.read(run(count), IN_ALPHA)[0][0] == 1
    assert service.read(run(count), TenantScope((ALPHA,)))[0][0] == 0
    assert service.read(run(count), IN_BETA)[0][0] == 0


def test_every_table_of_users_is_known_here() -> None:
    assert {table.name for table in TABLES if "owned_by" in table.info} == USERS_OWN.keys()


def add_row_of(admin: Session, table: SqlTable, user: str) -> None:
    """A row of ``table`` that is the user's own, unless there is one."""
    owner = table.info["owned_by"]
    if admin.value(f'SELECT count(*) FROM "{table.name}" WHERE "{owner}" = $1', user):
        return
    organization = ALPHA if user == "user-editor" else BETA
    given = {
        owner: f"'{user}'",
        "organization_id": f"'{organization}'",
        "headers": "'{}'",
        "status": "200",
        "scope": "'read'",
    }
    values = {
        column.name: given.get(column.name) or ("now()" if isinstance(column.type, UtcTimestamp) else f"'{user}'")
        for column in table.c
        if not column.nullable or column.name == "organization_id"
    }
    values |= {name: "0" for name in ("sign_count",) if name in values}
    names = ", ".join(f'"{name}"' for name in values)
    admin.run(f'INSERT INTO "{table.name}" ({names}) VALUES ({", ".join(values.values())})')
