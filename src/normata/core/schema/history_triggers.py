"""The triggers that write history tables, for both databases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Table as SqlTable
from typing_extensions import override

from normata.core.db.schema_items import Trigger

FOREVER = "9999-12-31T23:59:59.999Z"  # the end of what still holds
BEGINNING = "1970-01-01T00:00:00.000Z"  # the start of what was there before its first change

# The moment of the change, which the transaction sets. A change that was made without Normata has none; then it is the
# clock's on PostgreSQL. SQLite has no settings, so there it is a function of the connection.
ON_SQLITE = "normata_moment()"
ON_POSTGRESQL = (
    "coalesce(nullif(current_setting('normata.moment', true), '')::timestamptz,"
    " date_trunc('milliseconds', clock_timestamp()))"
)


def add_triggers(table: SqlTable, history: HistoryTriggers) -> None:
    """Declare the triggers of a table's history, and that its changes need a moment."""
    table.info["triggers"] = (*table.info.get("triggers", ()), *history.triggers())
    table.info["is_dated"] = True


@dataclass(frozen=True, slots=True)
class HistoryTriggers(ABC):
    """The triggers of a table with these columns."""

    table: str
    columns: tuple[str, ...]

    @property
    def history(self) -> str:
        """The name of the history table."""
        return f"{self.table}_history"

    def triggers(self) -> Iterator[Trigger]:
        """Those for rows that are added, changed and deleted."""
        for event in self._events:
            name = f"{self.history}_{event.lower()}"
            yield Trigger(
                name,
                f"CREATE TRIGGER {name} AFTER {event} ON {self.table}{self._when(event)}"
                f"\nBEGIN\n{self._sqlite(event)}END\n",
                f"CREATE TRIGGER {name} AFTER {event} ON {self.table} REFERENCING {_TRANSITIONS[event]}"
                f" FOR EACH STATEMENT EXECUTE FUNCTION {name}()",
                # Plain blocks, because a statement that changes many rows calls it once.
                f"DECLARE\n    moment CONSTANT timestamptz := {ON_POSTGRESQL};\nBEGIN\n{self._postgresql(event)}"
                "    RETURN NULL;\nEND\n",
            )

    @property
    def _events(self) -> Sequence[str]:
        return ("INSERT", "UPDATE", "DELETE")

    @abstractmethod
    def _sqlite(self, event: str) -> str:
        """The body on SQLite, where it runs once for each row."""

    @abstractmethod
    def _postgresql(self, event: str) -> str:
        """The body on PostgreSQL, where it runs once for all rows of a statement."""

    def _when(self, event: str) -> str:
        """The condition of the trigger on SQLite."""
        del event
        return ""

    def _list(self, prefix: str = "") -> str:
        return ", ".join(f"{prefix}{name}" for name in self.columns)


_TRANSITIONS = {
    "INSERT": "NEW TABLE AS changed",
    "UPDATE": "OLD TABLE AS earlier NEW TABLE AS changed",
    "DELETE": "OLD TABLE AS earlier",
}


