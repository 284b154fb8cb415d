"""Baselines of frameworks: their controls, and the one that an organization has adopted."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import Field
from sqlalchemy import BindParameter, ColumnElement, FromClause, and_, bindparam, func, literal, or_, select, true

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.fields import Timestamp
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.errors import NotFound
from normata.frameworks.baseline_model import Baseline, BaselineControl
from normata.frameworks.counting import is_requirement
from normata.frameworks.model import Control, Framework, FrameworkAdoption
from normata.frameworks.source_model import SourceDocument
from normata.frameworks.visibility import baseline_visible_to, visible_to


class BaselineReference(Wire):
    """A baseline, with its id and names."""

    id: str
    identifier: str
    name: str


BASELINE_FILTER = (
    "Only requirements in this baseline of their framework: an id, slug or identifier. What names no baseline selects"
    " nothing."
)
OUTSIDE_OF_BASELINE = (
    "The baseline of the adoption, if the control is a requirement outside of it: then the control applies only if its"
    " assessment says so."
)


class BaselineCounts(BaselineReference):
    """A baseline of a framework, with the number of its requirements."""

    slug: str = Field(description="A readable name for addresses.")
    version: str | None
    description: str | None
    requirements: int = Field(
        description="How many requirements are in it: those that its publisher has selected, and the mandatory ones."
    )
    is_own: bool = Field(description="Whether the baseline is the organization's own: no other one sees it.")
    is_adopted: bool = Field(description="Whether the organization has adopted the framework with this baseline.")


class OriginalReference(Wire):
    """The document that a framework was imported from."""

    media_type: str = Field(description="`application/json` or `application/yaml`.")
    sha256: str = Field(description="The SHA-256 of its bytes, in hexadecimal digits.")
    size: int = Field(description="The number of its bytes.")
    updated_at: Timestamp = Field(description="When this form of it was first imported.")


class FrameworkBaselines(Wire):
    """The baselines of a framework that the organization can see."""

    framework_id: str = Field(description="The id of the framework.")
    requirements: int = Field(description="How many requirements the whole framework has.")
    baseline: BaselineReference | None = Field(
        description="The baseline of the organization's adoption; null if the whole framework applies, or it has"
        " not adopted the framework."
    )
    baselines: list[BaselineCounts] = Field(
        description="The baselines, in the order of their publisher; those of one place by size."
    )
    original: OriginalReference | None = Field(
        description="The document of OSCAL that the framework was last imported from; null if there is none."
    )


def is_selected(baseline_id: ColumnElement[Any], control: FromClause) -> ColumnElement[bool]:
    """The condition that a baseline selects a control."""
    return (
        select(literal(1))
        .where(
            _MEMBER.c.baseline_id == baseline_id,
            _MEMBER.c.control_id == control.c.id,
            _MEMBER.c.retired_at.is_(None),
        )
        .correlate_except(_MEMBER)
        .exists()
    )


def is_in_baseline(control: FromClause, adoption: FromClause) -> ColumnElement[bool]:
    """The condition that a control is in the baseline of an adoption, or that there is none."""
    return or_(adoption.c.baseline_id.is_(None), is_selected(adoption.c.baseline_id, control))


def leaves_out(baseline: FromClause, control: FromClause, adoption: FromClause) -> ColumnElement[bool]:
    """The condition that a control is a requirement outside of the baseline of an adoption."""
    return and_(
        baseline.c.id == adoption.c.baseline_id,
        is_requirement(control),
        control.c.is_mandatory.is_(False),
        ~is_selected(adoption.c.baseline_id, control),
    )


def outside_to_wire(row: Any) -> dict[str, Any] | None:
    """The baseline that excludes a control, from a row with the columns ``outside_id`` and so on."""
    if row.outside_id is None:
        return None
    return {"id": row.outside_id, "identifier": row.outside_identifier, "name": row.outside_name}


def in_baseline_named(name: str) -> ColumnElement[bool]:
    """The condition that a control is a requirement in a baseline that ``name`` (an id, slug or identifier) names."""
    named = or_(_BASELINE.c.id == name, _BASELINE.c.slug == name, _BASELINE.c.identifier == name)
    return and_(
        is_requirement(_CONTROL),
        select(literal(1))
        .where(
            _BASELINE.c.framework_id == _CONTROL.c.framework_id,
            _is_visible,
            named,
            or_(_CONTROL.c.is_mandatory, is_selected(_BASELINE.c.id, _CONTROL)),
        )
        .correlate(_CONTROL)
        .exists(),
    )


def baselines_of_adoptions(transaction: Transaction, organization_id: str) -> dict[str, str]:
    """The baselines of an organization's adoptions that have one, by framework."""
    return dict(map(tuple, transaction.rows(_ADOPTED, {"organization": organization_id})))


