"""Which columns may contain a person's name or address. This follows from their declarations; no table is listed."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic.alias_generators import to_camel
from sqlalchemy import Column, String

from normata.core.db.types import Document
from normata.core.schema.table import sql_table, tables
from normata.identity.model import User
from normata.notifications.model import Notification, OutgoingMail
from normata.tables import Table

# How an erasure treats a column: `key` and `coded` stay unchanged, `derived` follows from the others, `whole` is
# replaced as a whole, and so is `source`, the text of a document in JSON or YAML.
Use = Literal["key", "coded", "derived", "document", "email", "person", "slug", "source", "text", "whole"]
CHANGED: frozenset[Use] = frozenset({"document", "email", "person", "slug", "source", "text", "whole"})


def use_of(column: Column[Any]) -> Use | None:
    """How an erasure treats a column; null if it has no text: numbers, flags, times, tokens of an enum.

    A column without another declaration is a text that people write.
    """
    info = column.info
    if isinstance(column.type, Document):
        return "document"
    if not isinstance(column.type, String):
        return None
    holds: dict[Use, bool] = {
        "whole": "erased_to" in info,
        "source": "source" in info,
        "coded": "coded" in info or "known" in info,
        "key": column.primary_key or _refers_elsewhere(column),
        "derived": "derived" in info,
        "person": "names_person" in info,
        "email": "email" in info,
        "slug": column.name == "slug",
    }
    return next((use for use, does in holds.items() if does), "text")


@cache
def uses(table: type[Table]) -> dict[str, Use]:
    """The columns of a table that have texts, each with its treatment."""
    return {column.name: use for column in sql_table(table).columns if (use := use_of(column)) is not None}


@cache
def texts_of(table: type[Table]) -> dict[str, Use]:
    """The columns that may name a person who is erased, and are then changed."""
    return {name: use for name, use in uses(table).items() if use in CHANGED}


def keys_of(table: type[Table]) -> tuple[str, ...]:
    """The columns of the primary key."""
    return tuple(column.name for column in sql_table(table).primary_key.columns)


def ids_of(table: type[Table]) -> tuple[str, ...]:
    """The columns with a row's own ids, which could contain a name."""
    return tuple(name for name in keys_of(table) if uses(table).get(name) == "key" and not _refers(table, name))


def owner_of(table: type[Table]) -> str | None:
    """The column with the organization of a row; null if rows belong to none."""
    columns = sql_table(table).c
    declared = sql_table(table).info.get("organization_column", "organization_id")
    return declared if declared in columns else None


def own_tables() -> list[tuple[type[Table], str]]:
    """The tables whose rows belong to a user, each with the column of the user; without the table of users itself."""
    owned = [
        (table, str(column))
        for table in tables()
        if table is not User and (column := sql_table(table).info.get("owned_by")) is not None
    ]
    # Notifications, which only this user reads, and what of them is to be mailed.
    return [*owned, (Notification, "user_id"), (OutgoingMail, "user_id")]


@cache
def person_members() -> frozenset[str]:
    """The names in JSON of the columns that name a person."""
    return frozenset(to_camel(name) for table in tables() for name, use in uses(table).items() if use == "person")


def called(table: type[Table]) -> str:
    """The name of a table for people: its name in bundles and events if it has one."""
    return table.array or str(table.__tablename__)


def _refers(table: type[Table], name: str) -> bool:
    return _refers_elsewhere(sql_table(table).c[name])


def _refers_elsewhere(column: Column[Any]) -> bool:
    return bool(column.foreign_keys) or "refers_to" in column.info or "kind_in" in column.info
