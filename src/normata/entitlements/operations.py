"""The operations of entitlement reviews beyond those of all records."""

from __future__ import annotations

from typing import Any

from normata import errors
from normata.core.http.change_endpoint import as_null
from normata.core.http.operation import BodyFormat, ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.schema.paging import OrganizationQuery, Page
from normata.core.schema.wire import Wire, as_wire, wire
from normata.entitlements.items import (
    ADD_WRITES,
    COLUMNS,
    DECIDE_WRITES,
    MAX_DECISIONS,
    MAX_ITEMS,
    REMOVE_WRITES,
    ItemDecisions,
    ItemIds,
    ItemQuery,
    ItemTable,
    NewItem,
    NewItems,
    PlacedItem,
    ReviewProgress,
    add_items,
    decide,
    list_items,
    progress,
    read_table,
    read_wrapped_table,
    remove_items,
)
from normata.entitlements.model import KEEP, EntitlementReviewItem
from normata.entitlements.reviews import FINISH_WRITES, ReviewFinish, finish
from normata.records import examples
from normata.records.kinds import EntitlementReview

_TAG = "Entitlement reviews"
_PATH = f"/{EntitlementReview.path}/{{id}}"
_ID = "The id of the live review."
_ANY_ID = "The id of the review, live or archived."
_LARGEST = 16 * 2**20  # bytes of a body with as many items as a review may have
_REFUSALS = (errors.Archived, errors.WrongState)
_NEW = {
    "person": "Jonas Weber",
    "system": "Source code",
    "entitlement": "Maintainer of the fleet software",
    "remark": "Last used in March.",
}
_TABLE = f"{','.join(COLUMNS)}\n{','.join(_NEW.values())}\n"
_ITEM: dict[str, Any] = {
    "id": "entitlement-jonas-source-code",
    "organizationId": "org-harbourlight",
    "entitlementReviewId": "entitlement-review-autumn-2026",
    **_NEW,
    "decision": None,
    "change": None,
    "decidedAt": None,
    "decidedById": None,
    "taskId": None,
    "createdAt": "2026-11-20T09:14:03.120Z",
}
_DECIDED = _ITEM | {"decision": KEEP, "decidedAt": "2026-11-20T10:02:41.007Z", "decidedById": "member-dana"}
_ITEMS = {"items": [_ITEM]}
_PAGE = {"total": 1, "totalIsExact": True, "page": 1, "limit": 100}
_PROGRESS = {"total": 2, "open": 1, "keep": 1, "remove": 0, "change": 0}


class EntitlementReviewItemPage(Page[wire(EntitlementReviewItem)]):  # type: ignore[misc] # made from the table
    """A page of the items of an entitlement review."""


class EntitlementReviewItems(Wire):
    """Items of an entitlement review, in the order of the request."""

    items: list[wire(EntitlementReviewItem)]  # type: ignore[valid-type] # made from the table


OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path=f"{_PATH}/items/",
        operation_id="listEntitlementReviewItems",
        tag=_TAG,
        summary="List the items of an entitlement review",
        description="""\
The entitlements that the review looks at, in the order in which they were added, each with its `decision`, who decided
it and when, and the task that carries it out once the review is finished.""",
        about=EntitlementReview,
        id_description=_ANY_ID,
        query=ItemQuery,
        build=lambda transaction, request: list_items(transaction, request.query, request.id),
        answer=EntitlementReviewItemPage,
        answer_description="A page of items.",
        example={"items": [_DECIDED], **_PAGE},
    ),
    ReadOperation(
        path=f"{_PATH}/progress/",
        operation_id="getEntitlementReviewProgress",
        tag=_TAG,
        summary="Say how far an entitlement review is",
        description="""\
Counts the items of the review by their decision, and for each system how many there are and how many are open.""",
        about=EntitlementReview,
        id_description=_ANY_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: progress(transaction, request.query, request.id),
        answer=ReviewProgress,
        answer_description="The numbers.",
        example=_PROGRESS | {"systems": [{"system": _NEW["system"], "total": 2, "open": 1}]},
    ),
    ChangeOperation(
        http_method="POST",
        path=f"{_PATH}/items/",
        operation_id="addEntitlementReviewItem",
        tag=_TAG,
        summary="Add an item to an entitlement review",
        description=f"""\
Adds an entitlement that a running review is to look at. A review has {MAX_ITEMS:,} at most, and each person has an
entitlement in a system once.""",
        about=EntitlementReview,
        id_description=_ID,
        body=NewItem,
        body_required=True,
        has_rules=True,
        body_example=_NEW,
        work=lambda unit, request: add_items(unit, request.id, ItemTable([PlacedItem("", request.body)], []))[0],
        present=lambda item: item,
        writes=ADD_WRITES,
        answer=wire(EntitlementReviewItem),
        answer_description="The item.",
        example=_ITEM,
        errors=_REFUSALS,
    ),
    ChangeOperation(
        http_method="POST",
        path=f"{_PATH}/items/many/",
        operation_id="addEntitlementReviewItems",
        is_long=True,
        tag=_TAG,
        summary="Add several items to an entitlement review",
        description=f"""\
Adds up to {MAX_ITEMS:,} entitlements to a running review in one transaction: all of them, or none. Every fault is
reported with its place, such as `items/3/system`.""",
        about=EntitlementReview,
        id_description=_ID,
        body=NewItems,
        body_required=True,
        body_limit=_LARGEST,
        has_rules=True,
        body_example={"items": [_NEW]},
        work=lambda unit, request: add_items(
            unit,
            request.id,
            ItemTable([PlacedItem(f"/items/{number}", item) for number, item in enumerate(request.body.items)], []),
        ),
        present=lambda items: {"items": items},
        writes=ADD_WRITES,
        answer=EntitlementReviewItems,
        answer_description="The items.",
        example=_ITEMS,
        errors=_REFUSALS,
    ),
    ChangeOperation(
        http_method="POST",
        path=f"{_PATH}/items/import/",
        operation_id="importEntitlementReviewItems",
        is_long=True,
        tag=_TAG,
        summary="Add the items of a table to an entitlement review",
        description=f"""\
Adds the entitlements of a CSV table to a running review in one transaction: all of them, or none. The first row names
the columns, in any order: {", ".join(COLUMNS)}; all but `remark` are required. Commas, semicolons and tabs separate
cells. As JSON, the text of the table is the member `table`. Every fault is reported with its cell, such as
`rows/4/person`: rows are numbered as in spreadsheets. With `dryRun=true` the response has what would be added.""",
        about=EntitlementReview,
        id_description=_ID,
        body_formats={
            "application/json": BodyFormat(
                lambda content, _query: read_wrapped_table(content),
                {"type": "object", "properties": {"table": {"type": "string"}}, "required": ["table"]},
                {"table": _TABLE},
            ),
            "text/csv": BodyFormat(lambda content, _query: read_table(content), {"type": "string"}, _TABLE, (".csv",)),
        },
        body_required=True,
        body_limit=_LARGEST,
        body_example={"table": _TABLE},
        has_rules=True,
        work=lambda unit, request: add_items(unit, request.id, request.body),
        present=lambda items: {"items": items},
        writes=ADD_WRITES,
        answer=EntitlementReviewItems,
        answer_description="The items.",
        example=_ITEMS,
        errors=_REFUSALS,
    ),
    ChangeOperation(
        http_method="POST",
        path=f"{_PATH}/items/remove/",
        operation_id="removeEntitlementReviewItems",
        tag=_TAG,
        summary="Remove items from an entitlement review",
        description="""\
Takes items out of a running review that were added by mistake, whatever was decided about them. Events keep them.""",
        about=EntitlementReview,
        id_description=_ID,
        body=ItemIds,
        body_required=True,
        body_limit=_LARGEST,
        has_rules=True,
        body_example={"itemIds": [_ITEM["id"]]},
        work=lambda unit, request: remove_items(unit, request.id, request.body.item_ids),
        present=as_null,
        writes=REMOVE_WRITES,
        answer=None,
        answer_description="`null`: they are removed.",
        example=None,
        errors=_REFUSALS,
    ),
    ChangeOperation(
        http_method="POST",
        path=f"{_PATH}/decisions/",
        operation_id="decideEntitlementReviewItems",
        tag=_TAG,
        summary="Decide about items of an entitlement review",
        description=f"""\
Records up to {MAX_DECISIONS:,} decisions about items of a running review, all or none: `KEEP`, `REMOVE`, or `CHANGE`
with what the entitlement becomes. Until the review is finished, another decision takes the place of an earlier one.
Who decided and when follow from the request; a service account is nobody (`decidedById` is null), and named in the
event.""",
        about=EntitlementReview,
        id_description=_ID,
        body=ItemDecisions,
        body_required=True,
        body_limit=_LARGEST,
        has_rules=True,
        body_example={"decisions": [{"itemId": _ITEM["id"], "decision": KEEP}]},
        work=lambda unit, request: decide(unit, request.id, request.body.decisions),
        present=lambda items: {"items": items},
        writes=DECIDE_WRITES,
        answer=EntitlementReviewItems,
        answer_description="The items, with their decisions.",
        example={"items": [_DECIDED]},
        errors=_REFUSALS,
    ),
    ChangeOperation(
        http_method="POST",
        path=f"{_PATH}/finish/",
        operation_id="finishEntitlementReview",
        is_long=True,
        tag=_TAG,
        summary="Finish an entitlement review",
        description="""\
Sets `finishedAt`, once, and makes a task for each removal and each change, which the coordinator gets unless the body
names somebody else. While an item has no decision, the response is 409 `wrong_state`. From then on the items stay as
they are. A review without items can be finished like this, too, or by setting `finishedAt`.""",
        about=EntitlementReview,
        id_description=_ID,
        body=ReviewFinish,
        has_rules=True,
        body_example={"deadline": "2026-12-04T00:00:00.000Z"},
        work=lambda unit, request: finish(unit, request.id, request.body),
        present=lambda row: as_wire(EntitlementReview, row),
        writes=FINISH_WRITES,
        answer=wire(EntitlementReview),
        answer_description="The review, finished.",
        example=(examples.restored(EntitlementReview) or {}) | {"finishedAt": "2026-11-20T09:14:03.120Z"},
        errors=_REFUSALS,
    ),
)
