"""The list of the versions of a policy, each with what it has changed."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, or_, select

from normata.core.db.transaction import Transaction
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import sql_table
from normata.core.schema.wire import as_wire
from normata.errors import NotFound
from normata.policies.model import PolicyVersion
from normata.policies.paragraphs import changes_between
from normata.records.kinds import Policy
from normata.records.lookup import find


def list_versions(transaction: Transaction, policy_id: str, query: PageQuery) -> dict[str, Any]:
    """A page of the approved versions of a policy, the newest first, in four statements. Raises NotFound."""
    policy: Any = transaction.row(find(Policy), {"record": policy_id})
    if policy is None or policy.organization_id != query.organization_id:
        raise NotFound
    of_policy = {"organization": query.organization_id, "policy": policy_id}
    order = [_TABLE.c.number.desc(), _TABLE.c.id.desc()]
    found = fetch_page(transaction, select(*_TABLE.c).where(*_IS_APPROVED), order, query, of_policy)
    rows = list(found.rows)
    earlier = transaction.row(_BEFORE, of_policy | {"number": rows[-1].number}) if rows else None
    items = []
    for row, before in zip(rows, [*rows[1:], earlier], strict=False):
        is_there = before is not None and row.erased_at is None and before.erased_at is None
        changes = changes_between(before.content, row.content) if is_there else None
        items.append({**as_wire(PolicyVersion, row), "changes": changes})
    return envelope(items, found, query)


_TABLE = sql_table(PolicyVersion)
_IS_APPROVED = (
    _TABLE.c.organization_id == bindparam("organization"),
    _TABLE.c.policy_id == bindparam("policy"),
    or_(_TABLE.c.approved_at.is_not(None), _TABLE.c.is_imported.is_(True)),
    _TABLE.c.state.not_in(("DRAFT", "IN_REVIEW", "DISCARDED")),
)
_BEFORE = (
    select(_TABLE.c.content, _TABLE.c.erased_at)
    .where(*_IS_APPROVED, _TABLE.c.number < bindparam("number"))
    .order_by(_TABLE.c.number.desc())
    .limit(1)
)
