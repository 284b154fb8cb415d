"""How an organization comes to work with a framework."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BindParameter, and_, bindparam, insert, or_, select

from normata.changes.unit_of_work import Change, UnitOfWork
from normata.db.transaction import Transaction
from normata.errors import CommandError
from normata.frameworks.coverage.recompute import recompute
from normata.frameworks.model import ControlCoverage, Framework, FrameworkAdoption
from normata.frameworks.visibility import visible_to
from normata.schema.table import new_id, sql_table


class NoSuchFramework(CommandError):
    """An organization can see no framework, or several, under a name; the message says which."""


def adopt(unit: UnitOfWork, organization_id: str, names: Sequence[str]) -> dict[str, bool]:
    """Adopt the frameworks that ``names`` (ids, slugs or identifiers) name, and bring coverage up to date.

    Returns by framework id whether the adoption is new. Raises NoSuchFramework; then nothing has been changed.
    """
    unit.lock("content")
    chosen = [_find(unit, organization_id, name) for name in names]
    adopted = set(unit.scalars(_ADOPTED, {"organization": organization_id}))
    result = {framework_id: framework_id not in adopted for framework_id in chosen}
    for framework_id, is_new in result.items():
        if is_new:
            row = {
                "id": new_id(),
                "organization_id": organization_id,
                "framework_id": framework_id,
                "adopted_at": unit.moment,
            }
            unit.rows(_ADOPT, row)
            unit.publish(Change("adopt", FrameworkAdoption, organization_id, row["id"], row))
    if recompute(unit, organization_id) and not any(result.values()):
        # The stored coverage was not what follows from the statements. Now it is, so the lists show something else.
        unit.publish(Change("compute", ControlCoverage, organization_id))
    return result


def _find(transaction: Transaction, organization_id: str, name: str) -> str:
    """The id of the one framework that ``name`` names. An id comes before a slug or identifier of the same spelling."""
    ids: list[str] = transaction.scalars(_FIND, {"organization": organization_id, "name": name})
    if name in ids:
        return name
    if not ids:
        raise NoSuchFramework(f"the organization can see no framework {name!r}; `normata check` lists what there is")
    if len(ids) > 1:
        raise NoSuchFramework(f"{name!r} names {len(ids)} frameworks; name one by its id: {', '.join(ids)}")
    return ids[0]


_FRAMEWORK, _ADOPTION = sql_table(Framework), sql_table(FrameworkAdoption)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_NAME: BindParameter[str] = bindparam("name")

_ADOPTED = select(_ADOPTION.c.framework_id).where(_ADOPTION.c.organization_id == _ORGANIZATION)
_ADOPT = insert(_ADOPTION).values({column.name: bindparam(column.name, type_=column.type) for column in _ADOPTION.c})
_FIND = (
    select(_FRAMEWORK.c.id)
    .outerjoin(
        _ADOPTION,
        and_(_ADOPTION.c.framework_id == _FRAMEWORK.c.id, _ADOPTION.c.organization_id == _ORGANIZATION),
    )
    .where(
        or_(_FRAMEWORK.c.id == _NAME, _FRAMEWORK.c.slug == _NAME, _FRAMEWORK.c.identifier == _NAME),
        visible_to(_ORGANIZATION),
    )
    .order_by(_FRAMEWORK.c.id)
)
