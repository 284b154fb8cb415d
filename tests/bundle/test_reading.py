"""From files to rows: whatever a file holds, it is rows or faults with their places, never anything else."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normata.bundle import loading, reading
from normata.bundle.arrays import ARRAYS
from normata.bundle.reading import read
from normata.core.changes.source import FaultyInput, Row
from normata.core.changes.unit_of_work import COMMAND, UnitOfWork
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.operations import SECURITY
from normata.records.kinds import Label
from normata.tables import Table
from tests import world

LABEL = {"id": "l", "organizationId": world.ALPHA, "name": "GDPR"}


def file_of(folder: Path, content: str | bytes, name: str = "bundle.json") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def faults_of(*paths: Path) -> list[tuple[str, str, str]]:
    with pytest.raises(FaultyInput) as caught:
        read(paths)
    return [(Path(fault.file).name, fault.place, fault.reason) for fault in caught.value.faults]


def test_rows_know_their_array_file_and_place(tmp_path: Path) -> None:
    one = file_of(tmp_path, json.dumps({"labels": [LABEL, {"id": "m"}]}), "one.json")
    two = file_of(tmp_path, json.dumps({"variables": [{"id": "v"}], "labels": []}), "two.json")
    assert read([one, two]) == [
        Row("labels", str(one), "/labels/0", LABEL),
        Row("labels", str(one), "/labels/1", {"id": "m"}),
        Row("variables", str(two), "/variables/0", {"id": "v"}),
    ]


def test_every_array_is_optional(tmp_path: Path) -> None:
    assert read([file_of(tmp_path, "{}"), file_of(tmp_path, json.dumps({array: [] for array in ARRAYS}))]) == []


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = file_of(tmp_path, b"\xef\xbb\xbf" + json.dumps({"labels": [LABEL]}).encode())
    assert [row.values for row in read([path])] == [LABEL]


@pytest.mark.parametrize(
    ("content", "place", "reason"),
    [
        ("", "", "is not JSON: "),
        ("labels: []", "", "line 1 column 1"),
        ('{"labels": [\n  {"id": }]}', "", "line 2 column 10"),
        ('{"labels": []} {}', "", "is not JSON: "),
        ('{"labels": [{"id": "l", "x": NaN}]}', "/labels/0/x", "is NaN, which is no value of JSON"),
        ('{"labels": [{"id": "l", "x": [-Infinity]}]}', "/labels/0/x/0", "is -Infinity, which is no value of JSON"),
        ('{"labels": [{"id": "l", "x": 1e999}]}', "/labels/0/x", "is a number that is too large: 1e999…"),
        (
            f'{{"labels": [{{"x": -{"9" * 4_301}}}]}}',
            "/labels/0/x",
            "is a number that is too large: -9999999999999999999…",
        ),
        (b'{"labels": [{"id": "\xff"}]}', "", "is not JSON: "),
        (b"\xff\xfe{\x00}\x00", "", "is not JSON: "),
        ('{"labels": [{"id": "\\ud800"}]}', "/labels/0/id", "must not hold half of a surrogate pair"),
        ('{"labels": [{"id": [{"\\ud800": 1}]}]}', "/labels/0/id/0", "must not hold half of a surrogate pair"),
        ('{"\\ud800": []}', "/\ufffd", "is not an array that a bundle has"),
        ('{"labels": ' + "[" * 100_000, "/labels/0", "is nested deeper than 199 levels"),
        ('{"labels": [{"id":' * 100_000, "/labels/0", "is nested deeper than 199 levels"),
        ("[]", "", "must be a JSON object"),
        ("null", "", "must be a JSON object"),
        ('"labels"', "", "must be a JSON object"),
        ('{"colours": []}', "/colours", "is not an array that a bundle has; it has organizations, users"),
        ('{"a/b~c": []}', "/a~1b~0c", "is not an array that a bundle has"),
        ('{"labels": {}}', "/labels", "must be an array"),
        ('{"labels": null}', "/labels", "must be an array"),
        ('{"labels": [{}, "GDPR"]}', "/labels/1", "must be an object"),
        ('{"labels": [null]}', "/labels/0", "must be an object"),
    ],
)
def test_refused_with_place_and_reason(tmp_path: Path, content: str | bytes, place: str, reason: str) -> None:
    [(name, found_place, found_reason)] = faults_of(file_of(tmp_path, content))
    assert (name, found_place) == ("bundle.json", place)
    assert reason in found_reason


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert faults_of(tmp_path / "absent.json", tmp_path) == [
        ("absent.json", "", "cannot be read: No such file or directory"),
        (tmp_path.name, "", "cannot be read: Is a directory"),
    ]


def test_faults_of_all_files_are_told_together(tmp_path: Path) -> None:
    one = file_of(tmp_path, "{", "one.json")
    two = file_of(tmp_path, '{"labels": [1, {}, 2], "tags": []}', "two.json")
    found = faults_of(one, tmp_path / "absent.json", two)
    assert [(name, place) for name, place, _ in found] == [
        ("one.json", ""),
        ("absent.json", ""),
        ("two.json", "/labels/0"),
        ("two.json", "/labels/2"),
        ("two.json", "/tags"),
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"labels": [], "variables": [],\n "labels": [{"id": 1}]}', [("/labels", "is given twice")]),
        (
            '{"labels": [\n{"id": "l", "name": "One",\n "name": "Two", "x": {"y": 1, "y": 2}}]}',
            [
                ("/labels/0/name", "is given twice"),
                ("/labels/0/x/y", "is given twice"),
            ],
        ),
    ],
)
@pytest.mark.parametrize("piece", [5, 10_000])
def test_a_name_given_twice_is_refused_as_one_of_the_values_would_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, expected: list[tuple[str, str]], piece: int
) -> None:
    monkeypatch.setattr(reading, "_PIECE", piece)
    assert [(place, reason) for _, place, reason in faults_of(file_of(tmp_path, content))] == expected


def test_the_rows_of_a_faulty_file_can_be_judged(tmp_path: Path) -> None:
    """Faults of form hide no others: all rows are there, but what could not be kept of them."""
    rows = [
        '{"id": "l", "name": "One", "name": "Two"}',
        '{"id": "m", "name": "x\\ud800y", "\\udfff": 1}',
        f'{{"id": "n", "name": "Three", "content": {"[" * 300}{"]" * 300}}}',
        '"GDPR"',
        '{"id": "o", "name": NaN, "x": 1e999}',
        '{"id": "p"}',
    ]
    path = file_of(tmp_path, f'{{"tags": [{", ".join(rows)}], "labels": [{", ".join(rows)}], "tasks": {{}}}}')
    found, faults = reading.read_all([path])
    assert [(row.place, row.values["id"], row.values.get("name")) for row in found] == [
        ("/labels/0", "l", "Two"),
        ("/labels/1", "m", "x?y"),
        ("/labels/2", "n", "Three"),
        ("/labels/4", "o", None),
        ("/labels/5", "p", None),
    ]
    assert json_levels(found[2].values["content"]) == 199
    assert [fault.place for fault in faults] == [
        "/tags",
        "/labels/0/name",
        "/labels/1",
        "/labels/1/name",
        "/labels/2/content",
        "/labels/3",
        "/labels/4/name",
        "/labels/4/x",
        "/tasks",
    ]


def json_levels(value: Any) -> int:
    return 1 + max((json_levels(item) for item in value), default=0) if isinstance(value, list) else 0


@pytest.mark.parametrize(
    "broken", ['{"labels": [{"id": "m"}, {]}', "[]", '{"labels": [], "labels": [{"id": "m"}]}', None]
)
def test_where_rows_are_missing_none_are_judged(tmp_path: Path, broken: str | None) -> None:
    """Others may refer to those that are missing, and would be blamed for it."""
    good = file_of(tmp_path, '{"tasks": [{"id": "t", "labelId": "m"}], "tags": []}', "good.json")
    bad = tmp_path / "absent.json" if broken is None else file_of(tmp_path, broken)
    rows, faults = reading.read_all([good, bad])
    assert rows == []
    assert [fault.file for fault in faults] == [str(good), str(bad)]


@pytest.mark.parametrize("piece", [1, 2, 7, 64])
def test_rows_are_the_same_wherever_a_piece_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(reading, "_PIECE", piece)
    label = LABEL | {"name": "Größe \U0001f6b2 \\", "order": -12.5e3, "content": [1, 1.0, True, None, 2**80, {"": []}]}
    path = file_of(tmp_path, json.dumps({"labels": [label, {}], "tags": [], "tasks": [{"id": "t"}]}, indent=1))
    with pytest.raises(FaultyInput):
        read([path])  # tags are no array of a bundle
    path = file_of(tmp_path, json.dumps({"labels": [label, {}], "tasks": [{"id": "t"}]}, indent=1))
    assert [repr(dict(row.values)) for row in read([path])] == [repr(label), "{}", repr({"id": "t"})]


@pytest.mark.parametrize("piece", [1, 5, 1000])
def test_a_fault_has_its_line_and_column_wherever_a_piece_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(reading, "_PIECE", piece)
    [(_, _, reason)] = faults_of(file_of(tmp_path, '{"labels": [{},\n{"id": "l"}\n, {"id" "m"}]}'))
    assert reason.endswith("at line 3 column 9")


# --- Whatever a file holds

JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["", "\x00", "x" * 200, "2026-13-01", "FULL", "org-alpha", "org-beta", "sun.A.1", "fw-sun", 2**80]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


def small_bundle() -> dict[str, list[dict[str, Any]]]:
    """Rows of the world, changed, and new ones beside them: every sort of array, every sort of reference."""
    whole = world.bundle()
    picked = {array: copy.deepcopy(whole.get(array, [])[:2]) for array in ARRAYS}
    return picked | {
        "labels": [copy.deepcopy(LABEL)],
        "controls": [
            {"id": "sun.A", "frameworkId": "fw-sun", "name": "Renamed"},
            {"id": "sun.new", "frameworkId": "fw-sun", "parentId": "sun.A", "name": "New"},
        ],
        "tasks": [{"id": "t", "organizationId": world.ALPHA, "title": "T", "assetId": "assets-live-org-alpha"}],
        "policies": [{"id": "p", "organizationId": world.ALPHA, "title": "P", "content": {"blocks": [1, "two"]}}],
    }


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of the document with each of its keys."""
    inside = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value) if isinstance(value, list) else [])
    )
    return [(value, key) for key, _ in inside] + [place for _, item in inside for place in places(item)]


