"""What each column of each table may hold of a person, by how it is declared: no table is listed anywhere."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic.alias_generators import to_camel
from sqlalchemy import Column, String

from normata.core.db.types import Document
from normata.core.schema.table import sql_table, tables
from normata.identity.model import User
from normata.notifications.model import Notification
from normata.tables import Table

# How a column is treated. Of ``key`` and ``coded`` nothing is changed, ``derived`` follows from the others, ``whole``
# is replaced as a whole.
Use = Literal["key", "coded", "derived", "document", "email", "person", "slug", "text", "whole"]
CHANGED: frozenset[Use] = frozenset({"document", "email", "person", "slug", "text", "whole"})


def use_of(column: Column[Any]) -> Use | None:
    """How a column is treated; null where it has no text: numbers, flags, times, tokens of an enum.

    What is not declared to be something else is a text that people write.
    """
    info = column.info
    if isinstance(column.type, Document):
        return "document"
    if not isinstance(column.type, String):
        return None
    holds: dict[Use, bool] = {
        "whole": "erased_to" in info,
        "coded": "coded" in info or "known" in info,
        "key": column.primary_key or bool(column.foreign_keys) or "refers_to" in info,
        "derived": "derived" in info,
        "person": "names_person" in info,
        "email": "email" in info,
        "slug": column.name == "slug",
    }
    return next((use for use, does in holds.items() if does), "text")


@cache
def uses(table: type[Table]) -> dict[str, Use]:
    """The columns of a table that have texts, and how each is treated."""
    return {column.name: use for column in sql_table(table).columns if (use := use_of(column)) is not None}


@cache
def texts_of(table: type[Table]) -> dict[str, Use]:
    """The columns that may name a person who is erased, and are then changed."""
    return {name: use for name, use in uses(table).items() if use in CHANGED}


def keys_of(table: type[Table]) -> tuple[str, ...]:
    """The columns that tell a row from the others."""
    return tuple(column.name for column in sql_table(table).primary_key.columns)


def ids_of(table: type[Table]) -> tuple[str, ...]:
    """The ids that a row brings itself, and that could name a person."""
    return tuple(name for name in keys_of(table) if uses(table).get(name) == "key" and not _refers(table, name))


def owner_of(table: type[Table]) -> str | None:
    """The column that names the organization of a row; null where rows belong to none."""
    columns = sql_table(table).c
    declared = sql_table(table).info.get("organization_column", "organization_id")
    return declared if declared in columns else None


def own_tables() -> list[tuple[type[Table], str]]:
    """The tables whose rows are a user's own, and the column that names the user; but for the users themselves."""
    owned = [
        (table, str(column))
        for table in tables()
        if table is not User and (column := sql_table(table).info.get("owned_by")) is not None
    ]
    return [*owned, (Notification, "user_id")]  # what an organization has told somebody, and nobody else reads


@cache
def person_members() -> frozenset[str]:
    """What columns that name a person are called in JSON."""
    return frozenset(to_camel(name) for table in tables() for name, use in uses(table).items() if use == "person")


def called(table: type[Table]) -> str:
    """What people know a table by: its name in bundles and events, where it has one."""
    return table.array or str(table.__tablename__)


def _refers(table: type[Table], name: str) -> bool:
    column = sql_table(table).c[name]
    return bool(column.foreign_keys) or "refers_to" in column.info
