"""What pages ask the database for: no more than they show, and the same however much there is."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.db.statements import Statements
from tests.console.app.conftest import People


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
