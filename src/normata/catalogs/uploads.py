"""Uploads: catalogs, profiles and mappings that an organization imports as its own. They never become centralized."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from sqlalchemy import and_, bindparam, select

from normata.catalogs.baselines import retired_selections
from normata.catalogs.importing import Outcome
from normata.catalogs.matches import matches_of
from normata.catalogs.own_profiles import NO_CATALOG, VisibleCatalogs, own_baselines, own_id
from normata.catalogs.profiles import baselines_of
from normata.catalogs.reading import Input, Published, read_inputs
from normata.catalogs.retirement import Names, Retirement, retire
from normata.catalogs.unknown import LeftOut, known_relations
from normata.core.changes.revisions import current_revision
from normata.core.changes.row_counts import RowCounts
from normata.core.changes.rows import PendingRow, good, read_row
from normata.core.changes.source import Fault, FaultyInput, Row
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.changes.validity import make_valid
from normata.core.changes.writing import BODY, new_and_changed, write
from normata.core.db.transaction import batches
from normata.core.schema.table import Table, sql_table
from normata.coverage.affected import MATTERS
from normata.coverage.recompute import Touched, lock_coverage
from normata.coverage.rewording import RewordedControl, Rewording, record_rewording, reworded_controls
from normata.errors import ImportInProgress
from normata.frameworks.baseline_model import Baseline, BaselineControl
from normata.frameworks.model import Control, ControlMatch, Framework, FrameworkAdoption, MappingDocument
from normata.frameworks.rules import RULES, count_controls, counted, retirements
from normata.frameworks.source_model import SourceDocument
from normata.frameworks.visibility import visible_to
from normata.identity.model import Organization
from normata.identity.organization_lookup import reached
from normata.own_frameworks.writing import follow, is_any_adopted

MAX_ROWS = 20_000  # controls and mappings of an upload, which is checked and written in one transaction

_TABLES: Mapping[str, type[Table]] = {
    table.array: table
    for table in (Framework, Control, Baseline, BaselineControl, SourceDocument, MappingDocument, ControlMatch)
}


@dataclass(frozen=True, slots=True)
class Upload:
    """The content of an upload, with the ids of its publisher, and its faults."""

    published: Published
    faults: list[Fault] = field(default_factory=list)


def read_upload(one: Input) -> Upload:
    """Read an upload. This may take some seconds, and needs no database."""
    try:
        published = read_inputs([one])
    except FaultyInput as error:
        return Upload(Published([], []), error.faults)
    count = sum(row.array == "controls" for row in published.rows) + len(published.relations)
    if count > MAX_ROWS:
        reason = f"holds {count:,} controls and mappings; an upload may have {MAX_ROWS:,} at most"
        return Upload(Published([], []), [Fault(BODY, "", reason)])
    return Upload(published)


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of an upload: the rows to write, with the data of its report.

    ``basis`` is the revision of the organization's controls that it is based on; see :func:`_basis`.
    """

    basis: str
    groups: Mapping[type[Table], Sequence[PendingRow]]
    unknown: Sequence[LeftOut]
    retirement: Retirement
    left_out: Mapping[str, int]
    reworded: Sequence[RewordedControl]


def plan(
    unit: UnitOfWork,
    organization: str,
    upload: Upload,
    *,
    name: str | None = None,
    skip_unknown: bool = False,
    option: str = "--skip-unknown",
) -> Plan:
    """Read what is stored, and compare an upload with it. It writes nothing, and takes seconds for 20,000 rows.

    See :func:`take` for the parameters. Raises NotFound, InsufficientRole and FaultyInput.
    """
    organization_id = reached(unit, organization)
    basis = _basis(unit, organization_id)
    faults = list(upload.faults)
    known = _Known(unit, organization_id)
    left_out = Counter(upload.published.left_out)
    rows = [_as_own(row, organization_id, name) for row in upload.published.rows]
    try:
        baselines = baselines_of(
            upload.published.profiles,
            upload.published.rows,
            VisibleCatalogs(unit, organization_id),
            left_out,
            skip_unknown=skip_unknown,
            option=option,
            missing=NO_CATALOG,
        )
        rows += own_baselines(baselines, upload.published.rows, organization_id)
    except FaultyInput as error:
        faults += error.faults
    rows += retired_selections(unit, rows, unit.moment)
    unknown: list[LeftOut] = []
    retirement = Retirement()
    try:
        relations, unknown = known_relations(upload.published, known, skip_unknown=skip_unknown, option=option)
        rows += [known.as_own_match(row) for row in matches_of(relations)]
        retirement = retire(unit, rows, unit.moment, organization_id, known.names(upload.published))
        rows += retirement.rows
    except FaultyInput as error:
        faults += error.faults
    groups: dict[type[Table], list[PendingRow]] = {table: [] for table in _TABLES.values()}
    for row in rows:
        pending = read_row(_TABLES[row.array], row, faults)
        if pending is not None:
            groups[_TABLES[row.array]].append(pending)
    make_valid(unit, groups, own_rules=RULES, stamped=("last_sync_at",))
    if faults:
        raise FaultyInput(faults)
    reworded = reworded_controls(groups[Control], groups[Framework])
    return Plan(basis, groups, unknown, retirement, +left_out, reworded)


