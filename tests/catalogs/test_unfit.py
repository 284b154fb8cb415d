"""Files that are something else than catalogs and mappings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from normata.catalogs.reading import read, read_published
from normata.core.changes.source import FaultyInput
from tests.catalogs.test_reading import LIBRARY


@pytest.mark.parametrize(
    ("content", "beginning"),
    [
        ({"component-definition": {}}, "is an OSCAL component definition"),
        ({"system-security-plan": {}}, "is an OSCAL system security plan"),
        ({"urn": "u", "objects": {"risk_matrix": [{"urn": "u"}]}}, "is a CISO Assistant library with a risk matrix"),
        ({"urn": "u", "objects": {"preset": {"a": "b"}}}, "is a CISO Assistant library with a preset"),
        ({"frameworks": [], "controls": []}, "is a bundle of Normata: `normata load`"),
        ("<?xml version='1.0'?><catalog/>", "is XML"),
        ("%PDF-1.7", "is a PDF"),
        ({"what": "ever"}, "is not recognised"),
    ],
)
def test_the_fault_says_what_it_is(tmp_path: Path, content: object, beginning: str) -> None:
    path = tmp_path / "file"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(FaultyInput) as caught:
        read([path])
    assert [fault.reason[: len(beginning)] for fault in caught.value.faults] == [beginning]


def test_unfit_files_are_skipped_with_their_faults_and_the_rest_is_read(tmp_path: Path) -> None:
    fit, matrix, broken, again = (tmp_path / name for name in ("fit", "matrix", "broken", "again"))
    fit.write_text(json.dumps(LIBRARY))
    matrix.write_text(json.dumps({"urn": "u", "objects": {"risk_matrix": [{"urn": "u"}]}}))
    broken.write_text("{]")
    again.write_text(json.dumps({**LIBRARY, "urn": "urn:other"}))  # another library with the same controls
    published = read_published([fit, matrix, broken, again], skip_unfit=True)
    assert {Path(fault.file).name for fault in published.unfit} == {"matrix", "broken", "again"}
    assert {Path(row.file).name for row in published.rows} == {"fit"}
    with pytest.raises(FaultyInput):
        read_published([fit, matrix])


def test_what_is_not_imported_is_counted(tmp_path: Path) -> None:
    library = json.loads(json.dumps(LIBRARY))
    node = library["objects"]["framework"]["requirement_nodes"][0]
    node |= {"translations": {"fr": {"name": "Un"}}, "weight": 2, "typical_evidence": "A log.", "annotation": "Do it."}
    library["objects"]["threats"] = [{"urn": "t1"}, {"urn": "t2"}]
    path = tmp_path / "library"
    path.write_text(json.dumps(library))
    published = read_published([path])
    assert {name: published.left_out[name] for name in ("translations", "scores", "threats")} == {
        "translations": 1,
        "scores": 1,
        "threats": 2,
    }
    first = next(row for row in published.rows if row.array == "controls")
    assert first.values["purpose"] == "Do it.\n\nTypical evidence:\nA log."
