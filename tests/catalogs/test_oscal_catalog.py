"""What catalogs in OSCAL become."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from normata.catalogs import oscal_catalog
from normata.catalogs.reading import read
from normata.core.changes.source import Fault, FaultyInput
from tests.catalogs.oscal_documents import (
    ELSEWHERE,
    UUID,
    Reader,
    catalog,
    control,
    controls,
    item,
    label,
    metadata,
    statement,
)


def test_framework(read_documents: Reader) -> None:
    party = {"uuid": ELSEWHERE, "type": "organization", "name": "The gardeners"}
    people = {"parties": [party], "responsible-parties": [{"role-id": "creator", "party-uuids": [ELSEWHERE]}]}
    framework = read_documents(catalog(metadata=metadata(**people)))[0]
    assert framework.place == "/catalog"
    assert framework.values == {
        "id": UUID,
        "identifier": "Garden SP 7 Rev. 2",
        "name": "Garden Special Publication 7 Revision 2",
        "version": "2.0",
        "description": None,
        "publishedAt": "2025-03-01T10:00:00+01:00",
        "createdBy": "The gardeners",
        "isCentralized": True,
    }


def test_the_publishers_own_identifier_comes_first(read_documents: Reader) -> None:
    ids = {"document-ids": [{"identifier": "GSP-7"}], "published": "2025-02-01T00:00:00Z"}
    framework = read_documents(catalog(metadata=metadata(**ids)))[0]
    assert framework.values["identifier"] == "GSP-7"
    assert framework.values["publishedAt"] == "2025-02-01T00:00:00+00:00"


def test_groups_and_controls_in_preorder(read_documents: Reader) -> None:
    props = [label("WT-01", "zero-padded"), label("WT-1"), label("WT-01", "assessment")]
    inner = control("wt-1.1", props=[label("WT-1(1)")])
    rows = read_documents(catalog(control("wt-1", props=props, controls=[inner]), control("wt-2")))
    assert [(row.values["identifier"], row.values["type"], row.place) for row in rows[1:]] == [
        ("WT", "CATEGORY", "/catalog/groups/0"),
        ("WT-1", "CONTROL", "/catalog/groups/0/controls/0"),
        ("WT-1(1)", "CONTROL", "/catalog/groups/0/controls/0/controls/0"),
        ("WT-2", "CONTROL", "/catalog/groups/0/controls/1"),
    ]
    assert [row.values["parentId"] for row in rows[1:]] == [None, f"{UUID}:wt", f"{UUID}:wt-1", f"{UUID}:wt"]


def test_group_without_an_id(read_documents: Reader) -> None:
    document = catalog(groups=[{"title": "Soil", "groups": [{"title": "Worms", "controls": [control("wo-1")]}]}])
    first, again = read_documents(document), read_documents(document)
    assert list(controls(first)) == ["Soil", "Worms", "WO-1"]
    assert [row.values["id"] for row in first] == [row.values["id"] for row in again]


def test_withdrawn_controls_are_kept_out(read_documents: Reader) -> None:
    gone = control("wt-1", props=[{"name": "status", "value": "withdrawn"}], controls=[control("wt-1.1")])
    found = controls(read_documents(catalog(gone, control("wt-2"))))
    assert list(found) == ["WT", "WT-1.1", "WT-2"]
    assert found["WT-1.1"]["parentId"] == f"{UUID}:wt"


def test_statement_and_guidance(read_documents: Reader) -> None:
    said = statement(
        "Water the beds:",
        item("a.", "in the morning:", item("1.", "roses;"), item("2.", "beans;")),
        item("b.", "not at noon."),
    )
    parts = [said, {"name": "guidance", "prose": "See [WT-2](#wt-2) and [this](https://example.org/)."}]
    found = controls(read_documents(catalog(control("wt-1", parts=parts))))["WT-1"]
    assert found["description"].splitlines() == [
        "Water the beds:",
        "a. in the morning:",
        "  1. roses;",
        "  2. beans;",
        "b. not at noon.",
    ]
    assert found["purpose"] == "See WT-2 and [this](https://example.org/)."


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ([{"id": "p", "label": "time"}], "[Assignment: organization-defined time]"),
        ([{"id": "p", "label": "organization-defined time"}], "[Assignment: organization-defined time]"),
        (
            [{"id": "p", "label": "time", "props": [{"name": "alt-label", "value": "time of day"}]}],
            "[Assignment: organization-defined time of day]",
        ),
        ([{"id": "p"}], "[Assignment: organization-defined value]"),
        ([], "[Assignment: organization-defined value]"),
        ([{"id": "p", "label": "time", "values": ["noon", "six"]}], "noon, six"),
        ([{"id": "p", "select": {"choice": ["rain", "hose"]}}], "[Selection: rain; hose]"),
        (
            [
                {"id": "p", "select": {"how-many": "one-or-more", "choice": ["rain", " at {{ insert: param, q }} "]}},
                {"id": "q", "label": "time"},
            ],
            "[Selection (one or more): rain; at [Assignment: organization-defined time]]",
        ),
        (
            [{"id": "q", "props": [{"name": "alt-identifier", "value": "p"}], "label": "time"}],
            "[Assignment: organization-defined time]",
        ),
        (
            [
                {"id": "p", "label": "both", "props": [{"name": "aggregates", "value": name} for name in "qr"]},
                {"id": "q", "values": ["noon"]},
                {"id": "r", "values": ["six"]},
            ],
            "noon, six",
        ),
    ],
)
def test_parameters(read_documents: Reader, parameters: list[dict[str, Any]], expected: str) -> None:
    more = {"params": parameters} if parameters else {}
    document = catalog(control("wt-1", parts=[statement("Water {{ insert: param, p }} .")], **more))
    assert controls(read_documents(document))["WT-1"]["description"] == f"Water {expected}."


def test_parameters_that_multiply_are_given_up(read_documents: Reader) -> None:
    parameters = [
        {"id": f"p{level}", "select": {"choice": [f"{{{{ insert: param, p{level + 1} }}}}"] * 10}}
        for level in range(30)
    ]
    document = catalog(control("wt-1", params=parameters, parts=[statement("{{ insert: param, p0 }}")]))
    assert len(controls(read_documents(document))["WT-1"]["description"]) < 10_000


@pytest.mark.parametrize("length", [2, 300, 2_000])
def test_parameters_may_insert_each_other_in_a_long_row(read_documents: Reader, length: int) -> None:
    parameters: list[dict[str, Any]] = [
        {"id": f"p{number}", "label": f"{{{{ insert: param, p{number + 1} }}}}"} for number in range(length)
    ]
    document = catalog(
        control("wt-1", params=[*parameters, {"id": f"p{length}", "values": ["noon"]}]),
        control("wt-2", parts=[statement("Water at {{ insert: param, p1 }}.")]),
        control("wt-3", parts=[statement(f"Water at {{{{ insert: param, p{length} }}}}.")]),
    )
    found = controls(read_documents(document))
    assert found["WT-3"]["description"] == "Water at noon."
    if length == 2:
        inner = "[Assignment: organization-defined noon]"
        assert found["WT-2"]["description"] == f"Water at {inner}."


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("p", "inserts itself"),
        ("pq", "inserts itself by way of q"),
        ("pqrstuvw", "inserts itself by way of q, r, s, t, u and 2 more"),
    ],
)
def test_parameters_that_insert_each_other_in_a_circle_are_named(read_documents: Reader, way: str, reason: str) -> None:
    parameters = [
        {"id": name, "select": {"choice": [f"again {{{{ insert: param, {following} }}}}"]}}
        for name, following in zip(way, way[1:] + way[0], strict=True)
    ]
    document = catalog(control("wt-1", params=parameters, parts=[statement("{{ insert: param, p }}")]))
    assert read_documents.faults(document) == [("/catalog/groups/0/controls/0/params/0", reason)]


def test_a_circle_of_300_parameters_is_one_fault(read_documents: Reader) -> None:
    parameters = [
        {"id": f"p{number}", "label": f"{{{{ insert: param, p{(number + 1) % 300} }}}}"} for number in range(300)
    ]
    document = catalog(control("wt-1", params=parameters, parts=[statement("{{ insert: param, p0 }}")]))
    [(place, reason)] = read_documents.faults(document)
    assert place == "/catalog/groups/0/controls/0/params/0"
    assert reason == "inserts itself by way of p1, p2, p3, p4, p5 and 294 more"


def test_prose_that_multiplies_is_refused(read_documents: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parameter may be long and inserted often: what it comes to is counted while it is written."""
    monkeypatch.setattr(oscal_catalog, "MAX_CHARACTERS", 1_000_000)
    parts = [item("a", "{{ insert: param, p }}" * 100)]
    parameters = [{"id": "p", "values": ["x" * 4_900]}]
    few = catalog(control("wt-1", params=parameters, parts=[statement("", *parts)]))
    assert len(controls(read_documents(few))["WT-1"]["description"]) > 490_000
    many = catalog(*(control(f"wt-{number}", params=parameters, parts=[statement("", *parts)]) for number in range(9)))
    assert read_documents.faults(many) == [
        ("/catalog", "holds more than 1,000,000 characters once its parameters are written out")
    ]


