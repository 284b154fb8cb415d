"""Profiles that an organization imports for itself, and the ids of its imported rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import and_, bindparam, or_, select

from normata.catalogs.profiles import CatalogFramework
from normata.catalogs.stored import StoredCatalogs
from normata.core.changes.source import Row
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.frameworks.baseline_model import Baseline
from normata.frameworks.baselines import selected_controls
from normata.frameworks.model import Framework, FrameworkAdoption
from normata.frameworks.visibility import baseline_visible_to, visible_to

# Never change this: ids of an organization's uploads follow from it, so that a later upload finds them again.
_OWN = UUID("0a1c7a4e-93f5-5d0a-8a7e-6f1b0d8b7c55")

NO_CATALOG = (
    "A profile selects controls of a centralized framework: the operator of the instance imports that. For a catalog of"
    " your own, import both files together with `normata import --organization`"
)


def own_id(organization_id: str, published: str) -> str:
    """The id of an organization's own row, because a publisher's id may be used once for all organizations."""
    return str(uuid5(_OWN, json.dumps([organization_id, published])))


def own_baselines(rows: Iterable[Row], published: Iterable[Row], organization_id: str) -> Iterator[Row]:
    """The baselines of profiles as the organization's own rows.

    They select controls of a framework in the same upload, or of a centralized framework, whose controls keep their
    ids.
    """
    imported = {row.values["id"] for row in published if row.array in ("frameworks", "controls")}
    for row in rows:
        values = dict(row.values)
        for key in ("id", "baselineId"):
            if key in values:
                values[key] = own_id(organization_id, values[key])
        for key in ("frameworkId", "controlId"):
            if values.get(key) in imported:
                values[key] = own_id(organization_id, values[key])
        if row.array == "baselines":
            values["organizationId"] = organization_id
        yield Row(row.array, row.file, row.place, values, row.origin)


class VisibleCatalogs(StoredCatalogs):
    """The centralized frameworks that an organization can see, with its own baselines of them."""

    def __init__(self, transaction: Transaction, organization_id: str) -> None:
        super().__init__(transaction)
        self._organization_id = organization_id

    def catalog_frameworks(self) -> list[CatalogFramework]:
        """The centralized frameworks that the organization can see."""
        rows = self._transaction.rows(_VISIBLE_CATALOGS, {"organization": self._organization_id})
        return [CatalogFramework(*row) for row in rows]

    def selection(self, names: Sequence[str]) -> tuple[str, set[str]] | None:
        """The framework and controls of the only baseline with one of these ids or names; null if there is none.

        An own baseline takes precedence.
        """
        own = [own_id(self._organization_id, name) for name in names]
        key = {"organization": self._organization_id, "names": [*names, *own]}
        rows = self._transaction.rows(_SELECTABLE, key)
        found = [row for row in rows if row.organization_id is not None] or rows
        if len(found) != 1:
            return None
        return found[0].framework_id, selected_controls(self._transaction, [found[0].id])


_FRAMEWORK, _ADOPTION, _BASELINE = sql_table(Framework), sql_table(FrameworkAdoption), sql_table(Baseline)
_ADOPTED = and_(_ADOPTION.c.framework_id == _FRAMEWORK.c.id, _ADOPTION.c.organization_id == bindparam("organization"))
_VISIBLE_CATALOGS = (
    select(_FRAMEWORK.c.id, _FRAMEWORK.c.name, _FRAMEWORK.c.identifier)
    .outerjoin(_ADOPTION, _ADOPTED)
    .where(_FRAMEWORK.c.organization_id.is_(None), visible_to(bindparam("organization")))
    .order_by(_FRAMEWORK.c.id)
)
_NAMES: Any = bindparam("names", expanding=True)
_SELECTABLE = (
    select(_BASELINE.c.id, _BASELINE.c.framework_id, _BASELINE.c.organization_id)
    .join(_FRAMEWORK, _FRAMEWORK.c.id == _BASELINE.c.framework_id)
    .outerjoin(_ADOPTION, _ADOPTED)
    .where(
        or_(_BASELINE.c.id.in_(_NAMES), _BASELINE.c.name.in_(_NAMES)),
        baseline_visible_to(bindparam("organization"), _BASELINE),
        _FRAMEWORK.c.organization_id.is_(None),
        visible_to(bindparam("organization")),
    )
)
