"""How an organization comes to work with a framework."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, and_, insert, or_, select

from normata.database import now, write_alone
from normata.frameworks.model import Framework, FrameworkAdoption
from normata.frameworks.recompute import recompute
from normata.frameworks.revision import advance
from normata.frameworks.visibility import visible_to
from normata.refusal import Refusal
from normata.vocabulary import new_id


class NoSuchFramework(Refusal):
    """An organization can see no framework, or several, under a name; the message says which."""


def adopt(connection: Connection, organization_id: str, names: Sequence[str]) -> dict[str, bool]:
    """Adopt the frameworks that ``names`` (ids, slugs or identifiers) name, and bring coverage up to date.

    Returns by framework id whether the adoption is new. Raises NoSuchFramework; then nothing has been changed.
    """
    write_alone(connection)
    chosen = [_find(connection, organization_id, name) for name in names]
    adopted = set(
        connection.scalars(
            select(FrameworkAdoption.framework_id).where(FrameworkAdoption.organization_id == organization_id)
        )
    )
    result: dict[str, bool] = {}
    for framework_id in dict.fromkeys(chosen):
        result[framework_id] = framework_id not in adopted
        if result[framework_id]:
            connection.execute(
                insert(FrameworkAdoption).values(
                    id=new_id(), organization_id=organization_id, framework_id=framework_id, adopted_at=now()
                )
            )
    written = recompute(connection, organization_id)
    if written or any(result.values()):
        advance(connection, [organization_id])
    return result


def _find(connection: Connection, organization_id: str, name: str) -> str:
    """The id of the one framework that ``name`` names. An id comes before a slug or identifier of the same spelling."""
    rows = connection.execute(
        select(Framework.id)
        .outerjoin(
            FrameworkAdoption,
            and_(FrameworkAdoption.framework_id == Framework.id, FrameworkAdoption.organization_id == organization_id),
        )
        .where(
            or_(Framework.id == name, Framework.slug == name, Framework.identifier == name),
            visible_to(organization_id),
        )
        .order_by(Framework.id)
    )
    ids = [str(row.id) for row in rows]
    if name in ids:
        return name
    if not ids:
        raise NoSuchFramework(f"the organization can see no framework {name!r}; `normata check` lists what there is")
    if len(ids) > 1:
        raise NoSuchFramework(f"{name!r} names {len(ids)} frameworks; name one by its id: {', '.join(ids)}")
    return ids[0]
