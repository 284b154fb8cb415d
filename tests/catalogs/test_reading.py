"""What all imported files have in common: how they are told apart, and what is refused without a traceback."""

from __future__ import annotations

import contextlib
import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normata.catalogs.reading import read, read_published
from normata.core.changes.source import FaultyInput, Row

LIBRARY: dict[str, Any] = {
    "urn": "urn:example:library:boat",
    "version": 3,
    "publication_date": "2024-06-29",
    "objects": {
        "framework": {
            "urn": "urn:example:framework:boat",
            "ref_id": "BOAT",
            "name": "Boat rules",
            "requirement_nodes": [
                {"urn": "urn:example:node:boat:1", "assessable": False, "name": "Sails"},
                {"urn": "urn:example:node:boat:2", "assessable": True, "parent_urn": "urn:example:node:boat:1"},
            ],
        },
        "requirement_mapping_sets": [
            {
                "requirement_mappings": [
                    {
                        "source_requirement_urn": "urn:example:node:boat:1",
                        "target_requirement_urn": "urn:example:node:boat:2",
                        "relationship": "superset",
                    }
                ]
            }
        ],
    },
}

METADATA = {"title": "Boats", "last-modified": "2025-03-01T10:00:00Z", "version": "1", "oscal-version": "1.2.1"}

CATALOG: dict[str, Any] = {
    "catalog": {
        "uuid": "3f1d1c52-0b7a-4c39-9d44-6a1b7f0f2a10",
        "metadata": METADATA,
        "groups": [
            {
                "id": "sa",
                "title": "Sails",
                "controls": [
                    {
                        "id": "sa-1",
                        "title": "Reefing",
                        "params": [{"id": "p", "select": {"how-many": "one", "choice": ["early", "late"]}}],
                        "props": [{"name": "label", "value": "SA-1"}],
                        "parts": [
                            {
                                "name": "statement",
                                "prose": "Reef.",
                                "parts": [{"name": "item", "prose": "{{ insert: param, p }}"}],
                            }
                        ],
                    }
                ],
            }
        ],
    }
}

COLLECTION: dict[str, Any] = {
    "mapping-collection": {
        "uuid": "5a5a5a5a-1111-4222-8333-444444444444",
        "metadata": METADATA,
        "provenance": {"method": "m", "matching-rationale": "r", "status": "s", "mapping-description": "d"},
        "mappings": {
            "uuid": "0d9c8b7a-1234-4e5f-8a9b-abcdefabcdef",
            "source-resource": {"type": "catalog", "href": "#3f1d1c52-0b7a-4c39-9d44-6a1b7f0f2a10"},
            "target-resource": {"type": "catalog", "href": "https://example.org/boats.json"},
            "maps": [
                {
                    "uuid": "7e0b5a64-52de-4c25-8e0b-1c9e0f1d2a33",
                    "relationship": "subset-of",
                    "sources": [{"type": "control", "id-ref": "sa-1"}],
                    "targets": [{"type": "statement", "id-ref": "b-1_smt.a"}],
                }
            ],
        },
    }
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("importing")


def read_text(folder: Path, text: str | bytes) -> list[Row]:
    path = folder / "document"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read([path])


def reasons(folder: Path, text: str | bytes) -> list[str]:
    with pytest.raises(FaultyInput) as caught:
        read_text(folder, text)
    return [f"{fault.place}: {fault.reason}" for fault in caught.value.faults]


@pytest.mark.parametrize("document", [LIBRARY, CATALOG, COLLECTION])
def test_json_and_yaml_read_the_same(folder: Path, document: dict[str, Any]) -> None:
    assert read_text(folder, json.dumps(document)) == read_text(folder, yaml.safe_dump(document, sort_keys=False))


def test_files_in_their_order_with_progress(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "two", "three")]
    for path, document in zip(paths, (COLLECTION, LIBRARY, CATALOG), strict=True):
        path.write_text(json.dumps(document))
    seen: list[str] = []
    published = read_published(paths, seen.append)
    assert seen == [str(path) for path in paths]
    assert list(dict.fromkeys(row.file for row in published.rows)) == seen
    assert list(dict.fromkeys(relation.within.file for relation in published.relations)) == seen[:2]


def test_faults_of_all_files_together(tmp_path: Path) -> None:
    absent, broken, library = tmp_path / "absent", tmp_path / "broken", tmp_path / "library"
    broken.write_text("{]")
    library.write_text(json.dumps({**LIBRARY, "version": [1]}))
    with pytest.raises(FaultyInput) as caught:
        read([absent, tmp_path, broken, library])
    assert [(Path(fault.file), fault.place) for fault in caught.value.faults] == [
        (absent, ""),
        (tmp_path, ""),
        (broken, ""),
        (library, "/version"),
    ]


