"""Records of decisions are complete, and the index and the list of dependencies agree with the files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "decisions"
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
INDEX = (FOLDER / "README.md").read_text("utf-8")


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_its_parts(path: Path) -> None:
    text = path.read_text("utf-8")
    number = path.name[:4]
    assert re.match(rf"# {number}\. \S.*\n\nDate: \d{{4}}-\d\d-\d\d\n\nStatus: (accepted|superseded by )", text)
    sections = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    assert sections[::2] == ["Context", "Choice", "Consequence"]
    assert all(section.strip() for section in sections[1::2])


def test_numbers_are_unique() -> None:
    """Some may be missing: several records that are written side by side get their numbers beforehand."""
    numbers = [path.name[:4] for path in RECORDS]
    assert len(set(numbers)) == len(numbers)


def test_the_index_lists_each_record_once_as_it_is() -> None:
    rows = re.findall(r"^\| \[(\d{4})\]\((\S+)\) \| (.+?) \| (\S+) \| (.+?) \| .+ \|$", INDEX, re.MULTILINE)
    expected = []
    for path in RECORDS:
        title, date, status = re.findall(r"^(?:# \d{4}\. |Date: |Status: )(.+)$", path.read_text("utf-8"), re.MULTILINE)
        expected.append((path.name[:4], path.name, title, date, status))
    assert sorted(rows) == expected


def test_links_between_records_lead_somewhere() -> None:
    for path in FOLDER.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)", path.read_text("utf-8")):
            assert (FOLDER / target).exists(), f"{path.name}: {target}"


def test_each_dependency_has_a_reason() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = pyproject["project"]
    extras = project["optional-dependencies"].values()
    runtime = [*project["dependencies"], *(line for extra in extras for line in extra)]
    (record,) = FOLDER.glob("*-dependencies.md")
    tables = record.read_text("utf-8").split("\nDevelopment:\n")
    assert len(tables) == 2
    for table, wanted in zip(tables, (runtime, pyproject["dependency-groups"]["dev"]), strict=True):
        rows = re.findall(r"^\| (\S+)(?: \(.+?\))? \| .+ \| .+ \|$", table, re.MULTILINE)
        listed = sorted(row for row in rows if row != "Dependency")
        assert listed == sorted({re.split(r"[\[<>=~!; ]", line, maxsplit=1)[0] for line in wanted})