def selected_controls(transaction: Transaction, baseline_ids: Collection[str]) -> set[str]:
    """The controls that any of these baselines selects: each is of one framework."""
    return {
        control for batch in batches(sorted(baseline_ids)) for control in transaction.scalars(_SELECTED, {"ids": batch})
    }


def find_baselines(transaction: Transaction, organization_id: str, framework_id: str, name: str) -> list[str]:
    """The ids of the baselines of a framework that ``name`` names, as far as the organization can see them.

    An id takes precedence over a slug or identifier.
    """
    key = {"organization": organization_id, "framework": framework_id, "name": name}
    found: list[str] = transaction.scalars(_FIND, key)
    return [name] if name in found else found


def baseline_of_adoption(transaction: Transaction, organization_id: str, framework_id: str) -> dict[str, Any] | None:
    """The baseline that an organization has adopted a framework with, as a reference; null if there is none."""
    row = transaction.row(_OF_ADOPTION, {"organization": organization_id, "framework": framework_id})
    return None if row is None else row._asdict()


def baseline_reference(transaction: Transaction, baseline_id: str | None) -> dict[str, Any] | None:
    """A reference to a baseline; null if there is none."""
    row = None if baseline_id is None else transaction.row(_REFERENCE, {"baseline": baseline_id})
    return None if row is None else row._asdict()


def baseline_outside_of(transaction: Transaction, organization_id: str, control_id: str) -> Any:
    """The baseline of the adoption as a row, if a control is a requirement outside of it; else null."""
    return transaction.row(_OUTSIDE_OF, {"organization": organization_id, "control": control_id})


def framework_baselines(transaction: Transaction, organization_id: str, framework_id: str) -> dict[str, Any]:
    """The members of :class:`FrameworkBaselines`. Raises NotFound if the organization cannot see the framework."""
    key = {"organization": organization_id, "framework": framework_id}
    if transaction.row(_VISIBLE, key) is None:
        raise NotFound
    adopted = baseline_of_adoption(transaction, organization_id, framework_id)
    rows = sorted(transaction.rows(_COUNTED, key), key=lambda row: (row.position, row.requirements, row.name, row.id))
    return {
        "frameworkId": framework_id,
        "requirements": transaction.scalar(_REQUIREMENTS, key) or 0,
        "baseline": adopted,
        "baselines": [
            {name: getattr(row, name) for name in _SHOWN}
            | {"isOwn": row.organization_id is not None}
            | {"isAdopted": adopted is not None and adopted["id"] == row.id}
            for row in rows
        ],
        "original": _original(transaction.row(_ORIGINAL, key)),
    }


def _original(row: Any) -> dict[str, Any] | None:
    if row is None:
        return None
    return {"mediaType": row.media_type, "sha256": row.sha256, "size": row.size, "updatedAt": row.updated_at}


_SHOWN = ("id", "identifier", "name", "slug", "version", "description", "requirements")

