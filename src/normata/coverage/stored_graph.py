"""The stored graph of an organization, read in a few statements for any number of controls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    FromClause,
    Select,
    and_,
    bindparam,
    case,
    func,
    select,
    union_all,
)
from typing_extensions import override

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.coverage.engine import Level, Place
from normata.coverage.graph import UNRANKED, Below, Graph, Node
from normata.coverage.hierarchy import ABOVE, IsIdOf, below_groups, groups_among, is_requirement_where
from normata.frameworks.counting import applies, assessed_status, is_group, match_counts
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, EffectiveCoverage, FrameworkAdoption


class StoredGraph(Graph):
    """Reads the graph with the statements of a transaction, which must not change it meanwhile.

    Matches, groups and requirements come with the nodes at their other ends, which are then read no more. Statements
    are what a change costs on PostgreSQL: each is a round trip. The nodes at the ends of thousands of matches come by
    themselves, because most would come several times.
    """

    def __init__(self, transaction: Transaction, organization_id: str) -> None:
        self._transaction = transaction
        self._key = {"organization": organization_id}
        self._nodes: dict[str, Node] = {}

    @override
    def nodes(self, controls: Collection[str]) -> Mapping[str, Node]:
        for node in self._rows(_NODES, [control for control in controls if control not in self._nodes]):
            self._note(node)
        return {control: self._nodes[control] for control in controls if control in self._nodes}

    @override
    def matches(self, controls: Collection[str]) -> list[tuple[str, str, Level]]:
        if len(controls) > _MANY:
            return [(source, target, _LEVELS[level]) for source, target, level in self._rows(_ENDS, controls)]
        found = []
        for source, target, level, *node in self._rows(_AROUND, controls):
            self._note(node)
            found.append((source, target, _LEVELS[level]))
        return found

    @override
    def above(self, controls: Collection[str]) -> Mapping[str, list[str]]:
        places: dict[str, Place] = {}
        for parent, *node in self._rows(_ABOVE, controls):
            control = self._note(node)
            places[control] = Place(parent, self._nodes[control].is_group)
        return groups_among(places, controls)

    @override
    def counts(self, groups: Collection[str]) -> Mapping[str, Below]:
        return {group: Below(*map(int, numbers)) for group, *numbers in self._rows(_COUNTS, groups)}

    @override
    def below(self, groups: Collection[str]) -> Mapping[str, list[str]]:
        return self._by_group(self._rows(_BELOW, groups))

    @override
    def foremost(self, groups: Collection[str], most: int) -> Mapping[str, list[str]]:
        return self._by_group(self._rows(_FOREMOST, groups, most=most))

    def lacking(self, group: str, most: int) -> list[str]:
        """The first applicable requirements below a group that are not stored as FULL, in catalog order."""
        return self._by_group(self._rows(_LACKING.limit(most), [group])).get(group, [])

    def _rows(
        self, statement: Select[Any] | CompoundSelect[Any], controls: Collection[str], **parameters: int
    ) -> Iterator[Any]:
        for batch in batches(sorted(controls)):
            yield from self._transaction.rows(statement, {**self._key, "ids": batch, **parameters})

    def _by_group(self, rows: Iterable[Any]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for group, *node in rows:
            found.setdefault(group, []).append(self._note(node))
        return found

    def _note(self, row: Sequence[Any]) -> str:
        """Note the node in a row of ``_NODE``, and return the id of its control."""
        control, is_group_, adoption, assessed, is_in, effective, own, rank, conflict = row
        if control not in self._nodes:
            is_applicable = self._applies(control, is_in)
            self._nodes[control] = Node(
                is_group_,
                is_adopted=adoption is not None,
                is_applicable=is_applicable,
                assessed=_LEVELS[assessed] if is_applicable and assessed else Level.NONE,
                effective=effective and _LEVELS[effective],
                own=own and _LEVELS[own],
                rank=rank,
                is_assessed=assessed is not None,
                conflict=conflict,
            )
        return str(control)

    def _applies(self, _control: str, stored: bool | None) -> bool:
        """Whether a control applies; ``stored`` is null if no adopted framework has it."""
        return stored is not False


_MANY = 500  # controls, from which on their matches are read without the nodes at the ends

_LEVELS = {level.name: level for level in Level}

_CONTROL, _MATCH, _ADOPTION = sql_table(Control), sql_table(ControlMatch), sql_table(FrameworkAdoption)
_STATEMENT, _EFFECTIVE = sql_table(ControlCoverage), sql_table(EffectiveCoverage)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_IDS: BindParameter[str] = bindparam("ids", expanding=True)


def _node(control: FromClause, group: ColumnElement[bool]) -> Sequence[ColumnElement[Any]]:
    """The columns of a node, from a table that has the control, and the condition that it is a group."""
    return (
        control.c.id,
        group.label("is_group"),
        _ADOPTION.c.id.label("adoption"),
        assessed_status().label("assessed"),
        *(_EFFECTIVE.c[name] for name in ("applies", "status", "own", "rank", "conflict")),
    )


def _with_node(statement: Select[Any]) -> Select[Any]:
    """A statement that has the table of controls, with the node of each as the last columns."""
    return (
        statement.add_columns(*_NODE)
        .outerjoin(_ADOPTION, _adopted)
        .outerjoin(_STATEMENT, and_(_STATEMENT.c.control_id == _CONTROL.c.id, _of_statement))
        .outerjoin(_EFFECTIVE, and_(_EFFECTIVE.c.control_id == _CONTROL.c.id, _of_effective))
    )


_NODE = _node(_CONTROL, is_group())
_adopted = and_(_ADOPTION.c.framework_id == _CONTROL.c.framework_id, _ADOPTION.c.organization_id == _ORGANIZATION)
_of_statement = _STATEMENT.c.organization_id == _ORGANIZATION
_of_effective = _EFFECTIVE.c.organization_id == _ORGANIZATION

_NODES = _with_node(select().select_from(_CONTROL).where(_CONTROL.c.id.in_(_IDS)))
_ABOVE = (
    select(ABOVE.c.parent_id, *_node(ABOVE, ABOVE.c.is_group))
    .outerjoin(
        _ADOPTION,
        and_(_ADOPTION.c.framework_id == ABOVE.c.framework_id, _ADOPTION.c.organization_id == _ORGANIZATION),
    )
    .outerjoin(_STATEMENT, and_(IsIdOf(_STATEMENT.c.control_id, ABOVE.c.id), _of_statement))
    .outerjoin(_EFFECTIVE, and_(IsIdOf(_EFFECTIVE.c.control_id, ABOVE.c.id), _of_effective))
)

_matches = select(_MATCH.c.source_control_id, _MATCH.c.target_control_id, _MATCH.c.match_level).where(
    match_counts(_ORGANIZATION)
)
# A union instead of an OR, so that each half uses its index whatever the planner thinks of an OR.
_AHEAD = _with_node(
    _matches.join(_CONTROL, _CONTROL.c.id == _MATCH.c.target_control_id).where(_MATCH.c.source_control_id.in_(_IDS))
)
_BEHIND = _with_node(
    _matches.join(_CONTROL, _CONTROL.c.id == _MATCH.c.source_control_id).where(_MATCH.c.target_control_id.in_(_IDS))
)
_AROUND = union_all(_AHEAD, _BEHIND)
_ENDS = union_all(
    _matches.where(_MATCH.c.source_control_id.in_(_IDS)), _matches.where(_MATCH.c.target_control_id.in_(_IDS))
)

_below = below_groups()
_assessed_below = and_(IsIdOf(_STATEMENT.c.control_id, _below.c.id), _of_statement)
_requirements = (
    select(_below.c.group_id)
    .join(_EFFECTIVE, and_(IsIdOf(_EFFECTIVE.c.control_id, _below.c.id), _of_effective))
    .where(is_requirement_where(_below, applies(_EFFECTIVE)))
)
_in_catalog_order = _requirements.join(_CONTROL, IsIdOf(_CONTROL.c.id, _below.c.id))
_BELOW = (
    _in_catalog_order.add_columns(*_NODE)
    .outerjoin(_ADOPTION, _adopted)
    .outerjoin(_STATEMENT, _assessed_below)
    .order_by(_below.c.group_id, _CONTROL.c.position, _CONTROL.c.id)
)
_LACKING = _BELOW.where(is_requirement_where(_below, _EFFECTIVE.c.status < "FULL"))

_place = (
    func.row_number()
    .over(
        partition_by=_below.c.group_id,
        order_by=(_EFFECTIVE.c.status.desc(), _EFFECTIVE.c.rank, _CONTROL.c.position, _CONTROL.c.id),
    )
    .label("place")
)
_placed = _in_catalog_order.add_columns(_CONTROL.c.id, _place).subquery()
_FOREMOST = (
    _with_node(select(_placed.c.group_id).join(_CONTROL, _CONTROL.c.id == _placed.c.id))
    .where(_placed.c.place <= bindparam("most"))
    .order_by(_placed.c.group_id, _placed.c.place)
)

_rank = case(
    (and_(_EFFECTIVE.c.rank == 0, assessed_status().is_distinct_from("FULL")), UNRANKED),
    else_=_EFFECTIVE.c.rank,
)
_COUNTS = (
    _requirements.with_only_columns(
        _below.c.group_id,
        func.count(),
        *(
            func.count().filter(column >= level)
            for column in (_EFFECTIVE.c.status, _EFFECTIVE.c.own)
            for level in ("PARTIAL", "FULL")
        ),
        func.coalesce(func.max(_rank).filter(_EFFECTIVE.c.status >= "FULL"), 0),
        maintain_column_froms=True,
    )
    .outerjoin(_STATEMENT, _assessed_below)
    .group_by(_below.c.group_id)
)