def take(
    unit: UnitOfWork,
    organization: str,
    upload: Upload,
    *,
    name: str | None = None,
    skip_unknown: bool = False,
    option: str = "--skip-unknown",
    editorial: bool = False,
    planned: Plan | None = None,
) -> Outcome:
    """Import an upload as the organization's own.

    ``name`` overrides the name of its framework. With ``skip_unknown``, mappings that name unknown controls are left
    out; ``option`` is the sender's name of that option. Rows of an earlier upload are found again, and changed if they
    differ; matches that its mapping no longer has are retired. If the upload is ``editorial``, changed wordings make no
    assessment stale. The plan in ``planned`` is used unless the organization
    has changed since. Raises NotFound, InsufficientRole, FaultyInput, and ImportInProgress if another process imports
    for the organization.
    """
    organization_id = reached(unit, organization)
    if not unit.try_lock(f"import of {organization_id}"):  # on PostgreSQL another process may import
        raise ImportInProgress
    lock_coverage(unit, organization_id)
    current = None if unit.is_retry else planned
    if current is None or current.basis != _basis(unit, organization_id):
        current = plan(unit, organization_id, upload, name=name, skip_unknown=skip_unknown, option=option)
    row_counts = {array: RowCounts.of(good(current.groups[table])) for array, table in _TABLES.items()}
    rewording = Rewording(editorial, current.reworded)
    _write(unit, organization_id, current.groups, rewording)
    framework_ids = [row.id for row in current.groups[Framework]]
    framework_ids += [row.final["framework_id"] for row in current.groups[Baseline]]
    framework_ids = list(dict.fromkeys(framework_ids))
    return Outcome(row_counts, framework_ids, [*current.unknown], current.retirement, rewording, current.left_out)


def _basis(unit: UnitOfWork, organization_id: str) -> str:
    """A revision that changes with every change of the organization's frameworks, controls, matches and adoptions.

    Centralized catalogs do not matter: their rows are never deleted, so the ones that were found still exist, and later
    ones are not considered.
    """
    return current_revision(unit, organization_id, "controls")


def _write(
    unit: UnitOfWork, organization_id: str, groups: Mapping[type[Table], Sequence[PendingRow]], rewording: Rewording
) -> None:
    written = {table: [*chain(*new_and_changed(rows))] for table, rows in groups.items()}
    if not any(written.values()):
        return
    controls, matches = written[Control], written[ControlMatch]
    frameworks = {row.final["framework_id"] for row in controls}
    versions = [row for one in matches for row in (one.stored, one.final) if row is not None]
    selected = {row.final["control_id"] for row in written[BaselineControl]}
    touched = Touched(
        controls={*_moved(controls), *selected},
        matches={row[end] for row in versions for end in ("source_control_id", "target_control_id")},
    )
    concerned = frameworks | _frameworks_of(unit, {*touched.matches, *selected})
    # Writing takes most of the time for which a dry run blocks other writers. If coverage does not depend on the rows,
    # nothing that a dry run shows reads them, so it need not write them.
    stores = not unit.is_dry_run or is_any_adopted(unit, organization_id, concerned)
    if stores:
        for table, rows in groups.items():
            write(unit, table, rows)
        record_rewording(unit, rewording)
    # Thousands of rows are one event of the organization, and one of each new or changed framework.
    counts = {table.array: RowCounts.of(rows).written() for table, rows in written.items() if rows}
    if matches:
        counts["controlMatches"] |= retirements(matches)
    unit.publish(Change("import", Organization, organization_id, organization_id, counts=counts))
    for row in written[Framework]:
        unit.publish(Change("import", Framework, organization_id, row.id, row.after, row.before))
    for row in written[MappingDocument]:
        unit.publish(Change("import", MappingDocument, organization_id, row.id, row.after, row.before))
    for table in (Baseline, SourceDocument):
        for row in written[table]:
            unit.publish(Change("import", table, organization_id, row.id, row.after, row.before))
    for table in (Control, BaselineControl, ControlMatch):
        if written[table]:
            unit.publish(Change("import", table, organization_id))
    if stores:
        count_controls(unit, frameworks)
    elif any(row.stored is None for row in controls):
        counted(unit, organization_id)
    if touched.controls or touched.matches:
        follow(unit, organization_id, concerned, touched)


