"""Loading the rows of bundles into the database: all of them, or none and every fault.

A load goes through all rows in several passes: it reads the values, runs the rules that make rows valid, writes, and
brings coverage up to date. Faults are collected up to the first write, so that one run reports all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from normata.audits.checking import check_loaded as check_checklists
from normata.audits.model import ChecklistRow
from normata.bundle.arrays import ARRAYS, HISTORY
from normata.bundle.history import LoadedHistory
from normata.bundle.row_buffer import RowBuffer
from normata.comments.commands import check as check_comments
from normata.comments.model import Comment
from normata.core.changes.row_counts import RowCounts
from normata.core.changes.rows import PendingRow, PendingRows, read_row
from normata.core.changes.source import Fault, FaultyInput, Row
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.changes.validity import make_valid
from normata.core.changes.writing import write
from normata.core.schema.table import sql_table
from normata.coverage.affected import Changes, affected_organizations
from normata.coverage.recompute import lock_coverage, recompute
from normata.coverage.rewording import Rewording, record_rewording, reworded_controls
from normata.external_ids.model import ExternalId
from normata.external_ids.rules import check_loaded as check_external_ids
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, Framework
from normata.frameworks.rules import RULES, count_controls, retirements
from normata.identity.memberships import fault_owners_that_end
from normata.identity.model import Membership, Organization
from normata.links.model import Link
from normata.links.rules import check_loaded as check_links
from normata.policies.imported import begin_versions
from normata.policies.imported import check_loaded as check_policy_versions
from normata.policies.model import PolicyVersion
from normata.records.kinds import Policy
from normata.recurrences.model import Recurrence
from normata.recurrences.rules import check_loaded as check_recurrences
from normata.soa_versions.model import SoaVersion
from normata.soa_versions.versions import check_loaded
from normata.tables import Table
from normata.vendors.loading import LoadedAnswers
from normata.vendors.model import Questionnaire, VendorAnswer

Progress = Callable[[str, int, int], None]


def load(
    unit: UnitOfWork,
    rows: Sequence[Row],
    progress: Progress = lambda *_: None,
    *,
    sync: bool = False,
    faults: Sequence[Fault] = (),
    rewording: Rewording | None = None,
) -> dict[str, RowCounts]:
    """Insert or update all ``rows`` by id, and return the row counts by array.

    A field that a row leaves out stays as it is, or gets its default if the row is new. ``progress`` gets the step, the
    number of rows done, and their total. With ``sync``, new and changed frameworks get the time of their last
    synchronization with their source. ``faults`` are those of reading the input: if there are any, the rows are only
    checked. ``rewording`` is null if the rows are no catalog; else it gets the controls whose wording changes, and the
    earlier wordings are stored. Raises FaultyInput with all faults, and then writes nothing.
    """
    unit.lock("content")
    found = list(faults)
    buffer, answers = RowBuffer(), LoadedAnswers()
    past = LoadedHistory((row for row in rows if row.array == HISTORY), found)
    groups, refused = _read([row for row in rows if row.array != HISTORY], buffer, found, progress)
    make_valid(
        unit,
        groups,
        own_rules={
            **RULES,
            Membership: fault_owners_that_end,
            SoaVersion: check_loaded,
            PolicyVersion: check_policy_versions,
            Link: check_links,
            Comment: check_comments,
            Recurrence: check_recurrences,
            ExternalId: check_external_ids,
            ChecklistRow: check_checklists,
            Questionnaire: answers.note,
            VendorAnswer: answers.check,
        },
        buffer=buffer.put,
        refused=refused,
        stamped=("last_sync_at",) if sync else (),
    )
    if found:
        raise FaultyInput(found)
    row_counts = {table.array: RowCounts.of(group) for table, group in groups.items()}
    changes = _changes(groups)
    # Lock in the order of those who change assessments, before writing rows: else both could wait for each other.
    affected = affected_organizations(unit, changes)
    unit.extend_reach(affected)
    for organization_id in affected:
        lock_coverage(unit, organization_id)
    _write(unit, groups, progress, "import" if sync else "load")
    begin_versions(unit, [row.id for row in groups.get(Policy, ()) if row.changed])
    if rewording is not None:
        rewording.controls = reworded_controls(groups.get(Control, ()), groups.get(Framework, ()))
        record_rewording(unit, rewording)
    affected = affected_organizations(unit, changes)  # again, with the adoptions that were just written
    unit.extend_reach(affected)
    # The statements that compute coverage need current statistics of these tables.
    unit.analyze({str(ARRAYS[array].__tablename__): one.inserted + one.updated for array, one in row_counts.items()})
    reassessed = {row.final["control_id"] for row in groups.get(ControlCoverage, ()) if row.changed}
    for done, organization_id in enumerate(affected):
        progress("Computing coverage", done, len(affected))
        recompute(unit, organization_id, reassessed=reassessed)
    past.write(unit, _new(groups, Organization), _new(groups, Framework))
    return row_counts


def _new(groups: PendingRows, table: type[Table]) -> set[str]:
    """The ids of the rows of a table that the load has added."""
    return {row.id for row in groups.get(table, ()) if row.stored is None}


def _read(
    rows: Sequence[Row], buffer: RowBuffer, faults: list[Fault], progress: Progress
) -> tuple[PendingRows, set[tuple[str, str]]]:
    """The pending rows of all rows with valid values, by table, and the tables and ids of the other rows.

    Tables come in the order of the arrays. What is wrong goes to ``faults``.
    """
    groups: dict[type[Table], list[PendingRow]] = {table: [] for table in ARRAYS.values()}
    refused: set[tuple[str, str]] = set()
    for done, row in enumerate(rows):
        if done % 1_000 == 0:
            progress("Checking rows", done, len(rows))
        table = ARRAYS[row.array]
        pending = read_row(table, row, faults, buffer.put)
        if pending is None:
            refused.add((str(table.__tablename__), str(row.values.get("id"))))
        else:
            groups[table].append(pending)
    return {table: group for table, group in groups.items() if group}, refused


def _changes(groups: PendingRows) -> Changes:
    """The rows that are new or changed, each before and after."""
    return {table: [(row.stored, row.final) for row in group if row.changed] for table, group in groups.items()}


def _write(unit: UnitOfWork, groups: PendingRows, progress: Progress, action: str) -> None:
    """Write what has changed, and publish it."""
    total = sum(map(len, groups.values()))
    done = 0
    framework_ids: set[str] = set()

    def report(count: int) -> None:
        nonlocal done
        progress("Writing rows", done, total)
        done += count

    for table, group in groups.items():
        written = write(unit, table, group, report)
        if table is Control:
            framework_ids |= {row.final["framework_id"] for row in written}
        if table.published:
            _publish(unit, action, table, written)
    count_controls(unit, framework_ids)


def _publish(unit: UnitOfWork, action: str, table: type[Table], rows: Sequence[PendingRow]) -> None:
    """Publish the change of each row; of bulky tables only the counts by organization."""
    column = sql_table(table).info.get("organization_column", "organization_id")
    if not table.bulky:
        for row in rows:
            unit.publish(Change(action, table, row.final.get(column), row.id, row.after, row.before))
        return
    by_owner: defaultdict[str | None, list[PendingRow]] = defaultdict(list)
    for row in rows:
        by_owner[row.final[column]].append(row)
    for organization_id, owned in sorted(by_owner.items(), key=lambda item: str(item[0])):
        counts = RowCounts.of(owned).written()
        if table is ControlMatch:
            counts |= retirements(owned)
        unit.publish(Change(action, table, organization_id, counts=counts))
