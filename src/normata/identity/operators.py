"""Operators: the users who administer the instance."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, insert, select

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.transaction import Transaction
from normata.core.http.caller import Caller
from normata.core.schema.table import sql_table
from normata.errors import NotOperator
from normata.identity.model import Operator


def require_operator(transaction: Transaction, caller: Caller) -> None:
    """Raise NotOperator unless the caller is an operator. Their own rows are in the scope of ``transaction``.

    With a token that is narrowed to an organization, they are not.
    """
    if caller.narrowed_to is not None:
        raise NotOperator("The token is narrowed to an organization; this takes one that is not.")
    if not runs_instance(transaction, caller.user_id):
        raise NotOperator


def runs_instance(transaction: Transaction, user_id: str) -> bool:
    """Whether a user, whose own rows are in the scope of ``transaction``, is an operator."""
    return transaction.scalar(_FIND, {"user": user_id}) is not None


def set_operator(unit: UnitOfWork, user_id: str, *, is_operator: bool) -> bool:
    """Make a user an operator, or no longer one. Returns false if nothing changes. Only commands can do this."""
    found = unit.row(_FIND, {"user": user_id})
    if (found is not None) == is_operator:
        return False
    row = {"user_id": user_id, "since": unit.moment}
    if found is None:
        unit.rows(_MAKE, row)
        unit.publish(Change("create", Operator, None, user_id, row))
    else:
        unit.rows(_UNMAKE, {"user": user_id})
        unit.publish(Change("delete", Operator, None, user_id, None, found._asdict()))
    return True


_TABLE = sql_table(Operator)
_MAKE = insert(_TABLE).values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
_UNMAKE = delete(_TABLE).where(_TABLE.c.user_id == bindparam("user"))
_FIND = select(*_TABLE.c).where(_TABLE.c.user_id == bindparam("user"))
