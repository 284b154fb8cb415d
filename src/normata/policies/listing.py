"""The versions of a policy, each with what it has changed, and what differs between two of its texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from sqlalchemy import bindparam, or_, select

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import MAX_NUMBER
from normata.core.schema.paging import OrganizationQuery, PageQuery, envelope, fetch_page
from normata.core.schema.table import sql_table
from normata.core.schema.wire import as_wire
from normata.errors import NotFound
from normata.policies.model import APPROVED, OPEN, PolicyVersion
from normata.policies.paragraphs import Comparison
from normata.policies.rules import FREE, REVIEW
from normata.policies.versions import Versions, text_of
from normata.records.kinds import Policy
from normata.records.lookup import find

_MOST_COMPARED = 400_000  # pairs of paragraphs in one answer: half a second where the same ones come again and again


class VersionQuery(PageQuery):
    """The query of the versions of a policy."""

    number: int | None = Field(default=None, ge=1, le=MAX_NUMBER, description="Only the version with this number.")


class ChangesQuery(OrganizationQuery):
    """Which texts of a policy are compared."""

    version: int | None = Field(
        default=None,
        ge=1,
        le=MAX_NUMBER,
        description="The number of the version whose changes are wanted; left out, the draft, else the newest version.",
    )
    since: int | None = Field(
        default=None,
        ge=1,
        le=MAX_NUMBER,
        description="The number of an approved version before it; left out, the one in force for the draft, else the"
        " last one before it.",
    )


def list_versions(transaction: Transaction, policy_id: str, query: VersionQuery) -> dict[str, Any]:
    """A page of the approved versions of a policy, the newest first, in four statements. Raises NotFound."""
    _require_policy(transaction, policy_id, query.organization_id)
    of_policy = {"organization": query.organization_id, "policy": policy_id}
    order = [_TABLE.c.number.desc(), _TABLE.c.id.desc()]
    wanted = select(*_TABLE.c).where(*_IS_APPROVED)
    if query.number is not None:
        wanted = wanted.where(_TABLE.c.number == query.number)
    found = fetch_page(transaction, wanted, order, query, of_policy)
    rows = list(found.rows)
    earlier = transaction.row(_BEFORE, of_policy | {"number": rows[-1].number}) if rows else None
    items, left = [], _MOST_COMPARED
    for row, before in zip(rows, [*rows[1:], earlier], strict=False):
        is_there = before is not None and row.erased_at is None and before.erased_at is None
        compared = Comparison(before.content, row.content) if is_there else None
        left -= compared.cost if compared else 0
        changes = compared.changes if compared and left >= 0 else None
        is_left_out = compared is not None and changes is None
        items.append({**as_wire(PolicyVersion, row), "changes": changes, "changesLeftOut": is_left_out})
    return envelope(items, found, query)


def changes_of(transaction: Transaction, policy_id: str, query: ChangesQuery) -> dict[str, Any]:
    """What a text of a policy changes, in four statements; null if there is nothing before, or a text was erased.

    Raises NotFound if the policy, or a version that the query names, does not exist.
    """
    policy = _require_policy(transaction, policy_id, query.organization_id)
    versions = Versions(transaction, policy)
    approved = sorted((one for one in versions.all(*APPROVED) if one.number), key=lambda one: one.number)
    is_free = policy.status in (FREE, REVIEW)
    newest = versions.open if versions.open is not None and not is_free else next(reversed(approved), None)
    after = newest if query.version is None else _numbered([*approved, versions.open], query.version)
    if query.since is not None:
        before = _numbered(approved, query.since)
    elif after is None or after.state not in OPEN:
        before = next((one for one in reversed(approved) if after is not None and one.number < after.number), None)
    else:
        before = versions.last("PUBLISHED") or versions.last("APPROVED") or next(reversed(approved), None)
    is_there = all(one is not None and one.erased_at is None for one in (before, after))
    texts = [text_of(transaction, one) for one in (before, after)] if is_there else []
    return {
        "version": None if after is None else after.number,
        "since": None if before is None else before.number,
        "changes": Comparison(*texts).changes if texts else None,
    }


def _numbered(versions: Sequence[Any], number: int) -> Any:
    """The version with a number. Raises NotFound."""
    for one in versions:
        if one is not None and one.number == number:
            return one
    raise NotFound


def _require_policy(transaction: Transaction, policy_id: str, organization_id: str) -> Any:
    policy: Any = transaction.row(find(Policy), {"record": policy_id})
    if policy is None or policy.organization_id != organization_id:
        raise NotFound
    return policy


_TABLE = sql_table(PolicyVersion)
_IS_APPROVED = (
    _TABLE.c.organization_id == bindparam("organization"),
    _TABLE.c.policy_id == bindparam("policy"),
    or_(_TABLE.c.approved_at.is_not(None), _TABLE.c.is_imported.is_(True)),
    _TABLE.c.state.in_(APPROVED),
)
_BEFORE = (
    select(_TABLE.c.content, _TABLE.c.erased_at)
    .where(*_IS_APPROVED, _TABLE.c.number < bindparam("number"))
    .order_by(_TABLE.c.number.desc())
    .limit(1)
)
