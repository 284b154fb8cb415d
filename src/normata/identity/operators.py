"""Operators: the users who run the instance."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from normata.db.transaction import Transaction
from normata.errors import NotOperator
from normata.identity.model import Operator
from normata.schema.table import sql_table


def require_operator(transaction: Transaction, user_id: str) -> None:
    """Raise NotOperator unless the user runs the instance. The user's own rows are in the scope of ``transaction``."""
    if transaction.scalar(_FIND, {"user": user_id}) is None:
        raise NotOperator


_TABLE = sql_table(Operator)
_FIND = select(_TABLE.c.user_id).where(_TABLE.c.user_id == bindparam("user"))
