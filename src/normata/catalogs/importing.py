"""From what publishers publish to centralized catalogs: by command, or by an operator over HTTP."""

from __future__ import annotations

from collections.abc import Sequence

from normata.bundle.loading import Progress, load
from normata.catalogs.reading import Published
from normata.catalogs.stored import StoredCatalogs
from normata.catalogs.unknown import LeftOut, rows_to_load
from normata.core.changes.row_counts import RowCounts
from normata.core.changes.source import Fault
from normata.core.changes.unit_of_work import UnitOfWork


def import_for_all(
    unit: UnitOfWork,
    published: Published,
    progress: Progress = lambda *_: None,
    *,
    skip_unknown: bool,
    option: str = "--skip-unknown",
    faults: Sequence[Fault] = (),
) -> tuple[dict[str, RowCounts], list[LeftOut]]:
    """Make what is published centralized: what was done, by array, and the mappings that were left out.

    With ``skip_unknown``, mappings that name unknown controls are left out; ``option`` is what the sender calls that.
    ``progress`` gets the step, how many rows are done, and how many there are. Where reading has found ``faults``, the
    rows are only checked. Raises FaultyInput with all faults.
    """
    unit.lock("content")  # what is stored now must still be stored when the rows are written
    rows, left_out = rows_to_load(published, StoredCatalogs(unit), skip_unknown=skip_unknown, option=option)
    return load(unit, rows, progress, sync=True, faults=faults), left_out
