"""The addresses of the lists of controls and frameworks."""

from __future__ import annotations

from fastapi import APIRouter

from normata.frameworks import controls, frameworks
from normata.lists import PageList, add_list
from normata.paging import Page

router = APIRouter()


class ControlPage(Page[controls.Control]):
    """A page of controls."""


class FrameworkPage(Page[frameworks.Framework]):
    """A page of frameworks."""


add_list(
    router,
    PageList(
        "/controls/",
        controls.ControlQuery,
        lambda connection, query, _caller: controls.list_controls(connection, query),
        kept=True,
    ),
    operation_id="listControls",
    summary="List the controls of adopted frameworks",
    description="""\
The controls of the frameworks that the organization has adopted.

Each comes with its framework, its parent and children, the organization's own statement (`coverage`), the matches
from controls of other adopted frameworks (`sourceMatches`), and what follows from all that
(`effectiveCoverageStatus`). It is always current: a change of a statement, a mapping or an adoption is in the
next answer.

Unless `sortColumn` says otherwise, controls come in the order of their framework's identifier and then in the
order of the catalog. Identifiers sort naturally: A.5.2 before A.5.10. Every order ends with the id, so pages
never overlap.""",
    tags=["Frameworks"],
    response_model=ControlPage,
    response_description="A page of controls.",
)
add_list(
    router,
    PageList(
        "/frameworks/",
        frameworks.FrameworkQuery,
        lambda connection, query, _caller: frameworks.list_frameworks(connection, query),
        kept=True,
    ),
    operation_id="listFrameworks",
    summary="List frameworks",
    description="""\
The frameworks that the organization can see.

These are the active centralized frameworks, those that it has adopted, and its own. `adoption` says since when
the organization works with a framework, and is null where it does not; `frameworkAdoptions` is the same as an
array. `_count.controls` is the number of controls, categories included.""",
    tags=["Frameworks"],
    response_model=FrameworkPage,
    response_description="A page of frameworks.",
)
