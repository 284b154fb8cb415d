"""The operations that create and change many records of a kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from normata import errors
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, Operation
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.http.request import Request
from normata.core.schema.fields import Identifier
from normata.core.schema.paging import OrganizationId
from normata.core.schema.wire import Input, Wire
from normata.external_ids.model import External, ForeignId, Source
from normata.records import examples
from normata.records.archive.commands import MAX_RECORDS
from normata.records.archive.operations import Mode, Refusal
from normata.records.archive.queries import KINDS
from normata.records.batch.commands import batch_writes, code_of, write_batch
from normata.records.batch.items import Action, Item, Kind, Outcome

_LARGEST = 16 * 2**20  # bytes of a body


def _nothing() -> None:
    """The default of a field that is left out; so OpenAPI shows none."""


class ExternalName(Input):
    """A record's id in another system."""

    source: Annotated[Source, Field(description="The other system, as the organization calls it.")]
    id: Annotated[ForeignId, Field(description="The id of the record in the other system.")]


class BatchItem(Input):
    """A record to create or to change."""

    action: Annotated[
        Action,
        Field(
            description="`create`: a new record. `update`: a record that there is. `upsert`: the record with this"
            " `external` id, or a new one if there is none."
        ),
    ]
    id: Annotated[
        Identifier | None,
        Field(default_factory=_nothing, description="The id of the record to change; a new one takes none."),
    ]
    external: Annotated[
        ExternalName | None,
        Field(
            default_factory=_nothing,
            description="The id of the record in another system: that of the record to change, or one that the new"
            " record gets. With `id`, the record gets it unless it has it.",
        ),
    ]
    if_match: Annotated[
        str | None,
        Field(
            default_factory=_nothing,
            max_length=1_000,
            pattern=r"^[^\x00-\x1f\x7f]*$",
            description="The `ETag` of the record, as in the header `If-Match`: the item is refused if the record has"
            " changed since.",
        ),
    ]
    values: Annotated[
        dict[str, JsonValue],
        Field(
            description="The fields, as in the body of the operation that creates or changes one record: where it is"
            " changed, a JSON merge patch."
        ),
    ]


class RecordsBatch(Input):
    """Records of one kind to create or to change."""

    organization_id: OrganizationId
    mode: Mode = "all"
    if_archived: Annotated[
        Literal["skip", "restore"] | None,
        Field(
            description="What becomes of an archived record: `skip` leaves it as it is, `restore` restores it and"
            " changes it. Unless said, it is refused."
        ),
    ] = None
    items: Annotated[
        list[BatchItem],
        Field(min_length=1, max_length=MAX_RECORDS, description="The records, each named once."),
    ]


class BatchRefusal(Refusal):
    """The reason why an item was refused."""

    conflicting_id: str | None = Field(
        description="With `slug_taken` and `external_id_taken`: the record that has the slug, or the external id."
    )
    errors: list[FieldFault] = Field(description="With `validation`: all faults of the item, each with its place.")


class BatchOutcome(Wire):
    """The result for an item."""

    done: bool = Field(description="Whether the record is now as the item says.")
    id: str | None = Field(description="The id of the record; null if there is none.")
    outcome: Literal["created", "updated", "unchanged"] | None = Field(
        description="What was done: `unchanged` if the record was so before, or is archived and was to be skipped;"
        " null if the item was refused."
    )
    refusal: BatchRefusal | None = Field(description="Why it was refused; null if it was not.")


class BatchResult(Wire):
    """The results for the items."""

    done: int = Field(description="The number of items that were done, also of those that changed nothing.")
    refused: int = Field(description="The number of items that were refused.")
    items: list[BatchOutcome] = Field(description="Each item, in the order of the request.")


def _present(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    refused = sum(one.refusal is not None for one in outcomes)
    return {"done": len(outcomes) - refused, "refused": refused, "items": [_outcome(one) for one in outcomes]}


def _outcome(one: Outcome) -> dict[str, Any]:
    return {
        "done": one.refusal is None,
        "id": one.id,
        "outcome": one.result,
        "refusal": None if one.refusal is None else _refusal(one.refusal),
    }


def _refusal(refusal: Exception) -> dict[str, Any]:
    invalid = InvalidRequest.of_input(refusal) if isinstance(refusal, FaultyInput) else None
    return {
        "code": code_of(refusal if invalid is None else invalid),
        "detail": str(refusal if invalid is None else invalid),
        "conflictingId": getattr(refusal, "conflicting_id", None),
        "errors": [] if invalid is None else [fault.model_dump(by_alias=True) for fault in invalid.faults],
    }


_EXTERNAL = {"source": "erp", "id": "4711"}
_EXAMPLE = {
    "done": 1,
    "refused": 1,
    "items": [
        {"done": True, "id": "01a1f87c-691d-7204-a6da-d46c39e191fb", "outcome": "created", "refusal": None},
        {
            "done": False,
            "id": None,
            "outcome": None,
            "refusal": {"code": "not_found", "detail": str(errors.NotFound()), "conflictingId": None, "errors": []},
        },
    ],
}


def _operation(kind: Kind) -> ChangeOperation:
    def work(unit: UnitOfWork, request: Request) -> list[Outcome]:
        body: RecordsBatch = request.body
        return write_batch(
            unit,
            kind,
            body.organization_id,
            [_item(one) for one in body.items],
            each_for_itself=body.mode == "each",
            if_archived=body.if_archived,
        )

    sample = examples.creation(kind)
    values = {name: value for name, value in sample.items() if name != "organizationId"}
    one = kind.with_article()
    return ChangeOperation(
        http_method="POST",
        path=f"/{kind.path}/batch/",
        operation_id=f"batch{kind.plural().title().replace(' ', '')}",
        tag="Records",
        summary=f"Create and change {kind.plural()}",
        description=f"""\
Creates and changes up to {MAX_RECORDS} {kind.plural()} in one transaction, each by the rules of the operation that
creates or changes {one}. An item that changes nothing writes nothing: no event, and no new state. With `mode` `all`,
the default, one refusal refuses all, and every fault is reported with its place, such as
`items/3/{kind.title_column()}`; if there is no fault, but some records are refused, the response is 409
`records_refused`. With `each` the response has the result for each item. An item that names a record that an earlier
item names is a fault. A slug that one item gives up is free for the next request. An archived record is refused
(`archived`), unless `ifArchived` says otherwise.""",
        is_long=True,
        work=work,
        present=_present,
        writes=batch_writes(kind),
        body=RecordsBatch,
        body_required=True,
        body_limit=_LARGEST,
        body_example={
            "organizationId": sample["organizationId"],
            "mode": "each",
            "items": [
                {"action": "upsert", "external": _EXTERNAL, "values": values},
                {"action": "update", "id": f"{kind.__tablename__}-gone", "values": examples.patch(kind)},
            ],
        },
        has_rules=True,
        answer=BatchResult,
        answer_description="The result for each item.",
        example=_EXAMPLE,
        errors=(errors.RecordsRefused,),
    )


def _item(item: BatchItem) -> Item:
    external = None if item.external is None else External(item.external.source, item.external.id)
    return Item(item.action, item.values, item.id, external, item.if_match)


OPERATIONS: tuple[Operation, ...] = tuple(map(_operation, KINDS.values()))
