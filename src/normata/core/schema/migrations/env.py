"""Alembic's entry point. ``upgrading.py`` beside this file runs it, with a connection and the metadata."""

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy import String
from sqlalchemy.types import TypeDecorator

from normata.core.db.types import Document, UtcTimestamp
from normata.core.schema.migrations.comparing import belongs_to, differs


def render_item(kind: str, item: Any, _context: AutogenContext) -> str | Literal[False]:
    """Write a new migration's column types short, and without naming classes that may change later."""
    if kind != "type":
        return False
    if isinstance(item, UtcTimestamp):
        return "timestamp()"
    if isinstance(item, Document):
        return "document()"
    if isinstance(item, TypeDecorator):
        return f"sa.{item.impl!r}"
    if type(item) is String:
        return f"text({item.length or ''})"
    return False


connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=context.config.attributes["metadata"],
    render_item=render_item,
    compare_type=differs,
    include_object=belongs_to(connection.dialect.name),
    render_as_batch=True,
)
context.run_migrations()
