"""Reading the past: the statements of today, which find the rows of a moment instead of the current ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
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
    func,
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
from normata.events.model import EventCheckpoint, EventLeaf
from normata.frameworks.baseline_model import Baseline, BaselineControl
from normata.frameworks.evidence_model import ControlEvidence
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
    ControlEvidenceHistory,
    ControlHistory,
    EffectiveHistory,
    EvidenceHistory,
    FrameworkHistory,
    HistoryStart,
    LinkHistory,
    MatchHistory,
    RiskHistory,
    SetAsideHistory,
)
from normata.links.model import Link
from normata.records.assurance import Evidence, Risk


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
        self._organization_id = organization_id
        key = {"organization": organization_id, "as_of": moment}
        if moment > now():
            raise PastUnknown("is to come")
        found = transaction.row(_KNOWN, key)
        since = None if found is None else found.since
        if since is None or moment < since:
            raise PastUnknown(since and f"is before {since}, since when the past is known", since)
        self._changed = frozenset((one.name, how) for one in _CATALOGS if (how := getattr(found, one.name)))

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

    @override
    def present(self) -> Transaction:
        return self._transaction.present()

    def _dated(self, parameters: Parameters) -> Parameters:
        return {**parameters, "as_of": self._moment, "past_of": self._organization_id}

    def _of_then(self, statement: Statement) -> Statement:
        assert isinstance(statement, Select | CompoundSelect)  # noqa: S101 - the past is only read
        made = _rewritten.setdefault(statement, {})
        found = made.get(self._changed)
        if found is None:
            found = _with_tables_of_then(statement, self._changed)
            if found is not statement:  # which would keep itself in the cache
                made[self._changed] = found
        return found


_Changed = frozenset[tuple[str, int]]  # names of catalogs, and how they have changed since the moment
_rewritten: WeakKeyDictionary[Statement, dict[_Changed, Statement]] = WeakKeyDictionary()


def _with_tables_of_then(statement: Statement, changed: _Changed) -> Statement:
    """A statement with an expression for each table with a history that it reads."""
    names = {
        found.name
        for element in iterate(statement)
        if isinstance(found := getattr(element, "table", element), SqlTable)
    }
    expressions = [one for name, one in _ALWAYS.items() if name in names]
    expressions += [one for key, one in _EXPRESSIONS.items() if key[0] in names and key in changed]
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


def _changed_rows(table: type[Table], history: type[Table], *structure: str, has_grown: bool) -> CTE:
    """The rows of a catalog at the moment; of a row that is there today, all but ``structure`` is today's.

    For when each row of then is there today, and in the same place: what leads to a row is the table's own column, so
    the statement finds it by the same index as today. It reads the history of the rows that it finds. Whether a row was
    absent is a condition only where some were: with it, SQLite may read all of a table into a Bloom filter.
    """
    sql = sql_table(table)
    present = _current(sql)

    def of_then(name: str) -> ColumnElement[Any]:
        then = sql_table(history).alias("then")
        held = and_(then.c.id == present.c.id, held_then(then))
        value = select(then.c[name]).where(held).scalar_subquery()
        return case((exists().where(held), value), else_=present.c[name]).label(name)

    absent = sql_table(history).alias("absent")
    was_absent = exists().where(absent.c.id == present.c.id, held_then(absent), absent.c.was_absent)
    columns = (of_then(one.name) if one.name in structure else present.c[one.name] for one in sql.c)
    return _named(sql, select(*columns).where(*([~was_absent] if has_grown else [])))


def _rearranged_rows(table: type[Table], history: type[Table], *structure: str) -> CTE:
    """The same where rows of then are gone, or were in another place."""
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


def _leaves() -> CTE:
    """Those that the last checkpoint of then has. The size is looked up once, so leaves are found by their numbers."""
    sql, checkpoint = sql_table(EventLeaf), _current(sql_table(EventCheckpoint))
    present = _current(sql)
    size = select(func.coalesce(func.max(checkpoint.c.size), 0)).where(
        checkpoint.c.organization_id == bindparam("past_of"), checkpoint.c.at <= _AS_OF
    )
    return _named(sql, select(*(present.c[one.name] for one in sql.c)).where(present.c.number < size.scalar_subquery()))


_ALWAYS: Mapping[str, CTE] = {
    str(ControlCoverage.__tablename__): _every_row(ControlCoverage, AssessmentHistory),
    str(EffectiveCoverage.__tablename__): _every_row(EffectiveCoverage, EffectiveHistory),
    str(FrameworkAdoption.__tablename__): _every_row(FrameworkAdoption, AdoptionHistory),
    str(SetAsideMatch.__tablename__): _every_row(SetAsideMatch, SetAsideHistory),
    str(Risk.__tablename__): _every_row(Risk, RiskHistory),
    str(Evidence.__tablename__): _every_row(Evidence, EvidenceHistory),
    str(Link.__tablename__): _every_row(Link, LinkHistory),
    str(ControlEvidence.__tablename__): _every_row(ControlEvidence, ControlEvidenceHistory),
    str(ControlWording.__tablename__): _wordings(),
    str(EventCheckpoint.__tablename__): _checkpoints(),
    str(EventLeaf.__tablename__): _leaves(),
}


# How a catalog has changed since the moment: its rows in what is kept of them, by more rows, by another order, or by
# rows that are gone or elsewhere.
_CHANGED, _GROWN, _REORDERED, _REARRANGED = 1, 2, 4, 8


class _Catalog(NamedTuple):
    """A catalog with a history: what leads to a row, what orders the rows of a list, and what else is kept of them.

    Where none of them has another place or order now, they are found by the table's own columns, and so by its indexes.
    """

    table: type[Table]
    history: type[Table]
    place: Sequence[str]
    order: Sequence[str]
    structure: Sequence[str]
    of_organization: ColumnElement[bool]  # whether the organization can have seen an entry of the history

    @property
    def name(self) -> str:
        return str(self.table.__tablename__)

    def expression(self, how: int) -> CTE:
        """Its rows of then, by the sum of how it has changed since."""
        if how & _REARRANGED:
            return _rearranged_rows(self.table, self.history, *self.place, *self.order, *self.structure)
        of_then = (*(self.order if how & _REORDERED else ()), *self.structure)
        return _changed_rows(self.table, self.history, *of_then, has_grown=bool(how & _GROWN))

    def how(self) -> ColumnElement[int]:
        """How it has changed since the moment, as a sum: 0 if it has not."""
        conditions = {_GROWN: self.has_grown(), **({_REORDERED: self._differs(self.order)} if self.order else {})}
        more = sum((case((condition, how), else_=0) for how, condition in conditions.items()), start=literal(_CHANGED))
        return case((self._differs(self.place), _REARRANGED), (self.has_changed(), more), else_=0).label(self.name)

    def has_changed(self) -> ColumnElement[bool]:
        """Whether it has changed since the moment."""
        entry = sql_table(self.history)
        return exists().where(entry.c.valid_to > _AS_OF, self.of_organization)

    def has_grown(self) -> ColumnElement[bool]:
        """Whether it has a row now that was absent at the moment."""
        entry = sql_table(self.history)
        return exists().where(held_then(entry), entry.c.was_absent, self.of_organization)

    def _differs(self, names: Sequence[str]) -> ColumnElement[bool]:
        """Whether a row of the moment is gone, or has something else in one of these columns now."""
        entry, present = sql_table(self.history), sql_table(self.table)
        is_same = and_(
            present.c.id == entry.c.id, *(present.c[one].is_not_distinct_from(entry.c[one]) for one in names)
        )
        return exists().where(held_then(entry), ~entry.c.was_absent, self.of_organization, ~exists().where(is_same))


_ADOPTIONS, _EFFECTIVE = sql_table(AdoptionHistory), sql_table(EffectiveHistory)
_CONTROLS, _MATCHES = sql_table(ControlHistory), sql_table(MatchHistory)
_OF_BASELINES, _FRAMEWORKS = sql_table(BaselineControlHistory), sql_table(FrameworkHistory)
_BASELINE, _START = sql_table(Baseline), sql_table(HistoryStart)
_adopted = select(_ADOPTIONS.c.framework_id).where(_ADOPTIONS.c.organization_id == _ORGANIZATION, held_then(_ADOPTIONS))
_covered = exists().where(
    _EFFECTIVE.c.organization_id == _ORGANIZATION,
    _EFFECTIVE.c.control_id == _MATCHES.c.target_control_id,
    held_then(_EFFECTIVE),
)
_CATALOGS = (
    _Catalog(
        *(Control, ControlHistory, ("parent_id",), ("position",), ("type", "is_mandatory", "is_decomposed")),
        _CONTROLS.c.framework_id.in_(_adopted),
    ),
    _Catalog(
        *(ControlMatch, MatchHistory, ("source_control_id", "target_control_id", "organization_id"), ()),
        ("match_level", "retired_at"),
        and_(or_(_MATCHES.c.organization_id.is_(None), _MATCHES.c.organization_id == _ORGANIZATION), _covered),
    ),
    _Catalog(
        *(BaselineControl, BaselineControlHistory, (), (), ("retired_at",)),
        _OF_BASELINES.c.baseline_id.in_(select(_BASELINE.c.id).where(_BASELINE.c.framework_id.in_(_adopted))),
    ),
    _Catalog(
        *(Framework, FrameworkHistory, (), (), ("control_count", "is_active", "deprecated_at")),
        _FRAMEWORKS.c.id.in_(_adopted),
    ),
)
_EXPRESSIONS: Mapping[tuple[str, int], CTE] = {
    (one.name, how): one.expression(how)
    for one in _CATALOGS
    for how in (*(_CHANGED + more for more in (0, _GROWN, _REORDERED, _GROWN + _REORDERED)), _REARRANGED)
}
_KNOWN = select(_START.c.since, *(one.how() for one in _CATALOGS)).where(_START.c.organization_id == _ORGANIZATION)
