"""Checks the index of :mod:`normata.core.db.trigrams`, and makes it anew."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import MetaData

from normata.core.db.trigrams import BATCH, HAS_TRIGRAMS, INDEX, NUMBERS, TEXTS, made_of, match

Fetch = Callable[..., Sequence[Any]]

_SAMPLE = 200  # texts that are looked for by the check
_INDEXED = f"(SELECT seq - seq % {BATCH} FROM sqlite_sequence WHERE name = '{NUMBERS}')"


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
    kinds = sorted(table.name for table in metadata.tables.values() if HAS_TRIGRAMS in table.info)
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
