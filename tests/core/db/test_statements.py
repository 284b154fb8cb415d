"""What is kept of statements: each is compiled once, those of one shape together, and none is kept for ever."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import BindParameter, Select, String, bindparam, case, delete, insert, select, update
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite as Dialect

from normata.core.db import statements
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from tests.core.db.example import NOON, ORDERED, label, new_label

_LISTED: BindParameter[str] = bindparam("ids", expanding=True)


@pytest.mark.parametrize("expanding", [False, True])
def test_statements_made_for_one_use_leave_nothing_behind(database: Database, expanding: bool) -> None:
    seen: list[weakref.ref[Select[Any]]] = []

    def work(transaction: Transaction) -> None:
        for number in range(20):
            statement = select(label.c.id).where(
                label.c.id.in_([str(number)]) if expanding else label.c.id == str(number)
            )
            transaction.rows(statement)
            seen.append(weakref.ref(statement))

    database.read_now(work)
    gc.collect()
    assert [statement() for statement in seen] == [None] * 20


@pytest.fixture(autouse=True)
def nothing_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has just started: what others have prepared is not there."""
    monkeypatch.setattr(statements, "_shared", {})


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every statement that is compiled."""
    seen = []
    original = Select.compile

    def compile_counted(self: Any, *arguments: Any, **options: Any) -> Any:
        seen.append(self)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Select, "compile", compile_counted)
    return seen


def test_a_statement_is_compiled_once(database: Database, compiled: list[Any]) -> None:
    statement = select(label.c.id).where(label.c.id == bindparam("one", type_=String))
    for name in ("label-alpha", "label-beta"):
        for _ in range(3):
            found = database.read_now(lambda transaction: transaction.scalars(statement, {"one": name}))  # noqa: B023
            assert found == [name]
    assert len(compiled) == 1


def test_statements_that_differ_in_literals_only_are_compiled_once(
    read: Callable[..., list[Any]], compiled: list[Any]
) -> None:
    for number in range(6):
        height = case((label.c.order > number, f"above {number}"), else_="below")
        ids = [f"label-{other}" for other in range(number)]
        statement = select(label.c.id, height).where(label.c.id.in_(ids)).order_by(label.c.id).limit(number)
        assert read(statement) == [(name, "below") for name in ids]
    assert len(compiled) == 1


@pytest.mark.parametrize("negated", [False, True])
def test_lists_of_any_length_mean_what_they_say(database: Database, negated: bool) -> None:
    listed = label.c.id.in_(_LISTED)
    statement = select(label.c.id).where(~listed if negated else listed).order_by(label.c.id)
    names = database.read_now(lambda transaction: transaction.scalars(select(label.c.id).order_by(label.c.id)))
    for number in range(12):
        ids = [*names[:2], *(f"none-{other}" for other in range(number))][:number]
        found = database.read_now(lambda transaction: transaction.scalars(statement, {"ids": ids}))  # noqa: B023
        assert found == [name for name in names if (name in ids) != negated]


def test_lists_of_many_lengths_are_few_texts() -> None:
    prepared = statements.Statements(Dialect()).prepare(select(label.c.id).where(label.c.id.in_(_LISTED)), {"ids": []})
    texts = set()
    for number in range(1, 501):
        ids = [str(item) for item in range(number)]
        sql, values = prepared.bind({"ids": ids})
        assert sorted(set(values)) == sorted(ids)
        assert sql.count("?") == len(values)
        texts.add(sql)
    assert len(texts) == 10  # of 1, 2, 4, … 512 items


def test_a_literal_and_a_parameter_of_the_same_name_are_kept_apart(read: Callable[..., list[Any]]) -> None:
    for value in (1, 2):
        assert read(ORDERED.where(label.c.order == bindparam("wanted", value))) == [(f"label-{value}",)]
        with pytest.raises(KeyError, match="wanted"):
            read(ORDERED.where(label.c.order == bindparam("wanted")))
        assert read(ORDERED.where(label.c.order == bindparam("wanted")), {"wanted": 3}) == [("label-3",)]


def test_changes_that_differ_in_literals_only(database: Database) -> None:
    def work(transaction: Transaction) -> list[Any]:
        for number in range(3):
            transaction.rows(insert(label).values(new_label(f"{number}") | {"archived_at": NOON, "order": number}))
            change = update(label).where(label.c.id == f"{number}").values(name=f"new {number}", payload=[number])
            transaction.rows(change.returning(label.c.id))
        transaction.rows(delete(label).where(label.c.id.in_(["0"])))
        return transaction.rows(select(label.c.id, label.c.name, label.c.payload).where(label.c.archived_at == NOON))

    assert sorted(database.write_now(work)) == [("1", "new 1", [1]), ("2", "new 2", [2])]
