"""Settings: the levels of the risk matrix, with a preview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.risks import levels_picture
from normata.console.filters import words
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.core.schema.fields import RISK_LEVELS
from normata.risks.levels import RATINGS, usual_levels


async def show(page_request: OrganizationRequest) -> Response:
    """The levels as they are."""
    return await _page(page_request)


async def change(page_request: OrganizationRequest) -> Response:
    """Show the levels that were entered, save them, or go back to the usual ones, as ``step`` says."""
    form, organization_id = await page_request.fields(), page_request.membership.organization_id
    step = form.get("step")
    entered = [[form.get(_name(impact, one), "") for one in RATINGS] for impact in RATINGS]
    if step == "preview" and all(level in RISK_LEVELS for row in entered for level in row):
        return await _page(page_request, entered=entered)
    if step not in ("save", "usual"):
        raise InvalidRequest(text("problem.form"))
    body: Mapping[str, object] = {"riskLevels": entered if step == "save" else None}
    outcome = await page_request.change("changeOrganization", row_id=organization_id, body=body)
    if outcome.refusal is not None:
        return await _page(page_request, outcome.refusal)
    return page_request.go(page_request.path("settings", "risk-levels"), "organization_changed")


def _name(impact: int, probability: int) -> str:
    """The name of a field of the form."""
    return f"level-{impact}-{probability}"


async def _page(
    page_request: OrganizationRequest,
    refusal: Refusal | None = None,
    entered: Sequence[Sequence[str]] | None = None,
) -> Response:
    matrix = await page_request.ask_one(ApiQuery("getRiskMatrix"))
    of_cells = [cell["level"] for cell in matrix["cells"]]
    stored = [of_cells[start : start + len(RATINGS)] for start in range(0, len(of_cells), len(RATINGS))]
    levels = entered or stored
    return page_request.page(
        "app/settings/risk_levels.html",
        levels=levels,
        ratings=RATINGS,
        options=[(level, words(level)) for level in RISK_LEVELS],
        picture=levels_picture(levels),
        field_name=_name,
        is_preview=levels != stored,
        is_own=stored != usual_levels(),
        refusal=refusal,
        status=200 if refusal is None else refusal.status,
    )
