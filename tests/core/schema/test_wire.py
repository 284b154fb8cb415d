"""From a table to its models: one definition, and nothing lost or added on the way."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from normata.bundle.arrays import ARRAYS
from normata.core.db.database import Database
from normata.core.schema.table import Table, sql_table
from normata.core.schema.wire import as_wire, columns, input_model, listed_columns, wire, wire_names
from normata.frameworks.model import Control, Framework
from normata.records.base import Restorable
from normata.records.kinds import Label, Task
from tests import world

TABLES = [pytest.param(table, id=array) for array, table in ARRAYS.items()]
# Those whose rows leave the service.
_SENT: tuple[type[Table], ...] = (Control, Framework, *Restorable.kinds)
ANSWERED = [pytest.param(table, id=table.array) for table in _SENT]


@pytest.mark.parametrize("table", TABLES)
def test_every_column_that_is_not_derived_travels_in_camel_case(table: type[Table]) -> None:
    names = wire_names(table)
    assert set(names) == {column.name for column in sql_table(table).c if not column.info.get("derived")}
    assert [column.name for column in columns(table)] == list(names)
    assert all("_" not in name and name[0].islower() for name in names.values())
    assert len(set(names.values())) == len(names)


@pytest.mark.parametrize("table", ANSWERED)
def test_an_answer_requires_every_field_and_null_exactly_where_the_column_may_be_null(table: type[Table]) -> None:
    schema = wire(table).model_json_schema(by_alias=True, mode="serialization")
    assert schema["title"] == table.__name__
    listed = listed_columns(table)
    names = {wire_names(table)[column.name] for column in listed}
    assert set(schema["required"]) == set(schema["properties"]) == names
    for column in listed:
        field = schema["properties"][wire_names(table)[column.name]]
        anything = "type" not in field and "$ref" not in field and "anyOf" not in field
        null = {"type": "null"} in field.get("anyOf", ())
        assert (null or anything) == bool(column.nullable), column.name


@pytest.mark.parametrize("table", TABLES)
def test_a_bundle_row_requires_its_id_only(table: type[Table]) -> None:
    schema = input_model(table).model_json_schema(by_alias=True)
    assert schema["required"] == ["id"]
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(wire_names(table).values())


@pytest.mark.parametrize("kind", Restorable.kinds)
def test_keys_come_first_and_times_last(kind: type[Restorable]) -> None:
    names = list(wire_names(kind).values())
    assert names[:2] == ["id", "organizationId"]
    times = [name for name in ("createdAt", "updatedAt", "archivedAt") if name in names]
    assert names[-len(times) :] == times


@pytest.mark.parametrize("kind", Restorable.kinds)
def test_the_model_is_described_as_its_class_is(kind: type[Restorable]) -> None:
    model = wire(kind)
    assert (model.__name__, model.__doc__) == (kind.__name__, kind.__doc__)


@pytest.mark.parametrize("kind", Restorable.kinds)
def test_open_enums_list_what_is_known_with_the_default_among_it(kind: type[Restorable]) -> None:
    properties = wire(kind).model_json_schema(by_alias=True)["properties"]
    for column in columns(kind):
        if "known" in column.info:
            known = properties[wire_names(kind)[column.name]]["x-extensible-enum"]
            assert known == list(column.info["known"])
            assert column.info["default"] in known
            assert len(set(known)) == len(known)


def test_models_are_made_once() -> None:
    assert wire(Label) is wire(Label)
    assert input_model(Label) is input_model(Label)


def test_a_row_travels_under_its_wire_names(database: Database) -> None:
    kind = Task.sql()
    statement = select(*kind.c).where(kind.c.id == "tasks-live-org-alpha")
    row = database.read_now(lambda transaction: transaction.row(statement))
    assert as_wire(Task, row) == {wire_name: getattr(row, name) for name, wire_name in wire_names(Task).items()}
    assert as_wire(Task, row)["createdAt"] == world.EARLIER


@pytest.mark.parametrize("values", [{"id": "t", "shortId": "3"}, {"id": "t", "short_id": 3}, {"id": 3}, {}])
def test_input_takes_json_as_it_is(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        input_model(Task).model_validate(values)


def test_what_is_left_out_is_unset_and_what_is_null_is_set() -> None:
    row = input_model(Task).model_validate({"id": "t", "deadline": None})
    assert row.model_fields_set == {"id", "deadline"}
