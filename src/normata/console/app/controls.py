"""The list of controls, and a control with why it is covered as far as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Query, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import PEOPLE, names_of
from normata.console.texts import text
from normata.core.schema.fields import COVERAGE_STATUSES, REASONS

# What the address may say of the list; each is a parameter of the operation.
_FILTERS = (
    "frameworks",
    "coverageStatus",
    "effectiveCoverageStatus",
    "isIndirectlyCovered",
    "hasGap",
    "isApplicable",
    "isAssessed",
    "type",
    "search",
)
_ORDER = ("sortColumn", "sortDirection", "page", "limit")
_MAX_HISTORY = 20


async def show_list(page_request: OrganizationRequest) -> Response:
    """The controls of the adopted frameworks, with filters."""
    sent = page_request.request.query_params
    wanted = {name: sent.getlist(name) for name in (*_FILTERS, *_ORDER)}
    controls, adopted = await page_request.ask(
        ApiQuery("listCoverage", wanted),
        ApiQuery("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}),
    )
    chosen = {name: sent.get(name, "") for name in (*_FILTERS, *_ORDER)}
    return page_request.page(
        "app/controls.html",
        controls=controls,
        adopted=adopted["items"],
        frameworks=[(one["slug"], one["identifier"]) for one in adopted["items"]],
        levels=[(level, text(f"status.{level}")) for level in COVERAGE_STATUSES],
        yes_no=[("true", text("app.yes")), ("false", text("app.no"))],
        noted=[("true", text("app.noted")), ("false", text("app.not_noted"))],
        types=[("CONTROL", text("type.CONTROL")), ("CATEGORY", text("type.CATEGORY"))],
        can_assess=page_request.may("editor"),
        chosen=chosen,
        is_filtered=any(chosen[name] for name in _FILTERS),
        selected=set(sent.getlist("selected")),
        back=page_request.here_with(selected=None),  # in every row: with a hundred selected it would have them all
    )


async def show_one(page_request: OrganizationRequest) -> Response:
    """A control: its statement, why it is covered, what would lift it, what rests on it, and what is done about it."""
    return await control_page(page_request, page_request.param("id"), return_to=page_request.query.get("return_to", ""))


async def control_page(
    page_request: OrganizationRequest,
    control_id: str,
    *,
    refusal: Refusal | None = None,
    typed: Mapping[str, Any] | None = None,
    return_to: str = "",
) -> Response:
    """The page of a control, and why what was ``typed`` into its form was refused, where it was.

    The form leads to ``return_to`` in the end.
    """
    control, why = await page_request.ask(
        ApiQuery("getControl", id=control_id), ApiQuery("explainCoverage", id=control_id)
    )
    statement = why["assessment"]
    about: dict[str, Query] = {"listFindings": {"controlId": control_id, "limit": "100"}}
    if statement is not None:
        about["listTasks"] = {"controlCoverageId": statement["id"], "limit": "100"}
        if page_request.may("admin"):
            about["listEvents"] = {
                "kind": "controlCoverages",
                "recordId": statement["id"],
                "limit": str(_MAX_HISTORY),
            }
            about["listMembers"] = PEOPLE.query
    found = dict(
        zip(about, await page_request.ask(*(ApiQuery(name, query) for name, query in about.items())), strict=True)
    )
    return page_request.page(
        "app/control.html",
        status=refusal.status if refusal else 200,
        control=control,
        why=why,
        proof=as_tree(why["proof"]),
        others=[as_tree(other) for other in why["others"]],
        findings=found["listFindings"],
        tasks=found.get("listTasks"),
        history=found.get("listEvents"),
        names=names_of(found.get("listMembers")),
        says=dict(control["coverage"]) | dict(typed or {}),
        reasons=list(dict.fromkeys((*REASONS, *control["coverage"]["reasons"]))),
        refusal=refusal,
        return_to=return_to,
        can_assess=page_request.may("editor"),
    )


_DEEPEST = 40  # steps below each other that are shown; nobody follows more


class Branch(NamedTuple):
    """A step of a proof, and the steps that it rests on. One that is shown above already has no branches again."""

    step: Mapping[str, Any]
    premises: tuple[Branch, ...]
    is_repeated: bool


def as_tree(proof: Sequence[Mapping[str, Any]]) -> Branch | None:
    """The proof with its last step at the top; null for an empty one.

    Each step comes after those that it rests on, so that the tree ends.
    """
    if not proof:
        return None
    places = {(step["control"]["id"], step["level"]): number for number, step in enumerate(proof)}
    shown: set[int] = set()

    def branch(number: int, depth: int = 0) -> Branch:
        step = proof[number]
        if number in shown or depth == _DEEPEST:
            return Branch(step, (), is_repeated=bool(step["premises"]))
        shown.add(number)
        below = [places.get((one["controlId"], one["level"])) for one in step["premises"]]
        return Branch(
            step, tuple(branch(one, depth + 1) for one in below if one is not None and one < number), is_repeated=False
        )

    return branch(len(proof) - 1)
