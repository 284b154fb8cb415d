"""The items of a batch: records to create or to change, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError

from normata.core.changes.rows import PendingRow
from normata.core.changes.source import Fault, FaultyInput, Row, pointer
from normata.core.changes.writing import BODY, JudgedRow
from normata.core.schema.faults import describe
from normata.core.schema.fields import Identifier
from normata.external_ids.model import External, ForeignId, Source
from normata.records.base import Restorable

Action = Literal["create", "update", "upsert"]
IfArchived = Literal["skip", "restore"]
Result = Literal["created", "updated", "unchanged"]
Kind = type[Restorable]

ITEMS = "items"  # the array that places begin with


class Item(NamedTuple):
    """A record to create or to change, with the fields to set, by their wire names.

    A record to change is found by its ``id``, or by its external id. Where both are given, the external id is added to
    the record. ``if_match`` is the entity tag of the state that the caller knows, as in the header.
    """

    action: Action
    values: Mapping[str, Any]
    id: str | None = None
    external: External | None = None
    if_match: str | None = None


class Outcome(NamedTuple):
    """The outcome of an item: what was done, or why it was refused, and the id of the record if that is known."""

    id: str | None
    result: Result | None
    refusal: Exception | None = None


@dataclass(slots=True)
class Entry:
    """An item on its way: where it is in the input, and what is known of it so far."""

    item: Item
    place: str
    faults: list[Fault] = field(default_factory=list)
    refusal: Exception | None = None
    record_id: str | None = None  # of the record to change
    before: Any = None  # its row, once it is locked
    is_found: bool = False  # by its external id
    is_skipped: bool = False
    is_restored: bool = False
    row: Row | None = None
    pending: PendingRow | None = None

    @property
    def is_refused(self) -> bool:
        return bool(self.faults) or self.refusal is not None

    @property
    def is_open(self) -> bool:
        """Whether there may be something to do."""
        return not self.is_refused and not self.is_skipped

    @property
    def adds(self) -> bool:
        """Whether it adds an external id."""
        return self.item.external is not None and not self.is_found

    def fault(self, reason: str, *steps: str, code: str = "invalid") -> None:
        self.faults.append(Fault(BODY, self.place + pointer(*steps), reason, code))

    def take(self, judged: JudgedRow) -> None:
        """Take over how its row was judged."""
        refusal = judged.refusal
        self.pending = judged.pending
        if isinstance(refusal, FaultyInput):
            self.faults = refusal.faults
        else:
            self.refusal = refusal


_KEYS: Mapping[str, TypeAdapter[Any]] = {
    "id": TypeAdapter(Identifier),
    "source": TypeAdapter(Source),
    "external": TypeAdapter(ForeignId),
}


def check_key(entry: Entry) -> None:
    """Add faults for what an item names its record by."""
    item = entry.item
    if item.action == "create":
        if item.id is not None:
            entry.fault("is made by the service, so a new record takes none", "id")
        if item.if_match is not None:
            entry.fault("names a state, and a new record has none yet", "ifMatch")
    elif item.id is None and item.external is None:
        entry.fault("is required, or `external`", "id", code="required")
    if item.id is not None:
        _check_value(entry, "id", item.id, "id")
    if item.external is not None:
        _check_value(entry, "source", item.external.source, "external", "source")
        _check_value(entry, "external", item.external.id, "external", "id")


def _check_value(entry: Entry, sort: str, value: Any, *steps: str) -> None:
    try:
        _KEYS[sort].validate_python(value, strict=True)
    except ValidationError as error:
        code, message, _ = describe(error.errors()[0])
        entry.fault(message, *steps, code=code)
