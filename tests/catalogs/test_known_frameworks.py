"""What publishers say of their frameworks, and no format can carry."""

from __future__ import annotations

from normata.catalogs.known_frameworks import KNOWN, declared, known_framework
from normata.core.changes.source import Row

ISO = "urn:intuitem:risk:framework:iso27001-2022"
PCI = "urn:intuitem:risk:framework:pcidss-4_0"


def catalog(framework: str, *controls: tuple[str, str | None, str]) -> list[Row]:
    """A framework, and controls by identifier, parent and type."""
    return [
        Row("frameworks", "file", "", {"id": framework, "name": "F"}),
        *(
            Row(
                "controls",
                "file",
                "",
                {
                    "id": f"{framework}:{identifier}",
                    "frameworkId": framework,
                    "parentId": parent and f"{framework}:{parent}",
                    "identifier": identifier,
                    "type": kind,
                },
            )
            for identifier, parent, kind in controls
        ),
    ]


def those(rows: list[Row], name: str) -> set[str]:
    return {row.values["identifier"] for row in rows if row.array == "controls" and row.values.get(name)}


def test_clauses_are_mandatory_and_annex_a_is_the_table() -> None:
    rows = declared(
        catalog(
            ISO,
            *(("4", None, "CATEGORY"), ("4.1", "4", "CONTROL"), ("10.2", None, "CONTROL"), ("6.1.3", None, "CONTROL")),
            *(("A.5", None, "CATEGORY"), ("A.5.1", "A.5", "CONTROL"), ("11.1", None, "CONTROL")),
        )
    )
    assert those(rows, "isMandatory") == {"4.1", "10.2", "6.1.3"}
    assert those(rows, "isDecomposed") == set()
    assert rows[0].values["applicabilityPrefix"] == "A."


def test_headings_of_pci_dss_are_their_requirements() -> None:
    rows = declared(
        catalog(
            PCI,
            *(("3", None, "CATEGORY"), ("3.5", "3", "CONTROL"), ("3.5.1", "3.5", "CONTROL")),
            *(("3.5.1.1", "3.5.1", "CONTROL"), ("A1.1", None, "CONTROL"), ("A1.1.1", "A1.1", "CONTROL")),
            ("3.8", "3", "CONTROL"),
        )
    )
    assert those(rows, "isDecomposed") == {"3.5", "A1.1"}, "3.8 has nothing below it, and 3.5.1 is tested itself"
    assert those(rows, "isMandatory") == set()


def test_nothing_is_said_of_what_is_not_known() -> None:
    rows = catalog("urn:other", ("4.1", None, "CONTROL"))
    assert declared(rows) == rows
    assert known_framework("urn:other") is None
    assert all(known.because for known in KNOWN)
