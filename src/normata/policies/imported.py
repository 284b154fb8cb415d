"""Versions of policies that come from elsewhere: what a load must have, and the first version of those without one."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.changes.references import References
from normata.core.changes.rows import PendingRow
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import batches
from normata.core.schema.fields import MAX_NUMBER
from normata.core.schema.table import sql_table
from normata.policies.model import OPEN, PolicyVersion
from normata.policies.rules import FREE
from normata.policies.versions import add_version, hash_of
from normata.records.kinds import Policy


def check_loaded(_unit: UnitOfWork, rows: Sequence[PendingRow], _references: References) -> None:
    """The rule of loaded versions: the text is the one that was hashed, and one version of a policy is open."""
    is_open: set[str] = set()
    for row in rows:
        final = row.final
        if final["state"] in OPEN:
            if final["policy_id"] in is_open:
                row.add_fault("state", "is that of another version of the policy, of which one is a draft or in review")
            is_open.add(final["policy_id"])
        is_hashed = final["content_sha256"] is not None and final["erased_at"] is None
        if row.changed and is_hashed and hash_of(row.after["content"]) != final["content_sha256"]:
            row.add_fault("content", "is not the text of which contentSha256 is the hash")


def begin_versions(unit: UnitOfWork, policy_ids: Collection[str]) -> None:
    """Give those of these policies that are approved or in review, and have no version, their first one.

    It says that it was imported, and not approved here.
    """
    for ids in batches(sorted(policy_ids)):
        for policy in unit.rows(_WITHOUT, {"ids": ids}):
            add_version(unit, policy, **imported(policy))


def imported(policy: Any) -> dict[str, Any]:
    """The first version of a policy that comes from elsewhere."""
    return {
        # Always the same, so that an upgrade and a load of the same policy make the same version.
        "id": f"imported-{sha256(policy.id.encode()).hexdigest()[:32]}",
        "number": number_of(policy.current_version),
        "state": policy.status if policy.status in ("IN_REVIEW", "PUBLISHED", "RETIRED") else "APPROVED",
        "is_imported": True,
        "content": policy.content,
        "content_sha256": hash_of(policy.content),
        "created_at": policy.updated_at,
        "approved_at": None if policy.status == "IN_REVIEW" else policy.last_approved_at,
    }


def number_of(version: str | None) -> int:
    """The number with which the name of a version begins, so that the next one is larger: 3 of `3.2`; else 1."""
    found = re.match(r"\d{1,9}", version or "", re.ASCII)
    return min(max(int(found[0]), 1), MAX_NUMBER - 1) if found else 1


_VERSION, _POLICY = sql_table(PolicyVersion), Policy.sql()
_WITHOUT = select(
    *(_POLICY.c.id, _POLICY.c.organization_id, _POLICY.c.title, _POLICY.c.content, _POLICY.c.status),
    *(_POLICY.c.current_version, _POLICY.c.last_approved_at, _POLICY.c.updated_at),
).where(
    _POLICY.c.id.in_(bindparam("ids", expanding=True)),
    _POLICY.c.status != FREE,
    ~select(_VERSION.c.id)
    .where(
        _VERSION.c.organization_id == _POLICY.c.organization_id,
        _VERSION.c.policy_id == _POLICY.c.id,
        _VERSION.c.is_imported | _VERSION.c.state.not_in(("DRAFT", "DISCARDED")),
    )
    .exists(),
)
