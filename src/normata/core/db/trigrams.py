"""Searches by the trigrams of texts, where the database has an index of them.

The index finds the texts that have all trigrams of the words. Whether they have the words is for the statement to say
that searches among what was found: see :mod:`normata.core.schema.paging`.

Triggers write the index. PostgreSQL's is described in :mod:`normata.core.db.postgresql.trigrams`. SQLite's is one of
FTS5: each text has a number, and one that changes gets another one. To index a text alone costs a write ten times as
much as among many, so each number that ends a batch has its batch indexed together, and searches look at the texts
since then one by one. The index has no texts, and is not told of those that have changed or gone: their numbers have no
row any more. Scrubbing makes it anew without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, MetaData, Table, bindparam, select
from sqlalchemy import String as SqlString
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from normata.core.db.schema_items import Trigger

INDEX, NUMBERS, TEXTS = "record_trigram", "record_trigram_row", "record_trigram_text"
OWN_TABLES = frozenset({INDEX, NUMBERS, *(f"{INDEX}_{part}" for part in ("data", "idx", "config"))})
TEXTS_OF = "_trigram_text"  # how the tables of texts on PostgreSQL end
HAS_TRIGRAMS = "has_trigrams"  # the info of a table
BATCH = 256  # texts that are indexed together

FEW = 2_000  # texts; to read and to sort so many takes less time than to look for more in the order of a list


def texts_of(kind: str) -> str:
    """The table on PostgreSQL that has the texts of a table, with their index."""
    return f"{kind}{TEXTS_OF}"


def is_own_table(name: str) -> bool:
    """Whether a table is one of the index."""
    return name in OWN_TABLES or name.endswith(TEXTS_OF)


class Hits(NamedTuple):
    """What an index says of the texts that may have all words of a search.

    ``few`` has the ids of the records, or controls, of a table that may have them, as a JSON array; ``common`` the
    tables of which more than that have them. Of other tables nothing is known.
    """

    few: Mapping[str, str] = MappingProxyType({})
    common: frozenset[str] = frozenset()

    def parameters(self) -> dict[str, str]:
        """The parameters of :func:`among_few`."""
        return {_few(kind): ids for kind, ids in self.few.items()}


NO_HITS = Hits()  # of a search that no index helps


def among_few(column: ColumnElement[str], kind: str) -> ColumnElement[bool]:
    """The condition that a column has the id of one of the few rows of a table.

    The ids are a parameter, and no part of the statement that looks for them: the database might look into the index
    for each row, or for each in the order of the list.
    """
    items: Any = _items_of(bindparam(_few(kind), type_=SqlString())).table_valued("value")
    return column.in_(select(items.c.value))


def _few(kind: str) -> str:
    return f"few_{kind}"


class _items_of(FunctionElement[str]):  # noqa: N801 - a function of SQL
    """The texts of a JSON array, a row each."""

    inherit_cache = True
    name = "items_of"


@compiles(_items_of)
def _on_sqlite(element: Any, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(_items_of, "postgresql")
def _on_postgresql(element: Any, compiler: Any, **options: Any) -> str:
    return f"json_array_elements_text(CAST({compiler.process(element.clauses, **options)} AS JSON))"


# --- What writes the index


def made_of(kinds: Sequence[str]) -> Iterator[str]:
    """The SQL that makes the empty index of tables of records, without the triggers of these."""
    yield (
        f"CREATE TABLE {NUMBERS} (number INTEGER PRIMARY KEY AUTOINCREMENT, kind VARCHAR NOT NULL,"
        f" record_id VARCHAR NOT NULL, UNIQUE (record_id, kind))"
    )
    yield (
        f"CREATE VIRTUAL TABLE {INDEX} USING fts5(text, content='', detail=none, columnsize=0,"
        " tokenize='trigram case_sensitive 1')"
    )
    yield view_of(kinds)
    yield (
        f"CREATE TRIGGER index_trigrams AFTER INSERT ON {NUMBERS}\nWHEN NEW.number % {BATCH} = 0\nBEGIN\n"
        f"    INSERT INTO {INDEX} (rowid, text) SELECT number, text FROM {TEXTS}"
        f" WHERE number BETWEEN NEW.number - {BATCH - 1} AND NEW.number ORDER BY number;\nEND\n"
    )


def view_of(kinds: Sequence[str]) -> str:
    """The SQL that makes the view of the texts of tables of records."""
    texts = " ".join(
        f"WHEN '{kind}' THEN (SELECT r.search_text FROM {kind} AS r WHERE r.id = n.record_id)" for kind in kinds
    )
    return f"CREATE VIEW {TEXTS} AS SELECT n.number, CASE n.kind {texts} END AS text FROM {NUMBERS} AS n"


def filling(kind: str) -> str:
    """The SQL that numbers the texts of a table of records."""
    return f"INSERT INTO {NUMBERS} (kind, record_id) SELECT '{kind}', id FROM {kind} ORDER BY created_at"


def tables_with(metadata: MetaData) -> list[str]:
    """The names of the tables whose texts are indexed."""
    return sorted(table.name for table in metadata.tables.values() if HAS_TRIGRAMS in table.info)


def add_triggers(table: Table) -> None:
    """Declare that searches of a table of records use the index, and the triggers that write it."""
    table.info[HAS_TRIGRAMS] = True
    table.info["triggers"] = (*table.info.get("triggers", ()), *triggers(table.name))


def triggers(kind: str) -> Iterator[Trigger]:
    """The triggers of a table of records."""
    place = f"kind = '{kind}' AND record_id"
    number = f"    INSERT INTO {NUMBERS} (kind, record_id) VALUES ('{kind}', NEW.id);\n"
    for event, when, body in (
        ("INSERT", "", number),
        (
            "UPDATE OF search_text",
            "\nWHEN OLD.search_text IS NOT NEW.search_text",
            f"    DELETE FROM {NUMBERS} WHERE {place} = OLD.id;\n{number}",
        ),
        ("DELETE", "", f"    DELETE FROM {NUMBERS} WHERE {place} = OLD.id;\n"),
    ):
        name = f"{kind}_trigrams_{event.partition(' ')[0].lower()}"
        yield Trigger(name, f"CREATE TRIGGER {name} AFTER {event} ON {kind}{when}\nBEGIN\n{body}END\n")
