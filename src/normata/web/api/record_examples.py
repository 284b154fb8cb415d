"""Examples of records for OpenAPI: of each kind an archived record of the demo, at one moment or another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from normata.demo.files import record_bundle
from normata.records.base import Restorable
from normata.schema.wire import wire_names

_RESTORED_AT = "2026-11-20T09:14:03.120Z"

Example = dict[str, Any]


def archived(kind: type[Restorable]) -> Example | None:
    """The record as its archiving leaves it; null where the demo has none."""
    found = next((record for record in _demo_records().get(kind.path, ()) if record.get("archivedAt")), None)
    if found is None:
        return None
    record: Example = {name: found.get(name) for name in wire_names(kind).values()}
    return _changed_at(record, record["archivedAt"])


def restored(kind: type[Restorable]) -> Example | None:
    """The record as its restore answers it; null where the demo has none."""
    record = archived(kind)
    return None if record is None else _changed_at(record | {"archivedAt": None}, _RESTORED_AT)


def _changed_at(record: Example, moment: str) -> Example:
    return record | {"updatedAt": moment} if "updatedAt" in record else record


@cache
def _demo_records() -> Mapping[str, list[Example]]:
    records: Mapping[str, list[Example]] = json.loads(record_bundle().read_text("utf-8"))
    return records
