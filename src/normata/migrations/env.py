"""Alembic's entry point. Normata runs it with a connection at hand; see ``normata.migrations``."""

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy import String
from sqlalchemy.types import TypeDecorator

from normata.database import Document, UtcTimestamp
from normata.models import Table


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


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Table.metadata,
    render_item=render_item,
    render_as_batch=True,
)
context.run_migrations()
