"""The docs name every setting, with its default, and every command; what is made from the operations is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from normata.cli import new_docs
from normata.cli.main import app
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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make docs` writes."""
    folder = tmp_path_factory.mktemp("docs")
    new_docs.write(folder)
    return folder


@pytest.mark.parametrize("name", new_docs.DOCUMENTS)
def test_what_is_made_from_the_operations_is_up_to_date(name: str, made: Path) -> None:
    expected = (made / name).read_text("utf-8")
    assert (DOCS / name).read_text("utf-8") == expected, "run `make docs` and look at the difference"
