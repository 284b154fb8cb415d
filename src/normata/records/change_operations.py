"""The operations that create, change and archive records."""

from __future__ import annotations

from functools import cache, partial
from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model

from normata import errors
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation
from normata.core.http.request import Request
from normata.core.schema.fields import ShortText
from normata.core.schema.paging import OrganizationId
from normata.core.schema.table import new_id
from normata.core.schema.wire import Input, as_wire, body_model, wire
from normata.records import examples
from normata.records.archiving import archive, archive_writes
from normata.records.base import Restorable
from normata.records.writing import MAX_DOCUMENT_BYTES, change, change_writes, create, creation_writes, sendable


@cache
def _creation(kind: type[Restorable]) -> type[BaseModel]:
    doc = f"A new {kind.words()}. Omitted fields get their defaults."
    base = creation_model(kind)
    return create_model(f"{kind.__name__}Creation", __base__=base, __doc__=doc, organization_id=(OrganizationId, ...))


@cache
def creation_model(kind: type[Restorable]) -> type[BaseModel]:
    """The model of the fields of a new record of one kind, without its organization."""
    name = f"_{kind.__name__}Creation"
    return body_model(name, kind, sendable(kind), doc="", required=(kind.title_column(),))


@cache
def patch_model(kind: type[Restorable]) -> type[BaseModel]:
    """The model of the changes of a record of one kind."""
    doc = f"The changes of {kind.with_article()}. Omitted fields stay as they are; `null` clears a field."
    return body_model(f"{kind.__name__}Patch", kind, sendable(kind), doc=doc)


def _slug_errors(kind: type[Restorable]) -> tuple[type[errors.DomainError], ...]:
    return (errors.SlugTaken,) if "slug" in kind.sql().c else ()


def create_operation(kind: type[Restorable]) -> ChangeOperation:
    """The operation that creates a record of one kind."""

    def work(unit: UnitOfWork, request: Request) -> Any:
        values = request.body.model_dump(by_alias=True, exclude_unset=True, exclude={"organization_id"})
        return create(unit, kind, request.body.organization_id, values)

    words = kind.words()
    made = [f"`{name}`" for name in examples.made_by_the_service(kind)]
    return ChangeOperation(
        http_method="POST",
        path=f"/{kind.path}/",
        operation_id=f"create{kind.__name__}",
        tag="Records",
        summary=f"Create {kind.with_article()}",
        description=f"""\
Creates {kind.with_article()}. Only `organizationId` and `{kind.title_column()}` are required. {", ".join(made)} are set
by the service and refused here. A reference must name a row of the same organization, or a centralized one.
Every fault is reported with the name of its field.""",
        work=work,
        present=partial(as_wire, kind),
        writes=creation_writes(kind),
        body=_creation(kind),
        body_required=True,
        body_limit=MAX_DOCUMENT_BYTES,
        has_rules=True,
        body_example=examples.creation(kind),
        creates=True,
        answer=wire(kind),
        answer_description=f"The {words}.",
        example=examples.restored(kind),
        errors=(*_slug_errors(kind), *kind.refusals),
    )


def change_operation(kind: type[Restorable]) -> ChangeOperation:
    """The operation that changes a record of one kind."""

    def work(unit: UnitOfWork, request: Request) -> Any:
        values = request.body.model_dump(by_alias=True, exclude_unset=True)
        return change(
            unit, kind, request.id, values, require_current=lambda row: request.require_current(as_wire(kind, row))
        )

    words = kind.words()
    return ChangeOperation(
        http_method="PATCH",
        path=f"/{kind.path}/{{id}}/",
        operation_id=f"change{kind.__name__}",
        tag="Records",
        summary=f"Change {kind.with_article()}",
        description=f"""\
Changes the fields in the body, a JSON merge patch (RFC 7396). `null` clears an optional field. Concurrent
patches of different fields both take effect. A body that changes nothing leaves the {words} as it is. An
archived one is read-only: the response is 409 `archived`.""",
        about=kind,
        id_description=f"The id of the live {words}.",
        work=work,
        present=partial(as_wire, kind),
        writes=change_writes(kind),
        body=patch_model(kind),
        body_types=("application/merge-patch+json", "application/json"),
        body_required=True,
        body_limit=MAX_DOCUMENT_BYTES,
        has_rules=True,
        body_example=examples.patch(kind),
        is_conditional=True,
        answer=wire(kind),
        answer_description=f"The {words} as it is now.",
        example=examples.patched(kind),
        errors=(errors.Archived, *_slug_errors(kind), *kind.refusals),
    )


class Archival(Input):
    """The optional body when a record is archived."""

    reason: Annotated[ShortText | None, Field(default=None, description="The reason, for later readers.")]


def archive_operation(kind: type[Restorable]) -> ChangeOperation:
    """The operation that archives a record of one kind."""

    def work(unit: UnitOfWork, request: Request) -> Any:
        return archive(
            unit,
            kind,
            request.id,
            archive_id=new_id(),
            reason=request.body.reason if request.body is not None else None,
            require_current=lambda row: request.require_current(as_wire(kind, row)),
        )

    words = kind.words()
    is_set = "`archivedAt` is set" if "updated_at" not in kind.sql().c else "`archivedAt` and `updatedAt` are set"
    return ChangeOperation(
        http_method="POST",
        path=f"/{kind.path}/{{id}}/archive/",
        operation_id=f"archive{kind.__name__}",
        tag="Records",
        summary=f"Archive {kind.with_article()}",
        description=f"""\
Archives {kind.with_article()}: {is_set}, and every other field stays as it is. An archived record is read-only, is not
in lists unless requested, and can be restored. Who archived it, when, and the `reason` are recorded. Nothing is ever
deleted.""",
        about=kind,
        id_description=f"The id of the live {words}.",
        work=work,
        present=partial(as_wire, kind),
        writes=archive_writes(kind),
        body=Archival,
        body_example={"reason": "No longer needed."},
        is_conditional=True,
        answer=wire(kind),
        answer_description=f"The {words}, archived.",
        example=examples.archived(kind),
        errors=(errors.Archived,),
    )
