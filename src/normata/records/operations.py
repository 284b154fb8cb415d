"""The operations of records, generated for every kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from normata import errors
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.change_endpoint import as_null
from normata.core.http.operation import ChangeOperation, Operation
from normata.core.http.request import Request
from normata.core.schema.fields import Identifier
from normata.core.schema.wire import as_wire, wire
from normata.records import assurance as _kinds  # noqa: F401 - importing the kinds registers them in Restorable.kinds
from normata.records import examples
from normata.records.base import Restorable
from normata.records.change_operations import archive_operation, change_operation, create_operation
from normata.records.read_operations import get_operation, list_operation
from normata.records.restore import restore, restore_writes

# The kinds whose restores the first clients know, which may send parameters that these do not have.
_IGNORING = frozenset(
    {
        *("tasks", "auditItems", "assets", "policies", "record-categories", "entitlement-reviews", "audits"),
        *("risk-reviews", "acronyms", "labels", "integration-checks", "incidents", "vendors", "records"),
        *("vulnerability-classes", "variables"),
    }
)


class IntegrationCheckRestore(BaseModel):
    """The optional body of the restore of an integration check."""

    model_config = ConfigDict(alias_generator=to_camel, strict=True)

    organization_id: Identifier | None = Field(
        default=None, description="The organization of the check; if present, it must be the right one."
    )


def restore_operation(kind: type[Restorable]) -> ChangeOperation:
    """The restore of one kind."""
    words = kind.words()
    takes_body = kind.answers_null

    def work(unit: UnitOfWork, request: Request) -> Any:
        return restore(
            unit,
            kind,
            request.id,
            request.body.organization_id if request.body is not None else None,
            (lambda row: request.require_current(as_wire(kind, row))) if request.is_conditional else None,
        )

    return ChangeOperation(
        http_method="POST",
        path=f"/{kind.path}/{{id}}/restore/",
        operation_id=f"restore{kind.__name__}",
        tag="Restore",
        summary=f"Restore {kind.with_article()}",
        description=_restore_description(kind, words),
        about=kind,
        work=work,
        present=as_null if kind.answers_null else partial(as_wire, kind),
        writes=restore_writes(kind),
        id_description="The id of the archived record.",
        body=IntegrationCheckRestore if takes_body else None,
        body_example={"organizationId": "org-harbourlight"} if takes_body else None,
        is_conditional=True,
        ignores_unknown=kind.path in _IGNORING,
        answer=None if kind.answers_null else wire(kind),
        answer_description="`null`: the check is live again." if kind.answers_null else f"The {words}, live again.",
        example=None if kind.answers_null else examples.restored(kind),
        errors=(errors.NotArchived, *([errors.SlugTaken] if "slug" in kind.sql().c else [])),
    )


def _restore_description(kind: type[Restorable], words: str) -> str:
    changed = "`archivedAt` becomes null" + (" and `updatedAt` is set" if "updated_at" in kind.sql().c else "")
    note = (
        f" The responsible member (`{to_camel(kind.responsible)}`) is notified, unless that is you."
        if kind.responsible
        else ""
    )
    return (
        f"Restores an archived {words}: {changed}, and every other field stays as it is. Of concurrent"
        " requests exactly one succeeds; the others get the error that it is not archived. This requires the role of an"
        f" editor or higher in the record's organization, and a token with the scope `write`.{note}\n\n{kind.__doc__}"
    )


# In the order in which a client could call them one after the other: an archived record cannot be changed.
_SORTS: tuple[Callable[[type[Restorable]], Operation], ...] = (
    list_operation,
    get_operation,
    create_operation,
    change_operation,
    archive_operation,
    restore_operation,
)

OPERATIONS: tuple[Operation, ...] = tuple(sort(kind) for kind in Restorable.kinds for sort in _SORTS)
