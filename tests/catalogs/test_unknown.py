"""Mappings whose references name controls that no catalog has."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from normata.catalogs.reading import Published, read, read_published
from normata.catalogs.unknown import LeftOut, rows_to_load
from normata.core.changes.source import FaultyInput, Row
from tests.catalogs.oscal_documents import ELSEWHERE, UUID, catalog, control, end
from tests.catalogs.oscal_documents import collection as oscal_collection

SET = "/objects/requirement_mapping_sets/0"


class Stored:
    """A database with these frameworks, and with these controls."""

    def __init__(self, frameworks: Collection[str] = (), controls: Collection[str] = ()) -> None:
        self._frameworks, self._controls = set(frameworks), set(controls)

    def frameworks(self, ids: Collection[str]) -> set[str]:
        return self._frameworks & set(ids)

    def controls(self, ids: Collection[str]) -> set[str]:
        return self._controls & set(ids)


def framework(name: str, *controls: str) -> dict[str, Any]:
    nodes = [{"urn": f"urn:node:{name}:{number}", "assessable": True} for number in controls]
    content = {"urn": f"urn:framework:{name}", "name": name, "requirement_nodes": nodes}
    return {"urn": f"urn:library:{name}", "objects": {"framework": content}}


def mapping(*pairs: tuple[str, str], name: str = "map", **changes: Any) -> dict[str, Any]:
    """A library that maps controls of the framework a to controls of the framework b."""
    entry = {
        "source_framework_urn": "urn:framework:a",
        "target_framework_urn": "urn:framework:b",
        "requirement_mappings": [
            {
                "source_requirement_urn": f"urn:node:a:{source}",
                "target_requirement_urn": f"urn:node:b:{target}",
                "relationship": "equal",
            }
            for source, target in pairs
        ],
    } | changes
    return {
        "urn": f"urn:library:{name}",
        "dependencies": ["urn:library:a", "urn:library:b"],
        "objects": {"requirement_mapping_sets": [entry]},
    }


@pytest.fixture
def publish(tmp_path: Path) -> Callable[..., Published]:
    def read_them(*documents: dict[str, Any]) -> Published:
        paths = [tmp_path / f"{number}.json" for number in range(len(documents))]
        for path, document in zip(paths, documents, strict=True):
            path.write_text(json.dumps(document))
        return read_published(paths)

    return read_them


def faults(published: Published, stored: Stored) -> list[tuple[str, str, str]]:
    with pytest.raises(FaultyInput) as caught:
        rows_to_load(published, stored)
    return [(Path(fault.file).name, fault.place, fault.reason) for fault in caught.value.faults]


def pairs(rows: list[Row]) -> set[tuple[str, str]]:
    return {
        (row.values["sourceControlId"], row.values["targetControlId"]) for row in rows if row.array == "controlMatches"
    }


def test_known_controls_are_those_of_the_files_and_those_that_are_stored(publish: Callable[..., Published]) -> None:
    published = publish(framework("a", "1", "2"), mapping(("1", "1"), ("2", "1")))
    rows, left_out = rows_to_load(published, Stored(["urn:framework:b"], ["urn:node:b:1"]))
    assert left_out == []
    assert [row.array for row in rows] == [
        *("frameworks", "controls", "controls", "mappingDocuments"),
        *["controlMatches"] * 4,
    ]


def test_a_missing_framework_is_told_once_with_how_to_get_it(publish: Callable[..., Published]) -> None:
    published = publish(framework("a", *map(str, range(50))), mapping(*((str(n), str(n)) for n in range(50))))
    assert faults(published, Stored()) == [
        (
            "1.json",
            f"{SET}/target_framework_urn",
            (
                "50 mappings need the framework urn:framework:b, which has not been imported. "
                "Import its library first (urn:library:b, usually the file b.yaml), or together with this file"
            ),
        )
    ]


def test_both_frameworks_may_be_missing_and_several_files_may_need_them(publish: Callable[..., Published]) -> None:
    published = publish(mapping(("1", "1")), mapping(("1", "2"), ("1", "3"), name="other", dependencies=[]))
    assert [(file, reason.partition(",")[0]) for file, _, reason in faults(published, Stored())] == [
        ("0.json", "3 mappings in 2 files need the framework urn:framework:a"),
        ("0.json", "3 mappings in 2 files need the framework urn:framework:b"),
    ]


def test_controls_that_a_known_framework_lacks_are_one_fault(publish: Callable[..., Published]) -> None:
    published = publish(framework("a", "1"), mapping(("1", "1"), *(("1", f"x{number}") for number in range(7))))
    assert faults(published, Stored(["urn:framework:b"], ["urn:node:b:1"])) == [
        (
            "1.json",
            f"{SET}/requirement_mappings/1/target_requirement_urn",
            (
                "7 mappings name controls that the framework urn:framework:b does not have: urn:node:b:x0, "
                "urn:node:b:x1, urn:node:b:x2, urn:node:b:x3, urn:node:b:x4 and 2 more. "
                "Import a version that has them, or use --skip-unknown"
            ),
        )
    ]


def test_a_framework_with_another_urn_than_its_mapping_says(publish: Callable[..., Published]) -> None:
    """Some of its controls are there, so to import its library would not help."""
    published = publish(framework("a", "1"), mapping(("1", "1"), ("1", "2")))
    [(_, _, reason)] = faults(published, Stored([], ["urn:node:b:1"]))
    assert reason.startswith("1 mapping names controls that the framework urn:framework:b does not have: urn:node:b:2.")


def test_a_mapping_that_names_no_frameworks(publish: Callable[..., Published]) -> None:
    nameless = mapping(("1", "1"), source_framework_urn=None, target_framework_urn=None)
    [(_, place, reason)] = faults(publish(nameless), Stored())
    assert place == f"{SET}/requirement_mappings/0/source_requirement_urn"
    assert reason.startswith("1 mapping names controls that no catalog has: urn:node:a:1, urn:node:b:1.")


def test_unknown_controls_can_be_skipped(publish: Callable[..., Published]) -> None:
    published = publish(framework("a", "1", "2"), mapping(("1", "1"), ("2", "x"), ("y", "z"), ("2", "1")))
    rows, left_out = rows_to_load(published, Stored(["urn:framework:b"], ["urn:node:b:1"]), skip_unknown=True)
    one, two, other = "urn:node:a:1", "urn:node:a:2", "urn:node:b:1"
    assert pairs(rows) == {(one, other), (other, one), (two, other), (other, two)}
    file = published.relations[0].within.file
    assert left_out == [
        LeftOut(file, f"{SET}/requirement_mappings/1", two, "equal", "urn:node:b:x", ("urn:node:b:x",)),
        LeftOut(
            file,
            f"{SET}/requirement_mappings/2",
            "urn:node:a:y",
            "equal",
            "urn:node:b:z",
            ("urn:node:a:y", "urn:node:b:z"),
        ),
    ]


def test_a_catalog_of_oscal_that_is_missing(publish: Callable[..., Published]) -> None:
    document = oscal_collection(sources=[end("wt-1")], targets=[end("x-1"), end("x-2")])
    published = publish(catalog(control("wt-1")), document)
    assert faults(published, Stored()) == [
        (
            "1.json",
            "/mapping-collection/mappings/0/target-resource",
            (
                f"2 mappings need the framework {ELSEWHERE}, which has not been imported. "
                "Import that catalog first, or together with this file"
            ),
        )
    ]
    rows, left_out = rows_to_load(published, Stored(), skip_unknown=True)
    assert pairs(rows) == set()
    assert [(entry.source, entry.unknown) for entry in left_out] == [
        (f"{UUID}:wt-1", (f"{ELSEWHERE}:x-1",)),
        (f"{UUID}:wt-1", (f"{ELSEWHERE}:x-2",)),
    ]


def test_published_mappings_need_what_they_map(catalogs: Path) -> None:
    folder = catalogs / "ciso-assistant"
    mappings = [
        folder / "map-nist-csf-1.1-nist-csf-2.0.yaml",
        folder / "mapping-nist-sp-800-66-rev2-to-nist-csf-2.0.yaml",
    ]
    found = faults(read_published([*mappings, folder / "nist-csf-2.0.yaml"]), Stored())
    assert [(file, reason.partition(", ")[0]) for file, _, reason in found] == [
        (mappings[0].name, "185 mappings need the framework urn:intuitem:risk:framework:nist-csf-1.1"),
        (mappings[1].name, "5,108 mappings need the framework urn:intuitem:risk:framework:nist-sp-800-66-rev2"),
    ]
    assert "(urn:intuitem:risk:library:nist-csf-1.1, usually the file nist-csf-1.1.yaml)" in found[0][2]
    everything = sorted(folder.iterdir())
    rows, left_out = rows_to_load(read_published(everything), Stored())
    assert [row for row in rows if row.array in ("frameworks", "controls", "controlMatches")] == read(everything)
    assert left_out == []
