"""The check of imported documents by ``normata check``: whether they are those that were hashed when they came."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from sqlalchemy import select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.frameworks.source_model import SourceDocument


def original_faults(transaction: Transaction) -> Iterator[str]:
    """The faults of the stored documents, a sentence each."""
    for row in transaction.stream(_DOCUMENTS):
        if sha256(row.content.encode()).hexdigest() != row.sha256:
            yield f"the document {row.id} that {row.framework_id} was imported from has another hash: it was changed"


_TABLE = sql_table(SourceDocument)
_DOCUMENTS = select(_TABLE.c.id, _TABLE.c.framework_id, _TABLE.c.sha256, _TABLE.c.content).order_by(_TABLE.c.id)
