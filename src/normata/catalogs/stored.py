"""Which centralized frameworks and controls are stored, for mappings that are imported later than their catalogs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import BindParameter, bindparam, select

from normata.core.db.transaction import batches
from normata.frameworks.model import Control, Framework

if TYPE_CHECKING:
    from collections.abc import Collection

    from normata.core.db.transaction import Statement, Transaction

_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_CONTROLS = select(Control.id).where(Control.id.in_(_IDS), Control.organization_id.is_(None))
_FRAMEWORKS = select(Framework.id).where(Framework.id.in_(_IDS), Framework.organization_id.is_(None))


class StoredCatalogs:
    """The centralized frameworks and controls of one transaction's database."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def controls(self, ids: Collection[str]) -> set[str]:
        """Those of these controls that are stored."""
        return self._stored(_CONTROLS, ids)

    def frameworks(self, ids: Collection[str]) -> set[str]:
        """Those of these frameworks that are stored."""
        return self._stored(_FRAMEWORKS, ids)

    def _stored(self, statement: Statement, ids: Collection[str]) -> set[str]:
        return {
            row_id
            for batch in batches(sorted(ids))
            for row_id in self._transaction.scalars(statement, {"ids": list(batch)})
        }
