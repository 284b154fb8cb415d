"""The docs name every setting, with its default, and every command; what is made from the operations is up to date."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from normata.cli import new_docs
from normata.cli.main import app
from normata.demo import files as demo_files
from normata.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"
OPERATIONS = DOCS / "operations.md"


def commands(group: object, name: str) -> list[str]:
    """Every command that can be typed, below ``group``."""
    if not isinstance(group, TyperGroup):
        return [name]
    return [typed for part, command in group.commands.items() for typed in commands(command, f"{name} {part}")]


COMMANDS = commands(get_command(app), "normata")


def test_there_are_commands_to_look_for() -> None:
    assert isinstance(app, typer.Typer)
    assert {"normata load", "normata token create"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_docs(command: str) -> None:
    assert command in OPERATIONS.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_in_the_docs_with_its_default(name: str) -> None:
    variable, default = f"NORMATA_{name.upper()}", str(Settings.model_fields[name].default)
    lines = OPERATIONS.read_text(encoding="utf-8").splitlines()
    assert any(f"`{variable}`" in line and f"`{default}`" in line for line in lines), f"{variable} with {default}"


@pytest.mark.parametrize("page", [DOCS / "api.md", DOCS.parent / "README.md"], ids=lambda page: page.name)
def test_what_the_examples_ask_for_is_in_the_demo(page: Path) -> None:
    demo: dict[str, set[str]] = {}
    for path in demo_files.paths():
        for array, rows in json.loads(path.read_text("utf-8")).items():
            demo.setdefault(array, set()).update(row["id"] for row in rows)
    named = re.findall(r"http://127\.0\.0\.1:8000/([A-Za-z-]+)/([\w:.-]+)/", page.read_text("utf-8"))
    others = ("batch", "coverage", "import")
    asked = [(array, row_id) for array, row_id in named if array in demo and row_id not in others]
    assert len(asked) >= 2
    assert not [(array, row_id) for array, row_id in asked if row_id not in demo[array]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make docs` writes."""
    folder = tmp_path_factory.mktemp("docs")
    new_docs.write(folder)
    return folder


@pytest.mark.parametrize("name", new_docs.COMMITTED)
def test_what_is_made_from_the_operations_is_up_to_date(name: str, made: Path) -> None:
    expected = (made / name).read_text("utf-8")
    assert (DOCS / name).read_text("utf-8") == expected, "run `make docs` and look at the difference"
