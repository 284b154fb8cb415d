"""The operations of summaries and reports of the coverage of an adopted framework."""

from __future__ import annotations

from typing import Any

from normata.core.db.transaction import Transaction
from normata.core.http.formats import JSON, Formats, PastFormatQuery, csv, xlsx
from normata.core.http.operation import Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.paging import PastQuery
from normata.frameworks.model import Framework
from normata.reports import summary
from normata.reports.examples import COUNTS, FRAMEWORK_ID, HEAD, IDENTITIES, counts
from normata.reports.gaps import GapReport, Gaps, read_gaps
from normata.reports.plan import MAX_STEPS, GapPlan, PlanQuery, read_plan
from normata.reports.sheets import (
    conflicts_sheet,
    file_name,
    gaps_sheet,
    next_steps_sheet,
    summary_sheet,
)
from normata.reports.statement import STATEMENT
from normata.reports.tables import as_csv, as_xlsx

_GAPS_BOOK = (gaps_sheet, next_steps_sheet, conflicts_sheet, summary_sheet)

GAPS = Formats(
    present=Gaps.wire,
    file_name=lambda report: file_name(report, "gaps"),
    by_name={
        "json": JSON,
        "csv": csv(lambda report: as_csv(gaps_sheet(report))),
        "xlsx": xlsx(lambda report: as_xlsx([sheet(report) for sheet in _GAPS_BOOK])),
    },
)

_STEP = IDENTITIES | {"closes": 1, "lifts": 4}
_GAP = {
    "id": "iso-27001-2022:A.5.11",
    "identifier": "A.5.11",
    "name": "Return of assets",
    "parent": {"id": "iso-27001-2022:A.5", "identifier": "A.5", "name": "Organizational controls"},
    "isMandatory": False,
    "isAssessed": True,
    "coverageStatus": "NONE",
    "coverageGap": "Nobody asks for the badges of contractors.",
    "stale": [],
    "evidence": {"pieces": 1, "isValid": True, "endsAt": "2027-06-01T00:00:00.000Z"},
    "effectiveCoverageStatus": "NONE",
    "suggestions": [IDENTITIES | {"matchLevel": "FULL", "wouldBecome": "FULL", "lifts": 4}],
}

_PLANNED = {
    "control": IDENTITIES["control"],
    "effectiveCoverageStatus": "PARTIAL",
    "closes": 1,
    "improves": 1,
    "effects": [
        {
            "framework": {
                "id": "iso-27001-2022",
                "name": "ISO/IEC 27001:2022",
                "identifier": "ISO-27001",
                "identifierColor": "#0B6E4F",
            },
            "closes": 1,
            "closed": [
                {"id": "iso-27001-2022:A.5.16", "identifier": "A.5.16", "name": "Identity management"},
            ],
            "improves": 1,
            "improved": [
                {"id": "iso-27001-2022:A.5.17", "identifier": "A.5.17", "name": "Authentication information"},
            ],
        },
        {
            "framework": IDENTITIES["control"]["framework"],
            "closes": 1,
            "closed": [
                {
                    "id": "nist-csf-2.0:PR.AA-01",
                    "identifier": "PR.AA-01",
                    "name": "Managed identities and credentials",
                }
            ],
            "improves": 0,
            "improved": [],
        },
    ],
    "effective": {"none": 26, "partial": 30, "full": 35},
    "effectiveEverywhere": {"none": 96, "partial": 48, "full": 53},
}


def _plan(transaction: Transaction, request: Request) -> dict[str, Any]:
    query: PlanQuery = request.query
    return read_plan(transaction, request.organization_id, request.id, query.steps)


OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/frameworks/{id}/coverage/",
        operation_id="getFrameworkCoverage",
        is_long=True,
        tag="Reports",
        summary="Summarize the coverage of a framework",
        description="""\
How far the organization covers a framework that it has adopted, in counts.

Requirements are counted: controls of type `CONTROL`, with or without children, unless they are decomposed into these.
Those that do not apply to the organization are counted separately, and all other counts are of the applicable ones: by
assessment (`assessed`, and `withoutAssessment`), by effective coverage (`effective`), those that matches lift
(`indirectlyCovered`), those whose assessment is in conflict with what follows (`conflicts`), and those whose assessment
is stale (`stale`). Every category has the same counts, of all requirements below it. A requirement without a category
is only in the counts of the framework.""",
        about=Framework,
        id_description=FRAMEWORK_ID,
        query=PastQuery,
        build=lambda transaction, request: summary.summary(transaction, request.organization_id, request.id),
        answer=summary.FrameworkCoverage,
        answer_description="The counts.",
        example=HEAD
        | {
            "counts": COUNTS,
            "categories": [
                {
                    "id": "iso-27001-2022:A.5",
                    "identifier": "A.5",
                    "name": "Organizational controls",
                    "parentId": None,
                    "counts": counts(37, 1, 9, 8, (4, 9, 14, 9, 11, 16)),
                }
            ],
        },
    ),
    ReadOperation(
        path="/frameworks/{id}/gaps/",
        operation_id="getFrameworkGaps",
        tag="Reports",
        summary="Report the gaps of a framework",
        description="""\
The gaps of a framework that the organization has adopted: the requirements that apply and are below
`FULL`, the worst first. `conflicts` has the controls whose assessment cannot be right beside what matches, or other
assessments, say: a control that is assessed `NONE` and that a match makes `FULL` is no gap, and is listed there.

Each gap has suggestions that would close it, other than assessing it: at most three controls below `FULL` with a match
to it, the status that the gap would have if that control became `FULL`, and the number of gaps of this report that it
would lift. Controls that close the gap come before those that only lift it, and then those that lift most gaps. Only
direct effects are reported, so every entry can be checked against its match.

`nextSteps` is the reverse: the controls that would lift most gaps at once.

The CSV has the table of the gaps; the workbook (XLSX) also has the next steps, the conflicts and the counts.""",
        about=Framework,
        id_description=FRAMEWORK_ID,
        query=PastFormatQuery,
        build=lambda transaction, request: read_gaps(transaction, request.organization_id, request.id),
        formats=GAPS,
        is_long=True,
        answer=GapReport,
        answer_description="The gaps.",
        example=HEAD | {"counts": COUNTS, "nextSteps": [_STEP], "gaps": [_GAP], "conflicts": []},
    ),
    ReadOperation(
        path="/frameworks/{id}/gaps/plan/",
        operation_id="getGapPlan",
        tag="Reports",
        summary="Plan how to close the gaps of a framework",
        description=f"""\
Which controls to assess `FULL`, in which order, to close the gaps of a framework that the organization has adopted. The
plan has at most `steps` steps (1 to {MAX_STEPS}), and ends when no gap is left.

Each step is the best one after those before it: the requirement, of any adopted framework, by which most gaps of this
framework become `FULL`. Among such steps comes first the one by which most requirements of all adopted frameworks
become `FULL`, then most gaps of this framework `PARTIAL`, then most requirements of all `PARTIAL`; then one that is
`PARTIAL` already; then by framework, this one first, and in catalog order.

A step has everything that follows from it, over any number of matches and by roll-up: what it closes and improves in
every adopted framework (`effects`), and how far the requirements are covered after it. That is what the reports show
once the controls are assessed so, as long as nothing else changes. Each step is the best next one; a plan that looks
further ahead may need fewer of them.""",
        about=Framework,
        id_description=FRAMEWORK_ID,
        query=PlanQuery,
        build=_plan,
        is_long=True,
        answer=GapPlan,
        answer_description="The plan.",
        example=HEAD
        | {
            "effective": COUNTS["effective"],
            "effectiveEverywhere": {"none": 97, "partial": 48, "full": 51},
            "steps": [_PLANNED],
            "isComplete": True,
        },
    ),
    STATEMENT,
)