@dataclass(frozen=True, slots=True)
class EveryRow(HistoryTriggers):
    """For a history with the current rows.

    The open entry of a row that differs is closed, and another one opened. A second change at the same moment replaces
    the entry, and a clock that was set back opens it when the last one ends: so entries of a row never overlap. A row
    that is written as it is (a load, which may bring its history along) changes nothing. ``documents`` are the columns
    with JSON, which PostgreSQL compares as text only.
    """

    key: tuple[str, ...]
    documents: tuple[str, ...] = ()

    def _sqlite(self, event: str) -> str:
        if event == "INSERT":
            # It has the trigger for changes do the work. Each connection reads the text of all triggers, which takes
            # longer than a statement, so that text is worth sparing.
            first, place = self.key[0], self._same("", "NEW.")
            return f"    UPDATE {self.table} SET {first} = {first} WHERE {place};\n"
        row = "OLD" if event == "DELETE" else "NEW"
        same = self._same("", f"{row}.")
        differs = "" if event == "DELETE" else f" AND ({self._differs(f'{row}.')})"
        text = (
            f"    UPDATE {self.history} SET valid_to = max(valid_from, {ON_SQLITE})"
            f" WHERE {same} AND valid_to = '{FOREVER}'{differs};\n"
            f"    DELETE FROM {self.history} WHERE {same} AND valid_from = valid_to;\n"
        )
        if event == "DELETE":
            return text
        last = f"(SELECT max(valid_to) FROM {self.history} WHERE {same})"
        return text + (
            f"    INSERT INTO {self.history} ({self._list()}, valid_from, valid_to)"
            f" SELECT {self._list('NEW.')}, max({ON_SQLITE}, coalesce({last}, '')), '{FOREVER}'"
            f" WHERE NOT EXISTS (SELECT 1 FROM {self.history} WHERE {same} AND valid_to = '{FOREVER}');\n"
        )

    def _postgresql(self, event: str) -> str:
        rows = "earlier" if event == "DELETE" else "changed"
        history, same = f"public.{self.history}", self._same("h.", "r.")
        compared = [", ".join(f"{row}.{one}{self._cast(one)}" for one in self.columns) for row in "hr"]
        differs = "" if event == "DELETE" else f" AND ({compared[0]}) IS DISTINCT FROM ({compared[1]})"
        text = (
            f"    UPDATE {history} AS h SET valid_to = greatest(h.valid_from, moment) FROM {rows} AS r"
            f" WHERE {same} AND h.valid_to = '{FOREVER}'{differs};\n"
            f"    DELETE FROM {history} AS h USING {rows} AS r WHERE {same} AND h.valid_from = h.valid_to;\n"
        )
        if event == "DELETE":
            return text
        return text + (
            f"    INSERT INTO {history} ({self._list()}, valid_from, valid_to)"
            f" SELECT {self._list('r.')}, greatest(moment, (SELECT max(h.valid_to) FROM {history} AS h WHERE {same})),"
            f" '{FOREVER}' FROM changed AS r"
            f" WHERE NOT EXISTS (SELECT FROM {history} AS h WHERE {same} AND h.valid_to = '{FOREVER}');\n"
        )

    def _cast(self, column: str) -> str:
        return "::text" if column in self.documents else ""

    def _same(self, left: str, right: str) -> str:
        return " AND ".join(f"{left}{name} = {right}{name}" for name in self.key)

    def _differs(self, row: str) -> str:
        return " OR ".join(f"{name} IS NOT {row}{name}" for name in self.columns if name not in self.key)


@dataclass(frozen=True, slots=True)
class ChangedRows(HistoryTriggers):
    """For a history with only the rows that have changed in ``structure``, or are gone; by ``id``."""

    structure: tuple[str, ...]
    known_if: str

    @property
    @override
    def _events(self) -> Sequence[str]:
        return ("INSERT", "UPDATE", "DELETE") if self.known_if else ("UPDATE", "DELETE")

    def _noted(self, event: str, prefix: str = "") -> str:
        """The columns that are noted: of a row that was absent only those that say where it belongs."""
        return ", ".join(f"{prefix}{name}" for name in self.columns if event != "INSERT" or name.endswith("id"))

    def _when(self, event: str) -> str:
        if event == "INSERT":
            return f"\nWHEN {self.known_if.format(row='NEW', schema='')}"
        if event == "UPDATE":
            return "\nWHEN " + " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in self.structure)
        return ""

    def _sqlite(self, event: str) -> str:
        row = "NEW" if event == "INSERT" else "OLD"
        return (
            f"    INSERT INTO {self.history} ({self._noted(event)}, was_absent, valid_from, valid_to)"
            f" SELECT {self._noted(event, f'{row}.')}, {int(event == 'INSERT')}, start, {ON_SQLITE} FROM ("
            f"SELECT coalesce(max(valid_to), '{BEGINNING}') AS start FROM {self.history} WHERE id = {row}.id)"
            f" WHERE start < {ON_SQLITE};\n"
        )

    def _postgresql(self, event: str) -> str:
        source, condition = "earlier AS r", ""
        if event == "INSERT":
            source, condition = "changed AS r", f" AND {self.known_if.format(row='r', schema='public.')}"
        elif event == "UPDATE":
            source = "earlier AS r JOIN changed AS n ON n.id = r.id"
            condition = " AND ({}) IS DISTINCT FROM ({})".format(
                *(", ".join(f"{row}.{name}" for name in self.structure) for row in "rn")
            )
        return (
            f"    INSERT INTO public.{self.history} ({self._noted(event)}, was_absent, valid_from, valid_to)"
            f" SELECT {self._noted(event, 'r.')}, {str(event == 'INSERT').lower()}, s.start, moment FROM {source}"
            f" CROSS JOIN LATERAL (SELECT coalesce(max(h.valid_to), '{BEGINNING}') AS start"
            f" FROM public.{self.history} AS h WHERE h.id = r.id) AS s WHERE s.start < moment{condition};\n"
        )


def create_statements(trigger: Trigger, dialect: str) -> Sequence[str]:
    """The SQL that creates a trigger of a history, for migrations.

    On PostgreSQL its function acts with the rights of the tables' owner, so that the service cannot write a history by
    itself. All its names have their schema, so that nothing else can take their place.
    """
    if dialect == "sqlite":
        return (trigger.sqlite,)
    head = f"CREATE FUNCTION {trigger.name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
    return (f"{head} AS $$\n{trigger.function}$$", trigger.postgresql)
