"""Searches by the trigrams of records' texts, where the database has an index of them: on SQLite, FTS5's.

The index finds the texts that have all trigrams of the words. Whether they have the words is for the statement to say
that searches among what was found: see :mod:`normata.core.schema.paging`.

Triggers write the index. Each text has a number, and one that changes gets another one. To index a text alone costs a
write ten times as much as among many, so each number that ends a batch has its batch indexed together, and searches
look at the texts since then one by one. The index has no texts, and is not told of those that have changed or gone:
their numbers have no row any more. Scrubbing makes it anew without them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import ColumnElement, Integer, Table, bindparam, column, func, select, table
from sqlalchemy import String as SqlString

from normata.core.db.schema_items import Trigger
from normata.core.db.transaction import Transaction

INDEX, NUMBERS, TEXTS = "record_trigram", "record_trigram_row", "record_trigram_text"
OWN_TABLES = frozenset({INDEX, NUMBERS, *(f"{INDEX}_{part}" for part in ("data", "idx", "config"))})
HAS_TRIGRAMS = "has_trigrams"  # the info of a table
BATCH = 256  # texts that are indexed together

FEW = 2_000  # texts; to read and to sort so many takes less time than to look for more in the order of a list
_MOST = 32  # trigrams of a search; more hardly exclude any more

_index = table(INDEX, column("rowid"), column(INDEX))
_numbers = table(NUMBERS, column("number"), column("kind"), column("record_id", SqlString()))
_sequence = table("sqlite_sequence", column("seq"), column("name"))


def match(words: Sequence[str]) -> str | None:
    """What the index is asked for, for the folded words of a search; null if none of them has a trigram."""
    # All of them: the more of them overlap, the fewer texts have them without having the word.
    parts = dict.fromkeys(word[place : place + 3] for word in words for place in range(len(word) - 2))
    return " AND ".join(f'"{part.replace(chr(34), chr(34) * 2)}"' for part in list(parts)[:_MOST]) or None


def few_with(transaction: Transaction, words: Sequence[str], kinds: Iterable[str]) -> Mapping[str, str] | None:
    """The records of tables whose texts may have the folded words of a search: the parameters of :func:`among_few`.

    Null if the index is of no use for the search: if there is none, if the words have no trigrams, or if too many texts
    have these. Then the first page is soon found in the order of a list.
    """
    trigrams = match(words) if transaction.has_trigrams else None
    if trigrams is None:
        return None
    numbers = transaction.scalars(_ROWIDS, {"trigrams": trigrams, "few": FEW})
    if len(numbers) >= FEW:  # also if former texts are among them: there may be more
        return None
    found = transaction.rows(_OF_NUMBERS, {"numbers": json.dumps(numbers)})
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for kind, record_id in (*found, *transaction.rows(_NOT_YET_INDEXED)):
        ids[kind].append(record_id)
    return {_few(kind): json.dumps(ids[kind]) for kind in kinds}


def among_few(column: ColumnElement[str], kind: str) -> ColumnElement[bool]:
    """The condition that a column has the id of one of the few records of a table.

    The ids are a parameter, and no part of the statement that looks for them: SQLite might look into the index for each
    record, or for each in the order of the list.
    """
    return column.in_(select(func.json_each(bindparam(_few(kind), type_=SqlString())).table_valued("value").c.value))


def _few(kind: str) -> str:
    return f"few_{kind}"


_ROWIDS = (
    select(_index.c.rowid)
    .where(_index.c[INDEX].bool_op("MATCH")(bindparam("trigrams", type_=SqlString())))
    .limit(bindparam("few", type_=Integer()))
)
_OF_NUMBERS = select(_numbers.c.kind, _numbers.c.record_id).where(
    _numbers.c.number.in_(select(func.json_each(bindparam("numbers", type_=SqlString())).table_valued("value").c.value))
)
_LAST_INDEXED = select(_sequence.c.seq - _sequence.c.seq % BATCH).where(_sequence.c.name == NUMBERS).scalar_subquery()
_NOT_YET_INDEXED = select(_numbers.c.kind, _numbers.c.record_id).where(_numbers.c.number > _LAST_INDEXED)


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
