"""The audits of the demo: one is checked whole, one by half, and one is ahead."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

from normata.audits.report import read_report
from normata.cli import demo
from normata.demo.files import ORGANIZATION
from normata.files.opening import open_store
from normata.settings import Settings
from tests.databases import migrate, open_url


def test_audits_of_the_demo_are_over_and_under_way(tmp_path: Path) -> None:
    """Both have notes, and findings from their rows; one of those is verified by somebody who does not own it."""
    with closing(open_url(f"sqlite:///{tmp_path}/demo.db", create=True)) as database:
        migrate(database)
        demo.fill(database, lambda *_: None, open_store(Settings()))
        past, present = (
            database.read_now(partial(read_report, organization_id=ORGANIZATION, audit_id=name)).wire()
            for name in ("audit-certification-2025", "audit-internal-csf-profile")
        )
    assert past["notChecked"] == []
    assert 0.4 < len(present["rows"]) / sum(present["counts"].values()) < 0.6
    for report in (past, present):
        assert sum(row["note"] is not None for row in report["rows"]) >= 15
        named = {found["id"] for row in report["rows"] for found in row["findings"]}
        assert named == {found["id"] for found in report["findings"]}
        assert len(named) >= 3
    (verified,) = (one for one in present["findings"] if one["verifiedByName"])
    assert verified["owners"]
    assert verified["verifiedByName"] not in verified["owners"]
