"""What a library in the format of CISO Assistant becomes."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from normata.catalogs import ciso_assistant
from normata.catalogs.reading import read
from normata.core.changes.source import Fault, FaultyInput, Row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIBRARY = """
urn: urn:example:library:kitchen
name: Rules of the kitchen
version: 1.10
publication_date: 2024-06-29
provider: The cook
objects:
  framework:
    urn: urn:example:framework:kitchen
    ref_id: KITCHEN
    name: Kitchen rules
    description: How we cook.
    requirement_nodes:
    - urn: urn:example:node:kitchen:164.310
      assessable: false
      ref_id: 164.310
      name: Fire
    - urn: urn:example:node:kitchen:no
      parent_urn: urn:example:node:kitchen:164.310
      assessable: yes
      ref_id: NO
      description: "Open flames, e.g. candles, are put out. Nobody leaves before that.\\nEver."
      annotation: Candles fall over.
    - urn: urn:example:node:kitchen:stove
      parent_urn: urn:example:node:kitchen:164.310
      assessable: true
"""


@pytest.fixture
def read_text(tmp_path: Path) -> Callable[[str], list[Row]]:
    def read_it(text: str) -> list[Row]:
        path = tmp_path / "library.yaml"
        path.write_text(text, encoding="utf-8")
        return read([path])

    return read_it


def mapping_library(*mappings: tuple[str, str, str], spelling: str = "requirement_mapping_sets") -> str:
    rows = [
        {"source_requirement_urn": source, "relationship": relationship, "target_requirement_urn": target}
        for source, relationship, target in mappings
    ]
    sets: Any = {"requirement_mappings": rows}
    return json.dumps(
        {"urn": "urn:example:library:map", "objects": {spelling: [sets] if spelling[-1] == "s" else sets}}
    )


def levels(rows: list[Row]) -> dict[str, str]:
    return {
        f"{row.values['sourceControlId']}→{row.values['targetControlId']}": row.values["matchLevel"]
        for row in rows
        if row.array == "controlMatches"
    }


def faults(read_text: Callable[[str], list[Row]], text: str) -> list[tuple[str, str]]:
    with pytest.raises(FaultyInput) as caught:
        read_text(text)
    return [(fault.place, fault.reason) for fault in caught.value.faults]


def test_framework(read_text: Callable[[str], list[Row]]) -> None:
    framework = read_text(LIBRARY)[0]
    assert (framework.array, framework.place) == ("frameworks", "/objects/framework")
    assert framework.values == {
        "id": "urn:example:framework:kitchen",
        "identifier": "KITCHEN",
        "name": "Kitchen rules",
        "version": "1.10",
        "description": "How we cook.",
        "publishedAt": "2024-06-29",
        "createdBy": "The cook",
        "isCentralized": True,
    }


def test_controls_are_in_the_order_of_the_file(read_text: Callable[[str], list[Row]]) -> None:
    fire, flames, stove = read_text(LIBRARY)[1:]
    assert fire.values == {
        "id": "urn:example:node:kitchen:164.310",
        "frameworkId": "urn:example:framework:kitchen",
        "parentId": None,
        "identifier": "164.310",
        "name": "Fire",
        "description": None,
        "purpose": None,
        "type": "CATEGORY",
    }
    assert flames.values["parentId"] == fire.values["id"]
    assert flames.values["identifier"] == "NO"
    assert flames.values["type"] == "CONTROL"
    assert flames.values["purpose"] == "Candles fall over."
    assert stove.values["identifier"] == stove.values["name"] == "stove"


def test_name_from_text_is_its_first_sentence(read_text: Callable[[str], list[Row]]) -> None:
    flames = read_text(LIBRARY)[2]
    assert flames.values["name"] == "Open flames, e.g. candles, are put out"
    assert flames.fault("name", "x") == Fault(flames.file, "/objects/framework/requirement_nodes/1/description", "x")


def test_long_name_from_text_is_cut_between_words(read_text: Callable[[str], list[Row]]) -> None:
    text = LIBRARY.replace("Open flames,", "Open flames and whatever else may burn in a kitchen " * 3)
    name = read_text(text)[2].values["name"]
    assert len(name) <= 120
    assert name.endswith("kitchen Open flames and…")


def test_a_fault_points_at_the_key_of_the_library(read_text: Callable[[str], list[Row]]) -> None:
    flames = read_text(LIBRARY)[2]
    assert flames.fault("parentId", "x").place == "/objects/framework/requirement_nodes/1/parent_urn"
    assert flames.fault("id", "x").place == "/objects/framework/requirement_nodes/1/urn"


@pytest.mark.parametrize(
    ("relationship", "expected"),
    [
        ("equal", {"a→b": "FULL", "b→a": "FULL"}),
        ("superset", {"a→b": "FULL", "b→a": "PARTIAL"}),
        ("subset", {"a→b": "PARTIAL", "b→a": "FULL"}),
        ("intersect", {"a→b": "PARTIAL", "b→a": "PARTIAL"}),
        ("intersects", {"a→b": "PARTIAL", "b→a": "PARTIAL"}),
        ("not_related", {}),
    ],
)
@pytest.mark.parametrize("spelling", ["requirement_mapping_set", "requirement_mapping_sets"])
def test_relationships(
    read_text: Callable[[str], list[Row]], relationship: str, expected: dict[str, str], spelling: str
) -> None:
    assert levels(read_text(mapping_library(("a", relationship, "b"), spelling=spelling))) == expected


def test_the_highest_level_of_a_pair_stays_with_its_place(read_text: Callable[[str], list[Row]]) -> None:
    rows = read_text(mapping_library(("a", "intersect", "b"), ("b", "superset", "a"), ("a", "subset", "b")))
    assert levels(rows) == {"a→b": "PARTIAL", "b→a": "FULL"}
    forward, backward = rows
    assert forward.place == "/objects/requirement_mapping_sets/0/requirement_mappings/0"
    assert backward.place == "/objects/requirement_mapping_sets/0/requirement_mappings/1"
    assert backward.fault("sourceControlId", "x").place.endswith("/1/source_requirement_urn")


def test_the_end_of_a_backward_match_is_the_other_key(read_text: Callable[[str], list[Row]]) -> None:
    backward = read_text(mapping_library(("a", "equal", "b")))[1]
    assert backward.fault("sourceControlId", "x").place.endswith("/target_requirement_urn")
    assert backward.fault("matchLevel", "x").place.endswith("/relationship")


def test_match_ids_are_of_their_library_and_stay(read_text: Callable[[str], list[Row]]) -> None:
    text = mapping_library(("a", "equal", "b"))
    first, again = read_text(text), read_text(text.replace("equal", "subset"))
    other = read_text(text.replace("library:map", "library:other"))
    assert [row.values["id"] for row in first] == [row.values["id"] for row in again]
    assert not {row.values["id"] for row in first} & {row.values["id"] for row in other}
    assert first[0].values["id"] == "040ef49a-11ed-597b-b65a-e006492ba441"


def test_framework_and_mapping_sets_in_one_library(read_text: Callable[[str], list[Row]]) -> None:
    mappings = """
  requirement_mapping_set:
  - requirement_mappings:
    - {source_requirement_urn: x, target_requirement_urn: y, relationship: equal}
