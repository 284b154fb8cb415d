"""The graph of an organization as the database has it, read in a few statements for however many controls."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import BindParameter, and_, bindparam, case, func, literal, or_, select

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.coverage.engine import Level
from normata.coverage.graph import UNRANKED, Children, Node
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, EffectiveCoverage, FrameworkAdoption
from normata.frameworks.visibility import match_visible_to


class StoredGraph:
    """See :class:`normata.coverage.graph.Graph`."""

    def __init__(self, transaction: Transaction, organization_id: str) -> None:
        self._transaction = transaction
        self._key = {"organization": organization_id}

    def nodes(self, controls: Collection[str]) -> Mapping[str, Node]:
        """See :meth:`normata.coverage.graph.Graph.nodes`."""
        found: dict[str, Node] = {}
        for batch in batches(sorted(controls)):
            for control, parent, adoption, assessed, is_applicable, effective, own, rank in self._transaction.rows(
                _NODES, {**self._key, "ids": batch}
            ):
                applies = is_applicable is not False  # null where nothing is stated
                found[control] = Node(
                    parent,
                    is_adopted=adoption is not None,
                    is_applicable=applies,
                    assessed=_LEVELS[assessed] if applies and assessed else Level.NONE,
                    effective=effective and _LEVELS[effective],
                    own=own and _LEVELS[own],
                    rank=rank,
                )
        return found

    def matches(self, controls: Collection[str]) -> list[tuple[str, str, Level]]:
        """See :meth:`normata.coverage.graph.Graph.matches`."""
        return [
            (source, target, _LEVELS[level])
            for batch in batches(sorted(controls))
            for statement in (_AHEAD, _BEHIND)
            for source, target, level in self._transaction.rows(statement, {**self._key, "ids": batch})
        ]

    def children(self, controls: Collection[str]) -> Mapping[str, Children]:
        """See :meth:`normata.coverage.graph.Graph.children`."""
        return {
            parent: Children(*map(int, numbers))
            for batch in batches(sorted(controls))
            for parent, *numbers in self._transaction.rows(_CHILDREN, {**self._key, "ids": batch})
        }

    def below(self, controls: Collection[str]) -> Mapping[str, list[str]]:
        """See :meth:`normata.coverage.graph.Graph.below`."""
        found: dict[str, list[str]] = {}
        for batch in batches(sorted(controls)):
            for parent, child in self._transaction.rows(_BELOW, {**self._key, "ids": batch}):
                found.setdefault(parent, []).append(child)
        return found

    def foremost(self, controls: Collection[str], most: int) -> Mapping[str, list[str]]:
        """See :meth:`normata.coverage.graph.Graph.foremost`."""
        found: dict[str, list[str]] = {}
        for batch in batches(sorted(controls)):
            for parent, child in self._transaction.rows(_FOREMOST, {**self._key, "ids": batch, "most": most}):
                found.setdefault(parent, []).append(child)
        return found

    def lacking(self, control: str, most: int) -> list[str]:
        """The first applicable children of a control that are not stored as FULL, in catalog order."""
        return list(self._transaction.scalars(_LACKING.limit(most), {**self._key, "ids": [control]}))


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
        _CONTROL.c.parent_id,
        _ADOPTION.c.id,
        _STATEMENT.c.coverage_status,
        _STATEMENT.c.is_applicable,
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
    match_visible_to(_ORGANIZATION)
)
# Two statements and no OR: each takes its own index, whatever the database thinks of an OR.
_AHEAD = _matches.where(_MATCH.c.source_control_id.in_(_IDS))
_BEHIND = _matches.where(_MATCH.c.target_control_id.in_(_IDS))

_BELOW = (
    select(_CONTROL.c.parent_id, _CONTROL.c.id)
    .outerjoin(_STATEMENT, _assessed)
    .where(_CONTROL.c.parent_id.in_(_IDS), _STATEMENT.c.is_applicable.is_not(False))
    .order_by(_CONTROL.c.position, _CONTROL.c.id)
)

_place = (
    func.row_number()
    .over(
        partition_by=_CONTROL.c.parent_id,
        # NULLs, of which nothing is stored, come first on one database and last on the other.
        order_by=(
            func.coalesce(_EFFECTIVE.c.status, literal("NONE", _EFFECTIVE.c.status.type)).desc(),
            func.coalesce(_EFFECTIVE.c.rank, UNRANKED),
            _CONTROL.c.position,
            _CONTROL.c.id,
        ),
    )
    .label("place")
)
_placed = _BELOW.outerjoin(_EFFECTIVE, _computed).order_by(None).add_columns(_place).subquery()
_FOREMOST = (
    select(_placed.c.parent_id, _placed.c.id)
    .where(_placed.c.place <= bindparam("most"))
    .order_by(_placed.c.parent_id, _placed.c.place)
)
_LACKING = (
    _BELOW.with_only_columns(_CONTROL.c.id, maintain_column_froms=True)
    .outerjoin(_EFFECTIVE, _computed)
    .where(or_(_EFFECTIVE.c.status.is_(None), _EFFECTIVE.c.status < "FULL"))
)

_rank = case(
    (and_(_EFFECTIVE.c.rank == 0, _STATEMENT.c.coverage_status.is_distinct_from("FULL")), UNRANKED),
    else_=_EFFECTIVE.c.rank,
)
_CHILDREN = (
    select(
        _CONTROL.c.parent_id,
        func.count(),
        *(
            func.count().filter(column >= level)
            for column in (_EFFECTIVE.c.status, _EFFECTIVE.c.own)
            for level in ("PARTIAL", "FULL")
        ),
        func.coalesce(func.max(_rank).filter(_EFFECTIVE.c.status >= "FULL"), 0),
    )
    .select_from(_CONTROL)
    .outerjoin(_STATEMENT, _assessed)
    .outerjoin(_EFFECTIVE, _computed)
    .where(_CONTROL.c.parent_id.in_(_IDS), _STATEMENT.c.is_applicable.is_not(False))
    .group_by(_CONTROL.c.parent_id)
)
