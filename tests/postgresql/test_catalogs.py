"""Row-level security around what an operator imports for all."""

from __future__ import annotations

from contextlib import suppress

import asyncpg

from normata.core.db.transaction import NotPermitted, TenantScope
from tests.core.db.sessions import Service, Session, run
from tests.postgresql.test_row_level_security import OWNED, everything, stored, whole_rows
from tests.world import ALPHA, BETA


def test_who_changes_catalogs_reaches_nothing_but_what_follows_from_them(service: Service, admin: Session) -> None:
    """Who has adopted what is seen, and every list gets another revision. Of an organization there is nothing else."""
    catalogs = TenantScope(catalogs=True)
    for table in OWNED:
        shown = service.read(run(whole_rows(table)), catalogs)
        seen_by_all = table.info.get("catalogs") is not None
        organizations = (ALPHA, BETA) if seen_by_all else ()
        assert list(map(tuple, shown)) == stored(admin, table, *organizations), table.name
    own = "SELECT * FROM {} WHERE organization_id IS NOT NULL ORDER BY id"
    shared = own.replace("IS NOT NULL", "IS NULL")
    for name in ("framework", "control", "control_match"):
        before, then = admin.rows(own.format(name)), admin.rows(shared.format(name))
        assert before
        changed = "match_level = 3 - match_level" if name == "control_match" else "name = 'Theirs'"
        service.write(run(f"UPDATE {name} SET {changed}"), catalogs)
        assert admin.rows(own.format(name)) == before
        assert admin.rows(shared.format(name)) != then
    all_rows = everything(admin)
    for statement in (
        "UPDATE framework_adoption SET adopted_at = now()",
        "UPDATE effective_coverage SET rank = rank + 1",
        "UPDATE control_coverage SET coverage_gap = 'x'",
    ):
        with suppress(asyncpg.PostgresError, NotPermitted):
            service.write(run(statement), catalogs)
    assert everything(admin) == all_rows
