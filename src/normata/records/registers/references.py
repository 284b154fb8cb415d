"""References in registers: rows as people name them, by id, slug, e-mail address, identifier or name.

An export names a row by the first of these that an import resolves to the same row, and else by its id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, or_, select

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.addresses import email_key
from normata.core.schema.table import Table, sql_table, table_named
from normata.core.schema.text import natural_key
from normata.identity.model import Membership, User
from normata.records.base import TITLE_KEY, Restorable

_BY_ID = "id:"  # in front of an id that is also another row's name
_SHARED = ("framework", "control")  # may be centralized, without an organization
_NAMELESS = ("control_coverage", "file")  # rows that only their ids name

Names = Mapping[str, Collection[str]]


class Named(NamedTuple):
    """The rows that a text may name, by their ids: none, one, or several."""

    ids: tuple[str, ...]

    @property
    def only(self) -> str | None:
        """The row, if it is one."""
        return self.ids[0] if len(self.ids) == 1 else None


_NOTHING = Named(())


class References:
    """Rows of an organization by their names, and back. What was found is remembered for the transaction."""

    def __init__(self, transaction: Transaction, organization_id: str) -> None:
        self._transaction = transaction
        self._organization_id = organization_id
        self._named: defaultdict[str, dict[str, Named]] = defaultdict(dict)
        self._texts: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def named(self, target: str, texts: Iterable[str]) -> Mapping[str, Named]:
        """The rows of a table that these texts name: by id, else by the first kind of name that has any."""
        known = self._named[target]
        wanted = sorted({text for text in texts if text not in known})
        for batch in batches(wanted):
            ids = self._ids(target, {text: text.removeprefix(_BY_ID) for text in batch})
            known.update({text: Named((row,)) for text, row in ids.items()})
            for statement, key in _searches(target):
                open_ = {text: key(text) for text in batch if text not in known and not text.startswith(_BY_ID)}
                known.update(self._search(statement, open_))
            known.update({text: _NOTHING for text in batch if text not in known})
        return known

    def texts(self, target: str, ids: Iterable[str]) -> Mapping[str, str]:
        """The texts that name rows of a table, or what else has been entered for them, each by its id."""
        known = self._texts[target]
        wanted = sorted({one for one in ids if one not in known})
        for batch in batches(wanted):
            proposed: defaultdict[str, list[str]] = defaultdict(list)
            if target not in _NAMELESS:
                key = {"organization": self._organization_id, "ids": batch}
                for row in self._transaction.rows(_names(target), key):
                    proposed[row[0]] += [text for text in row[1:] if text]
            every = {text for one in batch for text in (one, *proposed[one])}
            named = self.named(target, every)
            for one in batch:
                others = (one,) if not one.startswith(_BY_ID) else ()
                fitting = (text for text in (*proposed[one], *others) if _is(named, text, one))
                known[one] = next(fitting, f"{_BY_ID}{one}")
        return known

    def _ids(self, target: str, ids: Mapping[str, str]) -> dict[str, str]:
        """Those of the ids, by the texts that have them, that exist."""
        parameters = {"organization": self._organization_id, "ids": sorted(set(ids.values()))}
        there = set(self._transaction.scalars(_existing(target), parameters))
        return {text: one for text, one in ids.items() if one in there}

    def _search(self, statement: Select[Any], keys: Mapping[str, str]) -> Iterator[tuple[str, Named]]:
        if not keys:
            return
        parameters = {"organization": self._organization_id, "names": sorted(set(keys.values()))}
        found: defaultdict[str, set[str]] = defaultdict(set)
        for row_id, name in self._transaction.rows(statement, parameters):
            found[name].add(row_id)
        for text, key in keys.items():
            if found[key]:
                yield text, Named(tuple(sorted(found[key])))


def value_of_reference(text: str, named: Named, *, is_checked: bool) -> str | None:
    """The id that a text stands for; null if it is not known. One that is not checked may be of another system."""
    if named.only is not None or is_checked or named.ids:
        return named.only
    return text.removeprefix(_BY_ID)


def _is(named: Mapping[str, Named], text: str, row_id: str) -> bool:
    """Whether a text names a row, or nothing, and is the id."""
    found = named[text]
    return found.only == row_id or (not found.ids and text == row_id)


# --- Statements

_NAMES: Any = bindparam("names", expanding=True)
_IDS: Any = bindparam("ids", expanding=True)
_ORGANIZATION: Any = bindparam("organization")


def _own(target: str) -> Any:
    """The condition that the organization has a row, or everybody does."""
    column = sql_table(table_named(target)).c.organization_id
    return or_(column == _ORGANIZATION, column.is_(None)) if target in _SHARED else column == _ORGANIZATION


@cache
def _existing(target: str) -> Select[Any]:
    table = sql_table(table_named(target))
    return select(table.c.id).where(_own(target), table.c.id.in_(_IDS))


@cache
def _names(target: str) -> Select[Any]:
    """The id of each row, and what may name it, the best first."""
    table = table_named(target)
    columns = sql_table(table).c
    if table is Membership:
        user = sql_table(User)
        return (
            select(columns.id, user.c.email, user.c.name)
            .join_from(sql_table(table), user, user.c.id == columns.user_id)
            .where(_own(target), columns.id.in_(_IDS))
        )
    named = [columns[name] for name in _names_of(table)]
    return select(columns.id, *named).where(_own(target), columns.id.in_(_IDS))


def _names_of(table: type[Table]) -> Sequence[str]:
    columns = sql_table(table).c
    return [name for name in dict.fromkeys(("slug", "identifier", table.title_column())) if name in columns]


@cache
def _searches(target: str) -> Sequence[tuple[Select[Any], Any]]:
    """The statements that find the rows with names, in the order in which names count, each with its key of a text."""
    table = table_named(target)
    if target in _NAMELESS:
        return ()
    columns = sql_table(table).c
    if table is Membership:
        user = sql_table(User)
        members = select(columns.id).join_from(sql_table(table), user, user.c.id == columns.user_id)
        members = members.where(_own(target), columns.removed_at.is_(None))
        return (
            (members.add_columns(user.c.email_folded).where(user.c.email_folded.in_(_NAMES)), email_key),
            (members.add_columns(user.c.name).where(user.c.name.in_(_NAMES)), str),
        )
    found: list[tuple[Select[Any], Any]] = []
    for name in _names_of(table):
        key: Any = str
        column = columns[name]
        if issubclass(table, Restorable) and name == table.title_column():
            column, key = columns.title_key, _title_key
        statement = select(columns.id, column).where(_own(target), column.in_(_NAMES))
        if "archived_at" in columns:
            found.append((statement.where(columns.archived_at.is_(None)), key))
            if name == "slug":  # of an archived record, unless a live one has it
                found.append((statement, key))
        else:
            found.append((statement, key))
    return found


def _title_key(text: str) -> str:
    return natural_key(text)[:TITLE_KEY]
