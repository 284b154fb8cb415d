"""Row-level security: the rows of a table that the service may read and change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from sqlalchemy import Connection, Table
from sqlalchemy.sql.compiler import IdentifierPreparer

from normata.core.db.postgresql.functions import Ask
from normata.core.db.security import Write

_Command = Literal["SELECT", "INSERT", "UPDATE", "DELETE"]

_CODES: dict[_Command, str] = {"SELECT": "r", "INSERT": "a", "UPDATE": "w", "DELETE": "d"}
_OURS = "normata_"

# All tables with the policies that are ours or apply to the role; nulls if there are none.
_STORED = """\
SELECT c.relname::text, c.relrowsecurity, p.polname::text, p.polcmd::text, p.polpermissive,
    p.polroles = ARRAY[role.oid], pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid),
    obj_description(p.oid, 'pg_policy')
FROM pg_roles AS role CROSS JOIN pg_class AS c LEFT JOIN pg_policy AS p ON p.polrelid = c.oid AND (
    p.polname LIKE 'normata\\_%' OR EXISTS (
        SELECT FROM unnest(p.polroles) AS other WHERE other = 0 OR pg_has_role(role.oid, other, 'MEMBER')
    )
)
WHERE role.rolname = $1 AND c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
ORDER BY c.relname, p.polname
"""


# Whether the transaction may change centralized catalogs, evaluated once in a statement.
_CATALOGS = "(SELECT current_setting('normata.catalogs', true) = 'on')"


@dataclass(frozen=True)
class Policy:
    """A policy as it should be."""

    command: _Command
    using: str | None
    check: str | None

    @property
    def name(self) -> str:
        """Its name, unique among the policies of its table."""
        return f"{_OURS}{self.command.lower()}"

    def clauses(self) -> str:
        """The part of CREATE POLICY after its role."""
        using = "" if self.using is None else f" USING ({self.using})"
        return using if self.check is None else f"{using} WITH CHECK ({self.check})"


@dataclass(frozen=True)
class _Stored:
    """A policy in the database's catalog."""

    name: str
    command: str
    permissive: bool
    only_for_role: bool
    using: str | None
    check: str | None
    comment: str | None

    def is_made_from(self, policy: Policy) -> bool:
        """Whether it was made from this and has not been changed since."""
        return (
            self.permissive
            and self.only_for_role
            and self.command == _CODES[policy.command]
            and self.comment == self.fingerprint(policy)
        )

    def fingerprint(self, policy: Policy) -> str:
        """The expected comment of a policy that was made from this source, and is stored like this.

        PostgreSQL does not store the source, so the comment also covers PostgreSQL's own form of it.
        """
        return sha256(f"{policy.clauses()}\n{self.using}\n{self.check}".encode()).hexdigest()


@dataclass(frozen=True)
class _Guard:
    """The row-level security of a table in the database's catalog."""

    enabled: bool
    policies: dict[str, _Stored]


def secure(connection: Connection, role: str, wanted: Sequence[tuple[Table, Sequence[Policy]]]) -> None:
    """Create the policies of each table and drop others; correct ones are not touched.

    Creating a policy locks the table exclusively.
    """
    quote = connection.dialect.identifier_preparer
    run = connection.exec_driver_sql

    def guards() -> dict[str, _Guard]:
        return _guards(lambda sql, *values: run(sql, values).all(), role)

    made: list[tuple[Table, Policy]] = []
    before = guards()
    for table, policies in wanted:
        name, guard = quote.format_table(table), before[table.name]
        if guard.enabled != bool(policies):
            run(f"ALTER TABLE {name} {'ENABLE' if policies else 'DISABLE'} ROW LEVEL SECURITY")
        right = {policy.name for policy in policies if _is_right(guard, policy)}
        for stored in guard.policies.keys() - right:
            run(f"DROP POLICY {quote.quote_identifier(stored)} ON {name}")
        for policy in policies:
            if policy.name not in right:
                role_name = quote.quote_identifier(role)
                run(f"CREATE POLICY {policy.name} ON {name} FOR {policy.command} TO {role_name}{policy.clauses()}")
                made.append((table, policy))
    after = guards() if made else {}
    for table, policy in made:
        fingerprint = after[table.name].policies[policy.name].fingerprint(policy)
        run(f"COMMENT ON POLICY {policy.name} ON {quote.format_table(table)} IS '{fingerprint}'")


def faults(ask: Ask, role: str, wanted: Sequence[tuple[Table, Sequence[Policy]]]) -> Iterator[str]:
    """The faults of row-level security, a sentence each."""
    guards = _guards(ask, role)
    for table, policies in wanted:
        guard = guards.get(table.name)
        if guard is None:
            continue  # the schema is out of date, which is reported elsewhere
        if guard.enabled != bool(policies):
            state = "off" if policies else "on"
            yield f"row-level security is {state} for the table {table.name}; run `normata migrate`"
        for policy in policies:
            if policy.name not in guard.policies:
                yield f"the table {table.name} has no policy {policy.name}; run `normata migrate`"
            elif not _is_right(guard, policy):
                yield f"the policy {policy.name} of {table.name} is not as Normata makes it; run `normata migrate`"
        for name in sorted(guard.policies.keys() - {policy.name for policy in policies}):
            yield f"the table {table.name} has a policy {name} that is not Normata's; run `normata migrate`"


