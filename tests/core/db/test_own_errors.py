"""What a function over a transaction raises by itself is raised as it is, and says nothing of the database."""

from __future__ import annotations

import errno
from typing import NoReturn

import pytest
from sqlalchemy import literal, select

from normata.core.db.database import Database
from normata.core.db.transaction import Transaction


def fail(transaction: Transaction) -> NoReturn:
    """Ask the database for something, and then fail at something else."""
    transaction.rows(select(literal(1)))
    raise OSError(errno.ENOSPC, "No space left on device", "dump.json")


@pytest.mark.parametrize("way", ["read_now", "write_now"])
def test_an_os_error_of_the_work(way: str, database: Database) -> None:
    with pytest.raises(OSError, match="No space left on device"):
        getattr(database, way)(fail)
    assert database.read_now(lambda transaction: transaction.scalar(select(literal(1)))) == 1
