"""What follows for an organization's coverage from changes of its own controls and matches."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.table import sql_table
from normata.coverage.recompute import Touched, bring_up_to_date
from normata.frameworks.model import FrameworkAdoption


def follow(unit: UnitOfWork, organization_id: str, frameworks: Iterable[str], touched: Touched) -> None:
    """Bring coverage up to date after a change of controls, or of matches of controls, of these frameworks.

    Nothing follows from frameworks that the organization has not adopted. The caller holds the lock of the
    organization's coverage.
    """
    adopted = set(unit.scalars(_ADOPTED, {"organization": organization_id}))
    if not adopted.isdisjoint(frameworks):
        bring_up_to_date(unit, organization_id, touched)


_ADOPTION = sql_table(FrameworkAdoption)
_ADOPTED = select(_ADOPTION.c.framework_id).where(_ADOPTION.c.organization_id == bindparam("organization"))
