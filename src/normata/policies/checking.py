"""The checks of versions of policies by ``normata check``: whether each text is the one that was approved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.events.content import values_of
from normata.events.model import AuditEvent
from normata.policies.model import PolicyVersion
from normata.policies.versions import hash_of
from normata.records.kinds import Policy

_WITHOUT_HASH = ("DRAFT", "DISCARDED")  # or with that of a text that was rejected, and has changed since


def text_faults(transaction: Transaction) -> Iterator[str]:
    """The faults of the stored versions, a sentence each.

    A version that is not approved yet has no sealed hash: an erasure may give its text another one.
    """
    sealed = _sealed_hashes(transaction)
    for row in transaction.stream(_VERSIONS):
        name = f"version {row.number} of the policy {row.policy_id} of organization {row.organization_id}"
        if row.erased_at is None and hash_of(row.content) != row.content_sha256:
            yield f"{name} was changed: its text is not the one that was hashed"
        if not sealed.get((row.policy_id, row.number), set()) <= {row.content_sha256}:
            yield f"{name} was changed: its hash is not that of its event"


def _sealed_hashes(transaction: Transaction) -> Mapping[tuple[str, int], set[str]]:
    """The hashes in the events of steps of approved versions, by policy and number."""
    found: dict[tuple[str, int], set[str]] = {}
    for row in transaction.stream(_EVENTS):
        facts: Mapping[str, Any] = (values_of(row.body)["counts"] if row.body else None) or {}
        if "contentSha256" in facts:
            found.setdefault((row.entity_id, facts["version"]), set()).add(facts["contentSha256"])
    return found


_TABLE, _EVENT = sql_table(PolicyVersion), sql_table(AuditEvent)
_VERSIONS = (
    select(
        *(_TABLE.c.organization_id, _TABLE.c.policy_id, _TABLE.c.number),
        *(_TABLE.c.content, _TABLE.c.content_sha256, _TABLE.c.erased_at),
    )
    .where(_TABLE.c.state.not_in(_WITHOUT_HASH))
    .order_by(_TABLE.c.organization_id, _TABLE.c.policy_id, _TABLE.c.number)
)
_EVENTS = select(_EVENT.c.entity_id, _EVENT.c.body).where(
    _EVENT.c.organization_id.in_(select(_TABLE.c.organization_id)),
    _EVENT.c.entity_type == Policy.__name__,
    _EVENT.c.action.in_(("approve", "publish", "retire")),
)
