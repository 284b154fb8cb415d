"""The example that walks the whole life of a record of every kind, run as its reader would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import select

from normata.cli import demo as content
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.demo.files import ORGANIZATION
from normata.files.opening import open_store
from normata.records.base import Restorable
from normata.settings import Settings
from tests.databases import change
from tests.server import SCRIPT, serving

EXAMPLE = Path(__file__).parents[2] / "examples" / "whole_life.py"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What the example does."""
    path = f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments],
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def live(database: Database) -> set[str]:
    """The ids of all records that are not archived."""

    def ids(transaction: Transaction) -> set[str]:
        tables = [kind.sql() for kind in Restorable.kinds]
        statements = [select(table.c.id).where(table.c.archived_at.is_(None)) for table in tables]
        return {record for statement in statements for record in transaction.scalars(statement)}

    return database.read_now(ids)


@pytest.mark.long
@pytest.mark.parametrize("empty_url", ["sqlite"], indirect=True)
def test_it_walks_the_whole_life_of_every_kind(empty: Database, empty_url: str) -> None:
    content.fill(empty, lambda *_: None, open_store(Settings(database_url=empty_url)))
    token = change(empty, content.new_token)
    before = live(empty)
    with serving(empty_url) as base:
        done = run(base, ORGANIZATION, TOKEN=token, NORMATA_DATABASE_URL=empty_url)
        refused = run(base, "org-nobody", TOKEN="none")
    assert (done.returncode, done.stderr) == (0, "")
    *lives, proof = done.stdout.splitlines()
    assert lives == [
        f"{path}: create, update, archive, restore, archive" for path in sorted(kind.path for kind in Restorable.kinds)
    ]
    assert "events" in proof
    assert live(empty) == before, "the example cleans up after itself"
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1, "what is refused is told in one line"
    assert "401" in refused.stderr
