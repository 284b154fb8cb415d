"""Importing published files as centralized catalogs: by command, or by an operator over HTTP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from normata.bundle.loading import Progress, load
from normata.catalogs.baselines import retired_selections
from normata.catalogs.profiles import baselines_of
from normata.catalogs.reading import Published
from normata.catalogs.retirement import Retirement, retire
from normata.catalogs.stored import StoredCatalogs
from normata.catalogs.unknown import LeftOut, rows_to_load
from normata.core.changes.row_counts import RowCounts
from normata.core.changes.source import Fault
from normata.core.changes.unit_of_work import UnitOfWork
from normata.coverage.rewording import Rewording


@dataclass(slots=True)
class Outcome:
    """The result of an import.

    ``row_counts`` are by array. ``framework_ids`` are those of the imported frameworks. ``unknown`` has the mappings
    that were left out because they name unknown controls. ``left_out`` counts the parts of the files that Normata does
    not import, by type.
    """

    row_counts: dict[str, RowCounts]
    framework_ids: list[str]
    unknown: list[LeftOut]
    retirement: Retirement = field(default_factory=Retirement)
    rewording: Rewording = field(default_factory=Rewording)
    left_out: Mapping[str, int] = field(default_factory=dict)


def import_for_all(
    unit: UnitOfWork,
    published: Published,
    progress: Progress = lambda *_: None,
    *,
    skip_unknown: bool,
    option: str = "--skip-unknown",
    editorial: bool = False,
    faults: Sequence[Fault] = (),
) -> Outcome:
    """Import published rows as centralized.

    With ``skip_unknown``, mappings that name unknown controls are left out; ``option`` is the sender's name of that
    option. If the import is ``editorial``, changed wordings make no assessment stale. ``progress`` gets the step, the
    number of rows done, and their total. If reading has found ``faults``, the rows are only checked. Raises FaultyInput
    with all faults.
    """
    unit.lock("content")  # nobody may change the stored rows between the comparison and the write
    stored, left_out = StoredCatalogs(unit), Counter(published.left_out)
    baselines = baselines_of(
        published.profiles, published.rows, stored, left_out, skip_unknown=skip_unknown, option=option
    )
    rows, unknown = rows_to_load(published, stored, skip_unknown=skip_unknown, option=option)
    rows += baselines
    retirement = retire(unit, rows, unit.moment)
    rows += [*retirement.rows, *retired_selections(unit, rows, unit.moment)]
    rewording = Rewording(editorial)
    row_counts = load(unit, rows, progress, sync=True, faults=faults, rewording=rewording)
    of_rows = {"frameworks": "id", "baselines": "frameworkId"}
    framework_ids = [row.values[of_rows[row.array]] for row in rows if row.array in of_rows]
    return Outcome(row_counts, list(dict.fromkeys(framework_ids)), unknown, retirement, rewording, +left_out)
