"""The operations of frameworks and their controls."""

from __future__ import annotations

from typing import Any

from normata.core.http.operation import ListOperation, Operation
from normata.core.schema.paging import FullyCountedPage
from normata.frameworks import control_list, control_query, control_wire, framework_list


class ControlPage(FullyCountedPage[control_wire.Control]):
    """A page of controls."""


class FrameworkPage(FullyCountedPage[framework_list.Framework]):
    """A page of frameworks."""


_CSF = {
    "id": "nist-csf-2.0",
    "name": "NIST Cybersecurity Framework 2.0",
    "identifier": "NIST-CSF-2.0",
    "identifierColor": "#1D4F91",
}

CONTROL_EXAMPLE: dict[str, Any] = {
    "id": "iso-27001-2022:A.5.11",
    "frameworkId": "iso-27001-2022",
    "parentId": "iso-27001-2022:A.5",
    "identifier": "A.5.11",
    "name": "Return of assets",
    "slug": "a-5-11-return-of-assets",
    "purpose": "Nothing of the organization's stays with those who leave it.",
    "type": "CONTROL",
    "description": None,
    "isMandatory": False,
    "isCentralized": True,
    "createdAt": "2025-02-10T09:30:00.000Z",
    "updatedAt": "2025-02-10T09:30:00.000Z",
    "framework": {
        "id": "iso-27001-2022",
        "name": "ISO/IEC 27001:2022",
        "identifier": "ISO-27001",
        "identifierColor": "#0B6E4F",
        "version": "2022",
        "isCentralized": True,
    },
    "parent": {"id": "iso-27001-2022:A.5", "identifier": "A.5", "name": "Organizational controls"},
    "coverage": {"coverageStatus": "NONE", "coverageGap": None},
    "effectiveCoverageStatus": "PARTIAL",
    "isIndirectlyCovered": True,
    "sourceMatches": [
        {
            "id": "match:PR.AA-01--A.5.11",
            "matchLevel": "PARTIAL",
            "matchedControl": {
                "id": "nist-csf-2.0:PR.AA-01",
                "identifier": "PR.AA-01",
                "name": "Managed identities and credentials",
                "slug": "pr-aa-01-managed-identities-and-credentials",
                "framework": _CSF,
            },
        }
    ],
    "children": [],
}

_CONTROL_PAGE = {
    "items": [CONTROL_EXAMPLE],
    "total": 402,
    "page": 1,
    "limit": 5,
}

_ADOPTION = {"id": "adoption-nist-csf-2.0", "adoptedAt": "2025-02-10T09:30:00.000Z"}

FRAMEWORK_EXAMPLE = _CSF | {
    "organizationId": None,
    "slug": "nist-csf-2-0",
    "version": "2.0",
    "publishedAt": "2024-02-26T00:00:00.000Z",
    "deprecatedAt": None,
    "description": None,
    "lastSyncAt": None,
    "createdAt": "2025-02-10T09:30:00.000Z",
    "updatedAt": "2025-02-10T09:30:00.000Z",
    "createdBy": None,
    "isActive": True,
    "isCentralized": True,
    "isAdopted": True,
    "requiredTier": "free-trial",
    "_count": {"controls": 134},
    "frameworkAdoptions": [_ADOPTION],
    "adoption": _ADOPTION,
}

_FRAMEWORK_PAGE = {
    "items": [FRAMEWORK_EXAMPLE],
    "total": 3,
    "page": 1,
    "limit": 100,
}

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/controls/",
        operation_id="listControls",
        tag="Frameworks",
        summary="List the controls of adopted frameworks",
        description="""\
The controls of the frameworks that the organization has adopted.

Each has its framework, its parent and children, the organization's assessment (`coverage`), the matches from controls
of other adopted frameworks (`sourceMatches`), and the effective coverage that follows (`effectiveCoverageStatus`). It
is always current: the next response includes every change of an assessment, a mapping or an adoption.

By default, controls are sorted by the identifier of their framework and then in catalog order. Identifiers sort
naturally: A.5.2 before A.5.10. Every order ends with the id, so pages never overlap.""",
        query=control_query.ControlQuery,
        build=lambda transaction, request: control_list.list_controls(transaction, request.query),
        cached="controls",
        ignores_unknown=True,
        answer=ControlPage,
        answer_description="A page of controls.",
        example=_CONTROL_PAGE,
    ),
    ListOperation(
        path="/frameworks/",
        operation_id="listFrameworks",
        tag="Frameworks",
        summary="List frameworks",
        description="""\
The frameworks that the organization can see.

These are the active centralized frameworks, those that it has adopted, and its own. `adoption` is null if the
organization has not adopted the framework; `frameworkAdoptions` has the same as an array. `_count.controls` is the
number of controls, including categories.""",
        query=framework_list.FrameworkQuery,
        build=lambda transaction, request: framework_list.list_frameworks(transaction, request.query),
        cached="frameworks",
        ignores_unknown=True,
        answer=FrameworkPage,
        answer_description="A page of frameworks.",
        example=_FRAMEWORK_PAGE,
    ),
)