def _moved(written: Sequence[PendingRow]) -> Iterator[str]:
    """The controls that are new or are counted differently, and their former parents."""
    for row in written:
        former = None if row.stored is None else row.stored["parent_id"]
        if row.stored is None or any(row.stored[name] != row.final[name] for name in MATTERS[Control]):
            yield row.id
            if former is not None:
                yield former


def _frameworks_of(unit: UnitOfWork, ids: Collection[str]) -> set[str]:
    return {found for batch in batches(sorted(ids)) for found in unit.scalars(_FRAMEWORKS, {"ids": batch})}


# --- Rows of publishers as the organization's own


def _as_own(row: Row, organization_id: str, name: str | None) -> Row:
    """A framework, control or document of mappings as the organization's own."""
    values = dict(row.values)
    for key in ("id", "frameworkId", "parentId", "baselineId", "controlId"):
        if values.get(key) is not None:
            values[key] = own_id(organization_id, values[key])
    if row.array == "mappingDocuments":
        values["organizationId"] = organization_id
    if row.array == "frameworks":
        values |= {"organizationId": organization_id, "isCentralized": False, "name": name or values["name"]}
    return Row(row.array, row.file, row.place, values, row.origin)


class _Known:
    """The controls and frameworks that an organization's upload can refer to.

    An id refers to the organization's own upload first, and then to the row with this id.
    """

    def __init__(self, unit: UnitOfWork, organization_id: str) -> None:
        self._unit = unit
        self._organization_id = organization_id
        self._named_by_id: set[str] = set()  # centralized controls, and own ones created over HTTP

    def controls(self, ids: Collection[str]) -> set[str]:
        """The ids among these that are known controls; see :class:`normata.catalogs.unknown.Stored`."""
        own = self._own(_CONTROLS, ids)
        self._named_by_id = self._stored(_CONTROLS, set(ids) - own)
        return own | self._named_by_id

    def frameworks(self, ids: Collection[str]) -> set[str]:
        """The ids among these that are known frameworks."""
        own = self._own(_VISIBLE_FRAMEWORKS, ids)
        return own | self._stored(_VISIBLE_FRAMEWORKS, set(ids) - own)

    def as_own_match(self, row: Row) -> Row:
        """A match between known controls as the organization's own."""
        values = dict(row.values) | {"organizationId": self._organization_id}
        for key in ("id", "mappingDocumentId"):
            values[key] = own_id(self._organization_id, values[key])
        for end in ("sourceControlId", "targetControlId"):
            if values[end] not in self._named_by_id:
                values[end] = own_id(self._organization_id, values[end])
        return Row(row.array, row.file, row.place, values, row.origin)

    def names(self, published: Published) -> Names:
        """How ids were derived from those of the publishers, for the rows of this upload."""
        named = {control for relation in published.relations for _, control in relation.ends()}
        named.update(row.values["id"] for row in published.rows if row.array == "controls")
        by_own_id = {own_id(self._organization_id, control): control for control in named}
        # Rows that are not the organization's own have the publisher's ids.
        return Names(
            lambda control: by_own_id.get(control, control), lambda match: own_id(self._organization_id, match)
        )

    def _own(self, statement: Any, ids: Collection[str]) -> set[str]:
        made = {own_id(self._organization_id, one): one for one in ids}
        return {made[found] for found in self._stored(statement, made)}

    def _stored(self, statement: Any, ids: Collection[str]) -> set[str]:
        return {
            found
            for batch in batches(sorted(ids))
            for found in self._unit.scalars(statement, {"organization": self._organization_id, "ids": list(batch)})
        }


_CONTROL, _FRAMEWORK, _ADOPTION = sql_table(Control), sql_table(Framework), sql_table(FrameworkAdoption)
_IDS: Any = bindparam("ids", expanding=True)
_ADOPTED = and_(_ADOPTION.c.framework_id == _FRAMEWORK.c.id, _ADOPTION.c.organization_id == bindparam("organization"))
_VISIBLE_FRAMEWORKS = (
    select(_FRAMEWORK.c.id)
    .outerjoin(_ADOPTION, _ADOPTED)
    .where(_FRAMEWORK.c.id.in_(_IDS), visible_to(bindparam("organization")))
)
_CONTROLS = (
    select(_CONTROL.c.id)
    .join(_FRAMEWORK, _FRAMEWORK.c.id == _CONTROL.c.framework_id)
    .outerjoin(_ADOPTION, _ADOPTED)
    .where(_CONTROL.c.id.in_(_IDS), visible_to(bindparam("organization")))
)
_FRAMEWORKS = select(_CONTROL.c.framework_id).where(_CONTROL.c.id.in_(_IDS))
