"""The service's role and its rights, and the checks of `normata check`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, MetaData, exc
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

from normata.core.db.postgresql import grants, lookup, policies, schema, trigrams
from normata.core.db.postgresql.functions import Ask
from normata.core.db.security import Security
from normata.errors import Unavailable

# Superusers, roles with BYPASSRLS, and owners of a table or members of an owner.
_IS_NOT_BOUND = (
    "SELECT rolsuper OR rolbypassrls OR EXISTS (SELECT FROM pg_class AS c"
    " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')"
    " AND pg_has_role(r.oid, c.relowner, 'USAGE')) FROM pg_roles AS r WHERE rolname = $1"
)
# The role that has logged in, which may differ from the current one.
_LOGIN = (
    "SELECT rolname::text, rolsuper, rolbypassrls, EXISTS (SELECT FROM pg_class AS c"
    " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')"
    " AND pg_has_role(r.oid, c.relowner, 'MEMBER')) FROM pg_roles AS r WHERE rolname = session_user"
)
_MAY_USE_SCHEMA = "SELECT has_schema_privilege($1::name, 'public', 'USAGE')"
_INVALID_INDEXES = "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid ORDER BY 1"


def secure(connection: Connection, role: str, metadata: MetaData, security: Security) -> None:
    """Create the role if it is missing, and give it exactly its rights."""
    quote = connection.dialect.identifier_preparer
    _make_role(connection, role)
    connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA public TO {quote.quote_identifier(role)}")
    for one in security.lookups:
        lookup.secure(connection, role, one)
    trigrams.secure(connection, role, metadata)
    grants.secure(connection, role, grants.wanted(metadata, security))
    writes = security.by_table()
    policies.secure(
        connection,
        role,
        [(table, policies.policies_of(table, writes.get(table.name, ()), quote)) for table in metadata.sorted_tables],
    )


def faults(ask: Ask, role: str, metadata: MetaData, security: Security, *, only_schema: bool = False) -> Iterator[str]:
    """The faults of indexes, triggers, functions, policies and grants, a sentence each."""
    for (name,) in ask(_INVALID_INDEXES):
        yield f"the index {name} is not valid; rebuild it with REINDEX"
    dialect = PGDialect_asyncpg()  # type: ignore[no-untyped-call]
    quote = dialect.identifier_preparer
    yield from schema.faults(ask, metadata, quote)
    bound = ask(_IS_NOT_BOUND, role)
    if not bound:
        yield f"there is no role {role}; run `normata migrate`"
        return
    if bound[0][0]:
        yield f"the role {role} is not bound by row-level security; name another one"
        return
    if not ask(_MAY_USE_SCHEMA, role)[0][0]:
        yield f"the role {role} may not use the schema public; run `normata migrate`"
    for one in security.lookups:
        yield from lookup.faults(ask, role, one, dialect)
    yield from trigrams.faults(ask, role, metadata, only_schema=only_schema)
    writes = security.by_table()
    yield from policies.faults(
        ask,
        role,
        [(table, policies.policies_of(table, writes.get(table.name, ()), quote)) for table in metadata.sorted_tables],
    )
    yield from grants.faults(ask, role, grants.wanted(metadata, security))


def serving_warnings(ask: Ask, role: str) -> Iterator[str]:
    """Why the service should not use the login, in a sentence."""
    name, is_superuser, bypasses, owns = ask(_LOGIN)[0]
    if is_superuser:
        reason = "is a superuser"
    elif bypasses:
        reason = "bypasses row-level security"
    elif owns:
        reason = "owns the tables, or may act as their owner"
    else:
        return
    yield (
        f"the login {name} {reason}, so whoever takes over the service can read and change the data of every"
        f" organization; serve with a login that owns nothing and is a member of {role} only"
    )


def _make_role(connection: Connection, role: str) -> None:
    def ask(question: str) -> Any:
        return connection.exec_driver_sql(question, (role,)).scalar()

    name = connection.dialect.identifier_preparer.quote_identifier(role)
    if not ask("SELECT 1 FROM pg_roles WHERE rolname = $1"):
        # Roles belong to the whole server, and another database may be creating this one at the same time.
        with suppress(exc.IntegrityError), connection.begin_nested():
            connection.exec_driver_sql(f"CREATE ROLE {name} NOLOGIN")
    if ask(_IS_NOT_BOUND):
        raise Unavailable(f"the role {role} is not bound by row-level security; name another one")
    # Since version 16, the creator of a role is a member of it, but cannot SET it by default.
    right = "SET" if (connection.dialect.server_version_info or (0,)) >= (16,) else "MEMBER"
    if not ask(f"SELECT pg_has_role(current_user, $1, '{right}')"):
        connection.exec_driver_sql(f"GRANT {name} TO CURRENT_USER")
