"""Finding a control by its id or identifier."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, bindparam, or_, select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.errors import CommandError
from normata.frameworks.model import Control, Framework, FrameworkAdoption

_SHOWN = 10


class NoSuchControl(CommandError):
    """A name does not identify exactly one control of the adopted frameworks; the message says why."""


def find_control(transaction: Transaction, organization_id: str, name: str, framework: str | None = None) -> str:
    """The id of the control of an adopted framework that ``name`` (an id or identifier) names.

    ``framework`` (an id, slug or identifier) limits the search to one framework. An id takes precedence over an equal
    identifier. Raises NoSuchControl.
    """
    rows = transaction.rows(_FIND, {"organization": organization_id, "name": name})
    found = [row for row in rows if framework in (None, row.framework_id, row.slug, row.framework)]
    if any(row.id == name for row in found):
        return name
    if len(found) == 1:
        return str(found[0].id)
    if found:
        raise NoSuchControl(f"{name!r} names {len(found)} controls; name one by its id: {_listed(found)}")
    where = "no adopted framework" if framework is None else f"no adopted framework {framework!r}"
    has = f"{where} has a control {name!r}"
    raise NoSuchControl(f"{has}; there is {_listed(rows)}" if rows else has)


def _listed(rows: list[Any]) -> str:
    listed = [f"{row.id} ({row.framework})" for row in rows[:_SHOWN]]
    return ", ".join([*listed, "…"] if len(rows) > _SHOWN else listed)


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
