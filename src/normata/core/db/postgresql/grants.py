"""Grants: the exact rights of the service's role on the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, MetaData

from normata.core.db.postgresql.functions import Ask
from normata.core.db.security import Security


class Grant(NamedTuple):
    """A privilege on a table, or on a column of it where there is one.

    ``everybody`` is true if it is PUBLIC's and not the role's, ``grantable`` that it may be handed on.
    """

    privilege: str
    column: str | None = None
    everybody: bool = False
    grantable: bool = False


Grants = Mapping[str, set[Grant]]  # by table

_SCHEMA_VERSION = "alembic_version"  # each process reads it to check the version of the schema

_STORED = """\
SELECT c.relname::text, acl.privilege_type::text, NULL::text, acl.grantee = 0, acl.is_grantable
FROM pg_class AS c CROSS JOIN aclexplode(c.relacl) AS acl
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
    AND acl.grantee IN (SELECT 0 UNION ALL SELECT oid FROM pg_roles WHERE rolname = $1)
UNION ALL
SELECT c.relname::text, acl.privilege_type::text, a.attname::text, acl.grantee = 0, acl.is_grantable
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid CROSS JOIN aclexplode(a.attacl) AS acl
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT a.attisdropped
    AND acl.grantee IN (SELECT 0 UNION ALL SELECT oid FROM pg_roles WHERE rolname = $1)
"""

# The effective privileges of the role, including those of roles that it is a member of.
_EFFECTIVE = """\
SELECT c.relname::text, p.privilege
FROM pg_class AS c
CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS p (privilege)
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
    AND has_table_privilege($1::name, c.oid, p.privilege)
ORDER BY c.relname, p.privilege
"""


def wanted(metadata: MetaData, security: Security) -> Grants:
    """The grants of the role on each table."""
    writes = security.by_table()
    unknown = sorted((writes.keys() | security.partly_readable.keys()) - metadata.tables.keys())
    if unknown:
        raise ValueError(f"there are no tables {', '.join(unknown)}")
    grants: dict[str, set[Grant]] = {_SCHEMA_VERSION: {Grant("SELECT")}}
    for table in metadata.tables:
        partly = security.partly_readable.get(table)
        grants[table] = {Grant("SELECT")} if partly is None else {Grant("SELECT", column) for column in partly}
        for write in writes.get(table, ()):
            if write.action == "UPDATE":
                grants[table] |= {Grant("UPDATE", column) for column in write.columns}
            else:
                grants[table].add(Grant(write.action))
    return grants


def secure(connection: Connection, role: str, grants: Grants) -> None:
    """Grant exactly these rights, and revoke all others."""
    quote = connection.dialect.identifier_preparer
    run = connection.exec_driver_sql
    role_name = quote.quote_identifier(role)
    stored = _stored(lambda sql, *values: run(sql, values).all(), role)
    for table, expected in grants.items():
        if stored.get(table, set()) == expected:
            continue
        name = quote.quote_identifier(table)
        # Revoking a privilege on a table also revokes it on the columns, so grant everything again.
        run(f"REVOKE ALL ON TABLE {name} FROM PUBLIC, {role_name}")
        for privilege, columns in _by_privilege(expected):
            listed = f" ({', '.join(map(quote.quote_identifier, columns))})" if columns else ""
            run(f"GRANT {privilege}{listed} ON TABLE {name} TO {role_name}")


def faults(ask: Ask, role: str, grants: Grants) -> Iterator[str]:
    """The faults of the grants, a sentence for each table and grantee."""
    stored = _stored(ask, role)
    effective: dict[str, set[str]] = {}
    for table, privilege in ask(_EFFECTIVE, role):
        effective.setdefault(table, set()).add(privilege)
    for table, expected in sorted(grants.items()):
        if table not in effective and table not in stored and not ask(_EXISTS, table):
            continue  # the schema is out of date, which is reported elsewhere
        found = stored.get(table, set())
        missing = {grant for grant in expected if grant not in found and grant._replace(grantable=True) not in found}
        if missing:
            yield f"the role {role} lacks {_listed(missing)} on the table {table}; run `normata migrate`"
        extra = found - expected
        for who, everybody in ((f"the role {role}", False), ("every role (PUBLIC)", True)):
            some = {grant for grant in extra if grant.everybody is everybody}
            if some:
                yield f"{who} has {_listed(some)} on the table {table}, which is too much; run `normata migrate`"
        direct = {grant.privilege for grant in found | expected if grant.column is None}
        inherited = effective.get(table, set()) - direct
        if inherited:
            listed = ", ".join(sorted(inherited))
            yield f"the role {role} has {listed} on the table {table} through another role, which is too much"
    for table in sorted(stored.keys() - grants.keys()):
        some = {grant for grant in stored[table] if not grant.everybody}
        if some:
            yield f"the role {role} has {_listed(some)} on the table {table}, which is not Normata's"


_EXISTS = "SELECT 1 WHERE to_regclass('public.' || quote_ident($1)) IS NOT NULL"


def _stored(ask: Ask, role: str) -> dict[str, set[Grant]]:
    grants: dict[str, set[Grant]] = {}
    for table, *grant in ask(_STORED, role):
        grants.setdefault(table, set()).add(Grant(*grant))
    return grants


def _by_privilege(grants: Iterable[Grant]) -> list[tuple[str, list[str]]]:
    """Each privilege with the columns that it is limited to; none if it is the table's."""
    privileges: dict[tuple[str, bool], list[str]] = {}
    for grant in sorted(grants, key=lambda grant: (grant.privilege, grant.column or "")):
        columns = privileges.setdefault((grant.privilege, grant.column is None), [])
        if grant.column is not None:
            columns.append(grant.column)
    return [(privilege, columns) for (privilege, _), columns in privileges.items()]


def _listed(grants: Iterable[Grant]) -> str:
    grantable = [grant for grant in grants if grant.grantable]
    plain: Sequence[Grant] = [grant for grant in grants if not grant.grantable]
    parts = [
        f"{privilege} ({', '.join(columns)}){suffix}" if columns else f"{privilege}{suffix}"
        for some, suffix in ((plain, ""), (grantable, " WITH GRANT OPTION"))
        for privilege, columns in _by_privilege(some)
    ]
    return ", ".join(parts)
