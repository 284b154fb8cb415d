"""The rules of links, in addition to those for all rows: both ends exist in the organization."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from normata.core.changes.references import References, objection
from normata.core.changes.rows import PendingRow
from normata.core.changes.unit_of_work import UnitOfWork
from normata.links.model import OWNS, ends_of, oriented
from normata.links.relations import MEMBERS, TABLES


def check_loaded(_unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    """Add faults for ends that do not exist, or belong to another organization."""
    _check(rows, references, takes_removed=True)


def check_new(_unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    """The same, and nobody newly owns something who was removed, or is an auditor."""
    _check(rows, references, takes_removed=False)


def _check(rows: Sequence[PendingRow], references: References, *, takes_removed: bool) -> None:
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        for kind, row_id in ends_of(row.final):
            wanted[kind].add(row_id)
    for kind, ids in wanted.items():
        if kind in TABLES:
            references.fetch(str(TABLES[kind].__tablename__), ids)
    for row in rows:
        start, end = ends_of(row.final)
        for side, (kind, row_id) in (("from", start), ("to", end)):
            if kind not in TABLES:
                row.add_fault(f"{side}_kind", f"must be one of {', '.join(TABLES)}")
                continue
            target = str(TABLES[kind].__tablename__)
            if references.is_faulty(target, row_id):
                row.faulty = True  # whose own fault is reported
                continue
            is_lenient = takes_removed or not (row.final["relation"] == OWNS and kind == MEMBERS)
            reason = objection(row, target, references.get(target, row_id), takes_removed=is_lenient)
            if reason:
                row.add_fault(f"{side}_id", reason)
        if start == end:
            row.add_fault("to_id", "is what the link leads from")
        if row.stored is None:  # in the order in which it is stored; faults have that of the input
            start, end = oriented(start, end, row.final["relation"])
            row.final.update(from_kind=start.kind, from_id=start.id, to_kind=end.kind, to_id=end.id)
