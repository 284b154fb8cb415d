"""Where a policy stands on its way from the draft to the version in force, and which steps the member can take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.paper import Paper, paper_of
from normata.console.app.records.references import Named, names_of
from normata.console.texts import text
from normata.records.kinds import Policy
from normata.reports.pdf import is_installed

_SHOWN = "5"  # versions on the page of a policy
_URGENT = ("approve", "acknowledge", "publish", "submit")
_IN_FORCE = ("APPROVED", "PUBLISHED")


class Way(NamedTuple):
    """A step of the way to the version in force: its name, who has taken it or is to take it, and when."""

    name: str
    state: str
    who: str
    at: str | None


class Approval(NamedTuple):
    """Where a policy stands: the ``state`` of its newest text, and the ``draft`` unless that is approved.

    ``steps`` are those that the member can take now, ``edits`` is true if they can write the text that comes next.
    ``requested`` and ``done`` count who is asked to acknowledge the published version, ``in_force``, and who has;
    ``missing`` are some of those who have not. ``paper`` is the text that is shown, ``names`` are those of people.
    ``prints`` is true if this installation makes PDFs.
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
    paper: Paper
    way: Sequence[Way]
    names: Named
    prints: bool

    @property
    def next(self) -> str | None:
        """The step that the member is most likely to take now; null if only others are possible."""
        return next((step for step in _URGENT if step in self.steps), None)


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
    is_in_force = any(one["state"] in _IN_FORCE for one in found)
    is_approver = organization["memberId"] == policy["approverId"]
    steps: set[str] = set()
    if page_request.may("editor") and is_live:
        submits = {"submit"} if policy["approverId"] else set[str]()
        steps |= {"DRAFT": submits, "IN_REVIEW": {"withdraw"}}.get(state, set())
        steps |= {"publish"} if any(one["state"] == "APPROVED" for one in found) else set()
        steps |= {"retire"} if is_in_force and state != "IN_REVIEW" else set()
        steps |= {"remind"} if missing["total"] else set()
    if is_in_force and is_live and (is_approver or page_request.may("admin")):
        steps.add("review")
    if state == "IN_REVIEW" and is_live and is_approver:
        steps |= {"approve", "reject"}
    if is_live and mine["items"]:
        steps.add("acknowledge")
    newest_text = draft if draft is not None and draft["number"] is not None else next(iter(found), None)
    people = [policy["approverId"]]
    people += [one[who] for one in (newest_text, *found) if one for who in _PEOPLE if one.get(who)]
    names = await names_of(page_request, [("memberships", one) for one in people])
    done = everybody["total"] - missing["total"]
    return Approval(
        state,
        draft,
        found,
        frozenset(steps),
        page_request.may("editor") and is_live and state != "IN_REVIEW",
        everybody["version"],
        everybody["total"],
        done,
        missing["items"],
        await paper_of(page_request, policy, draft, found, is_to_approve="approve" in steps),
        list(_way(policy, state, newest_text, names, (done, everybody["total"]))),
        names,
        is_installed(),
    )


_PEOPLE = ("editedById", "submittedById", "approvedById")


def _way(
    policy: Mapping[str, Any], state: str, text_of: Mapping[str, Any] | None, names: Named, counts: tuple[int, int]
) -> Iterator[Way]:
    """The steps of the newest text of a policy, each with who has taken it, and when."""
    reached = {"DRAFT": 0, "IN_REVIEW": 2, "APPROVED": 3}.get(state, 4)
    known = text_of or {}
    done, requested = counts

    def named(who: str | None) -> str:
        found = names.get(("memberships", who or ""))
        return "" if found is None else found.words

    parts = (
        ("draft", named(known.get("editedById")), known.get("createdAt")),
        ("submit", named(known.get("submittedById")), known.get("submittedAt")),
        ("approve", named(known.get("approvedById") or policy["approverId"]), known.get("approvedAt")),
        ("publish", "", known.get("publishedAt")),
    )
    for place, (name, who, at) in enumerate(parts):
        is_done = place < reached
        yield Way(name, "done" if is_done else "now" if place == reached else "", who, at if is_done else None)
    if state == "PUBLISHED" and requested:
        yield Way(
            "acknowledge",
            "done" if done == requested else "now",
            text("policy.done_of", done=done, requested=requested),
            None,
        )


def unwritten(page_request: OrganizationRequest, record: Mapping[str, Any] | None) -> frozenset[str]:
    """The fields of a policy that the form leaves out: the member cannot change them, or not there."""
    approver = frozenset[str]() if page_request.may("admin") else frozenset({"approverId"})
    if record is None or record["status"] == "DRAFT":
        return approver
    return approver | {"content"} | ({"approverId", "title"} if record["status"] == "IN_REVIEW" else set())


def hidden_fields(page_request: OrganizationRequest, path: str, record: Mapping[str, Any] | None) -> frozenset[str]:
    """The same for a record of any kind, by the path of the kind."""
    return unwritten(page_request, record) if path == Policy.path else frozenset()
