"""What mapping collections in OSCAL become."""

from __future__ import annotations

import tracemalloc

import pytest

from normata.catalogs import oscal_mapping
from normata.core.changes.source import Row
from tests.catalogs.oscal_documents import ELSEWHERE, UUID, Reader, catalog, collection, end


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
def test_relationships(read_documents: Reader, relationship: str, forward: str, backward: str) -> None:
    rows = read_documents(collection(relationship))
    assert levels(rows) == {("wt-1", "x-1"): forward, ("x-1", "wt-1"): backward}
    assert rows[0].values["sourceControlId"] == f"{UUID}:wt-1"
    assert rows[0].fault("sourceControlId", "?").place == "/mapping-collection/mappings/0/maps/0/sources"
    assert rows[1].fault("sourceControlId", "?").place == "/mapping-collection/mappings/0/maps/0/targets"


def test_no_relationship(read_documents: Reader) -> None:
    assert read_documents(collection("no-relationship")) == []


def test_several_sources_cover_a_target_only_together(read_documents: Reader) -> None:
    assert levels(read_documents(collection(sources=[end("wt-1"), end("wt-2")]))) == {
        ("wt-1", "x-1"): "PARTIAL",
        ("x-1", "wt-1"): "FULL",
        ("wt-2", "x-1"): "PARTIAL",
        ("x-1", "wt-2"): "FULL",
    }


@pytest.mark.parametrize(("name", "backward"), [("wt-1_smt.a", "PARTIAL"), ("wt-1_smt", "FULL")])
def test_statements_are_parts_of_their_control(read_documents: Reader, name: str, backward: str) -> None:
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
    read_documents: Reader, href: str, links: list[dict[str, str]] | None
) -> None:
    document = collection(href=href)
    if links:
        document["mapping-collection"]["back-matter"] = {"resources": [{"uuid": RESOURCE, "rlinks": links}]}
    rows = read_documents(catalog(), document)
    assert levels(rows) == {("wt-1", "x-1"): "FULL", ("x-1", "wt-1"): "FULL"}


def test_a_resource_without_a_uuid_is_the_prefix_itself(read_documents: Reader) -> None:
    rows = read_documents(collection(href="urn:example:node:kitchen"))
    assert rows[0].values["sourceControlId"] == "urn:example:node:kitchen:wt-1"


def test_faults_of_collections(read_documents: Reader) -> None:
    document = collection("resembles", sources=[end("wt-1", "statement"), end("wt-1", "chapter"), end("wt-1")])
    here = "/mapping-collection/mappings/0/maps/0"
    found = read_documents.faults(document)
    assert [place for place, _ in found] == [
        f"{here}/relationship",
        f"{here}/sources/0/id-ref",
        f"{here}/sources/1/type",
    ]
    document["mapping-collection"]["mappings"][0]["maps"][0] |= {
        "ns": "https://example.org/ns",
        "sources": [end("wt-1")],
    }
    assert [place for place, _ in read_documents.faults(document)] == [f"{here}/ns"]


def many(letter: str, count: int) -> list[dict[str, str]]:
    return [end(f"{letter}-{number}") for number in range(count)]


def test_what_a_map_means_is_counted_before_it_is_made(read_documents: Reader) -> None:
    """A file of some 300 kB once took 6 GB of memory, and then half an hour."""
    document = collection(sources=many("a", 3_000), targets=many("b", 3_000))
    tracemalloc.start()
    try:
        [(place, reason)] = read_documents.faults(document)
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    finally:
        tracemalloc.stop()
    assert place == "/mapping-collection/mappings/0/maps/0"
    assert reason == (
        "means 18,000,000 matches (3,000 sources times 3,000 targets, both ways); one file may mean 200,000 at most"
    )


def test_all_maps_of_a_file_count_together(read_documents: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oscal_mapping, "MAX_MATCHES", 100)
    document = collection(sources=many("a", 5), targets=many("b", 5))
    mapping = document["mapping-collection"]["mappings"][0]
    mapping["maps"].append(mapping["maps"][0] | {"sources": many("c", 5)})
    assert len(read_documents(document)) == 100
    mapping["maps"].append(mapping["maps"][0] | {"sources": many("d", 1), "targets": many("e", 1)})
    [(place, reason)] = read_documents.faults(document)
    assert place == "/mapping-collection/mappings/0/maps/0"
    assert reason.startswith("means 102 matches with the maps beside it (5 sources times 5 targets, both ways); ")


def test_what_is_not_related_means_nothing_however_much_it_is(read_documents: Reader) -> None:
    document = collection("no-relationship", sources=many("a", 3_000), targets=many("b", 3_000))
    assert read_documents(document) == []


def test_a_word_that_is_no_relation_is_told_of_once_a_map(read_documents: Reader) -> None:
    document = collection("resembles", sources=many("a", 30), targets=many("b", 30))
    [(place, reason)] = read_documents.faults(document)
    assert place == "/mapping-collection/mappings/0/maps/0/relationship"
    assert reason.startswith('"resembles" is not equal, superset')


def test_invalid_collections_say_where(read_documents: Reader) -> None:
    document = collection()
    del document["mapping-collection"]["mappings"][0]["maps"][0]["sources"]
    assert read_documents.faults(document) == [("/mapping-collection/mappings/0/maps/0/sources", "is required")]
