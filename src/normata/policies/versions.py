"""The versions of a policy: which there are, how one is stored, and what the hash of a text is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

from sqlalchemy import Update, bindparam, insert, select, update

from normata.core.changes.difference import canonical
from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.db.transaction import NO_PARAMETERS, Transaction
from normata.core.schema.table import new_id, sql_table
from normata.policies.model import OPEN, PolicyVersion
from normata.records.kinds import Policy
from normata.records.lookup import find

# The columns that a step may change.
_CHANGEABLE = (
    *("number", "state", "title", "content", "content_sha256", "edited_by_id", "submitted_by_id", "approved_by_id"),
    *("acknowledging_roles", "reason", "submitted_at", "approved_at", "published_at", "superseded_at"),
)
VERSION_WRITES = (insert_of(PolicyVersion), update_of(PolicyVersion, *_CHANGEABLE))


def hash_of(content: Any) -> str:
    """The SHA-256 of a text, in hexadecimal digits: of its UTF-8, and of any other value as canonical JSON."""
    return sha256((content if isinstance(content, str) else canonical(content)).encode()).hexdigest()


class Versions:
    """The versions of a policy, without their texts, as they are in a transaction."""

    def __init__(self, transaction: Transaction, policy: Any) -> None:
        self._rows = transaction.rows(_ALL, {"organization": policy.organization_id, "policy": policy.id})

    @property
    def open(self) -> Any:
        """The one that is a draft or in review; null if there is none."""
        return next((row for row in self._rows if row.state in OPEN), None)

    def last(self, *states: str) -> Any:
        """The newest one in one of these states; null if there is none."""
        found = [row for row in self._rows if row.state in states and row.number is not None]
        return max(found, key=lambda row: row.number, default=None)

    def all(self, *states: str) -> list[Any]:
        """Those in these states."""
        return [row for row in self._rows if row.state in states]

    @property
    def next_number(self) -> int:
        """The number of the next one that is submitted. None is given twice."""
        return max((row.number or 0 for row in self._rows), default=0) + 1


def text_of(transaction: Transaction, version: Any) -> Any:
    """The text of a version."""
    return transaction.scalar(_TEXT, {"version": version.id})


def add_version(unit: UnitOfWork, policy: Any, **values: Any) -> Any:
    """Store a new version of a policy, and return its row without its text."""
    row = {
        **{column.name: column.info.get("default") for column in _TABLE.c},
        "id": new_id(),
        "organization_id": policy.organization_id,
        "policy_id": policy.id,
        "title": policy.title,
        "created_at": unit.moment,
        **values,
    }
    unit.publish(Change("create", PolicyVersion, policy.organization_id))
    return unit.row(_ADD, row)


def change_version(unit: UnitOfWork, version: Any, **values: Any) -> Any:
    """Change columns of a version, and return its row without its text."""
    unit.publish(Change("update", PolicyVersion, version.organization_id))
    parameters = {f"new_{name}": value for name, value in values.items()}
    return unit.row(_update(tuple(values)), {"version": version.id, **parameters})


@dataclass(frozen=True, slots=True)
class PolicyStep(Change):
    """A step of a policy. ``submitted_by_id`` is the membership of who submitted its version, if that is known."""

    submitted_by_id: str | None = None


def change_policy(
    unit: UnitOfWork,
    action: str,
    before: Any,
    version: Any = None,
    values: Mapping[str, Any] = NO_PARAMETERS,
    *,
    reason: str | None = None,
) -> Any:
    """Change columns of a policy by a step with a ``version``, publish that as its one event, and return its row.

    The event has the number of the version, and the hash of its text.
    """
    row = before
    if values:
        after = {**before._asdict(), **values, "updated_at": max(unit.moment, before.created_at)}
        Policy.derive(after)
        row = unit.row(_POLICY, {"record": before.id, **{f"new_{name}": after[name] for name in _OF_POLICY}})
    facts = None if version is None else {"version": version.number, "contentSha256": version.content_sha256}
    unit.publish(
        PolicyStep(
            action,
            Policy,
            row.organization_id,
            row.id,
            row._asdict(),
            before._asdict(),
            counts=facts,
            reason=reason,
            submitted_by_id=getattr(version, "submitted_by_id", None),
        )
    )
    return row


@cache
def _update(names: tuple[str, ...]) -> Update:
    values: dict[str, Any] = {name: bindparam(f"new_{name}", type_=_TABLE.c[name].type) for name in names}
    return update(_TABLE).where(_TABLE.c.id == bindparam("version")).values(values).returning(*LISTED)


_OF_POLICY = (
    *("status", "content", "current_version", "last_approved_at", "last_approved_by", "last_reviewed_at"),
    *("next_review_at", "updated_at", "search_text", "title_key"),
)
POLICY_WRITES = (update_of(Policy, *_OF_POLICY),)

_TABLE, _POLICIES = sql_table(PolicyVersion), Policy.sql()
LISTED = [column for column in _TABLE.c if column.name != "content"]
_ALL = select(*LISTED).where(
    _TABLE.c.organization_id == bindparam("organization"), _TABLE.c.policy_id == bindparam("policy")
)
_TEXT = select(_TABLE.c.content).where(_TABLE.c.id == bindparam("version"))
_ADD = (
    insert(_TABLE)
    .values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
    .returning(*LISTED)
)
_POLICY = (
    update(_POLICIES)
    .where(_POLICIES.c.id == bindparam("record"))
    .values({name: bindparam(f"new_{name}", type_=_POLICIES.c[name].type) for name in _OF_POLICY})
    .returning(*find(Policy).selected_columns)
)
