"""The addresses of the lists of controls and frameworks."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import Connection

from normata import errors
from normata.frameworks import controls, frameworks
from normata.http import JsonResponse, add_operation, read
from normata.identity.access import CurrentCaller, member_sight
from normata.paging import LIST_ERRORS, Page

router = APIRouter()


class ControlPage(Page[controls.Control]):
    """A page of controls."""


class FrameworkPage(Page[frameworks.Framework]):
    """A page of frameworks."""


async def list_controls(
    request: Request, caller: CurrentCaller, query: Annotated[controls.ControlQuery, Query()]
) -> Response:
    """The controls of the frameworks that the organization has adopted.

    Each comes with its framework, its parent and children, the organization's own statement (`coverage`), the matches
    from controls of other adopted frameworks (`sourceMatches`), and what follows from all that
    (`effectiveCoverageStatus`). It is always current: a change of a statement, a mapping or an adoption is in the
    next answer.

    Unless `sortColumn` says otherwise, controls come in the order of their framework's identifier and then in the
    order of the catalog. Identifiers sort naturally: A.5.2 before A.5.10. Every order ends with the id, so pages
    never overlap.
    """

    def work(connection: Connection) -> dict[str, Any]:
        return controls.list_controls(connection, query)

    return JsonResponse(await read(request, work, member_sight(caller, query.organization_id)))


async def list_frameworks(
    request: Request, caller: CurrentCaller, query: Annotated[frameworks.FrameworkQuery, Query()]
) -> Response:
    """The frameworks that the organization can see.

    These are the active centralized frameworks, those that it has adopted, and its own. `adoption` says since when
    the organization works with a framework, and is null where it does not; `frameworkAdoptions` is the same as an
    array. `_count.controls` is the number of controls, categories included.
    """

    def work(connection: Connection) -> dict[str, Any]:
        return frameworks.list_frameworks(connection, query)

    return JsonResponse(await read(request, work, member_sight(caller, query.organization_id)))


add_operation(
    router,
    "GET",
    "/controls/",
    list_controls,
    operation_id="listControls",
    summary="List the controls of adopted frameworks",
    tags=["Frameworks"],
    response_model=ControlPage,
    response_description="A page of controls.",
    responses=errors.responses(*LIST_ERRORS),
)
add_operation(
    router,
    "GET",
    "/frameworks/",
    list_frameworks,
    operation_id="listFrameworks",
    summary="List frameworks",
    tags=["Frameworks"],
    response_model=FrameworkPage,
    response_description="A page of frameworks.",
    responses=errors.responses(*LIST_ERRORS),
)
