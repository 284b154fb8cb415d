"""What a transaction does with statements: the same on both databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import (
    Integer,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    tuple_,
    union_all,
    update,
)

from normata.core.db.database import Database
from normata.core.db.transaction import ConstraintViolation, Transaction
from normata.core.db.upsert import upsert
from normata.errors import Unavailable
from tests.core.db.example import (
    ALPHA,
    BETA,
    METADATA,
    NOON,
    ORDERED,
    Label,
    adding,
    framework,
    label,
    new_label,
    organization,
)

# --- Parameters


def test_literals_and_parameters(read: Callable[..., list[Any]]) -> None:
    statement = ORDERED.where(label.c.order > 1, label.c.order < bindparam("below"), label.c.is_open)
    assert read(statement, {"below": 5}) == [("label-2",), ("label-4",)]
    assert read(statement, {"below": 3}) == [("label-2",)]


def test_a_parameter_with_a_value_of_its_own_need_not_be_given(read: Callable[..., list[Any]]) -> None:
    statement = ORDERED.where(label.c.order == bindparam("wanted", 3))
    assert read(statement) == [("label-3",)]
    assert read(statement, {"wanted": 4}) == [("label-4",)]


@pytest.mark.parametrize(
    "statement",
    [
        ORDERED.where(label.c.id == bindparam("wanted")),
        ORDERED.where(label.c.id.in_(bindparam("wanted", expanding=True))),
    ],
)
def test_a_parameter_that_is_missing_is_a_fault_and_not_null(read: Callable[..., list[Any]], statement: Any) -> None:
    with pytest.raises(KeyError, match="wanted"):
        read(statement)


@pytest.mark.parametrize("wanted", [[], ["label-3"], ["label-1", "label-5", "nothing", "label-2"]], ids=len)
def test_lists(read: Callable[..., list[Any]], wanted: list[str]) -> None:
    expected = sorted((name,) for name in wanted if name != "nothing")
    assert read(ORDERED.where(label.c.id.in_(wanted))) == expected
    expanding = ORDERED.where(label.c.id.in_(bindparam("wanted", expanding=True)), label.c.order < bindparam("below"))
    assert read(expanding, {"wanted": wanted, "below": 9}) == expected
    every = {f"label-{number}" for number in range(6)}
    left = sorted((name,) for name in every - set(wanted))
    assert read(ORDERED.where(label.c.order.is_not(None), label.c.id.not_in(wanted))) == left


def test_a_list_is_of_another_length_each_time(read: Callable[..., list[Any]]) -> None:
    statement = ORDERED.where(label.c.id.in_(bindparam("wanted", expanding=True)), label.c.order >= 1)
    for length in (3, 0, 6, 1, 3):
        found = read(statement, {"wanted": [f"label-{number}" for number in range(length)]})
        assert found == [(f"label-{number}",) for number in range(1, length)]


def test_lists_are_converted_as_their_column_is(read: Callable[..., list[Any]], database: Database) -> None:
    times = {"label-1": "2026-01-01T00:00:00.001Z", "label-2": "2026-01-01T00:00:00.002Z"}
    setting = update(label).where(label.c.id == bindparam("one")).values(archived_at=bindparam("at"))
    database.write_now(
        lambda transaction: transaction.execute_many(setting, [{"one": one, "at": at} for one, at in times.items()])
    )
    assert read(ORDERED.where(label.c.archived_at.in_(list(times.values())))) == [("label-1",), ("label-2",)]
    pairs = [("label-1", times["label-1"]), ("label-2", times["label-1"])]
    assert read(ORDERED.where(tuple_(label.c.id, label.c.archived_at).in_(pairs))) == [("label-1",)]


def test_long_lists_of_each_type(read: Callable[..., list[Any]], database: Database) -> None:
    """PostgreSQL gets a long list as one array."""
    time = "2026-01-01T00:00:00.001Z"
    setting = update(label).where(label.c.id == "label-2").values(archived_at=time, weight=2.5)
    database.write_now(lambda transaction: transaction.rows(setting))
    others = range(100, 200)
    for column, wanted, is_first in (
        (label.c.id, ["label-2", *(f"none-{other}" for other in others)], True),
        (label.c.archived_at, [*(f"2025-01-01T00:00:00.{other}Z" for other in others), time], False),
        (label.c.order, [2, *others], True),
        (label.c.weight, [*map(float, others), 2.5], False),
    ):
        listed: Any = bindparam("wanted", expanding=True)
        statement = ORDERED.where(column.in_(listed), label.c.order < bindparam("below"))
        assert read(statement, {"wanted": wanted, "below": 9}) == [("label-2",)]
        without = wanted[1:] if is_first else wanted[:-1]
        assert read(statement, {"wanted": without, "below": 9}) == []
        left = read(ORDERED.where(column.not_in(listed), label.c.order < 9), {"wanted": wanted})
        assert ("label-2",) not in left
        assert ("label-1",) in left or column in (label.c.archived_at, label.c.weight)  # which is null there
    pairs = [("label-2", time), *((f"none-{other}", time) for other in others)]
    assert read(ORDERED.where(tuple_(label.c.id, label.c.archived_at).in_(pairs))) == [("label-2",)]


# --- Kinds of statements


def test_queries_of_every_shape(read: Callable[..., list[Any]]) -> None:
    few = select(label.c.id, label.c.order).where(label.c.order < 2).cte("few")
    assert sorted(read(select(few.c.id, (few.c.order + 1).label("next")))) == [("label-0", 1), ("label-1", 2)]
    first = select(label.c.id, literal("label")).where(label.c.order == 0)
    both = union_all(first, select(organization.c.id, literal("o")))
    assert sorted(read(both)) == [("label-0", "label"), (ALPHA, "o"), (BETA, "o")]
    assert read(select(func.count(), func.max(label.c.order)).select_from(label)) == [(8, 5)]
    assert read(select(exists().where(label.c.order == 3), exists().where(label.c.order == 9))) == [(True, False)]
    height = case((label.c.order > 4, "high"), else_="low")
    assert read(select(height).where(label.c.order >= 4).order_by(label.c.order)) == [("low",), ("high",)]
    paged = ORDERED.limit(bindparam("limit", type_=Integer)).offset(bindparam("offset", type_=Integer))
    assert read(paged, {"limit": 2, "offset": 1}) == [("label-1",), ("label-2",)]
    assert read(ORDERED.limit(1).offset(3)) == [("label-3",)]


def test_mapped_classes(database: Database) -> None:
    def work(transaction: Transaction) -> Any:
        transaction.rows(insert(Label).values(new_label("one") | {"payload": {"b": 1, "a": [0.0]}, "is_open": True}))
        transaction.rows(insert(Label), new_label("two"))
        transaction.rows(update(Label).where(Label.id == "two").values(name="Two", archived_at=NOON))
        names = ["id", "organization_id", "slug", "name"]
        source = select(Label.id.concat("-copy"), Label.organization_id, Label.slug.concat("-copy"), Label.name)
        transaction.rows(insert(Label).from_select(names, source.where(Label.id == "two")))
        transaction.rows(delete(Label).where(Label.id == "label-alpha"))
        return transaction.rows(select(Label).where(Label.organization_id == ALPHA).order_by(Label.id))

    one, two, copy = database.write_now(work)
    assert [row.id for row in (one, two, copy)] == ["one", "two", "two-copy"]
    assert one._fields == tuple(column.name for column in label.c)
    assert one.payload == {"b": 1, "a": [0.0]}
    assert list(one.payload) == ["b", "a"]
    assert (one.is_open, one.archived_at) == (True, None)
    assert (two.name, two.archived_at, copy.archived_at) == ("Two", NOON, None)


def test_rows_by_position_by_name_and_unpacked(database: Database) -> None:
    joined = (
        select(label.c.id, organization.c.id, organization.c.name.label("owner"), func.count())
        .join(organization, organization.c.id == label.c.organization_id)
        .where(label.c.id == "label-alpha")
        .group_by(label.c.id, organization.c.id, organization.c.name)
    )
    (row,) = database.read_now(lambda transaction: transaction.rows(joined))
    assert row == ("label-alpha", ALPHA, "Alpha", 1)
    assert (row.id, row.id_1, row.owner, row[3]) == ("label-alpha", ALPHA, "Alpha", 1)


def test_returning(database: Database) -> None:
    def work(transaction: Transaction) -> list[Any]:
        added = insert(label).values(new_label("one") | {"is_open": False, "archived_at": NOON, "weight": 3})
        changed = update(label).where(label.c.id == "one").values(name=bindparam("to"))
        return [
            *transaction.rows(added.returning(label.c.id, label.c.is_open, label.c.archived_at, label.c.weight)),
            *transaction.rows(changed.returning(label.c.name), {"to": "new"}),
            *transaction.rows(changed, {"to": "newer"}),
            *transaction.rows(delete(label).where(label.c.id == "one").returning(label.c.name)),
        ]

    assert database.write_now(work) == [("one", False, NOON, 3.0), ("new",), ("newer",)]


def test_an_insert_sets_the_columns_that_are_given(database: Database) -> None:
    statement = insert(label)

    def work(transaction: Transaction) -> list[Any]:
        transaction.rows(statement, new_label("one"))
        transaction.rows(statement, new_label("two") | {"order": 2})
        transaction.rows(statement, new_label("three"))
        transaction.rows(insert(label).values([new_label("four"), new_label("five")]))
        transaction.execute_many(statement, [])
        return transaction.rows(
            select(label.c.id, label.c.order).where(label.c.id.in_(["one", "two", "three", "five"]))
        )

    assert sorted(database.write_now(work)) == [("five", None), ("one", None), ("three", None), ("two", 2)]


def test_execute_many_with_lists(database: Database) -> None:
    statement = update(label).where(label.c.id.in_(bindparam("ids", expanding=True))).values(name=bindparam("to"))

    def work(transaction: Transaction) -> list[Any]:
        transaction.execute_many(
            statement, [{"ids": ["label-alpha"], "to": "a"}, {"ids": ["label-beta", "x"], "to": "b"}]
        )
        return transaction.scalars(select(label.c.name).order_by(label.c.id))

    assert database.write_now(work) == ["a", "b"]


def test_upsert(database: Database) -> None:
    values: dict[str, Any] = {name: bindparam(name) for name in ("id", "organization_id", "name")}
    statement = upsert(framework, values, key=["id"], update=["name"])

    def work(transaction: Transaction) -> list[Any]:
        for name in ("first", "second"):
            transaction.rows(statement, {"id": "f", "organization_id": ALPHA, "name": name})
        return transaction.rows(select(framework.c.name).where(framework.c.id == "f"))

    assert database.write_now(work) == [("second",)]


# --- The rest of a transaction


def test_first_rows_and_scalars(database: Database) -> None:
    def work(transaction: Transaction) -> Any:
        nothing = select(label.c.id).where(label.c.id == "nothing")
        ids = select(label.c.id, label.c.name).order_by(label.c.id)
        return (
            transaction.row(ids),
            transaction.row(nothing),
            transaction.scalars(ids),
            transaction.scalar(ids),
            transaction.scalar(nothing),
        )

    assert database.read_now(work) == (
        ("label-alpha", "alpha"),
        None,
        ["label-alpha", "label-beta"],
        "label-alpha",
        None,
    )


def test_a_stream_has_all_rows_in_their_order_while_others_are_asked_for(database: Database) -> None:
    many = [new_label(f"{number:05}") | {"payload": [number]} for number in range(2_500)]
    statement = select(label.c.id, label.c.payload).where(label.c.id < bindparam("end")).order_by(label.c.id)

    def work(transaction: Transaction) -> list[Any]:
        transaction.execute_many(insert(label), many)
        streamed: list[tuple[str, Any]] = []
        for row in transaction.stream(statement, {"end": "label"}):
            if len(streamed) % 1_000 == 0:
                assert transaction.scalar(select(func.count()).select_from(organization)) == 2
            streamed.append((row.id, row.payload))
        return streamed

    assert database.write_now(work) == [(row["id"], row["payload"]) for row in many]
    assert list(database.read_now(lambda transaction: list(transaction.stream(statement, {"end": ""})))) == []


def test_the_names_of_tables(database: Database) -> None:
    assert database.read_now(lambda transaction: transaction.tables()) == {"alembic_version", *METADATA.tables}


def test_the_lock_of_others_can_be_taken_again_by_oneself(database: Database) -> None:
    def work(transaction: Transaction) -> None:
        transaction.lock("load")
        transaction.lock("load")

    database.write_now(work)


# --- Failures


def test_a_unique_key_is_kept_and_its_violation_tells_no_values(database: Database) -> None:
    with pytest.raises(ConstraintViolation) as caught:
        database.write_now(adding("secret-value", "first"))
    assert "slug" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret-value" not in str(caught.value)
    assert caught.value.__cause__ is None or "secret-value" not in str(caught.value.__cause__)


def test_a_broken_reference_is_found_at_the_commit(database: Database) -> None:
    reached = []

    def work(transaction: Transaction) -> None:
        transaction.rows(update(label).values(parent_id="nobody"))
        reached.append(True)

    with pytest.raises(ConstraintViolation):
        database.write_now(work)
    assert reached
    assert database.read_now(lambda transaction: transaction.scalars(select(label.c.parent_id))) == [None, None]
    database.write_now(adding("goes-on"))


@pytest.mark.parametrize("error", [RuntimeError("no more"), Unavailable("ask again")])
def test_what_work_raises_is_raised_and_nothing_is_kept(database: Database, error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        database.write_now(adding("half", then=error))
    assert database.read_now(lambda transaction: transaction.scalars(ORDERED)) == ["label-alpha", "label-beta"]


def test_a_failure_that_work_keeps_silent_about_is_told_and_nothing_is_kept(database: Database) -> None:
    """PostgreSQL would take its COMMIT for a ROLLBACK and say nothing."""

    def work(transaction: Transaction) -> str:
        adding("before")(transaction)
        with pytest.raises(ConstraintViolation):
            adding("taken", "first")(transaction)
        return "done"

    with pytest.raises(ConstraintViolation):
        database.write_now(work)
    assert database.read_now(lambda transaction: transaction.scalars(ORDERED)) == ["label-alpha", "label-beta"]


def test_a_read_sees_one_moment_and_cannot_write(database: Database) -> None:
    def work(transaction: Transaction) -> None:
        adding("by-mistake")(transaction)

    with pytest.raises(Exception, match=r"read-?only"):
        database.read_now(work)
    assert database.read_now(lambda transaction: transaction.scalars(ORDERED)) == ["label-alpha", "label-beta"]


def test_a_statement_that_is_wrong_is_a_fault(database: Database) -> None:
    with pytest.raises(Exception, match="no_such_function") as caught:
        database.read_now(lambda transaction: transaction.rows(select(func.no_such_function(1))))
    assert not isinstance(caught.value, (Unavailable, ConstraintViolation))
    with pytest.raises(KeyError, match="no_such_column"):
        database.write_now(lambda transaction: transaction.rows(insert(label), {"id": "x", "no_such_column": "x"}))
