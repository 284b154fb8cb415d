"""The page of the risk matrix with the register, and the button with which an owner accepts a risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from normata.console import pictures
from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records import details
from normata.console.app.records.references import names_of
from normata.console.filters import words
from normata.console.texts import counted, text
from normata.core.schema.fields import RISK_LEVELS, RiskLevel
from normata.records.assurance import Risk
from normata.risks.levels import RATINGS, STATES

_USUAL = "residual"
_MOST_ABOVE = "5"  # risks in the cards beside the matrix
_ON_PAGE = "25"
_WIDTH = 440
# The line of appetite is between MEDIUM and HIGH: an organization moves it with the levels of its matrix.
ABOVE: tuple[RiskLevel, ...] = ("HIGH", "CRITICAL")


class Look(NamedTuple):
    """How a level looks: its tone, and its shape, for people who cannot tell tones apart."""

    tone: str
    sign: str


LOOKS: Mapping[str, Look] = {
    "LOW": Look("full", "▽"),
    "MEDIUM": Look("partial", "◆"),
    "HIGH": Look("none", "▲"),
    "CRITICAL": Look("worst", "■"),
}


async def show_matrix(page_request: OrganizationRequest) -> Response:
    """How many open risks have each probability and impact, which are above the appetite, and the register of all."""
    sent = page_request.query
    of = sent.get("of", _USUAL)
    of = of if of in STATES else _USUAL
    chosen = _cell(sent.get("probability"), sent.get("impact"))
    only_gaps = sent.get("restsOnGap") == "true"
    listed = {"of": of, "limit": _ON_PAGE, "page": sent.get("page"), "cursor": sent.get("cursor")}
    if chosen is not None:
        listed |= {"probability": str(chosen[0]), "impact": str(chosen[1])}
    if only_gaps:
        listed["restsOnGap"] = "true"
    queries = [
        ApiQuery("getRiskMatrix", {"of": of}),
        ApiQuery("listRiskRegister", {name: value for name, value in listed.items() if value}),
        ApiQuery("listRiskRegister", {"of": of, "level": list(ABOVE), "limit": _MOST_ABOVE}),
        ApiQuery("listRiskRegister", {"restsOnGap": "true", "limit": _MOST_ABOVE}),
    ]
    if page_request.past is None:
        queries.append(ApiQuery("listRiskReviews", {"sortColumn": "deadline", "limit": "50"}))
    matrix, register, above, gaps, *reviews = await page_request.ask(*queries)
    running = next((one for page in reviews for one in page["items"] if one["finishedAt"] is None), None)
    named = [("memberships", one["ownerId"]) for page in (register, above, gaps) for one in page["items"]]
    named += [("memberships", running["coordinatorId"])] if running else []
    levels = list(reversed(matrix["levels"].items()))
    return page_request.page(
        "app/risk_matrix.html",
        matrix=matrix,
        cells={(cell["probability"], cell["impact"]): cell for cell in matrix["cells"]},
        levels=[(level, LOOKS[level], count) for level, count in levels],
        picture=_picture(page_request, matrix, chosen),
        ratings=RATINGS,
        moments=[(text(f"vendor.{one}"), page_request.link(of=one, page=None), one == of) for one in STATES],
        of=of,
        register=register,
        above=above,
        above_count=sum(matrix["levels"][level] for level in ABOVE),
        gaps=gaps,
        chosen=chosen,
        only_gaps=only_gaps,
        review=running and await progress_of(page_request, running),
        looks=LOOKS,
        names=await names_of(page_request, named),
    )


async def progress_of(page_request: OrganizationRequest, review: Mapping[str, Any]) -> Mapping[str, Any]:
    """A running review, with how many of its risks are reviewed."""
    every, left = await page_request.ask(
        ApiQuery("listRiskReviewItems", {"limit": _MOST_ABOVE}, review["id"]),
        ApiQuery("listRiskReviewItems", {"limit": _MOST_ABOVE, "isOpen": "true"}, review["id"]),
    )
    return {**review, "total": every["total"], "done": every["total"] - left["total"]}


def levels_picture(levels: Sequence[Sequence[str]]) -> Markup:
    """The levels of a matrix, without risks."""
    tones = {(x, y): levels[y - 1][x - 1] for x in RATINGS for y in RATINGS}
    counts = {level: sum(one == level for one in tones.values()) for level in RISK_LEVELS}
    return pictures.square(
        name=text("app.risk_levels"),
        about=", ".join(f"{count} {words(level).lower()}" for level, count in counts.items()),
        across=text("vendor.probability"),
        up=text("vendor.impact"),
        cells={},
        tones={place: LOOKS[level].tone for place, level in tones.items()},
        signs={place: LOOKS[level].sign for place, level in tones.items()},
        above={place for place, level in tones.items() if level in ABOVE},
        width=_WIDTH,
    )


def _picture(page_request: OrganizationRequest, matrix: Mapping[str, Any], chosen: tuple[int, int] | None) -> Markup:
    cells = {(cell["probability"], cell["impact"]): cell for cell in matrix["cells"]}
    about = ", ".join(f"{count} {words(level).lower()}" for level, count in reversed(matrix["levels"].items()))

    def href(probability: int, impact: int) -> str:
        return f"{page_request.link(probability=str(probability), impact=str(impact), page=None)}#register"

    return pictures.square(
        name=text("app.risk_matrix"),
        about=f"{counted('app.risk_matrix.risks', matrix['total'])}: {about}",
        across=text("vendor.probability"),
        up=text("vendor.impact"),
        cells={place: cell["count"] for place, cell in cells.items() if cell["count"]},
        href=href,
        tones={place: LOOKS[cell["level"]].tone for place, cell in cells.items()},
        signs={place: LOOKS[cell["level"]].sign for place, cell in cells.items()},
        above={place for place, cell in cells.items() if cell["level"] in ABOVE},
        chosen=chosen,
        width=_WIDTH,
    )


def _cell(probability: str | None, impact: str | None) -> tuple[int, int] | None:
    """The cell that an address names, null for none."""
    known = {str(rating): rating for rating in RATINGS}
    return (known[probability], known[impact]) if probability in known and impact in known else None


async def accept(page_request: OrganizationRequest) -> Response:
    """Accept a residual risk, as its owner."""
    form = await page_request.fields()
    risk_id = page_request.param("id")
    outcome = await page_request.change("acceptRisk", row_id=risk_id)
    if outcome.refusal is not None:
        return await details.show_one(page_request, outcome.refusal, kind=Risk)
    return page_request.back(form, page_request.path("records", Risk.path, risk_id), "risk_accepted")
