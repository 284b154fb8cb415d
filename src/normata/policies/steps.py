"""The steps of a policy: submitted, withdrawn, approved, rejected, published, reviewed, retired.

Each locks the policy first, so that of two at once one succeeds, and is one event, which has the number of the version
and the hash of its text. Until the first approval the text is that of the policy itself, later that of its draft.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select

from normata.core.changes.jobs import JOB_WRITES, schedule
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.roles import AUDITOR
from normata.core.schema.table import sql_table
from normata.errors import Archived, Forbidden, NoApprover, WrongState, WrongVersion
from normata.identity.authority import own_membership, require_role
from normata.identity.memberships import is_out
from normata.identity.model import Membership, Organization, User
from normata.policies.authors import is_by_own_program, last_editor
from normata.policies.model import ACKNOWLEDGING_ROLES, APPROVED
from normata.policies.reviews import reviewed
from normata.policies.rules import FREE, REVIEW
from normata.policies.versions import (
    POLICY_WRITES,
    VERSION_WRITES,
    Versions,
    add_version,
    change_policy,
    change_version,
    hash_of,
    text_of,
)
from normata.records.kinds import Policy
from normata.records.lookup import found_for_change

STEP_WRITES = (*POLICY_WRITES, *VERSION_WRITES)
PUBLICATION_WRITES = (*STEP_WRITES, *JOB_WRITES)
ACKNOWLEDGEMENTS = "acknowledgements"  # the job that asks members to acknowledge a version, by its id

_NOBODY = "A policy is reviewed by a member, and not by a service account."
_NOT_APPROVER = "Only the approver of the policy can do this."
_OWN_WORK = (
    "Who submitted or last edited the text, also by a service account or token of theirs, cannot approve it, unless the"
    " organization allows it (`allowsSelfApproval`)."
)


class Found(NamedTuple):
    """A live policy, locked, and its versions."""

    policy: Any
    versions: Versions

    @property
    def is_free(self) -> bool:
        """Whether the text that is to be approved is that of the policy itself."""
        return self.policy.status in (FREE, REVIEW)

    @property
    def state(self) -> str:
        """The state of what a step is about: of the open version, else of the policy."""
        draft = self.versions.open
        return str(self.policy.status if self.is_free or draft is None else draft.state)

    def in_review(self, number: int | None = None) -> Any:
        """The version in review, which must be ``number`` if that is given. Raises WrongState and WrongVersion."""
        version = self.versions.open
        if version is None or version.state != REVIEW:
            raise WrongState(self.state, (REVIEW,))
        if number not in (None, version.number):
            raise WrongVersion(version.number)
        return version


def found_policy(unit: UnitOfWork, policy_id: str) -> Found:
    """A live policy. Raises NotFound, InsufficientRole and Archived."""
    policy = found_for_change(unit, Policy, policy_id)
    if policy.archived_at is not None:
        raise Archived
    return Found(policy, Versions(unit, policy))


def submit(unit: UnitOfWork, policy_id: str) -> Any:
    """Submit the draft to the approver, which freezes its text, and return the policy.

    Raises what :func:`found_policy` raises, WrongState and NoApprover.
    """
    found = found_policy(unit, policy_id)
    policy, versions = found
    draft = versions.open
    if (policy.status if found.is_free else getattr(draft, "state", policy.status)) != FREE:
        raise WrongState(found.state, (FREE,))
    if not _can_approve(unit, policy):
        raise NoApprover
    content = policy.content if found.is_free else text_of(unit, draft)
    values = {
        "number": versions.next_number,
        "state": REVIEW,
        "title": policy.title,
        "content": content,
        "content_sha256": hash_of(content),
        "submitted_by_id": own_membership(unit, policy.organization_id),
        "submitted_at": unit.moment,
        "reason": None,
    }
    if found.is_free:
        values["edited_by_id"] = last_editor(unit, policy)
    version = add_version(unit, policy, **values) if draft is None else change_version(unit, draft, **values)
    return change_policy(unit, "submit", policy, version, {"status": REVIEW} if found.is_free else {})


def withdraw(unit: UnitOfWork, policy_id: str) -> Any:
    """Take a submitted text back into the draft, and return the policy.

    Raises what :func:`found_policy` raises, and WrongState.
    """
    found = found_policy(unit, policy_id)
    open_version = found.versions.open
    if found.policy.status == REVIEW and (open_version is None or open_version.state != REVIEW):
        # It was loaded, or written by the previous version, without a version of its own.
        return change_policy(unit, "withdraw", found.policy, values={"status": FREE})
    return _free(unit, "withdraw", found, found.in_review())


def reject(unit: UnitOfWork, policy_id: str, number: int, reason: str) -> Any:
    """Reject the version in review, as the approver, for a reason, and return the policy.

    Raises what :func:`found_policy` raises, Forbidden, WrongState and WrongVersion.
    """
    found = found_policy(unit, policy_id)
    _require_approver(unit, found.policy)
    return _free(unit, "reject", found, found.in_review(number), reason=reason)


def approve(unit: UnitOfWork, policy_id: str, number: int) -> Any:
    """Approve the version in review, as the approver, and return the policy.

    Raises what :func:`found_policy` raises, Forbidden, WrongState and WrongVersion.
    """
    found = found_policy(unit, policy_id)
    own = _require_approver(unit, found.policy)
    version = found.in_review(number)
    if not _allows_self_approval(unit, found.policy):
        since = max((one.approved_at for one in found.versions.all(*APPROVED) if one.approved_at), default="")
        if own in (version.submitted_by_id, version.edited_by_id) or is_by_own_program(unit, found.policy, since):
            raise Forbidden(_OWN_WORK)
    for earlier in found.versions.all("APPROVED"):
        change_version(unit, earlier, state="SUPERSEDED", superseded_at=unit.moment)
    version = change_version(unit, version, state="APPROVED", approved_at=unit.moment, approved_by_id=own)
    # The published version stays in force until this one is published.
    in_force = {} if found.versions.all("PUBLISHED") else _in_force(unit, version, "APPROVED")
    return change_policy(unit, "approve", found.policy, version, in_force)


def publish(unit: UnitOfWork, policy_id: str, acknowledging_roles: Sequence[str] = ACKNOWLEDGING_ROLES) -> Any:
    """Publish the approved version, which replaces the published one, and return the policy.

    A job asks the members with the roles ``acknowledging_roles`` to acknowledge it. The publication is a review: the
    next one is due after the same interval. Raises what :func:`found_policy` raises, and WrongState.
    """
    found = found_policy(unit, policy_id)
    version = found.versions.last("APPROVED")
    if version is None:
        raise WrongState(found.state, ("APPROVED",))
    for earlier in found.versions.all("PUBLISHED"):
        change_version(unit, earlier, state="SUPERSEDED", superseded_at=unit.moment)
    values = {"state": "PUBLISHED", "published_at": unit.moment, "acknowledging_roles": list(acknowledging_roles)}
    version = change_version(unit, version, **values)
    if acknowledging_roles:
        schedule(unit, ACKNOWLEDGEMENTS, version.organization_id, version.id, unit.moment)
    in_force = {**_in_force(unit, version, "PUBLISHED"), **reviewed(found.policy, unit.moment)}
    return change_policy(unit, "publish", found.policy, version, in_force)


def review(unit: UnitOfWork, policy_id: str, note: str | None = None) -> Any:
    """Record that the version in force was reviewed and stays, as the approver or an admin, and return the policy.

    The next review is due after the same interval. ``note`` is what there is to say about it. Raises what
    :func:`found_policy` raises, Forbidden for a service account, and WrongState.
    """
    found = found_policy(unit, policy_id)
    own = own_membership(unit, found.policy.organization_id)
    if own is None:
        raise Forbidden(_NOBODY)
    if own != found.policy.approver_id:
        require_role(unit, found.policy.organization_id, "admin")
    version = found.versions.last("PUBLISHED") or found.versions.last("APPROVED")
    if version is None:
        raise WrongState(found.state, ("APPROVED", "PUBLISHED"))
    values = reviewed(found.policy, unit.moment)
    return change_policy(unit, "review", found.policy, version, values, reason=note)


def retire(unit: UnitOfWork, policy_id: str) -> Any:
    """End the version in force, and return the policy. A draft stays.

    Raises what :func:`found_policy` raises, and WrongState.
    """
    found = found_policy(unit, policy_id)
    version = found.versions.last("PUBLISHED") or found.versions.last("APPROVED")
    if version is None or found.state == REVIEW:
        raise WrongState(found.state, ("APPROVED", "PUBLISHED"))
    for one in found.versions.all("PUBLISHED", "APPROVED"):
        state = "RETIRED" if one.id == version.id else "SUPERSEDED"
        change_version(unit, one, state=state, superseded_at=unit.moment)
    return change_policy(unit, "retire", found.policy, version, {"status": "RETIRED"})


def _free(unit: UnitOfWork, action: str, found: Found, version: Any, reason: str | None = None) -> Any:
    """Make what is in review a draft again. Before the first approval, its text is that of the policy itself."""
    own: dict[str, Any] = {"content": None, "content_sha256": None} if found.is_free else {}
    change_version(unit, version, state=FREE, reason=reason, **own)
    return change_policy(unit, action, found.policy, version, {"status": FREE} if found.is_free else {}, reason=reason)


def _in_force(unit: UnitOfWork, version: Any, status: str) -> Mapping[str, Any]:
    """What a policy has of the version in force."""
    found = {"status": status, "content": text_of(unit, version)}
    if version.is_imported:  # its number and its approval are as they were loaded
        return found
    name = None if version.approved_by_id is None else unit.scalar(_NAME, {"member": version.approved_by_id})
    approval = {"last_approved_at": version.approved_at, "last_approved_by": name}
    return found | {"current_version": str(version.number)} | approval


def _can_approve(unit: UnitOfWork, policy: Any) -> bool:
    """Whether the approver is a person and a member, who may change something."""
    if policy.approver_id is None:
        return False
    member: Any = unit.row(_APPROVER, {"organization": policy.organization_id, "member": policy.approver_id})
    return member is not None and not is_out(member, unit.moment) and member.role != AUDITOR


def _require_approver(unit: UnitOfWork, policy: Any) -> str:
    """The membership of the actor, who must be the approver. Raises Forbidden."""
    own = own_membership(unit, policy.organization_id)
    if own is None or own != policy.approver_id:
        raise Forbidden(_NOT_APPROVER)
    return own


def _allows_self_approval(unit: UnitOfWork, policy: Any) -> bool:
    return bool(unit.scalar(_ALLOWS, {"organization": policy.organization_id}))


_MEMBER, _USER, _ORGANIZATION = (sql_table(one) for one in (Membership, User, Organization))
_APPROVER = (
    select(_MEMBER.c.role, _MEMBER.c.removed_at, _MEMBER.c.expires_at)
    .join(_USER, _USER.c.id == _MEMBER.c.user_id)
    .where(
        _MEMBER.c.organization_id == bindparam("organization"),
        _MEMBER.c.id == bindparam("member"),
        _USER.c.organization_id.is_(None),
    )
)
_NAME = select(_USER.c.name).join(_MEMBER, _MEMBER.c.user_id == _USER.c.id).where(_MEMBER.c.id == bindparam("member"))
_ALLOWS = select(_ORGANIZATION.c.allows_self_approval).where(_ORGANIZATION.c.id == bindparam("organization"))