"""
    assert Counter(row.array for row in read_text(LIBRARY + mappings)) == {
        "frameworks": 1,
        "controls": 3,
        "controlMatches": 2,
    }


@pytest.mark.parametrize(
    ("old", "new", "place", "reason"),
    [
        ("urn: urn:example:library:kitchen", "locale: en", "/urn", "is required"),
        ("urn: urn:example:framework:kitchen", "x: 1", "/objects/framework/urn", "is required"),
        ("name: Fire", "name: [Fire]", "/objects/framework/requirement_nodes/0/name", "must be text"),
        ("assessable: yes", "assessable: perhaps", "/objects/framework/requirement_nodes/1/assessable", "must be true"),
        ("2024-06-29", "yesterday", "/publication_date", "must be a date"),
        ("requirement_nodes:", "nodes:", "/objects/framework/requirement_nodes", "is required"),
        ("  framework:", "  frame:", "/objects", "holds neither a framework nor a mapping set"),
        (
            "urn: urn:example:node:kitchen:stove",
            "urn: urn:example:node:kitchen:no",
            "/objects/framework/requirement_nodes/2/urn",
            "is the same as that of /objects/framework/requirement_nodes/1",
        ),
        (
            "parent_urn: urn:example:node:kitchen:164.310",
            "parent_urn: urn:example:node:cellar",
            "/objects/framework/requirement_nodes/1/parent_urn",
            "urn:example:node:cellar is not in this framework",
        ),
        (
            "parent_urn: urn:example:node:kitchen:164.310",
            "parent_urn: urn:example:node:kitchen:no",
            "/objects/framework/requirement_nodes/1/parent_urn",
            "leads back to this control itself",
        ),
        (
            "urn: urn:example:node:kitchen:stove",
            "urn: urn:example:" + "x" * 255,
            "/objects/framework/requirement_nodes/2/urn",
            "must be at most 255 characters",
        ),
    ],
)
def test_faults(read_text: Callable[[str], list[Row]], old: str, new: str, place: str, reason: str) -> None:
    [(found, why)] = faults(read_text, LIBRARY.replace(old, new, 1))
    assert found == place
    assert reason in why


def test_a_framework_has_to_be_a_mapping(read_text: Callable[[str], list[Row]]) -> None:
    text = json.dumps({"urn": "u", "objects": {"framework": [{"urn": "f", "requirement_nodes": []}]}})
    assert faults(read_text, text) == [("/objects/framework", "must be a mapping")]


def test_a_circle_of_parents_is_one_fault(read_text: Callable[[str], list[Row]]) -> None:
    nodes = [{"urn": urn, "parent_urn": parent} for urn, parent in [("z", "a"), ("a", "b"), ("b", "c"), ("c", "a")]]
    text = json.dumps({"urn": "u", "objects": {"framework": {"urn": "f", "requirement_nodes": nodes}}})
    assert faults(read_text, text) == [
        ("/objects/framework/requirement_nodes/1/parent_urn", "leads back to this control itself")
    ]


def test_all_faults_are_found_at_once(read_text: Callable[[str], list[Row]]) -> None:
    text = mapping_library(("a", "friendly", "b"), ("", "equal", "b"), ("a", "equal", "x" * 256))
    assert [place.rpartition("mappings/")[2] for place, _ in faults(read_text, text)] == [
        "0/relationship",
        "1/source_requirement_urn",
        "2/target_requirement_urn",
    ]


def test_identifiers_of_255_characters(read_text: Callable[[str], list[Row]]) -> None:
    urn = "urn:example:node:kitchen:" + "x" * 230
    assert read_text(LIBRARY.replace("urn:example:node:kitchen:stove", urn))[3].values["id"] == urn
    assert len(read_text(mapping_library(("a" * 255, "equal", "b" * 255)))) == 2


@pytest.mark.parametrize(
    ("reference", "name", "own", "expected"),
    [
        ("ISO/IEC 27001:2022", "International standard ISO/IEC 27001:2022", None, "2022"),
        ("NIST-CSF-1.1", "NIST CSF v1.1", None, "1.1"),
        ("NIST-SP-800-53-rev5", "NIST SP 800-53 revision 5", None, "5"),
        ("KITCHEN", "Kitchen rules, version 3", None, "3"),
        ("KITCHEN", "Kitchen rules", None, "1.10"),
        ("KITCHEN-2.0", "Kitchen rules", "2.0.1", "2.0.1"),
    ],
)
def test_version_is_the_publishers_and_else_the_number_of_the_library(
    read_text: Callable[[str], list[Row]], reference: str, name: str, own: str | None, expected: str
) -> None:
    text = LIBRARY.replace("ref_id: KITCHEN\n", f"ref_id: '{reference}'\n").replace(
        "name: Kitchen rules", f"name: '{name}'" + (f"\n    version: '{own}'" if own else "")
    )
    assert read_text(text)[0].values["version"] == expected


def test_too_many_matches_are_one_fault(read_text: Callable[[str], list[Row]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ciso_assistant, "MAX_MATCHES", 6)
    mappings = [("a", "equal", f"b{number}") for number in range(4)]
    assert len(read_text(mapping_library(*mappings[:3], ("a", "not_related", "c")))) == 6
    [(place, reason)] = faults(read_text, mapping_library(*mappings))
    assert (place, reason) == ("/objects", "means 8 matches; one file may mean 200,000 at most")


# Published libraries


@pytest.mark.parametrize(
    ("name", "version", "controls", "categories"),
    [
        ("nist-csf-1.1", "1.1", 136, 28),
        ("nist-csf-2.0", "2.0", 134, 28),
        ("nist-sp-800-53-rev5", "5", 1209, 20),
        ("nist-sp-800-66-rev2", "2", 179, 27),
    ],
)
def test_published_frameworks(catalogs: Path, name: str, version: str, controls: int, categories: int) -> None:
    framework, *rows = read([catalogs / "ciso-assistant" / f"{name}.yaml"])
    assert framework.values["identifier"].lower() == name
    assert framework.values["version"] == version
    assert len(rows) == controls
    assert sum(row.values["type"] == "CATEGORY" for row in rows) == categories
    assert all(0 < len(row.values["name"]) <= 500 for row in rows)


@pytest.mark.parametrize(
    ("name", "matches"),
    [("map-nist-csf-1.1-nist-csf-2.0", 370), ("mapping-nist-sp-800-66-rev2-to-nist-csf-2.0", 4214)],
)
def test_published_mappings(catalogs: Path, name: str, matches: int) -> None:
    """The second has 2,554 lines for 2,107 pairs, and all of them again the other way round."""
    rows = read([catalogs / "ciso-assistant" / f"{name}.yaml"])
    assert Counter((row.array, row.values["matchLevel"]) for row in rows) == {("controlMatches", "PARTIAL"): matches}
    assert len({row.values["id"] for row in rows}) == matches


def test_published_mappings_name_published_controls(catalogs: Path) -> None:
    rows = read(sorted((catalogs / "ciso-assistant").iterdir()))
    known = {row.values["id"] for row in rows if row.array == "controls"}
    ends = [
        row.values[end]
        for row in rows
        if row.array == "controlMatches"
        for end in ("sourceControlId", "targetControlId")
    ]
    assert known.issuperset(ends)
