"""Creating a policy from a template, with its links to the controls that it helps with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, func, or_, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.table import sql_table
from normata.errors import NotFound
from normata.frameworks.model import Control, Framework, FrameworkAdoption
from normata.identity.model import Membership, Organization, User
from normata.identity.organization_lookup import reached
from normata.links.commands import CREATION_WRITES, Wanted, make_links
from normata.links.model import End
from normata.policies.templates import TEMPLATES, Template, is_of
from normata.records.kinds import Policy
from normata.records.writing import WireValues, create, creation_writes

TEMPLATE_WRITES = (*creation_writes(Policy), *CREATION_WRITES)

_IMPLEMENTS = "IMPLEMENTS"
_NOBODY = "the approver of this policy"


def template_of(template_id: str) -> Template:
    """The template with this id. Raises NotFound."""
    if template_id not in TEMPLATES:
        raise NotFound
    return TEMPLATES[template_id]


def create_from_template(unit: UnitOfWork, template_id: str, organization: str, values: WireValues) -> Any:
    """Create a policy from a template, and return its row.

    ``values`` are those of the policy beyond its text; without a title it has that of the template. It is linked to the
    controls that the template names, as far as the organization has adopted their frameworks. Raises NotFound, and what
    :func:`create` raises.
    """
    template = template_of(template_id)
    organization_id = reached(unit, organization)
    approver = values.get("approverId")
    name = unit.scalar(_NAME, {"organization": organization_id, "member": approver}) if approver else None
    filled: dict[str, Any] = {
        "organization": unit.scalar(_ORGANIZATION, {"organization": organization_id}),
        "approver": name or _NOBODY,
        "date": unit.moment[:10],
    }
    body = {"title": template.title, **values, "content": template.filled(filled)}
    policy = create(unit, Policy, organization_id, body)
    start = End(Policy.path, policy.id)
    controls = adopted_controls(unit, organization_id, template)
    make_links(unit, organization_id, [Wanted(start, End(Control.array, one), _IMPLEMENTS) for one in controls])
    return policy


def adopted_controls(unit: UnitOfWork, organization_id: str, template: Template) -> Sequence[str]:
    """The ids of the controls of a template in frameworks that an organization has adopted."""
    found: list[str] = []
    for row in unit.rows(_FRAMEWORKS, {"organization": organization_id}):
        wanted = [
            one.identifier for one in template.controls if is_of(one.framework, row.identifier, row.name, row.version)
        ]
        if wanted:
            found += unit.scalars(_CONTROLS, {"framework": row.id, "identifiers": wanted})
    return found


_CONTROL, _FRAMEWORK, _ADOPTION = (sql_table(one) for one in (Control, Framework, FrameworkAdoption))
_MEMBER, _USER, _ORGANIZATIONS = (sql_table(one) for one in (Membership, User, Organization))
_FRAMEWORKS = (
    select(_FRAMEWORK.c.id, _FRAMEWORK.c.identifier, _FRAMEWORK.c.name, _FRAMEWORK.c.version)
    .join(_ADOPTION, _ADOPTION.c.framework_id == _FRAMEWORK.c.id)
    .where(
        _ADOPTION.c.organization_id == bindparam("organization"),
        # Those that may be among the wanted ones; `is_of` decides.
        or_(
            *(
                func.lower(column).like(f"%{word}%")
                for column in (_FRAMEWORK.c.identifier, _FRAMEWORK.c.name)
                for word in ("27001", "csf", "cybersecurity framework")
            )
        ),
    )
    .order_by(_FRAMEWORK.c.id)
)
_CONTROLS = (
    select(_CONTROL.c.id)
    .where(
        _CONTROL.c.framework_id == bindparam("framework"),
        _CONTROL.c.identifier.in_(bindparam("identifiers", expanding=True)),
    )
    .order_by(_CONTROL.c.position, _CONTROL.c.id)
)
_NAME = (
    select(_USER.c.name)
    .join(_MEMBER, _MEMBER.c.user_id == _USER.c.id)
    .where(_MEMBER.c.organization_id == bindparam("organization"), _MEMBER.c.id == bindparam("member"))
)
_ORGANIZATION = select(_ORGANIZATIONS.c.name).where(_ORGANIZATIONS.c.id == bindparam("organization"))
