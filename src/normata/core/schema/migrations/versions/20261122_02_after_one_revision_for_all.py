"""one revision for all lists is gone, and with it the function that asked for it."""

from __future__ import annotations

from alembic import op

revision = "20261122_02"
down_revision = "20261122_01"


def upgrade() -> None:
    """Apply the change."""
    # Plainly dropped: a batch would make the table anew on SQLite, which the references to it forbid.
    op.drop_column("organization", "revision")
    if op.get_context().dialect.name == "postgresql":
        op.execute("DROP FUNCTION IF EXISTS public.normata_admit(text[], text[])")
