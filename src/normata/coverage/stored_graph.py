"""The stored graph of an organization, read in a few statements for any number of controls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import BindParameter, Select, and_, bindparam, case, func, select
from typing_extensions import override

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.coverage.engine import Level
from normata.coverage.graph import UNRANKED, Below, Graph, Node
from normata.coverage.hierarchy import IsBelow, below_groups, groups_above, is_requirement_where
from normata.frameworks.counting import applies, assessed_status, is_group, match_counts
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, EffectiveCoverage, FrameworkAdoption


class StoredGraph(Graph):
    """Reads the graph with the statements of a transaction."""

    def __init__(self, transaction: Transaction, organization_id: str) -> None:
        self._transaction = transaction
        self._key = {"organization": organization_id}

    @override
    def nodes(self, controls: Collection[str]) -> Mapping[str, Node]:
        found: dict[str, Node] = {}
        for batch in batches(sorted(controls)):
            for control, groups, adoption, assessed, is_in, effective, own, rank in self._transaction.rows(
                _NODES, {**self._key, "ids": batch}
            ):
                is_applicable = is_in is not False  # null if no adopted framework has the control
                found[control] = Node(
                    groups,
                    is_adopted=adoption is not None,
                    is_applicable=is_applicable,
                    assessed=_LEVELS[assessed] if is_applicable and assessed else Level.NONE,
                    effective=effective and _LEVELS[effective],
                    own=own and _LEVELS[own],
                    rank=rank,
                )
        return found

    @override
    def matches(self, controls: Collection[str]) -> list[tuple[str, str, Level]]:
        return [
            (source, target, _LEVELS[level])
            for batch in batches(sorted(controls))
            for statement in (_AHEAD, _BEHIND)
            for source, target, level in self._transaction.rows(statement, {**self._key, "ids": batch})
        ]

    @override
    def above(self, controls: Collection[str]) -> Mapping[str, list[str]]:
        return groups_above(self._transaction, controls)

    @override
    def counts(self, groups: Collection[str]) -> Mapping[str, Below]:
        return {
            group: Below(*map(int, numbers))
            for batch in batches(sorted(groups))
            for group, *numbers in self._transaction.rows(_COUNTS, {**self._key, "ids": batch})
        }

    @override
    def below(self, groups: Collection[str]) -> Mapping[str, list[str]]:
        return self._by_group(_BELOW, groups)

    @override
    def foremost(self, groups: Collection[str], most: int) -> Mapping[str, list[str]]:
        return self._by_group(_FOREMOST, groups, most=most)

    def lacking(self, group: str, most: int) -> list[str]:
        """The first applicable requirements below a group that are not stored as FULL, in catalog order."""
        return self._by_group(_LACKING.limit(most), [group]).get(group, [])

    def _by_group(self, statement: Select[Any], groups: Collection[str], **parameters: int) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for batch in batches(sorted(groups)):
            for group, control in self._transaction.rows(statement, {**self._key, "ids": batch, **parameters}):
                found.setdefault(group, []).append(control)
        return found


_LEVELS = {level.name: level for level in Level}

_CONTROL, _MATCH, _ADOPTION = sql_table(Control), sql_table(ControlMatch), sql_table(FrameworkAdoption)
_STATEMENT, _EFFECTIVE = sql_table(ControlCoverage), sql_table(EffectiveCoverage)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_IDS: BindParameter[str] = bindparam("ids", expanding=True)

_assessed = and_(_STATEMENT.c.control_id == _CONTROL.c.id, _STATEMENT.c.organization_id == _ORGANIZATION)
_computed = and_(_EFFECTIVE.c.control_id == _CONTROL.c.id, _EFFECTIVE.c.organization_id == _ORGANIZATION)
_adopted = and_(_ADOPTION.c.framework_id == _CONTROL.c.framework_id, _ADOPTION.c.organization_id == _ORGANIZATION)

_NODES = (
    select(
        _CONTROL.c.id,
        is_group(),
        _ADOPTION.c.id,
        assessed_status(),
        _EFFECTIVE.c.applies,
        _EFFECTIVE.c.status,
        _EFFECTIVE.c.own,
        _EFFECTIVE.c.rank,
    )
    .outerjoin(_ADOPTION, _adopted)
    .outerjoin(_STATEMENT, _assessed)
    .outerjoin(_EFFECTIVE, _computed)
    .where(_CONTROL.c.id.in_(_IDS))
)

_matches = select(_MATCH.c.source_control_id, _MATCH.c.target_control_id, _MATCH.c.match_level).where(
    match_counts(_ORGANIZATION)
)
# Two statements instead of an OR, so that each uses its index whatever the planner thinks of an OR.
_AHEAD = _matches.where(_MATCH.c.source_control_id.in_(_IDS))
_BEHIND = _matches.where(_MATCH.c.target_control_id.in_(_IDS))

_below = below_groups()
_stored_below = and_(IsBelow(_EFFECTIVE.c.control_id, _below.c.id), _EFFECTIVE.c.organization_id == _ORGANIZATION)
_requirements = (
    select(_below.c.group_id, _below.c.id)
    .join(_EFFECTIVE, _stored_below)
    .where(is_requirement_where(_below, applies(_EFFECTIVE)))
)
_in_catalog_order = _requirements.join(_CONTROL, IsBelow(_CONTROL.c.id, _below.c.id))
_BELOW = _in_catalog_order.order_by(_below.c.group_id, _CONTROL.c.position, _CONTROL.c.id)
_LACKING = _BELOW.where(is_requirement_where(_below, _EFFECTIVE.c.status < "FULL"))

_place = (
    func.row_number()
    .over(
        partition_by=_below.c.group_id,
        order_by=(_EFFECTIVE.c.status.desc(), _EFFECTIVE.c.rank, _CONTROL.c.position, _CONTROL.c.id),
    )
    .label("place")
)
_placed = _in_catalog_order.add_columns(_place).subquery()
_FOREMOST = (
    select(_placed.c.group_id, _placed.c.id)
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
    .outerjoin(
        _STATEMENT, and_(IsBelow(_STATEMENT.c.control_id, _below.c.id), _STATEMENT.c.organization_id == _ORGANIZATION)
    )
    .group_by(_below.c.group_id)
)
