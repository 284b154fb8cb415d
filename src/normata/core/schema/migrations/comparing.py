"""Which differences between a schema and the tables count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alembic.runtime.migration import MigrationContext
from sqlalchemy import Column, String
from sqlalchemy.types import TypeEngine

from normata.core.db.trigrams import is_own_table


def differs(
    context: MigrationContext, _stored: Column[Any], _declared: Column[Any], stored: TypeEngine[Any], declared: Any
) -> bool | None:
    """Whether the type of a column differs, for Alembic; null to let Alembic decide.

    SQLite accepts texts of any length, whatever the column declares, and could change the declaration only by
    rebuilding the table. So migrations that widen columns skip SQLite, and a length is not a difference there.
    """
    if context.dialect.name == "sqlite" and isinstance(stored, String):
        impl = declared.dialect_impl(context.dialect)
        return not isinstance(getattr(impl, "impl_instance", impl), String)
    return None


def belongs_to(dialect: str) -> Callable[[Any, str | None, str, bool, Any], bool]:
    """Which items of a schema are compared, for Alembic.

    Not an index whose ``info`` names another dialect, and not the tables of an index of trigrams.
    """

    def belongs(item: Any, name: str | None, kind: str, _reflected: bool, _compared: Any) -> bool:
        if kind == "table":
            return not is_own_table(name or "")
        return kind != "index" or item.info.get("dialect", dialect) == dialect

    return belongs
