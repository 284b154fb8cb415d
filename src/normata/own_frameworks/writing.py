"""Writing the rows of a request as frameworks, controls and matches, by the same rules as a load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, select

from normata.core.changes import writing as storing
from normata.core.changes.rows import PendingRow
from normata.core.changes.source import Fault, Row
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction
from normata.core.schema.table import Table, sql_table
from normata.coverage.recompute import Touched, bring_up_to_date
from normata.frameworks.model import Control, FrameworkAdoption
from normata.frameworks.rules import RULES


def valid_rows(
    unit: UnitOfWork, table: type[Table], rows: Sequence[Row], faults: Sequence[Fault] = ()
) -> list[PendingRow]:
    """The pending rows of a request's rows, by the rules of frameworks. Raises FaultyInput with every fault."""
    return storing.valid_rows(unit, table, rows, faults, own_rules=RULES)


def follow(unit: UnitOfWork, organization_id: str, frameworks: Iterable[str], touched: Touched) -> None:
    """Bring coverage up to date after a change of controls, or of matches of controls, of these frameworks.

    Frameworks that the organization has not adopted do not affect coverage. The caller holds the lock of the
    organization's coverage.
    """
    if is_any_adopted(unit, organization_id, frameworks):
        bring_up_to_date(unit, organization_id, touched)


def is_any_adopted(transaction: Transaction, organization_id: str, frameworks: Iterable[str]) -> bool:
    """Whether the organization has adopted one of these frameworks."""
    adopted = set(transaction.scalars(_ADOPTED, {"organization": organization_id}))
    return not adopted.isdisjoint(frameworks)


def frameworks_of(unit: UnitOfWork, controls: Sequence[str]) -> list[str]:
    """The frameworks of these controls, which must not be more than fit one statement."""
    return list(unit.scalars(_FRAMEWORKS, {"ids": controls}))


_ADOPTION, _CONTROL = sql_table(FrameworkAdoption), sql_table(Control)
_FRAMEWORKS = select(_CONTROL.c.framework_id).where(_CONTROL.c.id.in_(bindparam("ids", expanding=True)))
_ADOPTED = select(_ADOPTION.c.framework_id).where(_ADOPTION.c.organization_id == bindparam("organization"))