def test_a_document_given_twice_is_one_fault(tmp_path: Path) -> None:
    path = tmp_path / "library"
    path.write_text(json.dumps(LIBRARY))
    with pytest.raises(FaultyInput) as caught:
        read([path, path])
    assert [fault.reason for fault in caught.value.faults] == [
        f"urn:example:library:boat has been read from {path} already"
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "",
            (
                "is not recognised: expected a table with a column identifier (XLSX), a table with a column identifier "
                "(CSV), an OSCAL catalog, an OSCAL profile, an OSCAL mapping collection or a CISO Assistant library"
            ),
        ),
        ("[]", "is not recognised"),
        ("just words", "is not recognised"),
        ('{"component-definition": {}}', "is an OSCAL component definition"),
        ('{"urn": "x",\n "objects": ]}', "is neither JSON nor YAML: line 2, column 13"),
        ("urn: x\nobjects: }", "is neither JSON nor YAML: line 2, column 10"),
        ("urn: x\nname: \x07", "is neither JSON nor YAML: line 2, column 7"),
        ("objects: *nowhere", "line 1, column 10: the alias *nowhere has no anchor before it"),
        ("objects: !!python/object/apply:os.getcwd []", "line 1, column 10: the tag tag:yaml.org,2002:python"),
        ("objects: !!map x", "line 1, column 10: the tag tag:yaml.org,2002:map is not read"),
        ("objects: !!set {x}", "line 1, column 10: the tag tag:yaml.org,2002:set is not read"),
        ("? [a]\n: b", "line 1, column 3: a key must be text"),
        ("x: &a [a]\n*a : b", "line 2, column 1: a key must be text"),
        ("objects: {}\n---\nobjects: {}", "line 2, column 1: a second document begins"),
        ("base: &a {x: 1}\nobjects:\n  <<: *a", "line 3, column 3: merge keys are not read"),
        ("objects: &a [*a]", "must not contain itself"),
        ('{"objects": {}, "urn": "\\ud800"}', "/urn: must not hold"),
        ('{"objects": {}, "urn": "\\u0000"}', "/urn: must not hold"),
        (b"\xff\xfe", "is not UTF-8 text"),
        ("objects: " + "[" * 200_000, "nested deeper than 100 levels"),
        ("- " * 200_000, "nested deeper than 100 levels"),
        ('{"objects":' * 200_000, "nested deeper than 100 levels"),
        ('{"objects":' + "[" * 500 + "]" * 500 + "}", "nested deeper than 100 levels"),
    ],
)
def test_refused(folder: Path, text: str | bytes, reason: str) -> None:
    [found] = reasons(folder, text)
    assert reason in found


def test_as_deep_as_may_be(folder: Path) -> None:
    deep = {**LIBRARY, "translations": json.loads("[" * 99 + "]" * 99)}
    assert read_text(folder, json.dumps(deep)) == read_text(folder, yaml.safe_dump(deep)) != []
    deep["translations"] = [deep["translations"]]
    for text in (json.dumps(deep), yaml.safe_dump(deep)):
        [found] = reasons(folder, text)
        assert "nested deeper than 100 levels" in found


@pytest.mark.parametrize("times", [1, 2])
def test_aliases_that_add_up_to_too_many_levels(folder: Path, times: int) -> None:
    lines = ["l0: &l0 " + "[" * 45 + "]" * 45]
    lines += [f"l{level}: &l{level} {'[' * 45}*l{level - 1}{']' * 45}" for level in range(1, times + 1)]
    found = reasons(folder, "\n".join(lines))
    assert ("nested deeper than 100 levels" in found[0]) == (times == 2)


def test_aliases_that_multiply_are_refused_at_once(folder: Path) -> None:
    levels = [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]" for level in range(1, 30)]
    start = time.monotonic()
    [found] = reasons(folder, "\n".join(["l0: &l0 [x]", *levels, "catalog: *l29"]))
    assert "2,000,000 values" in found
    assert time.monotonic() - start < 2


def test_long_texts_that_aliases_multiply_are_refused(folder: Path) -> None:
    [found] = reasons(folder, f"text: &text {'x' * 70_000}\nobjects: [{', '.join(['*text'] * 1_000)}]")
    assert "holds more than 67,108,864 characters once its aliases are written out" in found


def test_a_json_document_with_too_many_values_is_refused_before_it_is_made(folder: Path) -> None:
    assert reasons(folder, '{"objects": [' + "1," * 2_000_000 + "1]}") == [": holds more than 2,000,000 values"]
    prose = json.dumps({**LIBRARY, "copyright": "," * 2_000_000})
    assert read_text(folder, prose) == read_text(folder, json.dumps(LIBRARY))