def mutate(document: Any, data: st.DataObject) -> None:
    found = places(document)
    container, key = found[data.draw(st.integers(0, len(found) - 1))]
    match data.draw(st.sampled_from(["junk", "delete", "swap", "copy"])):
        case "junk":
            container[key] = data.draw(JUNK)
        case "delete":
            del container[key]
        case "swap":
            other, there = found[data.draw(st.integers(0, len(found) - 1))]
            # Copies: a container that came to hold itself could not be written down.
            mine, theirs = copy.deepcopy(container[key]), copy.deepcopy(other[there])
            container[key], other[there] = theirs, mine
        case "copy" if isinstance(container, list):
            container.append(copy.deepcopy(container[key]))


class Undo(Exception):
    """Rolls a transaction back once it has been looked at."""


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_mutated_bundle_loads_whole_or_leaves_nothing(
    database: Database, tmp_path: Path, data: st.DataObject
) -> None:
    before = world.contents(database)
    document = small_bundle()
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(document, data)
    path = file_of(tmp_path, json.dumps(document))
    try:
        rows = read([path])
        with pytest.raises(Undo):
            database.write_now(lambda transaction: _load_and_look(database, transaction, rows))
    except FaultyInput as refused:
        for fault in refused.faults:
            assert fault.file == str(path)
            str(fault).encode()
    assert world.contents(database) == before


def _load_and_look(database: Database, transaction: Transaction, rows: list[Row]) -> None:
    row_counts = loading.load(UnitOfWork(transaction, COMMAND, None, None), rows)
    assert sum(t.inserted + t.updated + t.unchanged for t in row_counts.values()) == len(rows)
    assert list(database.faults(transaction, Table.metadata, SECURITY)) == []
    raise Undo


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=60) | st.text(alphabet='{}[]",:labes0-eE.\\u \n', max_size=60))
def test_any_bytes_are_rows_or_faults(tmp_path: Path, content: str | bytes) -> None:
    path = file_of(tmp_path, content)
    with contextlib.suppress(FaultyInput):
        assert all(row.array in ARRAYS for row in read([path]))


def test_the_small_bundle_is_good_before_it_is_mutated(database: Database) -> None:
    assert world.load(database, small_bundle())[Label.array].inserted == 1
