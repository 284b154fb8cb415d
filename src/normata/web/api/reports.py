"""The operations of summaries and reports: where an organization stands with a framework that it has adopted."""

from __future__ import annotations

from typing import Any

from normata.frameworks.model import Framework
from normata.frameworks.reports import summary
from normata.schema.paging import OrganizationQuery
from normata.web.operation import Operation, ReadOperation

_ID = "The id of a framework that the organization has adopted."

_HEAD: dict[str, Any] = {
    "organization": {"id": "org-harbourlight", "name": "Harbourlight Logistics", "slug": "harbourlight"},
    "framework": {
        "id": "iso-27001-2022",
        "name": "ISO/IEC 27001:2022",
        "identifier": "ISO-27001",
        "slug": "iso-27001",
        "version": "2022",
    },
}


def _counts(leaves: int, excluded: int, unsaid: int, indirect: int, stated: Any, effective: Any) -> dict[str, Any]:
    names = ("none", "partial", "full")
    return {
        "leaves": leaves,
        "applicable": leaves - excluded,
        "notApplicable": excluded,
        "withoutStatement": unsaid,
        "indirectlyCovered": indirect,
        "stated": dict(zip(names, stated, strict=True)),
        "effective": dict(zip(names, effective, strict=True)),
    }


_COUNTS = _counts(93, 2, 31, 14, (38, 22, 31), (27, 30, 34))

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/frameworks/{id}/coverage/",
        operation_id="getFrameworkCoverage",
        tag="Reports",
        summary="Summarize the coverage of a framework",
        description="""\
How far the organization covers a framework that it has adopted, in counts.

Leaves are counted: controls without children. Those that do not apply to the organization are counted apart, and all
other counts are of the applicable ones: by what the organization says (`stated`), by what follows (`effective`), and
how many of them matches have lifted (`indirectlyCovered`). The same counts come for every category, of all leaves
below it. A leaf without a category is in the counts of the framework only.""",
        about=Framework,
        id_description=_ID,
        query=OrganizationQuery,
        build=lambda transaction, query, asker: summary.summary(transaction, query.organization_id, asker.id),
        answer=summary.FrameworkCoverage,
        answer_description="The counts.",
        example=_HEAD
        | {
            "counts": _COUNTS,
            "categories": [
                {
                    "id": "iso-27001-2022:A.5",
                    "identifier": "A.5",
                    "name": "Organizational controls",
                    "parentId": None,
                    "counts": _counts(37, 1, 9, 8, (13, 9, 14), (9, 11, 16)),
                }
            ],
        },
    ),
)
