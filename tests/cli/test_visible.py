"""What others have written reaches a terminal as text: no control character of theirs is obeyed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from normata.core.log import visible
from tests.cli.commands import Run, bundle_file, on_terminal

# Clears the screen, sets the title, turns the text round (also in eight bits), and begins a line of its own.
EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m\u202egood\nintegrity: good\r\x7f"
SHOWN = "\\u001b[2J\\u001b]0;title\\u0007\\u009b31m\\u202egood\\u000aintegrity: good\\u000d\\u007f"


def test_control_characters_become_visible_and_nothing_else_changes() -> None:
    assert visible(EVIL) == SHOWN
    text = "Größe ☃ 日本語 “quoted” — ok: a\\b é\u0301 👩\u200d🔧"
    assert visible(text) == text
    assert visible("\ud800") == "\\ud800"
    assert json.loads(visible(json.dumps(EVIL, ensure_ascii=False))) == EVIL


@pytest.fixture
def evil(normata: Run, folder: Path) -> None:
    """A database in which names are hostile."""
    document = {
        "organizations": [{"id": "o", "name": EVIL}],
        "users": [{"id": "u", "email": "u\x9b@o.example", "name": EVIL}],
        "frameworks": [{"id": "f", "identifier": "F", "name": EVIL}],
    }
    assert normata("load", bundle_file(folder, document)).code == 0


def harmless(shown: str) -> bool:
    return not any(character in shown for character in "\x1b\x07\x9b\u202e\x7f")


@pytest.mark.usefixtures("evil")
def test_names_in_check(normata: Run) -> None:
    done = normata("check")
    assert done.code == 0
    assert f"organization o: {SHOWN}" in done.out.splitlines()
    assert f"framework f (F): {SHOWN}, 0 controls" in done.out.splitlines()
    assert done.out.splitlines().count("integrity: good") == 1


@pytest.mark.usefixtures("evil")
def test_addresses_in_the_list_of_tokens(normata: Run) -> None:
    assert normata("token", "create", "--user", "u\x9b@o.example").code == 0
    assert "\tu\\u009b@o.example\t" in normata("token", "list").out


def test_faults_of_a_load(normata: Run, folder: Path) -> None:
    path = bundle_file(folder, {"labels": [{"id": "l", "name": "x", EVIL: 1}]}, "\x1b[31mred.json")
    done = normata("load", path)
    assert done.code == 1
    assert harmless(done.err)
    assert f"{path.parent!s}/\\u001b[31mred.json: /labels/0/{SHOWN.replace('/', '~1')}: " in done.err


def test_faults_of_an_import(normata: Run, folder: Path) -> None:
    (folder / "\x1b[31m.yaml").write_text("objects: }")
    done = normata("import", "\x1b[31m.yaml")
    assert done.code == 1
    assert harmless(done.err)


@pytest.mark.usefixtures("evil")
def test_a_dump_on_a_terminal_is_the_same_json(normata: Run) -> None:
    code, shown = on_terminal("dump", "o")
    assert code == 0
    assert harmless(shown)
    assert json.loads(shown) == json.loads(normata("dump", "o").out)


def test_a_progress_bar_takes_no_name_for_markup(folder: Path) -> None:
    path = folder / "a[" / "red]\x1b[2J.yaml"  # together that is the end of a markup that has no beginning
    path.parent.mkdir()
    path.write_text("objects: }")
    code, shown = on_terminal("import", path)
    assert code == 1
    assert "Traceback" not in shown
    assert "unexpected error" not in shown
    assert "\x1b[2J" not in shown


@pytest.mark.long
def test_a_load_shows_its_progress_on_a_terminal(folder: Path) -> None:
    rows = [{"id": str(number), "name": "x"} for number in range(5_000)]
    code, shown = on_terminal("load", bundle_file(folder, {"organizations": rows}))
    assert code == 0, shown
    assert "Checking rows" in shown or "Writing rows" in shown
    assert "organizations: 5000 new, 0 changed, 0 unchanged" in shown
