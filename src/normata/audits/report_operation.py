"""The operation of the report of an audit, and its formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from normata.audits.report import AuditReport, Report, read_report
from normata.audits.report_sheets import TITLE, report_sheets, rows_of
from normata.core.http.formats import JSON, FormatQuery, Formats, pdf, xlsx
from normata.core.http.operation import ReadOperation
from normata.records.kinds import Audit
from normata.reports.examples import HEAD
from normata.reports.pdf import as_pdf, is_installed, objection
from normata.reports.tables import as_xlsx


class AuditReportQuery(FormatQuery):
    """The query of the report of an audit."""

    format: Annotated[
        Literal["json", "xlsx", "pdf"] | None,
        Field(
            description="The format of the answer. It wins over `Accept`, so that a link can name it. `pdf` needs the"
            " extra `pdf` of the installation."
        ),
    ] = None  # type: ignore[assignment] # it has another format, and lacks one


_UNDATED = "2000-01-01"  # of a document about an audit without dates, so that equal data gives equal bytes


def _date(report: Mapping[str, Any]) -> str:
    moment: str = report["audit"]["ended"] or report["audit"]["started"] or _UNDATED
    return moment[: len(_UNDATED)]


FORMATS = Formats(
    present=Report.wire,
    file_name=lambda report: f"audit-{report['organization']['slug']}-{_date(report)}",
    by_name={
        "json": JSON,
        "xlsx": xlsx(lambda report: as_xlsx(report_sheets(report))),
        "pdf": pdf(
            lambda report: as_pdf(TITLE, report_sheets(report), _date(report)),
            "pdf",
            is_installed,
            lambda report: objection(rows_of(report)),
        ),
    },
)

REPORT = ReadOperation(
    path=f"/{Audit.path}/{{id}}/report/",
    operation_id="getAuditReport",
    tag="Audits",
    summary="Report an audit",
    description="""\
The report of an audit (ISO 19011, 6.5): the audit with its dates, auditor, framework and criteria; what else is in
scope; the rows of the checklist with their results and notes, and those that were not checked; the findings, the grave
ones first, each with its cause, its correction, and who has verified it and when. Archived findings are in it, and said
to be so; the counts are of the others.

The workbook (XLSX) and the PDF have the same tables; the PDF has up to 2,500 rows. The same data gives the same bytes
in every format.""",
    about=Audit,
    id_description="The id of the audit, live or archived.",
    query=AuditReportQuery,
    build=lambda transaction, request: read_report(transaction, request.organization_id, request.id),
    formats=FORMATS,
    is_long=True,
    answer=AuditReport,
    answer_description="The report.",
    example={
        "organization": HEAD["organization"],
        "audit": {
            "id": "audit-internal-2026",
            "name": "Internal audit: firmware development",
            "type": "INTERNAL",
            "started": "2026-06-08T07:00:00.000Z",
            "ended": "2026-06-11T15:00:00.000Z",
            "auditor": "Søren Holm",
            "notes": None,
            "owners": ["Dana Demo"],
            "isLive": True,
        },
        "framework": HEAD["framework"],
        "criteria": ["ISO/IEC 27001:2022", "Policies"],
        "frame": [],
        "counts": {"nonconforming": 0, "observation": 0, "conforming": 0, "notApplicable": 0, "notChecked": 0},
        "rows": [],
        "notChecked": [],
        "findingCounts": [{"type": "MINOR_NONCONFORMITY", "findings": 1, "verified": 1}],
        "findings": [
            {
                "id": "finding-badges-of-leavers",
                "identifier": None,
                "name": "Badges of leavers stay active",
                "type": "MINOR_NONCONFORMITY",
                "status": "VERIFIED",
                "control": "A.5.11 Return of assets",
                "deadline": None,
                "owners": ["Priya Raman"],
                "findings": "Two of five badges of people who had left were still active.",
                "causes": None,
                "correction": "The badges were blocked.",
                "measures": None,
                "verifiedAt": "2026-11-20T09:14:03.120Z",
                "verifiedByName": "Dana Demo",
                "verificationNote": "Sample of forty badges.",
                "isLive": True,
            }
        ],
    },
)
