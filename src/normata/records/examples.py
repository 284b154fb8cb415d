"""Examples of records for OpenAPI: an archived record of the demo of each kind, in its different states."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic.alias_generators import to_camel
from sqlalchemy import Column

from normata.core.db.types import UtcTimestamp
from normata.core.schema.fields import parse_timestamp
from normata.core.schema.wire import columns
from normata.demo.files import ORGANIZATION, record_bundle
from normata.records.base import Restorable, is_id, text_columns
from normata.records.writing import values_by_steps, writable

_RESTORED_AT = "2026-11-20T09:14:03.120Z"

Example = dict[str, Any]


def archived(kind: type[Restorable]) -> Example | None:
    """The record after archiving; null if the demo has none."""
    found = next((record for record in _demo_records().get(kind.path, ()) if record.get("archivedAt")), None)
    if found is None:
        return None
    record: Example = {to_camel(column.name): _as_sent(column, found) for column in columns(kind)}
    return _changed_at(record, record["archivedAt"])


def restored(kind: type[Restorable]) -> Example | None:
    """The record after its restore; null if the demo has none."""
    record = archived(kind)
    return None if record is None else _changed_at(record | {"archivedAt": None}, _RESTORED_AT)


def creation(kind: type[Restorable]) -> Example:
    """The body of a request that creates it, without references and values that are taken."""
    record = restored(kind) or {to_camel(kind.title_column()): "Example"}
    plain = [to_camel(column.name) for column in columns(kind) if column.name in writable(kind) and not is_id(column)]
    sample = {name: record.get(name) for name in plain if name not in ("slug", "order")}
    by_steps = {to_camel(name): value for name, value in values_by_steps(kind)}
    sample = {name: value for name, value in sample.items() if by_steps.get(name) != value}
    return {"organizationId": ORGANIZATION} | {name: value for name, value in sample.items() if value is not None}


def patch(kind: type[Restorable]) -> Example:
    """The body of a request that changes it."""
    title = to_camel(kind.title_column())
    cleared = next(
        (column.name for column in columns(kind) if column.nullable and column.name in text_columns(kind)), None
    )
    title_now = (restored(kind) or {}).get(title, "Example")
    return {title: f"{title_now} (revised)"} | ({to_camel(cleared): None} if cleared else {})


def patched(kind: type[Restorable]) -> Example | None:
    """The record after :func:`patch`; null if the demo has none."""
    record = restored(kind)
    return None if record is None else record | patch(kind)


def made_by_the_service(kind: type[Restorable]) -> list[str]:
    """The fields that no request sets, except the organization."""
    writable_names = {*writable(kind), "organization_id"}
    return [to_camel(column.name) for column in columns(kind) if column.name not in writable_names]


def _as_sent(column: Column[Any], record: Example) -> Any:
    value = record.get(to_camel(column.name), [] if "lists" in column.info else None)
    return parse_timestamp(value) if value is not None and isinstance(column.type, UtcTimestamp) else value


def _changed_at(record: Example, moment: str) -> Example:
    return record | {"updatedAt": moment} if "updatedAt" in record else record


@cache
def _demo_records() -> Mapping[str, list[Example]]:
    records: Mapping[str, list[Example]] = json.loads(record_bundle().read_text("utf-8"))
    return records
