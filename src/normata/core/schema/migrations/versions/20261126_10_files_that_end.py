"""files whose bytes were erased, those that no record has any more, and for how long an organization keeps these.

A file that no record has when this step runs counts as given up at that moment. The previous version may leave further
ones, which stay for ever.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import Document, now, text, timestamp

revision = "20261126_10"
down_revision = "20261126_09"

_FILE = sa.table(
    "file", sa.column("id", text(255)), sa.column("attached_at", timestamp()), sa.column("detached_at", timestamp())
)
_EVIDENCE = sa.table("evidence", sa.column("file_ids", Document()))


def upgrade() -> None:
    """Apply the change."""
    op.add_column("file", sa.Column("detached_at", timestamp(), nullable=True))
    op.add_column("file", sa.Column("erased_at", timestamp(), nullable=True))
    op.add_column("organization", sa.Column("keep_replaced_files_days", sa.Integer(), nullable=True))
    for name, columns, condition in (
        ("with_content", ["organization_id", "size"], "erased_at IS NULL"),
        ("detached", ["organization_id", "detached_at"], "detached_at IS NOT NULL AND erased_at IS NULL"),
    ):
        where = sa.text(condition)
        op.create_index(f"ix_file_{name}", "file", columns, sqlite_where=where, postgresql_where=where)
    connection = op.get_bind()
    held = {one for (ids,) in connection.execute(sa.select(_EVIDENCE.c.file_ids)) for one in ids or ()}
    attached = connection.execute(sa.select(_FILE.c.id).where(_FILE.c.attached_at.is_not(None)))
    moment = now()
    for file_id in [row.id for row in attached if row.id not in held]:
        op.execute(_FILE.update().where(_FILE.c.id == file_id).values(detached_at=sa.literal(moment, timestamp())))
