"""The steps of a policy, the page on which its next text is written, and that of its versions."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json
from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal, tag_of
from normata.console.app.downloads import download_report
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records import details
from normata.console.app.records.editing import sent_form
from normata.console.app.records.forms import AS_JSON, AS_TEXT
from normata.console.app.records.kinds import kind_names
from normata.console.app.records.references import names_of
from normata.console.markdown import markdown
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.records.kinds import Policy

_STEPS = {
    "submit": "submitPolicy",
    "withdraw": "withdrawPolicy",
    "approve": "approvePolicy",
    "reject": "rejectPolicy",
    "publish": "publishPolicy",
    "review": "reviewPolicy",
    "retire": "retirePolicy",
    "acknowledge": "acknowledgePolicy",
    "remind": "remindOfPolicy",
}
_FREE = "DRAFT"  # the status of a policy whose own text is still to be approved
_OF_VERSION = ("approve", "reject", "acknowledge")
_NAMED = (*_OF_VERSION, "review")  # whatever the role
_MOST = "20"  # versions on a page


async def take_step(page_request: OrganizationRequest) -> Response:
    """Take the step of a policy that ``step`` names."""
    form, policy_id = await page_request.fields(), page_request.param("id")
    step = form.get("step")
    if step not in _NAMED:
        page_request.require("editor")
    if step not in _STEPS:
        raise InvalidRequest(text("problem.form"))
    body: dict[str, Any] | None = None
    if step in _OF_VERSION:
        if re.fullmatch(r"[0-9]{1,18}", form.get("version")) is None:
            raise InvalidRequest(text("problem.form"))
        body = {"version": int(form.get("version"))} | ({"reason": form.get("reason")} if step == "reject" else {})
    elif step == "review":
        body = {"note": form.get("note") or None}
    elif step == "publish" and form.has("asks"):
        body = {"acknowledgingRoles": form.all("roles")}
    outcome = await page_request.change(_STEPS[step], row_id=policy_id, body=body)
    if outcome.refusal is not None:
        return await details.show_one(page_request, outcome.refusal, kind=Policy)
    return page_request.go(page_request.path("records", Policy.path, policy_id), f"policy_{step}")


async def show_draft(page_request: OrganizationRequest) -> Response:
    """The page on which the next text is written."""
    return await _draft_page(page_request)


async def write_draft(page_request: OrganizationRequest) -> Response:
    """Store the next text, show how it will look, or remove it, as ``step`` says."""
    form, policy_id = await sent_form(page_request), page_request.param("id")
    step = form.get("step")
    if step == "discard":
        outcome = await page_request.change("discardPolicyDraft", row_id=policy_id)
        if outcome.refusal is not None:
            return await _draft_page(page_request, refusal=outcome.refusal)
        return page_request.go(page_request.path("records", Policy.path, policy_id), "policy_discard")
    try:
        content = _entered(form)
    except ValueError as error:
        refusal = Refusal(400, "validation", text("record.not_valid"), text("record.no_json", reason=str(error)))
        return await _draft_page(page_request, form, refusal)
    if step == "preview" or form.has("again"):
        return await _draft_page(page_request, form)
    policy = await page_request.ask_one(ApiQuery("getPolicy", id=policy_id))
    operation = "changePolicy" if policy["status"] == _FREE else "putPolicyDraft"
    outcome = await page_request.change(
        operation, row_id=policy_id, body={"content": content}, if_match=form.get("tag")
    )
    if outcome.refusal is not None:
        return await _draft_page(page_request, form, outcome.refusal)
    return page_request.go(page_request.path("records", Policy.path, policy_id), "policy_draft")


def _entered(form: Fields) -> Any:
    """The text in a form. Raises ValueError if it is not the JSON that it says it is, by the limits of the API."""
    written = form.get("content").replace("\r\n", "\n")
    return from_json(written, allow_inf_nan=False) if form.get("as.content") == AS_JSON else written


async def _draft_page(
    page_request: OrganizationRequest, form: Fields | None = None, refusal: Refusal | None = None
) -> Response:
    policy_id = page_request.param("id")
    policy = await page_request.ask_one(ApiQuery("getPolicy", id=policy_id))
    drafts = await page_request.ask_if_there(ApiQuery("getPolicyDraft", id=policy_id))
    draft = drafts[0] if drafts else None
    since = None
    if draft is not None and policy["status"] not in (_FREE, "IN_REVIEW"):
        since = (await page_request.ask_one(ApiQuery("getPolicyChanges", id=policy_id)))["since"]
    shown, written = _written(policy if draft is None else draft)
    if form is not None:
        shown, written = form.get("content"), form.get("as.content", AS_TEXT)
    changed = policy if policy["status"] == _FREE else draft
    return page_request.page(
        "app/policy_draft.html",
        status=refusal.status if refusal else 200,
        kind=kind_names(Policy),
        policy=policy,
        draft=draft,
        content=shown,
        written=written,
        tag=form.get("tag") if form else tag_of(changed) if changed else "",
        preview=await asyncio.to_thread(markdown, shown) if written == AS_TEXT else None,
        since=since,
        refusal=refusal,
    )


def _written(row: Mapping[str, Any]) -> tuple[str, str]:
    """The text of a row as it is edited, and whether that is text or JSON."""
    content = row["content"]
    if content is None or isinstance(content, str):
        return content or "", AS_TEXT
    return json.dumps(content, ensure_ascii=False, indent=2), AS_JSON


async def show_acknowledgements(page_request: OrganizationRequest) -> Response:
    """Who has acknowledged the published version of a policy, and who has not."""
    policy_id, state = page_request.param("id"), page_request.query.get("state")
    chosen = {"state": state} if state in ("DONE", "OPEN") else {}
    policy, members = await page_request.ask(
        ApiQuery("getPolicy", id=policy_id),
        ApiQuery("listPolicyAcknowledgements", {**chosen, **page_request.place}, policy_id),
    )
    choices = [
        (
            text(f"policy.acknowledged.{one or 'all'}"),
            page_request.link(state=one, page=None),
            (one or None) == chosen.get("state"),
        )
        for one in (None, "OPEN", "DONE")
    ]
    return page_request.page(
        "app/policy_acknowledgements.html", kind=kind_names(Policy), policy=policy, members=members, choices=choices
    )


async def show_versions(page_request: OrganizationRequest) -> Response:
    """The approved versions of a policy: who approved each, what it changed, and its text."""
    policy_id = page_request.param("id")
    policy, versions = await page_request.ask(
        ApiQuery("getPolicy", id=policy_id),
        ApiQuery("listPolicyVersions", {"limit": _MOST, **page_request.place}, policy_id),
    )
    people = ("submittedById", "approvedById")
    names = await names_of(page_request, [("memberships", one[who]) for one in versions["items"] for who in people])
    return page_request.page(
        "app/policy_versions.html",
        kind=kind_names(Policy),
        policy=policy,
        versions=versions,
        names=names,
        texts={one["id"]: markdown(_written(one)[0]) for one in versions["items"]},
    )


async def document_file(page_request: OrganizationRequest) -> Response:
    """A version of a policy as a PDF to download."""
    return await download_report(
        page_request, "getPolicyDocument", page_request.param("id"), version=page_request.query.get("version", "")
    )
