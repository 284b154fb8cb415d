"""Adoption: an organization begins to work with a framework, or with a baseline of it, and stops."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final, Literal, TypeAlias

from sqlalchemy import BindParameter, and_, bindparam, delete, insert, or_, select, update

from normata.core.changes.source import Fault, FaultyInput, pointer
from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of, update_of
from normata.core.changes.writing import BODY
from normata.core.db.security import Write
from normata.core.db.transaction import Transaction
from normata.core.schema.table import new_id, sql_table
from normata.coverage.recompute import COVERAGE_WRITES, Touched, bring_up_to_date, lock_coverage, recompute
from normata.errors import CommandError, NotFound, Unavailable
from normata.frameworks.baseline_model import Baseline
from normata.frameworks.baselines import find_baselines
from normata.frameworks.choice import choose_visible
from normata.frameworks.model import ControlCoverage, Framework, FrameworkAdoption
from normata.frameworks.visibility import baseline_visible_to, visible_to

ADOPTION_WRITES: tuple[Write, ...] = (
    insert_of(FrameworkAdoption),
    update_of(FrameworkAdoption, "baseline_id"),
    *COVERAGE_WRITES,
)
LEAVING_WRITES: tuple[Write, ...] = (delete_of(FrameworkAdoption), *COVERAGE_WRITES)


class NoSuchBaseline(CommandError):
    """A name does not identify exactly one baseline of a framework; the message lists the baselines."""


class _Unchanged(Enum):
    BASELINE = auto()


# A new adoption that names no baseline has none; an existing one keeps its own.
UNCHANGED: Final = _Unchanged.BASELINE
NamedBaseline: TypeAlias = str | Literal[_Unchanged.BASELINE] | None


def adopt(
    unit: UnitOfWork, organization_id: str, names: Sequence[str], baseline: NamedBaseline = UNCHANGED
) -> dict[str, bool]:
    """Adopt the frameworks that ``names`` (ids, slugs or identifiers) name, and compute coverage from scratch.

    ``baseline`` (an id, slug or identifier; null for none) is that of each of them. Returns by framework id whether the
    adoption is new. Raises NoSuchFramework and NoSuchBaseline, and then changes nothing.
    """
    unit.lock("content")
    lock_coverage(unit, organization_id)
    chosen = dict.fromkeys(find_framework(unit, organization_id, name) for name in names)
    baselines = {framework_id: find_baseline(unit, organization_id, framework_id, baseline) for framework_id in chosen}
    changes = {one: _adopt(unit, organization_id, one, found) for one, found in baselines.items()}
    result = {framework_id: change == "adopt" for framework_id, change in changes.items()}
    if recompute(unit, organization_id) and not any(changes.values()):
        # The stored coverage was out of date and has just been computed, so lists show other values now.
        unit.publish(Change("compute", ControlCoverage, organization_id))
    return result


def adopt_one(unit: UnitOfWork, organization_id: str, framework_id: str, baseline: NamedBaseline = UNCHANGED) -> None:
    """Adopt a framework that the organization can see, and bring coverage up to date. Does nothing if it is adopted.

    ``baseline`` names one of its baselines, as for :func:`adopt`. Assessments stay, whatever the baseline. Raises
    NotFound, and FaultyInput if the framework has no such baseline.
    """
    unit.require_reach(organization_id)
    lock_coverage(unit, organization_id)
    if framework_id not in unit.scalars(_FIND, {"organization": organization_id, "name": framework_id}):
        raise NotFound
    try:
        found = find_baseline(unit, organization_id, framework_id, baseline)
    except NoSuchBaseline as error:
        raise FaultyInput([Fault(BODY, pointer("baseline"), str(error))]) from None
    if _adopt(unit, organization_id, framework_id, found):
        bring_up_to_date(unit, organization_id, Touched(frameworks={framework_id}))


def leave(unit: UnitOfWork, organization_id: str, framework_id: str) -> bool:
    """End the adoption of a framework, and bring coverage up to date. Returns false if it was not adopted.

    The assessments of its controls stay, and count again after another adoption. Raises NotFound if the organization
    cannot see the framework.
    """
    unit.require_reach(organization_id)
    lock_coverage(unit, organization_id)
    if framework_id not in unit.scalars(_FIND, {"organization": organization_id, "name": framework_id}):
        raise NotFound
    if framework_id not in unit.scalars(_ADOPTED, {"organization": organization_id}):
        return False
    row = unit.row(_LEAVE, {"organization": organization_id, "framework": framework_id})
    if row is None:  # another request has just left it
        raise Unavailable("the adoption was changed meanwhile")
    bring_up_to_date(unit, organization_id, Touched(frameworks={framework_id}))
    unit.publish(Change("leave", FrameworkAdoption, organization_id, row.id, before=row._asdict()))
    return True


def _adopt(unit: UnitOfWork, organization_id: str, framework_id: str, baseline: NamedBaseline) -> str | None:
    """Adopt, and return the action that was done, or null if nothing changed. The caller brings coverage up to date.

    ``baseline`` is the id of one.
    """
    key = {"organization": organization_id, "framework": framework_id}
    stored = unit.row(_ADOPTION_OF, key)
    if stored is None:
        row = {
            "id": new_id(),
            "organization_id": organization_id,
            "framework_id": framework_id,
            "adopted_at": unit.moment,
            "baseline_id": None if baseline is UNCHANGED else baseline,
        }
        unit.rows(_ADOPT, row)
        unit.publish(Change("adopt", FrameworkAdoption, organization_id, row["id"], row))
        return "adopt"
    if baseline is UNCHANGED or stored.baseline_id == baseline:
        return None
    before = stored._asdict()
    unit.rows(_CHANGE, {**key, "baseline": baseline})
    after = {**before, "baseline_id": baseline}
    unit.publish(
        Change("update", FrameworkAdoption, organization_id, stored.id, after, before, changed=("baseline_id",))
    )
    return "update"


def find_baseline(
    transaction: Transaction, organization_id: str, framework_id: str, name: NamedBaseline
) -> NamedBaseline:
    """The id of the baseline of a framework that ``name`` names; null and UNCHANGED are returned as they are.

    Raises NoSuchBaseline, also for another organization's own.
    """
    if name is UNCHANGED or name is None:
        return name
    found = find_baselines(transaction, organization_id, framework_id, name)
    if len(found) == 1:
        return found[0]
    if found:
        raise NoSuchBaseline(f"{name!r} names {len(found)} baselines; name one by its id: {', '.join(found)}")
    known = ", ".join(transaction.scalars(_BASELINES, {"organization": organization_id, "framework": framework_id}))
    raise NoSuchBaseline(f"is no baseline of the framework: it has {known or 'none'}")


def find_framework(transaction: Transaction, organization_id: str, name: str) -> str:
    """The id of the framework that ``name`` names. An id takes precedence over an equal slug or identifier."""
    return choose_visible(name, transaction.scalars(_FIND, {"organization": organization_id, "name": name}))


_FRAMEWORK, _ADOPTION = sql_table(Framework), sql_table(FrameworkAdoption)
_BASELINE = sql_table(Baseline)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_NAME: BindParameter[str] = bindparam("name")

_ADOPTED = select(_ADOPTION.c.framework_id).where(_ADOPTION.c.organization_id == _ORGANIZATION)
_ADOPTION_OF = select(*_ADOPTION.c).where(
    _ADOPTION.c.organization_id == _ORGANIZATION, _ADOPTION.c.framework_id == bindparam("framework")
)
_CHANGE = (
    update(_ADOPTION)
    .where(_ADOPTION.c.organization_id == _ORGANIZATION, _ADOPTION.c.framework_id == bindparam("framework"))
    .values(baseline_id=bindparam("baseline", type_=_ADOPTION.c.baseline_id.type))
)
_BASELINES = (
    select(_BASELINE.c.identifier)
    .where(_BASELINE.c.framework_id == bindparam("framework"), baseline_visible_to(_ORGANIZATION, _BASELINE))
    .order_by(_BASELINE.c.position, _BASELINE.c.identifier)
)
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
