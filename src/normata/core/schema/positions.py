"""Cursors of lists whose order is that of positions, which move when rows are added before others."""

from __future__ import annotations

from typing import Any, TypeVar

from sqlalchemy import Select

from normata.core.db.transaction import Parameters, Transaction
from normata.core.schema.cursors import Order, SortKeys
from normata.core.schema.paging import OwnPageQuery

AnyQuery = TypeVar("AnyQuery", bound=OwnPageQuery)


def with_todays_position(
    transaction: Transaction, query: AnyQuery, order: Order, position_of: Select[Any], parameters: Parameters
) -> AnyQuery:
    """The query whose cursor starts where its row is today.

    The position is the key before the id. ``position_of`` selects that of the id ``last``. Raises UnfitCursor.
    """
    if query.start is None:
        return query
    keys = query.start.keys
    SortKeys(order).check(keys)
    position = transaction.scalar(position_of, {**parameters, "last": keys[-1]})
    return query if position is None else query.starting_after((*keys[:-2], position, keys[-1]))