def test_aliases_are_read(folder: Path) -> None:
    text = yaml.safe_dump(LIBRARY, sort_keys=False)
    anchored = text.replace("urn: urn:example:node:boat:1\n", "urn: &first urn:example:node:boat:1\n", 1)
    aliased = anchored.replace("source_requirement_urn: urn:example:node:boat:1", "source_requirement_urn: *first")
    assert text != anchored != aliased
    assert read_text(folder, aliased) == read_text(folder, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "urn: u\nobjects:\n  framework:\n    urn: f\n    urn: g\n    requirement_nodes: []\n",
            ["/objects/framework/urn: is given twice: in line 4, column 5 and in line 5, column 5"],
        ),
        (
            "urn: u\nobjects:\n  x: [{a: 1}, {a: 1, b: {c: 1, 'c': 2}, a: 3}]\n",
            [
                "/objects/x/1/b/c: is given twice: in line 3, column 26 and in line 3, column 32",
                "/objects/x/1/a: is given twice: in line 3, column 16 and in line 3, column 41",
            ],
        ),
        (
            '{"urn": "u",\n "objects": {"x": 1,\n "x": 2},\n "urn": "v"}',
            ["/urn: is given twice", "/objects/x: is given twice"],
        ),
        (
            '{"objects": {}, "catalog": {"a/b": [{"\\u0061": 1, "a": 2}]}}',
            ["/catalog/a~1b/0/a: is given twice"],
        ),
        (
            '{"objects": {"\\ud800": 1, "\\ud800": 2}}',
            [
                "/objects/\ufffd: is given twice",
                "/objects: must not hold NUL or half of a surrogate pair",
            ],
        ),
    ],
)
def test_a_key_that_is_given_twice_is_a_fault_as_one_value_would_be_lost(
    folder: Path, text: str, expected: list[str]
) -> None:
    assert reasons(folder, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"objects": {"a": ["", {"b": "x\\udc00"}]}, "urn": "\\ud83d\\ude00"}', "/objects/a/1/b"),
        ('{"objects": {"a": [{"b\\u0000": 1}]}}', "/objects/a/0"),
        ('objects: {a: ["\\0"]}', "/objects/a/0"),
        ('objects: {a: [{b: "\\x00"}]}', "/objects/a/0/b"),
        ('objects: {a: &a ["\\U00000000"], b: *a}', "/objects/a/0"),
    ],
)
def test_what_no_database_holds_is_a_fault_with_its_place(folder: Path, text: str, expected: str) -> None:
    assert reasons(folder, text) == [f"{expected}: must not hold NUL or half of a surrogate pair"]


def test_a_device_is_refused() -> None:
    with pytest.raises(FaultyInput) as caught:
        read([Path("/dev/zero")])
    assert [str(fault) for fault in caught.value.faults] == ["/dev/zero: is neither a regular file nor a pipe"]


def test_text_that_yaml_would_take_for_something_else(folder: Path) -> None:
    text = """
urn: u
version: 0o17
objects:
  framework:
    urn: f
    ref_id: 1_000
    requirement_nodes:
    - {urn: 12:30, ref_id: NO, name: Nullable, description: 2024-06-29, assessable: TRUE, on: x, 1: y, null: z}
    - {urn: truest, ref_id: 164.310, name: ~, description: null, annotation: .inf, assessable: !!bool off}
"""
    framework, first, second = (row.values for row in read_text(folder, text))
    assert (framework["version"], framework["identifier"], framework["name"]) == ("0o17", "1_000", "1_000")
    assert (first["id"], first["identifier"], first["name"]) == ("12:30", "NO", "Nullable")
    assert (first["description"], first["type"]) == ("2024-06-29", "CONTROL")
    assert (second["id"], second["identifier"], second["name"]) == ("truest", "164.310", ".inf")
    assert (second["purpose"], second["type"]) == (".inf", "CATEGORY")


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["", " ", "\x00", "\ud800", "#", "{{ insert: param, p }}", "x" * 200, "http://[", "2024-13-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of the document with each of its keys."""
    inside = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [(value, key) for key, _ in inside] + [place for _, item in inside for place in places(item)]


@pytest.mark.parametrize("original", [LIBRARY, CATALOG, COLLECTION], ids=["library", "catalog", "collection"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_junk_anywhere_is_rows_or_faults(folder: Path, original: dict[str, Any], data: st.DataObject) -> None:
    document = copy.deepcopy(original)
    for _ in range(data.draw(st.integers(1, 3))):
        found = places(document)
        if found:
            container, key = found[data.draw(st.integers(0, len(found) - 1))]
            if data.draw(st.booleans()):
                container[key] = data.draw(JUNK)
            else:
                del container[key]
    try:
        rows = read_text(folder, json.dumps(document))
    except FaultyInput as refused:
        printed = list(map(str, refused.faults))
        "".join(printed).encode()
    else:
        printed = ["no faults"]
        assert all(row.values["id"] for row in rows)
        assert all(row.values["name"] for row in rows if row.array != "controlMatches")
    assert printed


@settings(max_examples=50, deadline=None)
@given(text=st.text(alphabet="objectsurn:\n -[]{}&*!?|>'\"<,#%@~ \t\x85\ud7ff", max_size=60))
def test_any_text_is_rows_or_faults(folder: Path, text: str) -> None:
    with contextlib.suppress(FaultyInput):
        read_text(folder, text)


def published(catalogs: Path) -> list[Path]:
    """The files of catalogs and mappings; OSCAL's profiles, which lie beside them, are neither."""
    return sorted([*(catalogs / "ciso-assistant").iterdir(), *(catalogs / "oscal").glob("*catalog*")])


@pytest.mark.long
def test_everything_published_is_read_and_read_alike_again(catalogs: Path) -> None:
    paths = published(catalogs)
    rows = read(paths)
    assert len(rows) > 5_000
    assert rows == read(paths)
