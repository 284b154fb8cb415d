"""The versions whose files name a person, for an erasure."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator

from sqlalchemy import select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.soa_versions.model import SoaVersion


def versions_with(transaction: Transaction, is_named_in: Callable[[str], bool]) -> Iterator[str]:
    """The ids of the versions whose statement, as JSON, names somebody. The other formats say no more than that."""
    for row in transaction.stream(_STATEMENTS):
        if is_named_in(b64decode(row.json_file).decode()):
            yield row.id


_TABLE = sql_table(SoaVersion)
_STATEMENTS = select(_TABLE.c.id, _TABLE.c.json_file).where(_TABLE.c.json_file.is_not(None)).order_by(_TABLE.c.id)
