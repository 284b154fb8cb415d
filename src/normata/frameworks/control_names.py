"""Finding a control by its id or identifier."""

from __future__ import annotations

from sqlalchemy import BindParameter, bindparam, or_, select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.frameworks.choice import NamedControl, choose_control
from normata.frameworks.model import Control, Framework, FrameworkAdoption


def find_control(transaction: Transaction, organization_id: str, name: str, framework: str | None = None) -> str:
    """The id of the control of an adopted framework that ``name`` (an id or identifier) names.

    ``framework`` (an id, slug or identifier) limits the search to one framework. Raises NoSuchControl.
    """
    rows = transaction.rows(_FIND, {"organization": organization_id, "name": name})
    return choose_control(name, framework, [NamedControl(*row) for row in rows])


_CONTROL, _FRAMEWORK, _ADOPTION = sql_table(Control), sql_table(Framework), sql_table(FrameworkAdoption)
_NAME: BindParameter[str] = bindparam("name")

_FIND = (
    select(
        _CONTROL.c.id,
        _CONTROL.c.framework_id,
        _FRAMEWORK.c.slug,
        _FRAMEWORK.c.identifier.label("framework"),
    )
    .join(_FRAMEWORK, _FRAMEWORK.c.id == _CONTROL.c.framework_id)
    .join(_ADOPTION, _ADOPTION.c.framework_id == _CONTROL.c.framework_id)
    .where(
        _ADOPTION.c.organization_id == bindparam("organization"),
        or_(_CONTROL.c.id == _NAME, _CONTROL.c.identifier == _NAME),
    )
    .order_by(_FRAMEWORK.c.identifier_key, _CONTROL.c.position, _CONTROL.c.id)
)
