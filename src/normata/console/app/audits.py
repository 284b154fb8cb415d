"""The audit programme, and the checklist of an audit: results, notes, findings of rows, and the report."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from starlette.responses import Response

from normata.audits.model import CONFORMING, NONCONFORMING, NOT_APPLICABLE, NOT_CHECKED, OBSERVATION, STATUSES
from normata.audits.report_operation import FORMATS
from normata.audits.rows import FINDING_TYPES, to_member
from normata.console.app.api_calls import ApiQuery, Fields, Outcome, Refusal
from normata.console.app.downloads import download_report
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import PEOPLE, with_all
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.core.http.roles import AUDITOR
from normata.records.kinds import Audit

_ON_PAGE = "50"
_TONES = {CONFORMING: "full", OBSERVATION: "partial", NONCONFORMING: "none", NOT_APPLICABLE: "out", NOT_CHECKED: ""}
RESULTS = tuple(status for status in reversed(STATUSES) if status != NOT_CHECKED)
_STATES = {"RUNNING": "info", "PLANNED": "out", "ENDED": "full"}
_ONE_CLICK = RESULTS[1:]  # set in one click from the list; all of them where a row is open


async def show(page_request: OrganizationRequest, refusal: Refusal | None = None) -> Response:
    """The checklist of an audit by framework and group; one row is open for a note or a finding."""
    audit_id, sent = page_request.param("id"), page_request.query
    listed = {name: sent[name] for name in ("status", "page", "cursor") if sent.get(name)}
    can_check = page_request.may("editor")
    more = (
        [ApiQuery("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}), PEOPLE] if can_check else []
    )
    audit, items, *choices = await page_request.ask(
        ApiQuery("getAudit", id=audit_id),
        ApiQuery("listAuditChecklist", {"limit": _ON_PAGE, **listed}, audit_id),
        *more,
    )
    can_check = can_check and audit["archivedAt"] is None
    counts = items["counts"]
    total = sum(counts.values())
    opened = sent.get("open", "")
    row = await page_request.ask_one(ApiQuery("getChecklistRow", id=opened)) if opened and can_check else None
    members = await with_all(page_request, choices[1]) if row is not None and choices else {"items": []}
    return page_request.page(
        "app/audit_checklist.html",
        audit=audit,
        items=items,
        groups=[(title, list(rows)) for title, rows in groupby(items["items"], _title)],
        parts=[(tone, text(f"audit.result.{status}"), counts[to_member(status)]) for status, tone in _TONES.items()],
        total=total,
        checked=total - counts[to_member(NOT_CHECKED)],
        views=[
            (text("audit.all"), page_request.link(status=None, page=None), total, not sent.get("status")),
            *(
                (
                    text(f"audit.result.{status}"),
                    page_request.link(status=status, page=None),
                    counts[to_member(status)],
                    sent.get("status") == status,
                )
                for status in STATUSES
            ),
        ],
        opened=row,
        here_with=page_request.here_with,
        one_click=_ONE_CLICK,
        results=RESULTS,
        not_checked=NOT_CHECKED,
        types=FINDING_TYPES,
        frameworks=[(one["id"], one["name"]) for one in choices[0]["items"]] if choices else [],
        people=[
            (one["id"], one["name"])
            for one in members["items"]
            if one["removedAt"] is None and one["role"] != AUDITOR and not one["isServiceAccount"]
        ],
        formats=[name for name, one in FORMATS.by_name.items() if one.is_there()],
        can_check=can_check,
        refusal=refusal,
        status=200 if refusal is None else refusal.status,
    )


def _title(row: Any) -> str:
    """What rows stand below: their framework and the group in it, or that they are policies."""
    group = row["group"]
    if group is None:
        return text("audit.policies") if row["about"]["kind"] != "controls" else text("audit.gone")
    return " · ".join(part for part in (group["framework"], group["identifier"], group["name"]) if part)


async def show_programme(page_request: OrganizationRequest) -> Response:
    """The audit programme: those that run, those that are planned, those that have ended."""
    sent = page_request.query
    listed = {name: sent[name] for name in ("state", "page", "cursor") if sent.get(name)}
    found = await page_request.ask_one(ApiQuery("listAuditProgramme", {"limit": _ON_PAGE, **listed}))
    return page_request.page(
        "app/audit_programme.html",
        programme=found,
        tones=_STATES,
        views=[
            (
                text(f"audit.state.{state or 'all'}"),
                page_request.link(state=state, page=None, cursor=None),
                None,
                sent.get("state", "") == (state or ""),
            )
            for state in (None, *_STATES)
        ],
        bars={
            one["id"]: [(tone, one["counts"][to_member(status)]) for status, tone in _TONES.items()]
            for one in found["items"]
        },
    )


async def change(page_request: OrganizationRequest) -> Response:
    """Bring a framework into scope, make the checklist, check a row or make a finding of it, as ``step`` says."""
    page_request.require("editor")
    form, audit_id = await page_request.fields(), page_request.param("id")
    step = form.get("step")
    if form.get("status") and not form.has("row"):
        body: dict[str, Any] = {"rows": [{"id": one, "status": form.get("status")} for one in form.all("selected")]}
        outcome, done = await page_request.change("checkAuditRows", row_id=audit_id, body=body), "rows_checked"
    elif form.get("status"):
        outcome, done = await _check(page_request, form), ""
    elif step == "note":
        note = {"note": form.get("note") or None}
        outcome, done = await page_request.change("checkRow", row_id=form.get("row"), body=note), "row_noted"
    elif step == "find":
        sent = {"name": "name", "type": "type", "findings": "findings", "ownerId": "owner"}
        body = {name: form.get(field) for name, field in sent.items() if form.get(field)}
        outcome, done = await page_request.change("makeFindingOfRow", row_id=form.get("row"), body=body), "row_found"
    elif step in {"make", "scope"}:
        outcome, done = await _plan(page_request, audit_id, form), "checklist_made"
    else:
        raise InvalidRequest(text("problem.form"))
    if outcome.refusal is not None:
        return await show(page_request, outcome.refusal)
    return page_request.back(form, page_request.path(Audit.path, audit_id), done)


async def _check(page_request: OrganizationRequest, form: Fields) -> Outcome:
    body: dict[str, Any] = {"status": form.get("status")}
    if form.has("note"):
        body["note"] = form.get("note") or None
    return await page_request.change("checkRow", row_id=form.get("row"), body=body)


async def _plan(page_request: OrganizationRequest, audit_id: str, form: Fields) -> Outcome:
    if form.get("step") == "scope":
        body = {"frameworkId": form.get("framework")}
        outcome = await page_request.change("bringIntoAuditScope", row_id=audit_id, body=body)
        if outcome.refusal is not None:
            return outcome
    return await page_request.change("makeAuditChecklist", row_id=audit_id)


async def report_file(page_request: OrganizationRequest) -> Response:
    """The report of an audit as a file to download."""
    return await download_report(page_request, "getAuditReport", page_request.param("id"))
