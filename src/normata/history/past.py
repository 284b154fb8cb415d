"""Reading the past: the statements of today, which find the rows of a moment instead of the current ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import (
    CTE,
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Select,
    TableClause,
    and_,
    bindparam,
    case,
    column,
    exists,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy import Table as SqlTable
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.visitors import iterate
from typing_extensions import override

from normata.core.db.delegating import DelegatingTransaction
from normata.core.db.transaction import NO_PARAMETERS, Parameters, Statement, Transaction
from normata.core.db.types import UtcTimestamp, now
from normata.core.schema.table import Table, sql_table
from normata.errors import PastUnknown
from normata.events.model import EventCheckpoint
from normata.frameworks.baseline_model import Baseline, BaselineControl
from normata.frameworks.model import (
    Control,
    ControlCoverage,
    ControlMatch,
    EffectiveCoverage,
    Framework,
    FrameworkAdoption,
    SetAsideMatch,
)
from normata.frameworks.wording_model import ControlWording
from normata.history.model import (
    AdoptionHistory,
    AssessmentHistory,
    BaselineControlHistory,
    ControlHistory,
    EffectiveHistory,
    FrameworkHistory,
    HistoryStart,
    MatchHistory,
    SetAsideHistory,
)


class Past(DelegatingTransaction):
    """Reads what held at ``moment`` in an organization.

    Each table with a history is replaced by its rows of that moment: a common table expression takes its name, so the
    statements of today need not know. A catalog is replaced only where it has changed since, which is rare, because its
    history is joined to it. Names and texts are today's, except those of rows that are gone.
    """

    def __init__(self, transaction: Transaction, organization_id: str, moment: str) -> None:
        """Raises PastUnknown if ``moment`` is before the beginning of the history, or to come."""
        super().__init__(transaction)
        self._moment = moment
        key = {"organization": organization_id, "as_of": moment}
        if moment > now():
            raise PastUnknown("is to come")
        found = transaction.row(_KNOWN, key)
        since = None if found is None else found.since
        if since is None or moment < since:
            raise PastUnknown("is not known" if since is None else f"is before {since}, since when the past is known")
        self._changed = frozenset(name for name in _CATALOGS if getattr(found, name))

    @override
    def rows(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        return self._transaction.rows(self._of_then(statement), self._dated(parameters))

    @override
    def stream(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Iterator[Any]:
        return self._transaction.stream(self._of_then(statement), self._dated(parameters))

    @override
    def execute_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        """Nothing of the past can be changed."""
        raise NotImplementedError

    @override
    def time_of_reading(self) -> str:
        return self._moment

    def _dated(self, parameters: Parameters) -> Parameters:
        return {**parameters, "as_of": self._moment}

    def _of_then(self, statement: Statement) -> Statement:
        assert isinstance(statement, Select | CompoundSelect)  # noqa: S101 - the past is only read
        made = _rewritten.setdefault(statement, {})
        found = made.get(self._changed)
        if found is None:
            found = _with_tables_of_then(statement, self._changed)
            if found is not statement:  # which would keep itself in the cache
                made[self._changed] = found
        return found


_rewritten: WeakKeyDictionary[Statement, dict[frozenset[str], Statement]] = WeakKeyDictionary()


def _with_tables_of_then(statement: Statement, changed: frozenset[str]) -> Statement:
    """A statement with an expression for each table with a history that it reads."""
    names = {
        found.name
        for element in iterate(statement)
        if isinstance(found := getattr(element, "table", element), SqlTable)
    }
    expressions = [one for name, one in _ALWAYS.items() if name in names]
    expressions += [one for name, one in _CATALOGS.items() if name in names and name in changed]
    if not expressions:
        return statement
    if isinstance(statement, CompoundSelect):
        # Those of a compound statement itself would get into its result (SQLAlchemy 2.0), those of its first part do
        # not, and are written in front of the whole.
        first, *others = statement.selects
        made = statement.execution_options()  # a copy
        made.selects = [first.add_cte(*expressions), *others]
        return made
    return statement.add_cte(*expressions)


# --- The expressions

_AS_OF: BindParameter[str] = bindparam("as_of", type_=UtcTimestamp())
_ORGANIZATION: BindParameter[str] = bindparam("organization")


class _Current(TableClause):
    """The table itself, where an expression has its name: named with its schema, it can be nothing else."""

    inherit_cache = True


@compiles(_Current, "sqlite")
def _current_on_sqlite(element: _Current, compiler: SQLCompiler, **_: Any) -> str:
    return f"main.{compiler.preparer.quote(element.name)}"


@compiles(_Current, "postgresql")
def _current_on_postgresql(element: _Current, compiler: SQLCompiler, **_: Any) -> str:
    return f"public.{compiler.preparer.quote(element.name)}"


def _current(table: SqlTable) -> Any:
    return _Current(table.name, *(column(one.name, one.type) for one in table.c)).alias("present")


def held_then(history: Any) -> ColumnElement[bool]:
    """Whether an entry of a history held at the moment ``as_of``."""
    return and_(history.c.valid_from <= _AS_OF, history.c.valid_to > _AS_OF)


def _named(table: SqlTable, rows: Select[Any] | CompoundSelect[Any]) -> CTE:
    # Else PostgreSQL would read all rows of the expression wherever it is used twice.
    return rows.cte(table.name).prefix_with("NOT MATERIALIZED")


def _every_row(table: type[Table], history: type[Table]) -> CTE:
    sql, then = sql_table(table), sql_table(history)
    return _named(sql, select(*(then.c[one.name] for one in sql.c)).where(held_then(then)))


def _changed_rows(table: type[Table], history: type[Table], *structure: str) -> CTE:
    """The rows of a catalog at the moment; of a row that is there today, all but ``structure`` is today's."""
    sql, then = sql_table(table), sql_table(history).alias("then")
    present = _current(sql)
    known = exists().where(then.c.id == present.c.id, held_then(then))
    unchanged = select(*(present.c[one.name] for one in sql.c)).where(~known)
    again = _current(sql)
    earlier = (
        select(
            *(
                then.c[name]
                if name in structure or name == "id"
                else case((again.c.id.is_(None), then.c[name]), else_=again.c[name]).label(name)
                for name in (one.name for one in sql.c)
            )
        )
        .outerjoin(again, again.c.id == then.c.id)
        .where(~then.c.was_absent, held_then(then))
    )
    return _named(sql, union_all(unchanged, earlier))


