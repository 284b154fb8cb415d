"""The draft of the next version of a policy, from its first approval on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import bindparam, delete

from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.errors import NotFound, WrongState
from normata.identity.authority import own_membership
from normata.policies.model import PolicyVersion
from normata.policies.rules import FREE
from normata.policies.steps import Found, found_policy
from normata.policies.versions import VERSION_WRITES, Versions, add_version, change_policy, change_version, text_of
from normata.records.kinds import Policy
from normata.records.lookup import find

DRAFT_WRITES = VERSION_WRITES
DISCARD_WRITES = (*VERSION_WRITES, delete_of(PolicyVersion))

_IN_FORCE = ("APPROVED", "PUBLISHED", "RETIRED")


def read_draft(transaction: Transaction, organization_id: str, policy_id: str) -> Mapping[str, Any]:
    """The text that is to be approved next, by column names. Raises NotFound if there is none."""
    policy: Any = transaction.row(find(Policy), {"record": policy_id})
    if policy is None or policy.organization_id != organization_id:
        raise NotFound
    version = Versions(transaction, policy).open
    if policy.status == FREE:
        return {**_NO_VERSION, "policy_id": policy.id, "title": policy.title, "content": policy.content}
    if version is None:
        raise NotFound
    return _as_draft(version, text_of(transaction, version))


def write_draft(
    unit: UnitOfWork, policy_id: str, content: Any, *, require_current: Callable[[Mapping[str, Any] | None], None]
) -> Mapping[str, Any]:
    """Make ``content`` the text of the draft, a new one if there is none, and return the draft.

    ``require_current`` gets the draft before, null if there is none, and raises if it is not what the caller knows.
    Raises what :func:`found_policy` raises, and WrongState in review and before the first approval.
    """
    found = found_policy(unit, policy_id)
    draft = _draft(found)
    require_current(None if draft is None else _as_draft(draft, text_of(unit, draft)))
    # What a service account writes does not make the last person who wrote it somebody else.
    editor = own_membership(unit, found.policy.organization_id) or getattr(draft, "edited_by_id", None)
    values = {"content": content, "edited_by_id": editor}
    version = (
        add_version(unit, found.policy, **values)
        if draft is None
        else change_version(unit, draft, **values, title=found.policy.title)
    )
    _publish(unit, "draft", found.policy)
    return _as_draft(version, text_of(unit, version))


def discard_draft(unit: UnitOfWork, policy_id: str) -> None:
    """Remove the draft; the version in force stays.

    Raises what :func:`found_policy` raises, WrongState as :func:`write_draft` does, and NotFound if there is none.
    """
    found = found_policy(unit, policy_id)
    draft = _draft(found)
    if draft is None:
        raise NotFound
    if draft.number is None:
        unit.rows(_REMOVE, {"version": draft.id})
        unit.publish(Change("delete", PolicyVersion, draft.organization_id))
    else:  # its number was in review, and is not given again
        change_version(unit, draft, state="DISCARDED", content=None, content_sha256=None)
    _publish(unit, "discard", found.policy)


def _draft(found: Found) -> Any:
    """The draft of a policy, null if there is none. Raises WrongState if it is in review, or is the policy itself."""
    if found.is_free:
        raise WrongState(found.state, _IN_FORCE, "Until its first approval, the text is that of the policy itself.")
    draft = found.versions.open
    if draft is not None and draft.state != FREE:
        raise WrongState(draft.state, (FREE,), "Withdraw it to change the text.")
    return draft


def _publish(unit: UnitOfWork, action: str, policy: Any) -> None:
    change_policy(unit, action, policy)


_BY_STEPS = ("edited_by_id", "created_at", "submitted_by_id", "submitted_at")
_NO_VERSION = {"number": None, "state": FREE, **dict.fromkeys(("reason", *_BY_STEPS))}


def _as_draft(version: Any, content: Any) -> Mapping[str, Any]:
    return {name: getattr(version, name) for name in (*_NO_VERSION, "policy_id", "title")} | {"content": content}


_TABLE = sql_table(PolicyVersion)
_REMOVE = delete(_TABLE).where(_TABLE.c.id == bindparam("version")).returning(_TABLE.c.id)
