"""The page of the risk matrix, and the button with which an owner accepts a risk."""

from __future__ import annotations

from starlette.responses import Response

from normata.console import pictures
from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records import details
from normata.console.filters import words
from normata.console.texts import counted, text
from normata.records.assurance import Risk
from normata.risks.levels import RATINGS, STATES

_USUAL = "residual"
_TONES = {"LOW": "full", "MEDIUM": "partial", "HIGH": "none", "CRITICAL": "none"}


async def show_matrix(page_request: OrganizationRequest) -> Response:
    """How many open risks have each probability and impact: before treatment, after it, or as planned."""
    of = page_request.query.get("of", _USUAL)
    matrix = await page_request.ask_one(ApiQuery("getRiskMatrix", {"of": of if of in STATES else _USUAL}))
    cells = {(cell["probability"], cell["impact"]): cell for cell in matrix["cells"]}
    levels = [(level, count) for level, count in reversed(matrix["levels"].items())]
    about = ", ".join(f"{count} {words(level).lower()}" for level, count in levels)
    picture = pictures.square(
        name=text("app.risk_matrix"),
        about=f"{counted('app.risk_matrix.risks', matrix['total'])}: {about}",
        across=text("vendor.probability"),
        up=text("vendor.impact"),
        cells={place: cell["count"] for place, cell in cells.items() if cell["count"]},
        tones={place: _TONES[cell["level"]] for place, cell in cells.items()},
    )
    return page_request.page(
        "app/risk_matrix.html",
        matrix=matrix,
        cells=cells,
        levels=[(level, _TONES[level], count) for level, count in levels],
        picture=picture,
        ratings=RATINGS,
        moments=[(text(f"vendor.{one}"), page_request.link(of=one), one == matrix["of"]) for one in STATES],
    )


async def accept(page_request: OrganizationRequest) -> Response:
    """Accept a residual risk, as its owner."""
    form = await page_request.fields()
    risk_id = page_request.param("id")
    outcome = await page_request.change("acceptRisk", row_id=risk_id)
    if outcome.refusal is not None:
        return await details.show_one(page_request, outcome.refusal, kind=Risk)
    return page_request.back(form, page_request.path("records", Risk.path, risk_id), "risk_accepted")
