"""people who sign in and leave, operators, invitations, and tokens of one organization."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261122_11"
down_revision = "20261122_10"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "sign_in_attempt",
        sa.Column("id", text(255), nullable=False),
        sa.Column("kind", text(16), nullable=False),
        sa.Column("digest", text(64), nullable=False),
        sa.Column("data", text(), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("expires_at", timestamp(), nullable=False),
        sa.Column("used_at", timestamp(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_in_attempt")),
        sa.UniqueConstraint("digest", name=op.f("uq_sign_in_attempt_digest")),
    )
    with op.batch_alter_table("sign_in_attempt", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sign_in_attempt_expires_at"), ["expires_at"], unique=False)

    op.create_table(
        "external_identity",
        sa.Column("id", text(255), nullable=False),
        sa.Column("user_id", text(255), nullable=False),
        sa.Column("issuer", text(), nullable=False),
        sa.Column("subject", text(), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("last_used_at", timestamp(), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["user_account.id"],
            name=op.f("fk_external_identity_user_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_external_identity")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_external_identity_issuer_subject")),
    )
    with op.batch_alter_table("external_identity", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_external_identity_user_id"), ["user_id"], unique=False)

    op.create_table(
        "invitation",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("email", text(320), nullable=False),
        sa.Column("email_folded", text(320), nullable=False),
        sa.Column("role", text(8), nullable=False),
        sa.Column("digest", text(64), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("created_by", text(255), nullable=True),
        sa.Column("expires_at", timestamp(), nullable=False),
        sa.Column("accepted_at", timestamp(), nullable=True),
        sa.Column("revoked_at", timestamp(), nullable=True),
        sa.ForeignKeyConstraint(
            ["created_by"],
            ["user_account.id"],
            name=op.f("fk_invitation_created_by"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_invitation_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitation")),
        sa.UniqueConstraint("digest", name=op.f("uq_invitation_digest")),
    )
    with op.batch_alter_table("invitation", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_invitation_email_folded"), ["email_folded"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_invitation_organization_id_email_folded"), ["organization_id", "email_folded"], unique=False
        )

    op.create_table(
        "operator",
        sa.Column("user_id", text(255), nullable=False),
        sa.Column("since", timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_operator_user_id"), initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_operator")),
    )
    op.create_table(
        "passkey",
        sa.Column("id", text(255), nullable=False),
        sa.Column("user_id", text(255), nullable=False),
        sa.Column("credential_id", text(), nullable=False),
        sa.Column("credential", text(), nullable=False),
        sa.Column("sign_count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", text(500), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("last_used_at", timestamp(), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_passkey_user_id"), initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_passkey")),
        sa.UniqueConstraint("credential_id", name=op.f("uq_passkey_credential_id")),
    )
    with op.batch_alter_table("passkey", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_passkey_user_id"), ["user_id"], unique=False)

    op.create_table(
        "password",
        sa.Column("user_id", text(255), nullable=False),
        sa.Column("hash", text(), nullable=False),
        sa.Column("changed_at", timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_password_user_id"), initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_password")),
    )
    op.create_table(
        "session",
        sa.Column("id", text(255), nullable=False),
        sa.Column("user_id", text(255), nullable=False),
        sa.Column("digest", text(64), nullable=False),
        sa.Column("means", text(16), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("last_used_at", timestamp(), nullable=False),
        sa.Column("expires_at", timestamp(), nullable=False),
        sa.Column("ended_at", timestamp(), nullable=True),
        sa.Column("address", text(500), nullable=False),
        sa.Column("user_agent", text(500), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_session_user_id"), initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_session")),
        sa.UniqueConstraint("digest", name=op.f("uq_session_digest")),
    )
    with op.batch_alter_table("session", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_session_user_id"), ["user_id"], unique=False)

    op.create_table(
        "sign_in_link",
        sa.Column("id", text(255), nullable=False),
        sa.Column("user_id", text(255), nullable=False),
        sa.Column("digest", text(64), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("expires_at", timestamp(), nullable=False),
        sa.Column("used_at", timestamp(), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["user_account.id"],
            name=op.f("fk_sign_in_link_user_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_in_link")),
        sa.UniqueConstraint("digest", name=op.f("uq_sign_in_link_digest")),
    )
    with op.batch_alter_table("sign_in_link", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sign_in_link_user_id"), ["user_id"], unique=False)

    with op.batch_alter_table("access_token", schema=None) as batch_op:
        batch_op.add_column(sa.Column("organization_id", text(255), nullable=True))
        batch_op.add_column(sa.Column("name", text(500), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f("fk_access_token_organization_id"),
            "organization",
            ["organization_id"],
            ["id"],
            initially="DEFERRED",
            deferrable=True,
        )

    with op.batch_alter_table("idempotency_key", schema=None) as batch_op:
        batch_op.alter_column("organization_id", existing_type=sa.VARCHAR(length=255), nullable=True)

    with op.batch_alter_table("membership", schema=None) as batch_op:
        batch_op.add_column(sa.Column("removed_at", timestamp(), nullable=True))

    with op.batch_alter_table("user_account", schema=None) as batch_op:
        batch_op.add_column(sa.Column("organization_id", text(255), nullable=True))
        batch_op.add_column(sa.Column("removed_at", timestamp(), nullable=True))
        batch_op.alter_column("email", existing_type=sa.VARCHAR(length=320), nullable=True)
        batch_op.alter_column("email_folded", existing_type=sa.VARCHAR(length=320), nullable=True)
        batch_op.create_foreign_key(
            batch_op.f("fk_user_account_organization_id"),
            "organization",
            ["organization_id"],
            ["id"],
            initially="DEFERRED",
            deferrable=True,
        )
