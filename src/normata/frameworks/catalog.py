"""What must hold between frameworks, their controls and their matches when they are loaded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import Connection, RowMapping, func, select, update

from normata.database import batches
from normata.frameworks.model import Control, ControlMatch, Framework
from normata.vocabulary import Table


class Entry(Protocol):
    """A row on its way into the database; see ``normata.bundle.loading``."""

    final: dict[str, Any]

    @property
    def id(self) -> str:
        """The row's id."""

    def blame(self, column: str, reason: str) -> None:
        """Note a fault of one of its columns; the row is then left out of all that follows."""


class Lookup(Protocol):
    """Finds rows by table and id among those loaded and those stored."""

    def get(self, table: str, row_id: str) -> RowMapping | dict[str, Any] | None:
        """The row, or null."""


def inherit(table: type[Table], group: Sequence[Entry], lookup: Lookup) -> None:
    """Give controls their framework's organization, and matches that of their controls; null is centralized.

    Frameworks, controls and matches must come in this order, each once its references are known to be good.
    """
    for entry in group:
        row = entry.final
        if table is Control:
            framework = lookup.get("framework", row["framework_id"]) or {}
            row["organization_id"] = framework.get("organization_id")
            if row["is_centralized"] is None:
                row["is_centralized"] = row["organization_id"] is None
        elif table is ControlMatch:
            row["organization_id"] = min(_organizations(row, lookup), default=None)


def check(
    connection: Connection,
    by_table: Mapping[type[Table], Sequence[Entry]],
    lookup: Lookup,
) -> None:
    """Blame what is wrong with frameworks, controls and matches, and give controls their places."""
    for entry in by_table.get(Framework, ()):
        if entry.final["is_centralized"] != (entry.final["organization_id"] is None):
            reason = "must be true without an organizationId and false with one"
            entry.blame("is_centralized", reason)
    for entry in by_table.get(ControlMatch, ()):
        if len(_organizations(entry.final, lookup)) > 1:
            reason = "names a control of another organization than the source's"
            entry.blame("target_control_id", reason)
    by_framework: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in by_table.get(Control, ()):
        by_framework[entry.final["framework_id"]].append(entry)
    for framework_id, entries in by_framework.items():
        stored = _stored_controls(connection, framework_id)
        _blame_parents(entries, stored, lookup)
        _place(entries, stored)


def count_controls(connection: Connection, framework_ids: Iterable[str]) -> None:
    """Bring the counts that frameworks keep of their controls up to date."""
    counted = select(func.count()).where(Control.framework_id == Framework.id).scalar_subquery()
    for batch in batches(sorted(framework_ids)):
        connection.execute(update(Framework).where(Framework.id.in_(batch)).values(control_count=counted))


def _organizations(match: Mapping[str, Any], lookup: Lookup) -> set[str]:
    controls = (lookup.get("control", match["source_control_id"]), lookup.get("control", match["target_control_id"]))
    return {control["organization_id"] for control in controls if control and control["organization_id"]}


def _stored_controls(connection: Connection, framework_id: str) -> dict[str, tuple[str | None, int]]:
    """Parent and place of each stored control of a framework."""
    rows = connection.execute(
        select(Control.id, Control.parent_id, Control.position).where(Control.framework_id == framework_id)
    )
    return {row.id: (row.parent_id, row.position) for row in rows}


def _blame_parents(entries: Sequence[Entry], stored: Mapping[str, tuple[str | None, int]], lookup: Lookup) -> None:
    parents = {control_id: parent_id for control_id, (parent_id, _) in stored.items()}
    parents |= {entry.id: entry.final["parent_id"] for entry in entries}
    rooted: set[str] = set()  # known to lead to the top
    for entry in entries:
        parent_id = entry.final["parent_id"]
        if parent_id is None:
            continue
        parent = lookup.get("control", parent_id) or {}
        if parent.get("framework_id") != entry.final["framework_id"]:
            entry.blame("parent_id", "names a control of another framework")
        elif not _leads_to_top(entry.id, parents, rooted):
            entry.blame("parent_id", "leads round in a circle: the control has an ancestor that is its own ancestor")


def _leads_to_top(control_id: str, parents: Mapping[str, str | None], rooted: set[str]) -> bool:
    path: set[str] = set()
    step: str | None = control_id
    while step is not None and step not in rooted:
        if step in path:
            return False
        path.add(step)
        step = parents.get(step)
    rooted |= path
    return True


def _place(entries: Sequence[Entry], stored: Mapping[str, tuple[str | None, int]]) -> None:
    """Give the controls of one framework their catalog order.

    A load that has all of a framework's controls sets their order anew; one that has some adds new ones at the end.
    """
    complete = stored.keys() <= {entry.id for entry in entries}
    following = 0 if complete else 1 + max(position for _, position in stored.values())
    for entry in entries:
        if complete or entry.id not in stored:
            entry.final["position"] = following
            following += 1
