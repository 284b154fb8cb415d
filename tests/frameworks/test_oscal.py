"""What catalogs and mapping collections in OSCAL become."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from normata.frameworks.importing import read
from normata.source import Fault, FaultyInput, Row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

UUID = "3f1d1c52-0b7a-4c39-9d44-6a1b7f0f2a10"
ELSEWHERE = "b2a9f0de-7c11-4f6e-8a55-0e9d3c1b4f77"


def metadata(**more: Any) -> dict[str, Any]:
    return {
        "title": "Garden Special Publication 7 Revision 2",
        "last-modified": "2025-03-01T10:00:00+01:00",
        "version": "2.0",
        "oscal-version": "1.1.2",
        **more,
    }


def label(value: str, kind: str | None = None) -> dict[str, str]:
    return {"name": "label", "value": value} | ({"class": kind} if kind else {})


def statement(prose: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"name": "statement", "prose": prose} | ({"parts": list(parts)} if parts else {})


def item(name: str, prose: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"name": "item", "props": [label(name)], "prose": prose} | ({"parts": list(parts)} if parts else {})


def control(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "title": f"Title of {name}", **more}


def catalog(*controls: dict[str, Any], **more: Any) -> dict[str, Any]:
    group = {"id": "wt", "title": "Water", "controls": list(controls or [control("wt-1")])}
    return {"catalog": {"uuid": UUID, "metadata": metadata(), "groups": [group], **more}}


@pytest.fixture
def read_documents(tmp_path: Path) -> Callable[..., list[Row]]:
    def read_them(*documents: dict[str, Any]) -> list[Row]:
        paths = [tmp_path / f"document-{number}.json" for number in range(len(documents))]
        for path, document in zip(paths, documents, strict=True):
            path.write_text(json.dumps(document), encoding="utf-8")
        return read(paths)

    return read_them


def controls(rows: list[Row]) -> dict[str, dict[str, Any]]:
    return {row.values["identifier"]: dict(row.values) for row in rows if row.array == "controls"}


def test_framework(read_documents: Callable[..., list[Row]]) -> None:
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


def test_the_publishers_own_identifier_comes_first(read_documents: Callable[..., list[Row]]) -> None:
    ids = {"document-ids": [{"identifier": "GSP-7"}], "published": "2025-02-01T00:00:00Z"}
    framework = read_documents(catalog(metadata=metadata(**ids)))[0]
    assert framework.values["identifier"] == "GSP-7"
    assert framework.values["publishedAt"] == "2025-02-01T00:00:00+00:00"


def test_groups_and_controls_in_preorder(read_documents: Callable[..., list[Row]]) -> None:
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


def test_group_without_an_id(read_documents: Callable[..., list[Row]]) -> None:
    document = catalog(groups=[{"title": "Soil", "groups": [{"title": "Worms", "controls": [control("wo-1")]}]}])
    first, again = read_documents(document), read_documents(document)
    assert list(controls(first)) == ["Soil", "Worms", "WO-1"]
    assert [row.values["id"] for row in first] == [row.values["id"] for row in again]


def test_withdrawn_controls_are_kept_out(read_documents: Callable[..., list[Row]]) -> None:
    gone = control("wt-1", props=[{"name": "status", "value": "withdrawn"}], controls=[control("wt-1.1")])
    found = controls(read_documents(catalog(gone, control("wt-2"))))
    assert list(found) == ["WT", "WT-1.1", "WT-2"]
    assert found["WT-1.1"]["parentId"] == f"{UUID}:wt"


def test_statement_and_guidance(read_documents: Callable[..., list[Row]]) -> None:
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
            [{"id": "p", "select": {"choice": ["again {{ insert: param, p }}"]}}],
            "[Selection: again [Assignment: organization-defined value]]",
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
def test_parameters(read_documents: Callable[..., list[Row]], parameters: list[dict[str, Any]], expected: str) -> None:
    more = {"params": parameters} if parameters else {}
    document = catalog(control("wt-1", parts=[statement("Water {{ insert: param, p }} .")], **more))
    assert controls(read_documents(document))["WT-1"]["description"] == f"Water {expected}."


def test_parameters_that_multiply_are_given_up(read_documents: Callable[..., list[Row]]) -> None:
    parameters = [
        {"id": f"p{level}", "select": {"choice": [f"{{{{ insert: param, p{level + 1} }}}}"] * 10}}
        for level in range(30)
    ]
    document = catalog(control("wt-1", params=parameters, parts=[statement("{{ insert: param, p0 }}")]))
    assert len(controls(read_documents(document))["WT-1"]["description"]) < 10_000


def faults(read_documents: Callable[..., list[Row]], *documents: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(FaultyInput) as caught:
        read_documents(*documents)
    return [(fault.place, fault.reason) for fault in caught.value.faults]


def test_invalid_catalogs_say_where(read_documents: Callable[..., list[Row]]) -> None:
    bad = [
        {"id": "wt-1"},
        control("wt 2"),
        control("wt-3", colour="red"),
        control("wt-4", params=[{"id": 4, "select": {}}]),
    ]
    assert faults(read_documents, catalog(*bad)) == [
        ("/catalog/groups/0/controls/0/title", "is required"),
        ("/catalog/groups/0/controls/1/id", "does not have the form that OSCAL demands"),
        ("/catalog/groups/0/controls/2/colour", "is not a field that OSCAL has here"),
        ("/catalog/groups/0/controls/3/params/0/id", "does not have the form that OSCAL demands"),
    ]


def test_duplicate_controls(read_documents: Callable[..., list[Row]]) -> None:
    [(place, reason)] = faults(read_documents, catalog(control("wt-1"), control("wt-1")))
    assert place == "/catalog/groups/0/controls/1/id"
    assert "/catalog/groups/0/controls/0" in reason


def test_without_compliance_trestle(read_documents: Callable[..., list[Row]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trestle.oscal.catalog", None)
    [(place, reason)] = faults(read_documents, catalog())
    assert place == ""
    assert "install normata[oscal]" in reason


# Mapping collections


def end(name: str, kind: str = "control") -> dict[str, str]:
    return {"type": kind, "id-ref": name}


def collection(
    relationship: str = "equal-to",
    sources: list[dict[str, str]] | None = None,
    targets: list[dict[str, str]] | None = None,
    href: str = f"#{UUID}",
    **more: Any,
) -> dict[str, Any]:
    entry = {
        "uuid": "7e0b5a64-52de-4c25-8e0b-1c9e0f1d2a33",
        "relationship": relationship,
        "sources": sources or [end("wt-1")],
        "targets": targets or [end("x-1")],
    }
    mapping = {
        "uuid": "0d9c8b7a-1234-4e5f-8a9b-abcdefabcdef",
        "source-resource": {"type": "catalog", "href": href},
        "target-resource": {"type": "catalog", "href": f"urn:uuid:{ELSEWHERE}"},
        "maps": [entry],
    }
    provenance = {
        "method": "human",
        "matching-rationale": "semantic",
        "status": "complete",
        "mapping-description": "How one garden is like another.",
    }
    whole = {
        "uuid": "5a5a5a5a-1111-4222-8333-444444444444",
        "metadata": metadata(),
        "provenance": provenance,
        "mappings": [mapping],
        **more,
    }
    return {"mapping-collection": whole}


def levels(rows: list[Row]) -> dict[tuple[str, str], str]:
    def short(name: str) -> str:
        return name.removeprefix(f"{UUID}:").removeprefix(f"{ELSEWHERE}:")

    return {
        (short(row.values["sourceControlId"]), short(row.values["targetControlId"])): row.values["matchLevel"]
        for row in rows
        if row.array == "controlMatches"
    }


@pytest.mark.parametrize(
    ("relationship", "forward", "backward"),
    [
        ("equal-to", "FULL", "FULL"),
        ("equivalent-to", "FULL", "FULL"),
        ("superset-of", "FULL", "PARTIAL"),
        ("subset-of", "PARTIAL", "FULL"),
        ("intersects-with", "PARTIAL", "PARTIAL"),
    ],
)
def test_relationships(
    read_documents: Callable[..., list[Row]], relationship: str, forward: str, backward: str
) -> None:
    rows = read_documents(collection(relationship))
    assert levels(rows) == {("wt-1", "x-1"): forward, ("x-1", "wt-1"): backward}
    assert rows[0].values["sourceControlId"] == f"{UUID}:wt-1"
    assert rows[0].fault("sourceControlId", "?").place == "/mapping-collection/mappings/0/maps/0/sources"
    assert rows[1].fault("sourceControlId", "?").place == "/mapping-collection/mappings/0/maps/0/targets"


def test_no_relationship(read_documents: Callable[..., list[Row]]) -> None:
    assert read_documents(collection("no-relationship")) == []


def test_several_sources_cover_a_target_only_together(read_documents: Callable[..., list[Row]]) -> None:
    assert levels(read_documents(collection(sources=[end("wt-1"), end("wt-2")]))) == {
        ("wt-1", "x-1"): "PARTIAL",
        ("x-1", "wt-1"): "FULL",
        ("wt-2", "x-1"): "PARTIAL",
        ("x-1", "wt-2"): "FULL",
    }


@pytest.mark.parametrize(("name", "backward"), [("wt-1_smt.a", "PARTIAL"), ("wt-1_smt", "FULL")])
def test_statements_are_parts_of_their_control(
    read_documents: Callable[..., list[Row]], name: str, backward: str
) -> None:
    rows = read_documents(collection(sources=[end(name, "statement")]))
    assert levels(rows) == {("wt-1", "x-1"): "FULL", ("x-1", "wt-1"): backward}


RESOURCE = "9b9b9b9b-5555-4666-8777-888888888888"


@pytest.mark.parametrize(
    ("href", "links"),
    [
        (f"#{UUID.upper()}", None),
        ("https://example.org/catalogs/document-0.json?raw=1", None),
        (f"#{RESOURCE}", [{"href": "../published/document-0.json"}]),
        (f"#{RESOURCE}", [{"href": f"urn:uuid:{UUID}"}]),
    ],
)
def test_a_resource_is_the_catalog_of_the_same_import(
    read_documents: Callable[..., list[Row]], href: str, links: list[dict[str, str]] | None
) -> None:
    document = collection(href=href)
    if links:
        document["mapping-collection"]["back-matter"] = {"resources": [{"uuid": RESOURCE, "rlinks": links}]}
    rows = read_documents(catalog(), document)
    assert levels(rows) == {("wt-1", "x-1"): "FULL", ("x-1", "wt-1"): "FULL"}


def test_a_resource_without_a_uuid_is_the_prefix_itself(read_documents: Callable[..., list[Row]]) -> None:
    rows = read_documents(collection(href="urn:example:node:kitchen"))
    assert rows[0].values["sourceControlId"] == "urn:example:node:kitchen:wt-1"


def test_faults_of_collections(read_documents: Callable[..., list[Row]]) -> None:
    document = collection("resembles", sources=[end("wt-1", "statement"), end("wt-1", "chapter"), end("wt-1")])
    here = "/mapping-collection/mappings/0/maps/0"
    found = faults(read_documents, document)
    assert [place for place, _ in found] == [
        f"{here}/sources/0/id-ref",
        f"{here}/sources/1/type",
        f"{here}/relationship",
    ]
    document["mapping-collection"]["mappings"][0]["maps"][0] |= {
        "ns": "https://example.org/ns",
        "sources": [end("wt-1")],
    }
    assert faults(read_documents, document)[0][0] == f"{here}/ns"


def test_invalid_collections_say_where(read_documents: Callable[..., list[Row]]) -> None:
    document = collection()
    del document["mapping-collection"]["mappings"][0]["maps"][0]["sources"]
    assert faults(read_documents, document) == [("/mapping-collection/mappings/0/maps/0/sources", "is required")]


def test_published_catalog(catalogs: Path) -> None:
    [path] = (catalogs / "oscal").iterdir()
    rows = read([path])
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

    ours = controls(read(list((catalogs / "oscal").iterdir())))
    theirs = controls(read([catalogs / "ciso-assistant" / "nist-sp-800-53-rev5.yaml"]))
    assert ours.keys() <= theirs.keys()
    assert [name for name in ours if differing(name, "name")] == ["SC"]
    assert sum(differing(name, "description") for name, row in ours.items() if row["description"]) == 11


def test_a_fault_is_printed_in_one_line(read_documents: Callable[..., list[Row]]) -> None:
    with pytest.raises(FaultyInput) as caught:
        read_documents(catalog(control("wt-1", colour="red")))
    assert isinstance(caught.value.faults[0], Fault)
    assert str(caught.value.faults[0]).count("\n") == 0
