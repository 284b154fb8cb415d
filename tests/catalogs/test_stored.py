"""Which centralized controls and frameworks a database has."""

from __future__ import annotations

from pathlib import Path

import pytest

from normata.bundle import loading
from normata.catalogs.reading import read_published
from normata.catalogs.stored import StoredCatalogs
from normata.catalogs.unknown import rows_to_load
from normata.core.changes.row_counts import RowCounts
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from tests.databases import change


def test_those_that_are_stored_are_told(database: Database) -> None:
    def controls(*ids: str) -> set[str]:
        return database.read_now(lambda transaction: StoredCatalogs(transaction).controls(ids))

    def frameworks(*ids: str) -> set[str]:
        return database.read_now(lambda transaction: StoredCatalogs(transaction).frameworks(ids))

    assert controls("sun.A.1", "nothing", "fw-sun", "foreign.A.2") == {"sun.A.1"}
    assert frameworks("fw-sun", "sun.A.1", "nothing", "fw-own") == {"fw-sun"}
    assert controls() == frameworks() == set()
    assert controls(*(f"sun.A.{number}" for number in range(2_000))) == {f"sun.A.{number}" for number in range(1, 13)}


def test_a_mapping_may_come_after_its_catalogs_and_all_of_it_again(empty: Database, catalogs: Path) -> None:
    folder = catalogs / "ciso-assistant"

    def load(*names: str) -> dict[str, tuple[int, int, int]]:
        published = read_published([folder / f"{name}.yaml" for name in names])

        def work(unit: UnitOfWork) -> dict[str, RowCounts]:
            rows, left_out = rows_to_load(published, StoredCatalogs(unit))
            assert left_out == []
            return loading.load(unit, rows, sync=True)

        row_counts = change(empty, work)
        return {array: (tally.inserted, tally.updated, tally.unchanged) for array, tally in row_counts.items()}

    mapping = "map-nist-csf-1.1-nist-csf-2.0"
    with pytest.raises(FaultyInput) as caught:
        load(mapping, "nist-csf-2.0")
    assert ["framework:nist-csf-1.1" in fault.reason for fault in caught.value.faults] == [True]
    assert load("nist-csf-2.0") == {"frameworks": (1, 0, 0), "controls": (134, 0, 0)}
    assert load("nist-csf-1.1") == {"frameworks": (1, 0, 0), "controls": (136, 0, 0)}
    assert load(mapping) == {"mappingDocuments": (1, 0, 0), "controlMatches": (370, 0, 0)}
    assert load(mapping, "nist-csf-1.1", "nist-csf-2.0") == {
        "frameworks": (0, 0, 2),
        "controls": (0, 0, 270),
        "mappingDocuments": (0, 0, 1),
        "controlMatches": (0, 0, 370),
    }
