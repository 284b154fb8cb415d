"""Forms that assess one control, or all selected ones with a preview of the effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, FilledFrom, tag_of
from normata.console.app.controls import Origin, control_page
from normata.console.app.notes import assessed_notice
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.undo import without_selection
from normata.core.http.problems import InvalidRequest

_ONE = "assessments/0"
_NOT_ASSESSED = "-"  # the value of a radio button; an empty value leaves the status unchanged
_UNDO_REFUSED = {"nothing_to_undo": "nothing_to_undo", "in_use": "undo_in_use"}  # error codes, and their texts
_FEW = 5  # requirements that one sentence lists
_EXPLAINED = 50  # controls of which a preview says why they do not apply
EXCLUDED = "EXCLUDED"  # in the field of the status: the control does not apply


async def assess_one(page_request: OrganizationRequest) -> Response:
    """Assess one control, or clear its assessment. Fields that are missing in the form stay unchanged.

    ``step`` is ``take_back`` to clear the assessment.
    """
    form, control_id = await page_request.fields(), page_request.param("id")
    if form.has("again"):  # they had to sign in again before they could save
        page_request.require("editor")
        typed = assessment_from(form)
        return await control_page(page_request, control_id, typed=typed, again=form, origin=_origin(form))
    filled_from = filled_from_of(form, control_id)
    if form.get("step") == "take_back":
        outcome = await page_request.change("clearAssessment", row_id=control_id, filled_from=filled_from)
        assessment: dict[str, Any] = {}
    else:
        assessment = assessment_from(form)
        body = {"assessments": [{"controlId": control_id, **assessment}]}
        outcome = await page_request.change("assessControls", body=body, filled_from=filled_from)
    if outcome.refusal is not None:
        refusal = outcome.refusal.below(_ONE)
        return await control_page(page_request, control_id, refusal=refusal, typed=assessment, origin=_origin(form))
    change_id = outcome.answer.get("changeId")  # not of an assessment that was cleared
    notice = assessed_notice(page_request, change_id, 1) if change_id else None
    otherwise = page_request.path("controls", control_id, query={"gaps": form.get("gaps")})
    return page_request.back(form, otherwise, "" if notice else "assessed", notice)


def _origin(form: Fields) -> Origin:
    return Origin(form.get("return_to"), form.get("gaps"))


async def confirm(page_request: OrganizationRequest) -> Response:
    """Confirm that the assessment of a control still holds."""
    form, control_id = await page_request.fields(), page_request.param("id")
    body = {"reviewBy": form.get("reviewBy")} if form.get("reviewBy") else {}
    outcome = await page_request.change("confirmAssessment", row_id=control_id, body=body)
    if outcome.refusal is not None:
        return await control_page(page_request, control_id, refusal=outcome.refusal)
    return page_request.go(page_request.path("controls", control_id), "confirmed")


async def assess_many(page_request: OrganizationRequest) -> Response:
    """Assess all selected controls in the same way, or the one whose button was pressed; ``step`` may preview it."""
    form = await page_request.fields()
    if form.get("step") == "undo":
        return await _undo(page_request, form)
    assessment, ids = assessment_from(form), list(dict.fromkeys(form.all("only") or form.all("selected")))
    if not ids:
        return page_request.back(form, page_request.path("controls"), "none_selected")
    body = {"assessments": [{"controlId": one, **assessment} for one in ids]}
    outcome = None
    if form.get("step") == "do":
        outcome = await page_request.change("assessControls", body=body)
        if outcome.refusal is None:
            change_id = outcome.answer["changeId"]
            notice = None if change_id is None else assessed_notice(page_request, change_id, len(ids))
            done = "assessed_many" if notice is None else ""  # the note with Undo reports it, too
            origin = form if form.has("only") else without_selection(form)
            return page_request.back(origin, page_request.path("controls"), done, notice)
    adopted = (
        await page_request.ask_one(ApiQuery("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}))
    )["items"]
    summaries = [ApiQuery("getFrameworkCoverage", id=framework["id"]) for framework in adopted]
    now = await page_request.ask(*summaries)
    if outcome is None:  # no preview of what was just refused
        outcome = await page_request.preview("assessControls", summaries, body=body)
    assessed, then, effects = outcome.answer or (None, [], None)
    left_out = await _left_out(page_request, assessed["items"] if assessed else [])
    return page_request.page(
        "app/assessing.html",
        status=outcome.refusal.status if outcome.refusal else 200,
        refusal=outcome.refusal,
        assessed=assessed,
        effects=effects,
        few=_FEW,
        left_out=left_out,
        frameworks=list(zip(now, then, strict=False)),
        assessment=assessment,
        ids=ids,
        return_to=form.get("return_to"),
    )


async def _left_out(page_request: OrganizationRequest, assessed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of assessed controls those that do not apply nevertheless, by id, as ``getControl`` answers."""
    ids = [
        one["control"]["id"]
        for one in assessed
        if one["coverage"]["isApplicable"] is None
        and one["coverage"]["coverageStatus"] in ("PARTIAL", "FULL")
        and one["effectiveCoverageStatus"] == "NONE"
    ]
    found = await page_request.ask(*(ApiQuery("getControl", id=one) for one in ids[:_EXPLAINED])) if ids else []
    return {one["id"]: one for one in found if not one["isApplicable"]}


async def _undo(page_request: OrganizationRequest, form: Fields) -> Response:
    """Undo one change of many assessments."""
    outcome = await page_request.change("undoAssessments", body={"changeId": form.get("assessed")})
    refusal = outcome.refusal
    if refusal is not None and refusal.code not in _UNDO_REFUSED:
        raise InvalidRequest(refusal.detail)
    done = "assessments_undone" if refusal is None else _UNDO_REFUSED[refusal.code]
    return page_request.back(form, page_request.path("controls"), done)


def filled_from_of(form: Fields, control_id: str) -> FilledFrom | None:
    """The assessment that a form was filled from, tagged with its time of change; null if the form does not name it."""
    if not form.has("assessed_at"):
        return None
    api_query = ApiQuery("getControl", id=control_id)
    return FilledFrom(
        api_query, lambda control: control["coverage"]["updatedAt"], tag_of(form.get("assessed_at") or None)
    )


def assessment_from(form: Fields) -> dict[str, Any]:
    """The assessment in a form, as a body of the API, without fields that the form does not contain."""
    assessment: dict[str, Any] = {}
    status = form.get("coverageStatus")
    if status == EXCLUDED:  # one radio group chooses a status, or that the control does not apply
        assessment["isApplicable"] = False
    elif status:
        assessment["coverageStatus"] = None if status == _NOT_ASSESSED else status
        if form.has("wasExcluded"):
            assessment["isApplicable"] = None
    for name in ("coverageGap", "justification", "note"):
        if form.has(name) and (form.get(name) or not form.has("onlyFilled")):
            assessment[name] = form.get(name).replace("\r\n", "\n") or None
    if form.get("applies") or form.has("hasApplies"):  # browsers send nothing for an unticked box
        assessment["isApplicable"] = None if form.get("applies") == "true" else False
    if form.has("hasTakenIn") and status != EXCLUDED:  # of a control outside of the baseline
        assessment["isApplicable"] = True if form.get("takenIn") == "true" else None
    for name in ("ownerId", "reviewBy"):
        if form.has(name):
            assessment[name] = form.get(name) or None
    if form.has("hasReasons"):
        assessment["reasons"] = form.all("reasons")
    return assessment
