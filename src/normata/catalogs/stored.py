"""The stored centralized frameworks and controls, for mappings and profiles that are imported after their catalogs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import BindParameter, bindparam, or_, select

from normata.catalogs.profiles import CatalogControl, CatalogFramework
from normata.core.db.transaction import batches
from normata.frameworks.baseline_model import Baseline
from normata.frameworks.baselines import selected_controls
from normata.frameworks.counting import is_requirement
from normata.frameworks.model import Control, Framework

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from normata.core.db.transaction import Statement, Transaction

_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_CONTROLS = select(Control.id).where(Control.id.in_(_IDS), Control.organization_id.is_(None))
_FRAMEWORKS = select(Framework.id).where(Framework.id.in_(_IDS), Framework.organization_id.is_(None))


_EVERY_FRAMEWORK = (
    select(Framework.id, Framework.name, Framework.identifier)
    .where(Framework.organization_id.is_(None))
    .order_by(Framework.id)
)
_CONTROLS_OF = (
    select(Control.id, Control.parent_id, is_requirement())
    .where(Control.framework_id == bindparam("framework"), Control.organization_id.is_(None))
    .order_by(Control.position)
)
_names: BindParameter[str] = bindparam("names", expanding=True)
_BASELINES = select(Baseline.id, Baseline.framework_id).where(
    or_(Baseline.id.in_(_names), Baseline.name.in_(_names)), Baseline.organization_id.is_(None)
)


class StoredCatalogs:
    """The centralized frameworks and controls of one transaction's database."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def controls(self, ids: Collection[str]) -> set[str]:
        """The ids among these that are stored controls."""
        return self._stored(_CONTROLS, ids)

    def frameworks(self, ids: Collection[str]) -> set[str]:
        """The ids among these that are stored frameworks."""
        return self._stored(_FRAMEWORKS, ids)

    def catalog_frameworks(self) -> list[CatalogFramework]:
        """All centralized frameworks, with the names by which a profile may refer to them."""
        return [CatalogFramework(*row) for row in self._transaction.rows(_EVERY_FRAMEWORK)]

    def controls_of(self, framework_id: str) -> list[CatalogControl]:
        """The controls of a framework, in catalog order."""
        return [CatalogControl(*row) for row in self._transaction.rows(_CONTROLS_OF, {"framework": framework_id})]

    def selection(self, names: Sequence[str]) -> tuple[str, set[str]] | None:
        """The framework and the controls of the only baseline with one of these ids or names, or null."""
        found = self._transaction.rows(_BASELINES, {"names": names})
        if len(found) != 1:
            return None
        return found[0].framework_id, selected_controls(self._transaction, [found[0].id])

    def _stored(self, statement: Statement, ids: Collection[str]) -> set[str]:
        return {
            row_id
            for batch in batches(sorted(ids))
            for row_id in self._transaction.scalars(statement, {"ids": list(batch)})
        }