def policies_of(table: Table, writes: Sequence[Write], quote: IdentifierPreparer) -> list[Policy]:
    """The policies of a table; none if its rows belong to no organization and no user, so that all may see them."""
    if "owned_by" in table.info:
        return _owned_policies(table, writes, quote)
    column = table.c.get(table.info.get("organization_column", "organization_id"))
    if column is None:
        return []
    name = quote.format_column(column)
    # Not with `=`: next to a statement's own condition, PostgreSQL would consider the two independent, expect a tenth
    # of the rows, and read a whole organization instead of using an index.
    readable = f"array_position({_setting('readable')}, {name}::text) IS NOT NULL"
    writable = f"array_position({_setting('writable')}, {name}::text) IS NOT NULL"
    if "nobodys" in table.info:  # rows without an organization have another owner, who is named in the settings
        owner = f"COALESCE({name}, '{table.info['nobodys']}')::text"
        readable = f"array_position({_setting('readable')}, {owner}) IS NOT NULL"
        writable = f"array_position({_setting('writable')}, {owner}) IS NOT NULL"
    elif column.nullable:  # rows without an organization are centralized: everybody reads them, operators change them
        readable = f"{name} IS NULL OR {name} = ANY ({_setting('readable')}::text[])"
        writable = f"{name} IS NOT NULL AND {writable} OR {name} IS NULL AND {_CATALOGS}"
    # Coverage and lists of all organizations follow from centralized catalogs.
    if table.info.get("catalogs") in {"read", "write"}:
        readable = f"{readable} OR {_CATALOGS}"
    if table.info.get("catalogs") == "write":
        writable = f"{writable} OR {_CATALOGS}"
    return [Policy("SELECT", readable, None), *(_write_policy(write, writable) for write in writes)]


def _owned_policies(table: Table, writes: Sequence[Write], quote: IdentifierPreparer) -> list[Policy]:
    """The policies of a table whose rows are users' own: ``owned_by`` names the column of the user.

    A row that also has an organization is that organization's as well. If rows of another table refer to users
    (``seen_by``), a caller who sees such a row also sees the user's; a caller who may change its organization may end
    the user's (``ended_by``), which is an UPDATE. That table's own policy decides which of its rows are visible.
    """

    def refers(info: str, more: str = "") -> str:
        other, reference = map(quote.quote_identifier, table.info[info])
        return f"EXISTS (SELECT FROM {other} AS seen WHERE seen.{reference} = {row}{more})"

    row = f"{quote.format_table(table)}.{quote.format_column(table.c[table.info['owned_by']])}"
    own = f"array_position({_setting('users')}, {row}::text) IS NOT NULL"
    readable, writable = [own], [own]
    if "organization_id" in table.c:
        organization = f"{quote.format_table(table)}.{quote.format_column(table.c.organization_id)}::text"
        readable.append(f"array_position({_setting('readable')}, {organization}) IS NOT NULL")
        writable.append(f"array_position({_setting('writable')}, {organization}) IS NOT NULL")
    endable = writable
    if "seen_by" in table.info:
        readable.append(refers("seen_by"))
    if "ended_by" in table.info:
        ends = refers(
            "ended_by", f" AND array_position({_setting('writable')}, seen.organization_id::text) IS NOT NULL"
        )
        readable, endable = [*readable, ends], [*writable, ends]
    return [
        Policy("SELECT", " OR ".join(readable), None),
        *(_write_policy(write, " OR ".join(endable if write.action == "UPDATE" else writable)) for write in writes),
    ]


def _write_policy(write: Write, writable: str) -> Policy:
    using = None if write.action == "INSERT" else writable
    check = None if write.action == "DELETE" else writable
    return Policy(write.action, using, check)


def _setting(name: str) -> str:
    """The organizations, or users, that a transaction has set, read once for each statement; null outside of one."""
    return f"(SELECT NULLIF(current_setting('normata.{name}', true), '')::text[])"


def _is_right(guard: _Guard, policy: Policy) -> bool:
    stored = guard.policies.get(policy.name)
    return stored is not None and stored.is_made_from(policy)


def _guards(ask: Ask, role: str) -> dict[str, _Guard]:
    guards: dict[str, _Guard] = {}
    rows: Sequence[Any] = ask(_STORED, role)
    for table, enabled, name, *rest in rows:
        guard = guards.setdefault(table, _Guard(enabled, {}))
        if name is not None:
            guard.policies[name] = _Stored(name, *rest)
    return guards
