"""A database that is kept between tests is for each of them as the template is."""

from __future__ import annotations

import pytest

from tests import world
from tests.pooled import Kept
from tests.served import run_sql
from tests.world import ALPHA


@pytest.mark.usefixtures("postgres_url")
def test_what_was_written_is_undone(kept_postgres: Kept) -> None:
    url, before = kept_postgres.url, world.contents(kept_postgres.past)
    world.load(kept_postgres.past, {"labels": [{"id": "new", "organizationId": ALPHA, "name": "New"}]})
    run_sql(kept_postgres.past, "DELETE FROM notification", "UPDATE label SET name = 'Another' || id")
    assert world.contents(kept_postgres.past) != before
    kept_postgres.restore()
    assert world.contents(kept_postgres.past) == before
    assert kept_postgres.url == url


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE label ADD COLUMN remark text",
        "CREATE INDEX another ON label (name)",
        "REVOKE SELECT ON label FROM normata_service",
        "ALTER TABLE label DISABLE ROW LEVEL SECURITY",
        "CREATE POLICY another ON label FOR SELECT TO PUBLIC USING (true)",
    ],
)
@pytest.mark.usefixtures("postgres_url")
def test_whoever_changes_anything_else_leaves_another(change: str, kept_postgres: Kept) -> None:
    url, before = kept_postgres.url, world.contents(kept_postgres.past)
    run_sql(kept_postgres.past, change)
    kept_postgres.restore()
    assert kept_postgres.url != url
    assert world.contents(kept_postgres.past) == before
