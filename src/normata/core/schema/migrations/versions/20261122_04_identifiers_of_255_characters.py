"""identifiers of 255 characters, and an index for an organization's own matches."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261122_04"
down_revision = "20261122_03"


def upgrade() -> None:
    """Apply the change."""
    op.create_index(op.f("ix_control_match_organization_id"), "control_match", ["organization_id"])
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":  # SQLite takes texts of any length, whatever a column says
        _widen(connection)


def _widen(connection: sa.Connection) -> None:
    """Have all identifiers take 255 characters.

    That changes the catalog: no row is written, and no index but the partial ones, of the slugs of live records.
    """
    quote = connection.dialect.identifier_preparer.quote_identifier
    # A column that a policy uses cannot be changed. All policies are created again after each migration.
    policies = connection.exec_driver_sql(
        "SELECT c.relname::text, p.polname::text FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid"
        " WHERE c.relnamespace = 'public'::regnamespace"
    )
    for table, policy in policies.all():
        connection.exec_driver_sql(f"DROP POLICY {quote(policy)} ON {quote(table)}")
    columns = connection.exec_driver_sql(
        "SELECT table_name::text, array_agg(column_name::text ORDER BY ordinal_position)"
        " FROM information_schema.columns WHERE table_schema = 'public' AND data_type = 'character varying'"
        " AND character_maximum_length = 128 GROUP BY table_name ORDER BY table_name"
    )
    for table, names in columns.all():
        changes = ", ".join(f'ALTER COLUMN {quote(name)} TYPE varchar(255) COLLATE "C"' for name in names)
        connection.exec_driver_sql(f"ALTER TABLE {quote(table)} {changes}")
