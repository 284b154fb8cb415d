"""people and groups that an identity provider maintains.

Whether tokens may have the scope for that is no matter of the schema.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import document, text, timestamp

revision = "20261126_25"
down_revision = "20261126_24"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "provisioned_person",
        *_ids("id", "organization_id", "user_id", "membership_id"),
        *(sa.Column(name, text(500), nullable=False) for name in ("user_name", "user_name_folded")),
        sa.Column("external_id", text(500), nullable=True),
        sa.Column("details", document(), nullable=False),
        sa.Column("made_account", sa.Boolean(), nullable=False),
        *_moments(),
        _of_organization("provisioned_person"),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["user_account.id"],
            name=op.f("fk_provisioned_person_user_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        _within("provisioned_person", "membership_id", "membership"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_provisioned_person")),
        *(
            sa.UniqueConstraint("organization_id", column, name=op.f(f"uq_provisioned_person_organization_id_{column}"))
            for column in ("membership_id", "user_name_folded")
        ),
    )
    op.create_index(
        op.f("ix_provisioned_person_organization_id_external_id"),
        "provisioned_person",
        ["organization_id", "external_id"],
    )
    op.create_table(
        "provisioned_group",
        *_ids("id", "organization_id"),
        sa.Column("name", text(500), nullable=False),
        sa.Column("external_id", text(500), nullable=True),
        *_moments(),
        _of_organization("provisioned_group"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_provisioned_group")),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_provisioned_group_organization_id_id")),
    )
    op.create_table(
        "provisioned_group_member",
        *_ids("organization_id", "group_id", "membership_id"),
        _of_organization("provisioned_group_member"),
        _within("provisioned_group_member", "group_id", "provisioned_group"),
        _within("provisioned_group_member", "membership_id", "membership"),
        sa.PrimaryKeyConstraint("group_id", "membership_id", name=op.f("pk_provisioned_group_member")),
    )
    op.create_index(
        op.f("ix_provisioned_group_member_organization_id_membership_id"),
        "provisioned_group_member",
        ["organization_id", "membership_id"],
    )


def _ids(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, text(255), nullable=False) for name in names]


def _moments() -> list[sa.Column[str]]:
    return [sa.Column(name, timestamp(), nullable=False) for name in ("created_at", "changed_at")]


def _of_organization(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["organization_id"],
        ["organization.id"],
        name=op.f(f"fk_{table}_organization_id"),
        initially="DEFERRED",
        deferrable=True,
    )


def _within(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["organization_id", column],
        [f"{other}.organization_id", f"{other}.id"],
        name=op.f(f"fk_{table}_organization_id_{column}"),
        initially="DEFERRED",
        deferrable=True,
    )
