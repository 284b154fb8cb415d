"""Searches the index of :mod:`normata.core.db.trigrams` on SQLite, checks it, and makes it anew."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Integer, MetaData, bindparam, column, func, select, table
from sqlalchemy import String as SqlString

from normata.core.db import trigrams
from normata.core.db.transaction import Transaction
from normata.core.db.trigrams import BATCH, INDEX, NO_HITS, NUMBERS, TEXTS, Hits, made_of, tables_with

Fetch = Callable[..., Sequence[Any]]

_MOST = 32  # trigrams of a search; more hardly exclude any more
_SAMPLE = 200  # texts that are looked for by the check
_INDEXED = f"(SELECT seq - seq % {BATCH} FROM sqlite_sequence WHERE name = '{NUMBERS}')"


_index = table(INDEX, column("rowid"), column(INDEX))
_numbers = table(NUMBERS, column("number"), column("kind"), column("record_id", SqlString()))
_sequence = table("sqlite_sequence", column("seq"), column("name"))


def match(words: Sequence[str]) -> str | None:
    """What the index is asked for, for the folded words of a search; null if none of them has a trigram."""
    # All of them: the more of them overlap, the fewer texts have them without having the word.
    parts = dict.fromkeys(word[place : place + 3] for word in words for place in range(len(word) - 2))
    return " AND ".join(f'"{part.replace(chr(34), chr(34) * 2)}"' for part in list(parts)[:_MOST]) or None


def hits(transaction: Transaction, words: Sequence[str], kinds: Iterable[str]) -> Hits:
    """The few records of tables whose texts may have the folded words of a search.

    Nothing if the words have no trigrams, or if too many texts have these: the first page is soon found in the order of
    a list.
    """
    wanted = match(words)
    if wanted is None:
        return NO_HITS
    numbers = transaction.scalars(_ROWIDS, {"trigrams": wanted, "few": trigrams.FEW})
    if len(numbers) >= trigrams.FEW:  # also if former texts are among them: there may be more
        return NO_HITS
    found = transaction.rows(_OF_NUMBERS, {"numbers": json.dumps(numbers)})
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for kind, record_id in (*found, *transaction.rows(_NOT_YET_INDEXED)):
        ids[kind].append(record_id)
    return Hits({kind: json.dumps(ids[kind]) for kind in kinds})


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


def make_anew(run: Callable[[str], object]) -> None:
    """Fill the index again, so that nothing is left of former texts."""
    run(f"INSERT INTO {INDEX} ({INDEX}) VALUES ('delete-all')")
    run(
        f"INSERT INTO {INDEX} (rowid, text) SELECT number, text FROM {TEXTS} WHERE number <= {_INDEXED} ORDER BY number"
    )


def exists(fetch: Fetch) -> bool:
    """Whether the database has the index; one of another schema may not."""
    return bool(fetch("SELECT 1 FROM sqlite_schema WHERE name = ?", (INDEX,)))


def faults(fetch: Fetch, metadata: MetaData) -> Iterator[str]:
    """What searches would not find, a sentence each; of the indexed texts a sample is looked for."""
    kinds = tables_with(metadata)
    if not kinds:
        return
    stored = {sql for (sql,) in fetch("SELECT sql FROM sqlite_schema")}
    if not stored.issuperset(one.rstrip() for one in made_of(kinds)):
        yield "the index of trigrams is not as Normata makes it"
        return
    for kind in kinds:
        ((missing,),) = fetch(
            f"SELECT count(*) FROM {kind} WHERE NOT EXISTS"
            f" (SELECT 1 FROM {NUMBERS} WHERE record_id = {kind}.id AND kind = '{kind}')"
        )
        if missing:
            yield f"searches do not find {missing} rows of the table {kind}, which have no trigrams"
    ((first, last),) = fetch(f"SELECT min(number), max(number) FROM {NUMBERS} WHERE number <= {_INDEXED}")
    if first is None:
        return
    numbers = sorted({random.randint(first, last) for _ in range(_SAMPLE)})  # noqa: S311 - no secret
    texts = fetch(f"SELECT number, text FROM {TEXTS} WHERE number IN ({', '.join(map(str, numbers))})")
    lost = sum(not _is_found(fetch, number, text) for number, text in texts)
    if lost:
        yield f"searches do not find {lost} of {len(texts)} texts, whose trigrams are missing or wrong"


def _is_found(fetch: Fetch, number: int, text: str | None) -> bool:
    wanted = match((text or "").split())
    found = f"SELECT 1 FROM {INDEX} WHERE {INDEX} MATCH ? AND rowid = ?"
    return wanted is None or bool(fetch(found, (wanted, number)))
