"""Erasing the text of an approved version that names a person. The version, its hash and its events stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import bindparam, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.schema.table import sql_table
from normata.policies.model import PolicyVersion
from normata.policies.versions import LISTED


def erase_text(unit: UnitOfWork, version_id: str, without: Callable[[str], str]) -> Any:
    """Remove the text of a version, and return its row. An event of the version records it.

    ``without`` returns a text without the person, for its title.
    """
    before: Any = unit.row(_FIND, {"version": version_id})
    title = {"title": without(before.title)}
    after: Any = unit.row(_ERASE, {"version": version_id, "moment": unit.moment, **title})
    unit.publish(Change("erase", PolicyVersion, after.organization_id, version_id, after._asdict(), before._asdict()))
    return after


_TABLE = sql_table(PolicyVersion)
_FIND = select(*LISTED).where(_TABLE.c.id == bindparam("version"))
_ERASE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("version"))
    .values(
        content=None,
        reason=None,
        title=bindparam("title"),
        erased_at=bindparam("moment", type_=_TABLE.c.erased_at.type),
    )
    .returning(*LISTED)
)
