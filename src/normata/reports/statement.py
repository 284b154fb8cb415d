"""The operation of the statement of applicability, and its formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field
from typing_extensions import override

from normata.core.db.transaction import Transaction
from normata.core.http.formats import JSON, Formats, PastFormatQuery, csv, pdf, xlsx
from normata.core.http.operation import ReadOperation
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.http.request import Request
from normata.core.schema.fields import Identifier
from normata.frameworks.model import Framework
from normata.reports.applicability import (
    Applicability,
    OtherNotAdopted,
    StatementOfApplicability,
    read_applicability,
)
from normata.reports.applicability_sheets import TITLE, statement_book, statement_sheets, table_sheet
from normata.reports.examples import COUNTS, FRAMEWORK_ID, HEAD, IDENTITIES, counts
from normata.reports.pdf import as_pdf, is_installed, objection
from normata.reports.sheets import file_name
from normata.reports.tables import as_csv, as_xlsx

MAX_OTHERS = 20
OTHERS = "otherFrameworkIds"

StatementFormat = Literal["json", "csv", "xlsx", "pdf"]


class StatementQuery(PastFormatQuery):
    """The query of the statement of applicability."""

    format: Annotated[
        StatementFormat | None,
        Field(
            description="The format of the answer. It wins over `Accept`, so that a link can name it. `pdf` needs the"
            " extra `pdf` of the installation."
        ),
    ] = None  # type: ignore[assignment] # it has one format more
    other_framework_ids: Annotated[
        list[Identifier],
        Field(
            default_factory=list,
            max_length=MAX_OTHERS,
            description="The id of a further framework that the organization has adopted, or several by repeating it:"
            " its requirements that apply are necessary controls, too (ISO/IEC 27001, 6.1.3 b, c).",
        ),
    ]

    @classmethod
    @override
    def read(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """The query, with all further frameworks."""
        others = [value for name, value in pairs if name == OTHERS and value]
        return cls.model_validate(dict(pairs) | {OTHERS: others})


FORMATS = Formats(
    present=Applicability.wire,
    file_name=lambda report: file_name(report, "statement-of-applicability"),
    by_name={
        "json": JSON,
        "csv": csv(lambda report: as_csv(table_sheet(report))),
        "xlsx": xlsx(lambda report: as_xlsx(statement_book(report))),
        "pdf": pdf(
            lambda report: as_pdf(TITLE, statement_sheets(report), report["date"]),
            "pdf",
            is_installed,
            lambda report: objection(len(report["controls"]) + len(report["mandatory"]["requirements"])),
        ),
    },
)


def _build(transaction: Transaction, request: Request) -> Applicability:
    query: StatementQuery = request.query
    try:
        return read_applicability(transaction, request.organization_id, request.id, query.other_framework_ids)
    except OtherNotAdopted as error:
        fault = FieldFault(in_="query", name=OTHERS, code="unknown", message=str(error), allowed=None)
        raise InvalidRequest.of([fault]) from None


_ENTRY: dict[str, Any] = {
    "id": "iso-27001-2022:A.5.16",
    "frameworkId": "iso-27001-2022",
    "identifier": "A.5.16",
    "name": "Identity management",
    "parent": {"id": "iso-27001-2022:A.5", "identifier": "A.5", "name": "Organizational controls"},
    "isMandatory": False,
    "isApplicable": True,
    "reasons": ["RISK_TREATMENT", "CONTRACTUAL"],
    "justification": None,
    "excludedBy": None,
    "outsideOfBaseline": None,
    "implemented": "NO",
    "plannedBy": "2026-12-15T00:00:00.000Z",
    "owner": {"memberId": "member-tomasz", "name": "Tomasz Wierzbicki"},
    "note": "Accounts of suppliers still come by mail.",
    "isAssessed": True,
    "coverageStatus": "NONE",
    "coverageGap": None,
    "stale": [],
    "evidence": {"pieces": 1, "isValid": True, "endsAt": "2027-06-01T00:00:00.000Z"},
    "effectiveCoverageStatus": "PARTIAL",
    "isIndirectlyCovered": True,
    "coveredBy": [
        {
            "id": "match:PR.AA-01--A.5.16",
            "matchLevel": "PARTIAL",
            "matchedControl": IDENTITIES["control"],
            "effectiveCoverageStatus": "FULL",
        }
    ],
    "objections": [],
}
_CLAUSE = _ENTRY | {
    "id": "iso-27001-2022:4.3",
    "identifier": "4.3",
    "name": "Determining the scope of the information security management system",
    "parent": {"id": "iso-27001-2022:4", "identifier": "4", "name": "Context of the organization"},
    "isMandatory": True,
    "reasons": [],
    "implemented": "YES",
    "plannedBy": None,
    "owner": None,
    "note": None,
    "coverageStatus": "FULL",
    "effectiveCoverageStatus": "FULL",
    "isIndirectlyCovered": False,
    "coveredBy": [],
}

STATEMENT = ReadOperation(
    path="/frameworks/{id}/statement-of-applicability/",
    operation_id="getStatementOfApplicability",
    tag="Reports",
    summary="Report the statement of applicability",
    description="""\
