"""The operations of records. Those that every kind has are made from the kinds."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from normata import errors
from normata.changes.unit_of_work import UnitOfWork
from normata.records import kinds as _kinds  # noqa: F401 - defining the kinds is what fills Restorable.kinds
from normata.records.archiving import archive, archive_writes
from normata.records.base import Restorable
from normata.records.restore import restore, restore_writes
from normata.schema.descriptions import with_article
from normata.schema.fields import Identifier, ShortText
from normata.schema.table import new_id
from normata.schema.wire import Input, as_wire, wire
from normata.web.api import record_examples as examples
from normata.web.changing import as_null
from normata.web.operation import ChangeOperation, Given, Operation


class IntegrationCheckRestore(BaseModel):
    """What may go along with the restore of an integration check."""

    model_config = ConfigDict(alias_generator=to_camel, strict=True)

    organization_id: Identifier | None = Field(
        default=None, description="The organization of the check; where given, it must be the right one."
    )


class Archival(Input):
    """What may go along when a record is archived."""

    reason: Annotated[ShortText | None, Field(default=None, description="Why, for those who look for it later.")]


def archive_operation(kind: type[Restorable]) -> ChangeOperation:
    """What archives a record of one kind."""
    words = kind.words()

    def work(unit: UnitOfWork, given: Given) -> Any:
        return archive(
            unit,
            kind,
            given.id,
            archive_id=new_id(),
            reason=given.body.reason if given.body is not None else None,
            require_current=lambda row: given.require_current(as_wire(kind, row)),
        )

    return ChangeOperation(
        http_method="POST",
        path=f"/{kind.path}/{{id}}/archive/",
        operation_id=f"archive{kind.__name__}",
        tag="Records",
        summary=f"Archive {with_article(words)}",
        description=(
            f"Puts {with_article(words)} away: {_changed(kind, 'is set')}, every other field stays as it was. An"
            " archived record is read-only and in no list that does not ask for it, and it can be restored. The"
            " `reason` is kept along with who archived it and when. Nothing is ever deleted."
        ),
        about=kind,
        work=work,
        present=partial(as_wire, kind),
        writes=archive_writes(kind),
        id_description="The id of the live record.",
        body=Archival,
        body_example={"reason": "It is of no use any more."},
        is_conditional=True,
        answer=wire(kind),
        answer_description=f"The {words}, archived.",
        example=examples.archived(kind),
        errors=(errors.Archived,),
    )


def restore_operation(kind: type[Restorable]) -> ChangeOperation:
    """The restore of one kind."""
    words = kind.words()
    takes_body = kind.answers_null

    def work(unit: UnitOfWork, given: Given) -> Any:
        return restore(
            unit,
            kind,
            given.id,
            given.body.organization_id if given.body is not None else None,
            (lambda row: given.require_current(as_wire(kind, row))) if given.is_conditional else None,
        )

    return ChangeOperation(
        http_method="POST",
        path=f"/{kind.path}/{{id}}/restore/",
        operation_id=f"restore{kind.__name__}",
        tag="Restore",
        summary=f"Restore {with_article(words)}",
        description=_restore_description(kind, words),
        about=kind,
        work=work,
        present=as_null if kind.answers_null else partial(as_wire, kind),
        writes=restore_writes(kind),
        id_description="The id of the archived record.",
        body=IntegrationCheckRestore if takes_body else None,
        body_example={"organizationId": "org-harbourlight"} if takes_body else None,
        is_conditional=True,
        answer=None if kind.answers_null else wire(kind),
        answer_description="`null`: the check is live again." if kind.answers_null else f"The {words}, live again.",
        example=None if kind.answers_null else examples.restored(kind),
        errors=(errors.NotArchived, *([errors.SlugTaken] if "slug" in kind.sql().c else [])),
    )


def _restore_description(kind: type[Restorable], words: str) -> str:
    told = (
        f" The member who answers for it (`{to_camel(kind.responsible)}`) is notified, unless that is you."
        if kind.responsible
        else ""
    )
    return (
        f"Brings an archived {words} back: {_changed(kind, 'becomes null')}, every other field stays as it was. Of many"
        f" callers at once exactly one succeeds, the others are told that it is not archived. It takes a role of editor"
        f" or more in the record's organization, and a token with the scope `write`.{told}\n\n{kind.__doc__}"
    )


def _changed(kind: type[Restorable], what: str) -> str:
    return f"`archivedAt` {what}" + (" and `updatedAt` is set" if "updated_at" in kind.sql().c else "")


OPERATIONS: tuple[Operation, ...] = tuple(
    make(kind) for kind in Restorable.kinds for make in (archive_operation, restore_operation)
)
