"""Where a policy stands on its way from the draft to the version in force, and which steps the member can take."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.differences import Piece, difference_as_read
from normata.console.filters import as_json
from normata.console.markdown import markdown
from normata.records.kinds import Policy

_SHOWN = "5"  # versions on the page of a policy
_URGENT = ("approve", "acknowledge", "publish", "submit")


class Approval(NamedTuple):
    """The newest text of a policy: its ``state``, and the ``draft`` unless that is approved.

    ``steps`` are those that the member can take now, ``edits`` is true if they can write the next draft. ``requested``
    and ``done`` count who is asked to acknowledge the published version, ``in_force``, and who has; ``missing`` are
    some of those who have not. ``changes`` are how a draft in review differs from the text in force.
    """

    state: str
    draft: Mapping[str, Any] | None
    versions: Sequence[Mapping[str, Any]]
    steps: frozenset[str]
    edits: bool
    in_force: int | None
    requested: int
    done: int
    missing: Sequence[Mapping[str, Any]]
    changes: Sequence[Piece]

    @property
    def next(self) -> str | None:
        """The step that the member is most likely to take now; null if only others are possible."""
        return next((step for step in _URGENT if step in self.steps), None)

    @property
    def text(self) -> Markup:
        """The text of the draft, as people read it."""
        content = None if self.draft is None else self.draft["content"]
        return markdown(content if isinstance(content, str) else as_json(content))

    @property
    def reached(self) -> int:
        """How many of draft, review, approval and publication are done."""
        return {"DRAFT": 0, "IN_REVIEW": 1, "APPROVED": 2}.get(self.state, 4)


async def approval_of(page_request: OrganizationRequest, policy: Mapping[str, Any]) -> Approval:
    """Where a policy stands, and what the member can do."""
    drafts = await page_request.ask_if_there(ApiQuery("getPolicyDraft", id=policy["id"]))
    versions, organization, everybody, missing = await page_request.ask(
        ApiQuery("listPolicyVersions", {"limit": _SHOWN}, policy["id"]),
        ApiQuery("getOrganization", id=page_request.membership.organization_id),
        ApiQuery("listPolicyAcknowledgements", {"limit": _SHOWN}, policy["id"]),
        ApiQuery("listPolicyAcknowledgements", {"limit": _SHOWN, "state": "OPEN"}, policy["id"]),
    )
    own = {"memberId": organization["memberId"], "state": "OPEN"}
    mine = await page_request.ask_one(ApiQuery("listPolicyAcknowledgements", own, policy["id"]))
    found, draft = versions["items"], drafts[0] if drafts else None
    newest = found[0]["state"] if found else policy["status"]
    state = newest if draft is None else draft["state"]
    is_live = policy["archivedAt"] is None
    steps: set[str] = set()
    if page_request.may("editor") and is_live:
        steps |= {"DRAFT": {"submit"}, "IN_REVIEW": {"withdraw"}}.get(state, set())
        steps |= {"publish"} if any(one["state"] == "APPROVED" for one in found) else set()
        is_in_force = any(one["state"] in ("APPROVED", "PUBLISHED") for one in found)
        steps |= {"retire"} if is_in_force and state != "IN_REVIEW" else set()
    if state == "IN_REVIEW" and is_live and organization["memberId"] == policy["approverId"]:
        steps |= {"approve", "reject"}
    if is_live and mine["items"]:
        steps.add("acknowledge")
    writes = page_request.may("editor") and is_live and state != "IN_REVIEW"
    return Approval(
        state,
        draft,
        found,
        frozenset(steps),
        writes and policy["status"] not in ("DRAFT", "IN_REVIEW"),
        everybody["version"],
        everybody["total"],
        everybody["total"] - missing["total"],
        missing["items"],
        await _changes(policy, draft),
    )


async def _changes(policy: Mapping[str, Any], draft: Mapping[str, Any] | None) -> Sequence[Piece]:
    """How a draft in review differs from the text in force; empty if there is none, or one of them is no text."""
    if draft is None or draft["state"] != "IN_REVIEW" or policy["status"] == "IN_REVIEW":
        return ()
    before, after = policy["content"], draft["content"]
    if not isinstance(before, str) or not isinstance(after, str):
        return ()
    return await asyncio.to_thread(difference_as_read, before, after)


def unwritten(page_request: OrganizationRequest, record: Mapping[str, Any] | None) -> frozenset[str]:
    """The fields of a policy that the form leaves out: the member cannot change them, or not there."""
    approver = frozenset[str]() if page_request.may("admin") else frozenset({"approverId"})
    if record is None or record["status"] == "DRAFT":
        return approver
    return approver | {"content"} | ({"approverId"} if record["status"] == "IN_REVIEW" else set())


def hidden_fields(page_request: OrganizationRequest, path: str, record: Mapping[str, Any] | None) -> frozenset[str]:
    """The same for a record of any kind, by the path of the kind."""
    return unwritten(page_request, record) if path == Policy.path else frozenset()
