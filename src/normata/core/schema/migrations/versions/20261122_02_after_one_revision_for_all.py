"""remove the one revision for all lists, and the function that read it."""

from __future__ import annotations

from alembic import op

revision = "20261122_02"
down_revision = "20261122_01"


def upgrade() -> None:
    """Apply the change."""
    # Not in a batch: on SQLite that would rebuild the table, and the references to it forbid it.
    op.drop_column("organization", "revision")
    if op.get_context().dialect.name == "postgresql":
        op.execute("DROP FUNCTION IF EXISTS public.normata_admit(text[], text[])")
