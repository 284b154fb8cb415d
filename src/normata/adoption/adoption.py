"""How an organization comes to work with a framework, and leaves it again."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BindParameter, and_, bindparam, delete, insert, or_, select

from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of
from normata.core.db.security import Write
from normata.core.db.transaction import Transaction
from normata.core.schema.table import new_id, sql_table
from normata.coverage.recompute import COVERAGE_WRITES, Touched, bring_up_to_date, lock_coverage, recompute
from normata.errors import CommandError, NotFound, Unavailable
from normata.frameworks.model import ControlCoverage, Framework, FrameworkAdoption
from normata.frameworks.visibility import visible_to

ADOPTION_WRITES: tuple[Write, ...] = (insert_of(FrameworkAdoption), *COVERAGE_WRITES)
LEAVING_WRITES: tuple[Write, ...] = (delete_of(FrameworkAdoption), *COVERAGE_WRITES)


class NoSuchFramework(CommandError):
    """An organization can see no framework, or several, under a name; the message says which."""


def adopt(unit: UnitOfWork, organization_id: str, names: Sequence[str]) -> dict[str, bool]:
    """Adopt the frameworks that ``names`` (ids, slugs or identifiers) name, and compute coverage from scratch.

    Returns by framework id whether the adoption is new. Raises NoSuchFramework; then nothing has been changed.
    """
    unit.lock("content")
    lock_coverage(unit, organization_id)
    chosen = dict.fromkeys(find_framework(unit, organization_id, name) for name in names)
    result = {framework_id: _adopt(unit, organization_id, framework_id) for framework_id in chosen}
    if recompute(unit, organization_id) and not any(result.values()):
        # The stored coverage was not what follows from the assessments. Now it is, so the lists show something else.
        unit.publish(Change("compute", ControlCoverage, organization_id))
    return result


def adopt_one(unit: UnitOfWork, organization_id: str, framework_id: str) -> None:
    """Adopt a framework that the organization can see, and bring coverage up to date; again is harmless.

    Raises NotFound.
    """
    unit.require_reach(organization_id)
    lock_coverage(unit, organization_id)
    if framework_id not in unit.scalars(_FIND, {"organization": organization_id, "name": framework_id}):
        raise NotFound
    if _adopt(unit, organization_id, framework_id):
        bring_up_to_date(unit, organization_id, Touched(frameworks={framework_id}))


def leave(unit: UnitOfWork, organization_id: str, framework_id: str) -> bool:
    """Adopt a framework no longer, and bring coverage up to date. False where it is not adopted.

    The assessments of its controls stay: whoever adopts it again finds them. Raises NotFound where the organization can
    see no such framework.
    """
    unit.require_reach(organization_id)
    lock_coverage(unit, organization_id)
    if framework_id not in unit.scalars(_FIND, {"organization": organization_id, "name": framework_id}):
        raise NotFound
    if framework_id not in unit.scalars(_ADOPTED, {"organization": organization_id}):
        return False
    row = unit.row(_LEAVE, {"organization": organization_id, "framework": framework_id})
    if row is None:  # somebody else has just left it
        raise Unavailable("the adoption was changed meanwhile")
    bring_up_to_date(unit, organization_id, Touched(frameworks={framework_id}))
    unit.publish(Change("leave", FrameworkAdoption, organization_id, row.id, before=row._asdict()))
    return True


def _adopt(unit: UnitOfWork, organization_id: str, framework_id: str) -> bool:
    """Whether the adoption is new. The caller brings coverage up to date."""
    if framework_id in unit.scalars(_ADOPTED, {"organization": organization_id}):
        return False
    row = {
        "id": new_id(),
        "organization_id": organization_id,
        "framework_id": framework_id,
        "adopted_at": unit.moment,
    }
    unit.rows(_ADOPT, row)
    unit.publish(Change("adopt", FrameworkAdoption, organization_id, row["id"], row))
    return True


def find_framework(transaction: Transaction, organization_id: str, name: str) -> str:
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
_LEAVE = (
    delete(_ADOPTION)
    .where(_ADOPTION.c.organization_id == _ORGANIZATION, _ADOPTION.c.framework_id == bindparam("framework"))
    .returning(*_ADOPTION.c)
)
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
