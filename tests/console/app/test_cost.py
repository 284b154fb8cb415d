"""What pages ask the database for: no more than they show, and the same however much there is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from normata.core.db.statements import Statements
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA
from tests.console.browser import text_of
from tests.core.http.counting import Asked, counting


def asked_by(page: str, people: People, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What a page asks for, for the owner."""
    owner = people["owner"]
    with counting(people.instance.app.services.database, monkeypatch) as asked:
        assert owner.get(f"{ALPHA}{page}").status_code == 200
    return asked


def test_home_names_only_what_it_shows_by_name(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes that become one sentence are counted, so nobody asks what they were about."""
    statements = []
    for title in ("One", "Two", "Three"):
        assert people["editor"].post(f"{ALPHA}new/tasks/", title=title).status_code == 303
        is_named = re.search(r"/names/\?[^']*kind=tasks", people["owner"].get(ALPHA).text) is not None
        assert is_named == (title == "One")
        statements.append(len(asked_by("", people, monkeypatch).statements))
    assert "Editor added 3 tasks" in text_of(people["owner"].get(ALPHA))
    assert statements[0] - 1 == statements[1] == statements[2] <= 28  # one has the owners by links of what is due


def test_the_crosswalk_finds_its_pair_with_one_statement(readers: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """And reads each framework once."""
    opened = asked_by("crosswalk/", readers, monkeypatch)
    chosen = asked_by("crosswalk/?from=sun-2&to=sun-10", readers, monkeypatch)
    assert len(opened.statements) == len(chosen.statements) + 1 <= 13


def test_names_of_ids_are_prepared_once(readers: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """To prepare a statement takes several times as long as to execute it, and a page has names of a dozen kinds."""
    prepared: list[str] = []
    prepare = Statements._prepare

    def noted(statements: Statements, statement: Any, *more: Any) -> Any:
        if " AS label" in str(statement):  # and not one of what the service does by itself
            prepared.append(str(statement))
        return prepare(statements, statement, *more)

    monkeypatch.setattr(Statements, "_prepare", noted)
    names = readers.instance.listing("/names/")
    for kind in ("tasks", "frameworks", "controls", "controlCoverages"):
        for ids in (["one"], ["two"], ["one", "two"]):
            names.items(kind=kind, id=ids, archived="include")
        assert len(prepared) <= 1, kind
        prepared.clear()