_BASELINE, _MEMBER, _CONTROL = sql_table(Baseline), sql_table(BaselineControl), sql_table(Control)
_ADOPTION, _FRAMEWORK = sql_table(FrameworkAdoption), sql_table(Framework)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_OF_FRAMEWORK: BindParameter[str] = bindparam("framework")
_NAME: BindParameter[str] = bindparam("name")

_SOURCE = sql_table(SourceDocument)
_ORIGINAL = (
    select(_SOURCE.c.media_type, _SOURCE.c.sha256, _SOURCE.c.size, _SOURCE.c.updated_at)
    .where(_SOURCE.c.framework_id == _OF_FRAMEWORK, _SOURCE.c.baseline_id.is_(None))
    .order_by(_SOURCE.c.updated_at.desc(), _SOURCE.c.id)
    .limit(1)
)

_is_visible = baseline_visible_to(_ORGANIZATION, _BASELINE)

_ADOPTED = select(_ADOPTION.c.framework_id, _ADOPTION.c.baseline_id).where(
    _ADOPTION.c.organization_id == _ORGANIZATION, _ADOPTION.c.baseline_id.is_not(None)
)
_SELECTED = select(_MEMBER.c.control_id).where(
    _MEMBER.c.baseline_id.in_(bindparam("ids", expanding=True)), _MEMBER.c.retired_at.is_(None)
)
_FIND = (
    select(_BASELINE.c.id)
    .where(
        _BASELINE.c.framework_id == _OF_FRAMEWORK,
        _is_visible,
        or_(_BASELINE.c.id == _NAME, _BASELINE.c.slug == _NAME, _BASELINE.c.identifier == _NAME),
    )
    .order_by(_BASELINE.c.id)
)
_REFERENCE = select(_BASELINE.c.id, _BASELINE.c.identifier, _BASELINE.c.name).where(
    _BASELINE.c.id == bindparam("baseline")
)
_OF_ADOPTION = (
    select(_BASELINE.c.id, _BASELINE.c.identifier, _BASELINE.c.name)
    .join(_ADOPTION, _ADOPTION.c.baseline_id == _BASELINE.c.id)
    .where(_ADOPTION.c.organization_id == _ORGANIZATION, _ADOPTION.c.framework_id == _OF_FRAMEWORK)
)
_OUTSIDE_OF = (
    select(_BASELINE.c.id, _BASELINE.c.identifier, _BASELINE.c.name)
    .select_from(_CONTROL)
    .join(
        _ADOPTION,
        and_(_ADOPTION.c.framework_id == _CONTROL.c.framework_id, _ADOPTION.c.organization_id == _ORGANIZATION),
    )
    .join(_BASELINE, leaves_out(_BASELINE, _CONTROL, _ADOPTION))
    .where(_CONTROL.c.id == bindparam("control"))
)
_VISIBLE = (
    select(_FRAMEWORK.c.id)
    .outerjoin(
        _ADOPTION, and_(_ADOPTION.c.framework_id == _FRAMEWORK.c.id, _ADOPTION.c.organization_id == _ORGANIZATION)
    )
    .where(_FRAMEWORK.c.id == _OF_FRAMEWORK, visible_to(_ORGANIZATION))
)
_COUNTED = (
    select(*_BASELINE.c, func.count(_CONTROL.c.id).label("requirements"))
    .select_from(_BASELINE)
    .outerjoin(
        _CONTROL,
        and_(
            _CONTROL.c.framework_id == _BASELINE.c.framework_id,
            is_requirement(_CONTROL),
            or_(_CONTROL.c.is_mandatory == true(), is_selected(_BASELINE.c.id, _CONTROL)),
        ),
    )
    .where(_BASELINE.c.framework_id == _OF_FRAMEWORK, _is_visible)
    .group_by(_BASELINE.c.id)
)
_REQUIREMENTS = select(func.count()).where(_CONTROL.c.framework_id == _OF_FRAMEWORK, is_requirement(_CONTROL))