def test_invalid_catalogs_say_where(read_documents: Reader) -> None:
    bad = [
        {"id": "wt-1"},
        control("wt 2"),
        control("wt-3", colour="red"),
        control("wt-4", params=[{"id": 4, "select": {}}]),
    ]
    assert read_documents.faults(catalog(*bad)) == [
        ("/catalog/groups/0/controls/0/title", "is required"),
        ("/catalog/groups/0/controls/1/id", "does not have the form that OSCAL demands"),
        ("/catalog/groups/0/controls/2/colour", "is not a field that OSCAL has here"),
        ("/catalog/groups/0/controls/3/params/0/id", "does not have the form that OSCAL demands"),
    ]


def test_a_catalog_that_is_wrong_throughout_is_one_fault(read_documents: Reader) -> None:
    """To tell a million faults one by one would take gigabytes."""
    document = catalog(groups=[{}] * 20_001)
    assert read_documents.faults(document) == [("", "breaks the rules of OSCAL in more than 20,000 places")]


def test_duplicate_controls(read_documents: Reader) -> None:
    [(place, reason)] = read_documents.faults(catalog(control("wt-1"), control("wt-1")))
    assert place == "/catalog/groups/0/controls/1/id"
    assert "/catalog/groups/0/controls/0" in reason


def test_without_compliance_trestle(read_documents: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trestle.oscal.catalog", None)
    [(place, reason)] = read_documents.faults(catalog())
    assert place == ""
    assert "install normata[oscal]" in reason


RESOLVED = "NIST_SP-800-53_rev5_HIGH-baseline-resolved-profile_catalog-min.json"


def test_published_catalog(catalogs: Path) -> None:
    rows = read([catalogs / "oscal" / RESOLVED])
    found = controls(rows)
    assert rows[0].values["identifier"] == "NIST SP 800-53 Rev. 5.1.1 HIGH IMPACT BASELINE"
    assert [sum(row.values.get("type") == kind for row in rows) for kind in ("CATEGORY", "CONTROL")] == [18, 370]
    assert found["AC-2(1)"]["parentId"] == found["AC-2"]["id"]
    lines = found["AC-1"]["description"].splitlines()
    assert lines[0].endswith("disseminate to [Assignment: organization-defined personnel or roles]:")
    assert lines[1].startswith("  1. [Selection (one or more): organization-level; mission/business process-level; ")
    assert lines[2].startswith("    (a) Addresses purpose, scope, roles,")
    assert not [row for row in rows if "{{" in str(row.values) or "](#" in str(row.values)]
    assert all(row["description"] and row["purpose"] for row in found.values() if row["type"] == "CONTROL")


def test_published_catalog_agrees_with_that_of_ciso_assistant(catalogs: Path) -> None:
    """Two publications of one standard, made independently: what they say differs in blanks, case and a few slips."""

    def differing(name: str, key: str) -> bool:
        return not "".join(theirs[name][key].split()).casefold().endswith("".join(ours[name][key].split()).casefold())

    ours = controls(read([catalogs / "oscal" / RESOLVED]))
    theirs = controls(read([catalogs / "ciso-assistant" / "nist-sp-800-53-rev5.yaml"]))
    assert ours.keys() <= theirs.keys()
    assert [name for name in ours if differing(name, "name")] == ["SC"]
    assert sum(differing(name, "description") for name, row in ours.items() if row["description"]) == 11


def test_a_fault_is_printed_in_one_line(read_documents: Reader) -> None:
    with pytest.raises(FaultyInput) as caught:
        read_documents(catalog(control("wt-1", colour="red")))
    assert isinstance(caught.value.faults[0], Fault)
    assert str(caught.value.faults[0]).count("\n") == 0
