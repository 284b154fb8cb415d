"""events of commands, the content of events, and their seals."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261122_07"
down_revision = "20261122_06"


def upgrade() -> None:
    """Apply the change."""
    with op.batch_alter_table("audit_event", schema=None) as batch_op:
        for name, length in (("organization_id", 255), ("entity_id", 255), ("user_id", 255), ("token_id", 255)):
            batch_op.alter_column(name, existing_type=text(length), nullable=True)
        batch_op.add_column(sa.Column("body", text(), nullable=True))
        batch_op.create_index(
            batch_op.f("ix_audit_event_organization_id_entity_id_at"), ["organization_id", "entity_id", "at"]
        )

    op.create_table(
        "unsealed_event",
        sa.Column("event_id", text(255), nullable=False),
        sa.Column("owner", text(255), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_unsealed_event")),
        sqlite_with_rowid=False,
    )
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "event_leaf",
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("number", number, nullable=False),
        sa.Column("event_id", text(255), nullable=False),
        sa.Column("hash", text(64), nullable=False),
        sa.PrimaryKeyConstraint("organization_id", "number", name=op.f("pk_event_leaf")),
        sa.UniqueConstraint("event_id", name=op.f("uq_event_leaf_event_id")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "event_checkpoint",
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("size", number, nullable=False),
        sa.Column("root", text(64), nullable=False),
        sa.Column("frontier", text(), nullable=False),
        sa.Column("at", timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("organization_id", "size", name=op.f("pk_event_checkpoint")),
    )
    for statement in _TRIGGER[op.get_bind().dialect.name]:
        op.execute(statement)
    op.execute("INSERT INTO unsealed_event (event_id, owner) SELECT id, coalesce(organization_id, '') FROM audit_event")


# Each event is noted in its own transaction, whichever version of the program writes it.
_ON_SQLITE = """\
CREATE TRIGGER note_unsealed_event AFTER INSERT ON audit_event
BEGIN
    INSERT INTO unsealed_event (event_id, owner) VALUES (NEW.id, coalesce(NEW.organization_id, ''));
END
"""
_FUNCTION = """\
CREATE FUNCTION note_unsealed_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.unsealed_event (event_id, owner) VALUES (NEW.id, coalesce(NEW.organization_id, ''));
    RETURN NULL;
END $$
"""
_ON_POSTGRESQL = """\
CREATE TRIGGER note_unsealed_event AFTER INSERT ON audit_event FOR EACH ROW EXECUTE FUNCTION note_unsealed_event()
"""
_TRIGGER = {"sqlite": (_ON_SQLITE,), "postgresql": (_FUNCTION, _ON_POSTGRESQL)}