The statement of applicability of a framework that the organization has adopted (ISO/IEC 27001, 6.1.3 d): its necessary
controls, in catalog order, with whether they apply and why, whether they are implemented, who is responsible, and how
it is done.

`controls` has the requirements of the framework's table of applicability, such as Annex A, or all of a framework
without such a table. After them come the requirements of the frameworks in `otherFrameworkIds` that apply. Mandatory
requirements, such as the clauses 4 to 10, cannot be excluded, and are in `mandatory`.

`implemented` follows from the organization's own assessment alone; in a conflict it stands, with the objection. What
follows from matches is beside it: `effectiveCoverageStatus`, where `isIndirectlyCovered`, with `coveredBy`, which has
the matches that give it and do not rest on the control, so none supports itself.

`objections` has the violations of the standard: `EXCLUDED_WITHOUT_JUSTIFICATION`, `INCLUDED_WITHOUT_JUSTIFICATION`
(neither reasons nor a justification), `APPLICABLE_WITHOUT_STATUS` (the organization has not assessed the control),
`MANDATORY_EXCLUDED` (a mandatory requirement was excluded), `CONFLICTING` (the assessment cannot be right beside what
matches or other assessments say).

The CSV has the table. The workbook (XLSX) also has the head, the mandatory requirements, the objections and the counts;
the PDF has what one prints: head, table and mandatory requirements, up to 2,500 rows. The same data of the same day
give the same bytes in every format, as long as no event is sealed.""",
    about=Framework,
    id_description=FRAMEWORK_ID,
    query=StatementQuery,
    build=_build,
    formats=FORMATS,
    is_long=True,
    answer=StatementOfApplicability,
    answer_description="The statement of applicability.",
    example=HEAD
    | {
        "title": None,
        "scope": "Design, assembly and support of mobile robots in Hamburg and Gdańsk.",
        "version": None,
        "date": "2026-11-20",
        "approver": None,
        "otherFrameworks": [],
        "log": {
            "origin": "normata/org-harbourlight",
            "size": 1204,
            "root": "b137985ff484fb600db93107c77b0365c80d78f5b429ded0fd97361d077999eb",
            "sealedAt": "2026-11-20T09:14:03.652Z",
        },
        "applicabilityPrefix": "A.",
        "counts": COUNTS,
        "objections": {
            "excludedWithoutJustification": 0,
            "includedWithoutJustification": 12,
            "applicableWithoutStatus": 31,
            "mandatoryExcluded": 0,
            "conflicting": 0,
        },
        "controls": [_ENTRY],
        "mandatory": {"counts": counts(30, 0, 2, 0, (0, 5, 23, 2, 5, 23)), "requirements": [_CLAUSE]},
        "otherRequirements": None,
    },
)
