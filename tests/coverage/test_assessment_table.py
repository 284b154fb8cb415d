"""Statements as a CSV file, as spreadsheet programs and people write it."""

from __future__ import annotations

from typing import Any

import pytest

from normata.coverage.assessment_table import parse_assessments

COLUMNS = "framework, identifier, status, gap, applicable, justification, reasons, owner, note, review-by"

Read = tuple[str | None, str | None, dict[str, Any]]


def read(text: str) -> list[Read]:
    """The statements of a table without faults: framework, identifier, and what is said."""
    assessments, faults = parse_assessments(text, "s.csv")
    assert faults == []
    return [(assessment.framework, assessment.identifier, dict(assessment.values)) for assessment in assessments]


def faults(text: str) -> list[str]:
    """What is wrong with a table."""
    return [str(fault) for fault in parse_assessments(text, "s.csv")[1]]


WHOLE = {
    "coverage_status": "PARTIAL",
    "coverage_gap": "Two sites, one van.",
    "is_applicable": True,
    "justification": "Law",
    "reasons": ["LEGAL", "OUR_OWN"],
    "owner_id": "kim",
    "note": "By hand.",
    "review_by": "2031-02-03T00:00:00.000Z",
}


TABLES = {
    "commas": (
        "framework,identifier,status,gap,applicable,justification,reasons,owner,note,review-by\n"
        'SUN-2,A.1,PARTIAL,"Two sites, one van.",true,Law,LEGAL OUR_OWN,kim,By hand.,2031-02-03\n'
    ),
    "semicolons": (
        "framework;identifier;status;gap;applicable;justification;reasons;owner;note;review-by\r\n"
        "SUN-2;A.1;partial;Two sites, one van.;YES;Law;legal,our_own;kim;By hand.;2031-02-03T00:00:00Z\r\n"
    ),
    "another order, quoted": (
        '"Identifier";"Framework";"Reasons";"STATUS";"Applicable";"Gap";"Justification";"Review-By";"Note";"Owner"\n'
        '"A.1";"SUN-2";"LEGAL|OUR_OWN";"Partial";"1";"Two sites, one van.";"Law";"2031-02-03";"By hand.";"kim"'
    ),
    "spaces and empty lines": (
        " framework , identifier ,status,gap,applicable,justification,reasons, owner,note, review-by"
        "\n\n"
        ',,,,,,,,,\n SUN-2 , A.1 , Partial ,"Two sites, one van.",True,Law,"legal; our_own", kim ,By hand.'
        ",2031-02-03\n\n"
    ),
}


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
def test_as_programs_and_people_write_it(text: str) -> None:
    assert read(text) == [("SUN-2", "A.1", WHOLE)]


def test_an_empty_cell_says_nothing() -> None:
    text = "identifier,status,gap,applicable,reasons\nA.1,,,,\nA.2,FULL\n"
    assert read(text) == [(None, "A.1", {}), (None, "A.2", {"coverage_status": "FULL"})]


@pytest.mark.parametrize(
    ("cell", "said"), [("true", True), ("Yes", True), ("1", True), ("FALSE", False), ("no", False), ("0", False)]
)
def test_flags(cell: str, said: bool) -> None:
    assert read(f"identifier,applicable\nA.1,{cell}\n") == [(None, "A.1", {"is_applicable": said})]


def test_quotes_and_line_breaks_within_cells() -> None:
    gap = 'Called "the annex",\r\nand empty.\n\nStill.'
    quoted = gap.replace('"', '""')
    assert read(f'identifier,gap\nA.1,"{quoted}"\nA.2,5" pipe\n') == [
        (None, "A.1", {"coverage_gap": gap}),
        (None, "A.2", {"coverage_gap": '5" pipe'}),
    ]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings(ending: str) -> None:
    assert len(read(ending.join(["identifier;status", "A.1;FULL", "A.2;NONE", ""]))) == 2


# --- What is wrong


def test_every_fault_is_told_with_its_line_and_column() -> None:
    text = (
        "identifier,status,applicable,reasons,gap\n"
        "A.1,MOST,maybe,1ST,\n"
        ",FULL,,,\n"
        'A.2,FULL,,,"one\ntwo\nthree"\n'
        'A.3,SOME,,,"one\ntwo"\n'
        "\n"
        "A.4,FULL,,,,LEGAL\n"
        "A.5,FULL\n"
    )
    assert faults(text) == [
        "s.csv: /2/status: must be one of NONE, PARTIAL, FULL",
        "s.csv: /2/applicable: must be true or false",
        "s.csv: /2/reasons: must match ^[A-Z][A-Z0-9_]*$",
        "s.csv: /3/identifier: is required",
        "s.csv: /7/status: must be one of NONE, PARTIAL, FULL",
        "s.csv: /10: has 6 cells, but there are 5 columns",
    ]


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("", f"must name the columns, with identifier among them: {COLUMNS}"),
        ("framework,status", f"must name the columns, with identifier among them: {COLUMNS}"),
        ("identifier,status,remark,", f"names columns that are not known here: 'remark', ''; there are {COLUMNS}"),
        ("identifier,status,,", f"names columns that are not known here: ''; there are {COLUMNS}"),
        ("A.1,FULL,,", f"names columns that are not known here: 'a.1', 'full', ''; there are {COLUMNS}"),
        ("identifier\tstatus", f"names columns that are not known here: 'identifier\\tstatus'; there are {COLUMNS}"),
        ("identifier,Status,status", "names a column twice: status"),
    ],
)
def test_wrong_columns(first: str, told: str) -> None:
    assert faults(f"{first}\nA.1,FULL,,\n") == [f"s.csv: /1: {told}"]


@pytest.mark.parametrize(
    ("text", "told"), [("", "/1: must name the columns"), ("identifier,status\n\n", "has no assessments")]
)
def test_nothing_in_it(text: str, told: str) -> None:
    [fault] = faults(text)
    assert fault.startswith(f"s.csv: {told}")


@pytest.mark.parametrize("cell", ['"never closed', '"closed" too early'])
def test_quotes_that_do_not_match_are_no_csv(cell: str) -> None:
    """Read leniently, the first would take the next statements into its gap."""
    assessments, found = parse_assessments(f"identifier,gap\nA.1,Half\nA.2,{cell}\nA.3,Half\n", "s.csv")
    [fault] = found
    assert str(fault).startswith("s.csv: /3: is no CSV: ")
    assert [assessment.identifier for assessment in assessments] == ["A.1"]


def test_a_cell_that_is_too_long() -> None:
    most = 100_000
    assert len(read(f"identifier,gap\nA.1,{'x' * most}\n")) == 1
    assert faults(f"identifier,gap\nA.1,{'x' * (most + 1)}\n") == [
        f"s.csv: /2/gap: must have at most {most} characters"
    ]
    [fault] = faults(f"identifier,gap\nA.1,{'x' * 200_000}\n")
    assert fault.startswith("s.csv: /2")
