"""A bulk change has the database count what it has written, so that the next statement is planned by that."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Column, MetaData, Table, insert, select

from normata.core.db.database import Database
from normata.core.db.sqlite.transaction import SQLiteTransaction
from normata.core.db.transaction import Transaction
from normata.core.db.types import text
from tests.core.db.example import ALPHA, label, new_label, note, open_url
from tests.core.db.sessions import run

ROWS = 2_000
LABELS = [new_label(f"{number:05}") | {"order": number % 7} for number in range(ROWS)]
NOTES = [{"id": f"{number:05}", "organization_id": ALPHA} for number in range(ROWS)]

# A name that means something else, or something more, unless it is quoted.
ODD = 'Group "; DROP TABLE note; --'
odd = Table(ODD, MetaData(), Column("id", text(128), primary_key=True))


def fill(transaction: Transaction) -> None:
    """The bulk change."""
    transaction.execute_many(insert(label), LABELS)
    transaction.execute_many(insert(note), NOTES)


def counted(transaction: Transaction) -> dict[str, int]:
    """The tables that the database has counted, and how many rows it has found in them."""
    if isinstance(transaction, SQLiteTransaction):
        # The first number of each line is how many rows the index has; a partial index has fewer.
        found = transaction.fetch("SELECT tbl, max(CAST(stat AS INTEGER)) FROM sqlite_stat1 GROUP BY tbl")
    else:
        found = run(
            "SELECT c.relname::text, c.reltuples::integer FROM pg_class AS c WHERE c.relkind = 'r'"
            " AND c.relnamespace = 'public'::regnamespace AND EXISTS (SELECT FROM pg_stats AS s"
            " WHERE s.schemaname = 'public' AND s.tablename = c.relname)"
        )(transaction)
    return dict(found)


def nearly(tables: dict[str, int]) -> Any:
    """What is equal to these numbers or near them: SQLite looks at a sample."""
    return pytest.approx(tables, rel=0.3)


def uncounted(database: Database) -> bool:
    """Whether the database knows of no table how much is in it."""

    def work(transaction: Transaction) -> bool:
        if isinstance(transaction, SQLiteTransaction):
            return not transaction.fetch("SELECT name FROM sqlite_master WHERE name = 'sqlite_stat1'")
        return counted(transaction) == {}

    return database.read_now(work)


def test_what_the_transaction_has_written_is_counted_in_it(database: Database) -> None:
    def work(transaction: Transaction) -> dict[str, int]:
        fill(transaction)
        transaction.analyze({"label": ROWS})
        return counted(transaction)

    assert uncounted(database)
    expected = nearly({"label": ROWS + 2})
    assert database.write_now(work) == expected
    assert database.read_now(counted) == expected


def test_of_several_tables_each_is_counted(database: Database) -> None:
    def work(transaction: Transaction) -> None:
        fill(transaction)
        transaction.analyze({"note": ROWS, "label": ROWS})

    database.write_now(work)
    assert database.read_now(counted) == nearly({"label": ROWS + 2, "note": ROWS + 2})


def test_again_after_more_has_been_written(database: Database) -> None:
    def work(number: int) -> Callable[[Transaction], None]:
        def more(transaction: Transaction) -> None:
            transaction.execute_many(insert(note), [row | {"id": f"{number}-{row['id']}"} for row in NOTES])
            transaction.analyze({"note": ROWS})

        return more

    for number in (1, 2):
        database.write_now(work(number))
        assert database.read_now(counted) == nearly({"note": number * ROWS + 2})


def test_few_rows_are_not_worth_it(database: Database) -> None:
    database.write_now(lambda transaction: transaction.analyze({}))
    database.write_now(lambda transaction: transaction.analyze({"label": 99, "note": 0}))
    assert uncounted(database)


def test_a_name_is_taken_as_it_is(database: Database) -> None:
    database.alter_now(odd.create)

    def work(transaction: Transaction) -> None:
        transaction.execute_many(insert(odd), [{"id": f"{number}"} for number in range(ROWS)])
        transaction.analyze({ODD: ROWS})

    database.write_now(work)
    assert database.read_now(counted) == nearly({ODD: ROWS})
    assert database.read_now(lambda transaction: transaction.rows(select(note.c.id)))


def test_a_table_that_is_not_there_is_a_fault(database: Database) -> None:
    with pytest.raises(Exception, match="nowhere"):
        database.write_now(lambda transaction: transaction.analyze({"nowhere": ROWS}))


def test_what_fails_leaves_the_rows_out(database: Database) -> None:
    """Counting is a part of the transaction, and no commit."""

    def work(transaction: Transaction) -> None:
        fill(transaction)
        transaction.analyze({"label": ROWS})
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        database.write_now(work)
    assert database.read_now(lambda transaction: len(transaction.rows(select(label.c.id)))) == 2


def test_sqlite_looks_at_a_bounded_sample_but_not_at_a_small_one(sqlite: Database) -> None:
    """Of a small one it would conclude that no organization has more rows than the sample."""

    def work(transaction: Transaction) -> list[Any]:
        transaction.execute_many(insert(label), [new_label(f"{number}") for number in range(20_000)])
        transaction.analyze({"label": ROWS})
        assert isinstance(transaction, SQLiteTransaction)
        return transaction.fetch("PRAGMA analysis_limit")

    ((limit,),) = sqlite.write_now(work)
    assert limit == 100_000

    def read(transaction: Transaction) -> Any:
        assert isinstance(transaction, SQLiteTransaction)
        return transaction.fetch("SELECT stat FROM sqlite_stat1 WHERE idx = 'uq_label_slug'")[0][0]

    rows, of_an_organization, of_a_slug = map(int, sqlite.read_now(read).split())
    assert (rows, of_an_organization, of_a_slug) == (20_002, 10_001, 1)


def test_another_that_has_the_file_open_goes_on(sqlite: Database, sqlite_url: str) -> None:
    names = select(label.c.name).where(label.c.id == "label-alpha")
    with closing(open_url(sqlite_url)) as other:
        assert other.read_now(lambda transaction: transaction.scalar(names)) == "alpha"
        sqlite.write_now(lambda transaction: transaction.analyze({"label": ROWS}))
        assert other.read_now(lambda transaction: transaction.scalar(names)) == "alpha"
