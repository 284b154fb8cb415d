"""The rules of links, in addition to those for all rows: both ends exist in the organization."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

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


def fault_ends(
    rows: Sequence[PendingRow],
    references: References,
    columns: Sequence[tuple[str, str]],
    kinds: Collection[str],
    *,
    takes_removed: Callable[[PendingRow], bool] = lambda _row: True,
) -> None:
    """Add faults to rows with columns, pairs of kind and id, that name nothing of one of these kinds.

    It must exist, and be the organization's own or everybody's. ``takes_removed`` says of a row whether it may name
    members who were removed, or are auditors.
    """
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        for kind_column, id_column in columns:
            wanted[row.final[kind_column]].add(row.final[id_column])
    for kind, ids in wanted.items():
        if kind in kinds:
            references.fetch(str(TABLES[kind].__tablename__), ids)
    for row in rows:
        for kind_column, id_column in columns:
            kind, row_id = row.final[kind_column], row.final[id_column]
            if kind not in kinds:
                row.add_fault(kind_column, f"must be one of {', '.join(kinds)}")
                continue
            target = str(TABLES[kind].__tablename__)
            if references.is_faulty(target, row_id):
                row.faulty = True  # whose own fault is reported
                continue
            is_lenient = kind != MEMBERS or takes_removed(row)
            reason = objection(row, target, references.get(target, row_id), takes_removed=is_lenient)
            if reason:
                row.add_fault(id_column, reason)


def _check(rows: Sequence[PendingRow], references: References, *, takes_removed: bool) -> None:
    fault_ends(
        rows,
        references,
        [("from_kind", "from_id"), ("to_kind", "to_id")],
        tuple(TABLES),
        takes_removed=lambda row: takes_removed or row.final["relation"] != OWNS,
    )
    for row in rows:
        start, end = ends_of(row.final)
        if start == end:
            row.add_fault("to_id", "is what the link leads from")
        if row.stored is None:  # in the order in which it is stored; faults have that of the input
            start, end = oriented(start, end, row.final["relation"])
            row.final.update(from_kind=start.kind, from_id=start.id, to_kind=end.kind, to_id=end.id)