def _wordings() -> CTE:
    """Those that had been replaced by then, stale if they were stale by then."""
    sql = sql_table(ControlWording)
    present = _current(sql)
    return _named(
        sql,
        select(
            *(
                case((present.c.stale_since <= _AS_OF, present.c.stale_since)).label("stale_since")
                if one.name == "stale_since"
                else present.c[one.name]
                for one in sql.c
            )
        ).where(present.c.replaced_at <= _AS_OF),
    )


def _checkpoints() -> CTE:
    sql = sql_table(EventCheckpoint)
    present = _current(sql)
    return _named(sql, select(*(present.c[one.name] for one in sql.c)).where(present.c.at <= _AS_OF))


_ALWAYS: Mapping[str, CTE] = {
    str(ControlCoverage.__tablename__): _every_row(ControlCoverage, AssessmentHistory),
    str(EffectiveCoverage.__tablename__): _every_row(EffectiveCoverage, EffectiveHistory),
    str(FrameworkAdoption.__tablename__): _every_row(FrameworkAdoption, AdoptionHistory),
    str(SetAsideMatch.__tablename__): _every_row(SetAsideMatch, SetAsideHistory),
    str(ControlWording.__tablename__): _wordings(),
    str(EventCheckpoint.__tablename__): _checkpoints(),
}
_CATALOGS: Mapping[str, CTE] = {
    str(Control.__tablename__): _changed_rows(
        Control, ControlHistory, "parent_id", "type", "is_mandatory", "is_decomposed", "position"
    ),
    str(ControlMatch.__tablename__): _changed_rows(
        ControlMatch,
        MatchHistory,
        *("source_control_id", "target_control_id", "match_level", "organization_id", "retired_at"),
    ),
    str(BaselineControl.__tablename__): _changed_rows(BaselineControl, BaselineControlHistory, "retired_at"),
    str(Framework.__tablename__): _changed_rows(
        Framework, FrameworkHistory, "control_count", "is_active", "deprecated_at"
    ),
}


# --- What is known, and which catalogs of the organization have changed since

_ADOPTIONS, _EFFECTIVE = sql_table(AdoptionHistory), sql_table(EffectiveHistory)
_CONTROLS, _MATCHES = sql_table(ControlHistory), sql_table(MatchHistory)
_OF_BASELINES, _FRAMEWORKS = sql_table(BaselineControlHistory), sql_table(FrameworkHistory)
_BASELINE, _START = sql_table(Baseline), sql_table(HistoryStart)
_adopted = select(_ADOPTIONS.c.framework_id).where(_ADOPTIONS.c.organization_id == _ORGANIZATION, held_then(_ADOPTIONS))


def _has_changed(history: SqlTable, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    return select(literal(1)).select_from(history).where(history.c.valid_to > _AS_OF, *conditions).exists()


_KNOWN = select(
    _START.c.since,
    _has_changed(_CONTROLS, _CONTROLS.c.framework_id.in_(_adopted)).label("control"),
    _has_changed(
        _MATCHES,
        or_(_MATCHES.c.organization_id.is_(None), _MATCHES.c.organization_id == _ORGANIZATION),
        select(literal(1))
        .where(
            _EFFECTIVE.c.organization_id == _ORGANIZATION,
            _EFFECTIVE.c.control_id == _MATCHES.c.target_control_id,
            held_then(_EFFECTIVE),
        )
        .exists(),
    ).label("control_match"),
    _has_changed(
        _OF_BASELINES,
        _OF_BASELINES.c.baseline_id.in_(select(_BASELINE.c.id).where(_BASELINE.c.framework_id.in_(_adopted))),
    ).label("baseline_control"),
    _has_changed(_FRAMEWORKS, _FRAMEWORKS.c.id.in_(_adopted)).label("framework"),
).where(_START.c.organization_id == _ORGANIZATION)
