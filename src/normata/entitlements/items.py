"""The items of an entitlement review: listing, adding and removing them, and deciding about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import orjson
from pydantic import Field, ValidationError
from sqlalchemy import bindparam, delete, func, select, update

from normata.core.changes.source import Fault, FaultyInput, Row, pointer
from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of, update_of
from normata.core.changes.writing import BODY, valid_rows, write
from normata.core.db.transaction import Transaction, batches
from normata.core.documents.files import Unreadable, as_text
from normata.core.documents.tables import TableColumns, csv_rows
from normata.core.schema.faults import describe
from normata.core.schema.fields import Identifier, Name, Text, VisibleName
from normata.core.schema.paging import OrganizationQuery, PageQuery, QueryFlag, envelope, fetch_page
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.wire import Input, Wire, as_wire, wire_names
from normata.entitlements.model import CHANGE, DECISIONS, Decision, EntitlementReviewItem
from normata.entitlements.reviews import running_review
from normata.errors import NotFound
from normata.identity.authority import own_membership
from normata.records.kinds import EntitlementReview

MAX_ITEMS = 10_000  # of a review
MAX_DECISIONS = 1_000  # of a request
COLUMNS = ("person", "system", "entitlement", "remark")
_TABLE = TableColumns(COLUMNS, COLUMNS[:3], MAX_ITEMS)
_ABOUT_CHANGE = {True: ("is required with CHANGE", "required"), False: ("is known with CHANGE only", "unknown")}
_DECIDED = ("decision", "change", "decided_at", "decided_by_id")

ADD_WRITES = (insert_of(EntitlementReviewItem),)
REMOVE_WRITES = (delete_of(EntitlementReviewItem),)
DECIDE_WRITES = (update_of(EntitlementReviewItem, *_DECIDED),)


class ItemQuery(PageQuery):
    """The query of the items of a review."""

    repeated: ClassVar[tuple[str, ...]] = ("decision", "system")

    decision: Annotated[
        list[Decision] | None, Field(description="Only items with this decision, or one of these where it is repeated.")
    ] = None
    is_open: Annotated[QueryFlag | None, Field(description="Whether the decision has to be still open.")] = None
    system: Annotated[
        list[Name] | None, Field(max_length=100, description="Only items of this system, or one of these.")
    ] = None


class SystemProgress(Wire):
    """How far a review is for one system."""

    system: str = Field(description="The name of the system.")
    total: int = Field(description="Its items.")
    open: int = Field(description="Those without a decision.")


class ReviewProgress(Wire):
    """How far an entitlement review is."""

    total: int = Field(description="The items of the review.")
    open: int = Field(description="Those without a decision.")
    keep: int = Field(description="Those that stay.")
    remove: int = Field(description="Those that go.")
    change: int = Field(description="Those that become another one.")
    systems: list[SystemProgress] = Field(description="The same for each system, by name.")


class NewItem(Input):
    """An entitlement to review."""

    person: VisibleName = Field(description="The person or account that has the entitlement.")
    system: VisibleName = Field(description="The system in which they have it.")
    entitlement: VisibleName = Field(description="The role, group or right.")
    remark: Text | None = Field(default=None, description="What helps to decide.")


class NewItems(Input):
    """Entitlements to review."""

    items: list[NewItem] = Field(min_length=1, max_length=MAX_ITEMS, description="The items, in their order.")


class ItemDecision(Input):
    """What was decided about an item."""

    item_id: Identifier = Field(description="The id of the item.")
    decision: Decision = Field(description="Whether the entitlement stays, goes, or becomes another one.")
    change: Text | None = Field(default=None, description="What it becomes: with `CHANGE`, and only then.")


class ItemDecisions(Input):
    """Decisions about items."""

    decisions: list[ItemDecision] = Field(min_length=1, max_length=MAX_DECISIONS, description="One for each item.")


class ItemIds(Input):
    """Items to remove."""

    item_ids: list[Identifier] = Field(min_length=1, max_length=MAX_ITEMS, description="The ids of the items.")


class PlacedItem(NamedTuple):
    """An item to add, and where it is in the input."""

    place: str
    item: NewItem


class ItemTable(NamedTuple):
    """The items of a CSV table, and what is wrong with it."""

    items: list[PlacedItem]
    faults: list[Fault]


def read_table(content: bytes) -> ItemTable:
    """The items in the bytes of a CSV table. Each fault has the place of its cell, such as ``/rows/4/person``."""
    faults: list[Fault] = []
    try:
        rows = csv_rows(BODY, as_text(content), _TABLE, faults)
    except Unreadable as error:
        return ItemTable([], [Fault(BODY, "", str(error))])
    items = []
    for number, cells in rows:
        values = {name: cells[name] for name in COLUMNS} | {"remark": cells["remark"] or None}
        try:
            items.append(PlacedItem(pointer("rows", number), NewItem.model_validate(values)))
        except ValidationError as error:
            for found in error.errors():
                code, message, _ = describe(found)
                name = str(found["loc"][0])
                missing = ("is required", "required")
                faults.append(
                    Fault(BODY, pointer("rows", number, name), *((message, code) if cells[name] else missing))
                )
    if not rows and not faults:
        faults.append(Fault(BODY, "", "has no items"))
    return ItemTable(items, faults)


def read_wrapped_table(content: bytes) -> ItemTable:
    """The same of a table that is the text ``table`` of a JSON object."""
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return ItemTable([], [Fault(BODY, "", "is not valid JSON", "malformed")])
    table = found.get("table") if isinstance(found, dict) else None
    if not isinstance(table, str):
        return ItemTable([], [Fault(BODY, pointer("table"), "is required, and must be a string", "required")])
    return read_table(table.encode())


def list_items(transaction: Transaction, query: ItemQuery, review_id: str) -> dict[str, Any]:
    """A page of the items of a review, in the order in which they were added. Raises NotFound, UnfitCursor."""
    key = _key_of(transaction, query.organization_id, review_id)
    statement = select(*_ITEM.c).where(*_OF_REVIEW)
    if query.decision:
        statement = statement.where(_ITEM.c.decision.in_(query.decision))
    if query.is_open is not None:
        statement = statement.where(_ITEM.c.decision.is_(None) if query.is_open else _ITEM.c.decision.is_not(None))
    if query.system:
        statement = statement.where(_ITEM.c.system.in_(query.system))
    found = fetch_page(transaction, statement, [_ITEM.c.created_at.asc(), _ITEM.c.id.asc()], query, key)
    return envelope([as_wire(EntitlementReviewItem, row) for row in found.rows], found, query)


def progress(transaction: Transaction, query: OrganizationQuery, review_id: str) -> dict[str, Any]:
    """The members of :class:`ReviewProgress`. Raises NotFound."""
    key = _key_of(transaction, query.organization_id, review_id)
    systems: dict[str, dict[str, int]] = {}
    for row in transaction.rows(_COUNTS, key):
        systems.setdefault(row.system, {})[row.decision or "open"] = row.items
    counts = {name: sum(one.get(name, 0) for one in systems.values()) for name in ("open", *DECISIONS)}
    return {
        "total": sum(counts.values()),
        **{name.lower(): count for name, count in counts.items()},
        "systems": [
            {"system": system, "total": sum(one.values()), "open": one.get("open", 0)}
            for system, one in systems.items()
        ],
    }


def add_items(unit: UnitOfWork, review_id: str, table: ItemTable) -> list[dict[str, Any]]:
    """Add items to a running review, all or none, and return them in wire form.

    Raises NotFound, InsufficientRole, Archived, WrongState if it is finished, and FaultyInput with all faults: also
    where an item is there already, or there are too many.
    """
    review = running_review(unit, review_id)
    there = {tuple(row) for row in unit.rows(_THERE, {"organization": review.organization_id, "review": review_id})}
    faults = list(table.faults)
    if len(there) + len(table.items) > MAX_ITEMS:
        faults.append(Fault(BODY, "", f"makes more than {MAX_ITEMS:,} items of one review", "too_many"))
    rows = []
    for place, item in table.items:
        if (key := (item.person, item.system, item.entitlement)) in there:
            faults.append(Fault(BODY, place + pointer("entitlement"), "is there already for this person", "taken"))
        there.add(key)
        of_review = {"organizationId": review.organization_id, "entitlementReviewId": review_id}
        rows.append(Row(EntitlementReviewItem.array, BODY, place, item.model_dump() | of_review | {"id": new_id()}))
    pending = valid_rows(unit, EntitlementReviewItem, rows, faults, are_new=True)
    write(unit, EntitlementReviewItem, pending)
    added = [dict(row.after.items()) for row in pending]
    for values in added:
        unit.publish(Change("create", EntitlementReviewItem, review.organization_id, values["id"], values))
    return [_wire(values) for values in added]


def remove_items(unit: UnitOfWork, review_id: str, ids: Sequence[str]) -> None:
    """Remove items of a running review, all or none. Raises what :func:`add_items` raises."""
    review = running_review(unit, review_id)
    found = _found(unit, review, ids, lambda number: pointer("itemIds", number))
    for batch in batches([*found]):
        unit.rows(_DELETE, {"ids": batch})
    for row in found.values():
        unit.publish(Change("delete", EntitlementReviewItem, review.organization_id, row.id, before=row._asdict()))


def decide(unit: UnitOfWork, review_id: str, decisions: Sequence[ItemDecision]) -> list[dict[str, Any]]:
    """Record decisions about items of a running review, all or none, and return the items in wire form.

    One that is there already stays as it is; another one takes its place. Raises what :func:`add_items` raises.
    """
    review = running_review(unit, review_id)
    faults = [
        Fault(BODY, pointer("decisions", number, "change"), *_ABOUT_CHANGE[one.decision == CHANGE])
        for number, one in enumerate(decisions)
        if (one.decision == CHANGE) != bool(one.change and one.change.strip())
    ]
    if faults:
        raise FaultyInput(faults)
    found = _found(unit, review, [one.item_id for one in decisions], lambda n: pointer("decisions", n, "itemId"))
    by = own_membership(unit, review.organization_id)
    changes = []
    for one in decisions:
        before = found[one.item_id]._asdict()
        if (before["decision"], before["change"]) == (one.decision, one.change):
            changes.append((before, before))
            continue
        values = (one.decision, one.change, unit.moment, by)
        changes.append((before, before | dict(zip(_DECIDED, values, strict=True))))
    written = [(before, after) for before, after in changes if after is not before]
    parameters = [{"of": after["id"]} | {f"new_{name}": after[name] for name in _DECIDED} for _, after in written]
    for batch in batches(parameters):
        unit.execute_many(_UPDATE, batch)
    for before, after in written:
        unit.publish(Change("decide", EntitlementReviewItem, review.organization_id, after["id"], after, before))
    return [_wire(after) for _, after in changes]


def _found(unit: UnitOfWork, review: Any, ids: Sequence[str], place: Callable[[int], str]) -> Mapping[str, Any]:
    """The rows of these items of a review. Raises FaultyInput if some are no items of it, or are there twice."""
    key = {"organization": review.organization_id, "review": review.id}
    there = {row.id: row for batch in batches(sorted(set(ids))) for row in unit.rows(_SOME, key | {"ids": batch})}
    faults = list(_wrong(ids, there, place))
    if faults:
        raise FaultyInput(faults)
    return there


def _wrong(ids: Sequence[str], there: Mapping[str, Any], place: Callable[[int], str]) -> Iterator[Fault]:
    seen: set[str] = set()
    for number, item_id in enumerate(ids):
        if item_id not in there:
            yield Fault(BODY, place(number), "names no item of this review")
        elif item_id in seen:
            yield Fault(BODY, place(number), "is there twice")
        seen.add(item_id)


def _key_of(transaction: Transaction, organization_id: str, review_id: str) -> dict[str, str]:
    key = {"organization": organization_id, "review": review_id}
    if transaction.row(_REVIEW, key) is None:
        raise NotFound
    return key


def _wire(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[column] for column, name in wire_names(EntitlementReviewItem).items()}


# --- Statements

_ITEM, _REVIEWS = sql_table(EntitlementReviewItem), EntitlementReview.sql()
_OF_REVIEW = (
    _ITEM.c.organization_id == bindparam("organization", type_=_ITEM.c.organization_id.type),
    _ITEM.c.entitlement_review_id == bindparam("review", type_=_ITEM.c.entitlement_review_id.type),
)
_REVIEW = select(_REVIEWS.c.id).where(
    _REVIEWS.c.organization_id == bindparam("organization"), _REVIEWS.c.id == bindparam("review")
)
_COUNTS = (
    select(_ITEM.c.system, _ITEM.c.decision, func.count().label("items"))
    .where(*_OF_REVIEW)
    .group_by(_ITEM.c.system, _ITEM.c.decision)
    .order_by(_ITEM.c.system)
)
_THERE = select(_ITEM.c.person, _ITEM.c.system, _ITEM.c.entitlement).where(*_OF_REVIEW)
_IDS: Any = bindparam("ids", expanding=True)
_SOME = select(*_ITEM.c).where(*_OF_REVIEW, _ITEM.c.id.in_(_IDS))
_DELETE = delete(_ITEM).where(_ITEM.c.id.in_(_IDS))
_UPDATE = (
    update(_ITEM)
    .where(_ITEM.c.id == bindparam("of"))
    .values({name: bindparam(f"new_{name}", type_=_ITEM.c[name].type) for name in _DECIDED})
)
