"""The pages of an entitlement review: its items with buttons for each decision, a table to upload, finishing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Outcome, Refusal, Upload
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.references import names_of
from normata.console.app.uploaded import UploadForm, endings_of, importing, upload_form
from normata.console.texts import counted, text
from normata.core.http.problems import InvalidRequest
from normata.entitlements.items import COLUMNS
from normata.entitlements.model import CHANGE, DECISIONS, KEEP, REMOVE
from normata.records.kinds import EntitlementReview

_IMPORT = "importEntitlementReviewItems"
_ON_PAGE = "50"
_FIRST = 10  # rows of a preview
_FAULTS = 50  # shown
_FILTERS = ("isOpen", "decision", "system")
_TONES = {KEEP: "full", CHANGE: "partial", REMOVE: "none"}


async def show(
    page_request: OrganizationRequest, refusal: Refusal | None = None, sent_form: Fields | None = None
) -> Response:
    """The items of a review that the address selects, and how far it is."""
    review_id, sent = page_request.param("id"), page_request.query
    listed = {"limit": _ON_PAGE} | {name: sent[name] for name in ("page", "cursor", *_FILTERS) if sent.get(name)}
    review, items, progress = await page_request.ask(
        ApiQuery("getEntitlementReview", id=review_id),
        ApiQuery("listEntitlementReviewItems", listed, review_id),
        ApiQuery("getEntitlementReviewProgress", id=review_id),
    )
    named = [("memberships", one["decidedById"]) for one in items["items"]]
    is_running = review["finishedAt"] is None and review["archivedAt"] is None
    return page_request.page(
        "app/entitlement_review.html",
        review=review,
        items=items,
        progress=progress,
        tones=_TONES,
        views=_views(page_request, progress),
        chosen=sent.get("system") or "",
        systems=[(one["system"], f"{one['system']} ({one['open']:,})") for one in progress["systems"]],
        others=[(name, sent[name]) for name in ("isOpen", "decision") if sent.get(name)],
        opened=next((one for one in items["items"] if one["id"] == sent.get("open")), None),
        typed={name: sent_form.get(name) if sent_form else "" for name in COLUMNS},
        here_with=page_request.here_with,
        can_decide=is_running and page_request.may("editor"),
        names=await names_of(page_request, [*named, ("memberships", review["coordinatorId"])]),
        refusal=refusal,
        status=200 if refusal is None else refusal.status,
    )


def _views(page_request: OrganizationRequest, progress: Mapping[str, Any]) -> list[tuple[str, str, int, bool]]:
    """The tabs: all items, the open ones, and those with each decision."""
    sent = page_request.query
    wanted: list[tuple[str, str | None, str | None]] = [("all", None, None), ("open", "true", None)]
    wanted += [(one, None, one) for one in DECISIONS]
    return [
        (
            text(f"entitlement_review.view.{key}"),
            page_request.link(isOpen=is_open, decision=decision, page=None, cursor=None, open=None),
            progress["total" if key == "all" else key.lower()],
            (sent.get("isOpen"), sent.get("decision")) == (is_open, decision),
        )
        for key, is_open, decision in wanted
    ]


async def change(page_request: OrganizationRequest) -> Response:
    """Decide about items, add or remove some, or finish the review, as the button says."""
    page_request.require("editor")
    form, review_id = await page_request.fields(), page_request.param("id")
    step, done = form.get("step"), ""
    if step == "add":
        body: Any = {name: form.get(name) for name in COLUMNS} | {"remark": form.get("remark") or None}
        outcome = await page_request.change("addEntitlementReviewItem", row_id=review_id, body=body)
        done = "entitlement_added"
    elif step == "remove":
        body = {"itemIds": form.all("selected")}
        outcome = await page_request.change("removeEntitlementReviewItems", row_id=review_id, body=body)
        done = "entitlements_removed"
    elif step == "finish":
        outcome = await page_request.change("finishEntitlementReview", row_id=review_id)
        done = "entitlement_review_finished"
    else:
        body = {"decisions": _decisions(form)}
        outcome = await page_request.change("decideEntitlementReviewItems", row_id=review_id, body=body)
    if outcome.refusal is not None:
        return await show(page_request, outcome.refusal, form if step == "add" else None)
    return page_request.back(form, page_request.path(EntitlementReview.path, review_id), done)


def _decisions(form: Fields) -> list[dict[str, Any]]:
    """What the pressed button decides: of the item that it names, or of all that are chosen. Raises InvalidRequest."""
    decision = next((one for one in DECISIONS if form.has(one)), form.get("step"))
    if decision not in DECISIONS:
        raise InvalidRequest(text("problem.form"))
    ids = [form.get(decision)] if form.has(decision) else list(dict.fromkeys(form.all("selected")))
    new = {"change": form.get("change")} if decision == CHANGE else {}
    return [{"itemId": item_id, "decision": decision, **new} for item_id in ids]


async def show_upload(page_request: OrganizationRequest) -> Response:
    """Show the form that takes a table."""
    return await _upload_page(page_request, UploadForm({}, None))


async def upload(page_request: OrganizationRequest) -> Response:
    """Preview what a table adds, or add it, as ``step`` says. A table that was not previewed is previewed first."""
    operation, review_id = importing(page_request, _IMPORT), page_request.param("id")
    form = await upload_form(page_request, operation)
    file = form.file
    if file is None or not file.media_type:
        endings = ", ".join(endings_of(operation))
        message = text("app.upload.no_file") if file is None else text("app.upload.unknown_type", endings=endings)
        refused = Refusal(400, "validation", text("app.upload.refused"), message, {"file": message})
        return await _upload_page(page_request, form, Outcome(None, refused))
    is_import = form.get("step") == "import" and form.get("previewed") == file.digest
    outcome = await page_request.change(
        _IMPORT, row_id=review_id, upload=Upload(file.media_type, file.content), dry_run=not is_import
    )
    if outcome.refusal is not None or not is_import:
        return await _upload_page(page_request, form, outcome)
    return page_request.go(page_request.path(EntitlementReview.path, review_id), "entitlements_added")


async def _upload_page(page_request: OrganizationRequest, form: UploadForm, outcome: Outcome | None = None) -> Response:
    review = await page_request.ask_one(ApiQuery("getEntitlementReview", id=page_request.param("id")))
    refusal, in_rows = (None, []) if outcome is None else _by_row(outcome.refusal)
    preview = None
    if outcome is not None and outcome.answer is not None:
        items = outcome.answer["answer"]["items"]
        preview = {"items": items[:_FIRST], "total": len(items), "systems": Counter(one["system"] for one in items)}
    return page_request.page(
        "app/entitlement_upload.html",
        status=refusal.status if refusal else 200,
        review=review,
        sent=form,
        columns=COLUMNS,
        endings=endings_of(importing(page_request, _IMPORT)),
        preview=preview,
        in_rows=in_rows,
        more=counted("entitlement_review.more", preview["total"] - _FIRST)
        if preview and preview["total"] > _FIRST
        else "",
        refusal=refusal,
    )


def _by_row(refusal: Refusal | None) -> tuple[Refusal | None, list[str]]:
    """A refusal, and the faults of the rows of its table, with the number of the row and the column."""
    if refusal is None:
        return None, []
    of_rows = {name: message for name, message in refusal.faults.items() if name.startswith("rows/")}
    words = []
    for name, message in of_rows.items():
        row, _, column = name.removeprefix("rows/").partition("/")
        place = f"{row}, {column}" if column else row
        words.append(text("entitlement_review.fault", place=place, message=message))
    others = {name: message for name, message in refusal.faults.items() if name not in of_rows}
    detail = counted("entitlement_review.faults", len(words)) if words else refusal.detail
    return replace(refusal, faults=others, detail=detail), words[:_FAULTS]
