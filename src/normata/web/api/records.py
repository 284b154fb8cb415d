"""The operations of records. Those that every kind has are made from the kinds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from normata import errors
from normata.changes.unit_of_work import UnitOfWork
from normata.demo.files import record_bundle
from normata.records import kinds as _kinds  # noqa: F401 - defining the kinds is what fills Restorable.kinds
from normata.records.base import Restorable
from normata.records.restore import restore, restore_writes
from normata.schema.descriptions import with_article
from normata.schema.fields import Identifier
from normata.schema.wire import as_wire, wire, wire_names
from normata.web.changing import as_null
from normata.web.operation import ChangeOperation, Given, Operation

_RESTORED_AT = "2026-11-20T09:14:03.120Z"


class IntegrationCheckRestore(BaseModel):
    """What may go along with the restore of an integration check."""

    model_config = ConfigDict(alias_generator=to_camel, strict=True)

    organization_id: Identifier | None = Field(
        default=None, description="The organization of the check; where given, it must be the right one."
    )


def restore_operation(kind: type[Restorable]) -> ChangeOperation:
    """The restore of one kind."""
    words = kind.words()
    takes_body = kind.answers_null

    def work(unit: UnitOfWork, given: Given) -> Any:
        return restore(unit, kind, given.id, given.body.organization_id if given.body is not None else None)

    return ChangeOperation(
        http_method="POST",
        path=f"/{kind.path}/{{id}}/restore/",
        operation_id=f"restore{kind.__name__}",
        tag="Restore",
        summary=f"Restore {with_article(words)}",
        description=_description(kind, words),
        about=kind,
        role="editor",
        scope="write",
        work=work,
        present=as_null if kind.answers_null else partial(as_wire, kind),
        writes=restore_writes(kind),
        id_description="The id of the archived record.",
        body=IntegrationCheckRestore if takes_body else None,
        body_example={"organizationId": "org-harbourlight"} if takes_body else None,
        answer=None if kind.answers_null else wire(kind),
        answer_description="`null`: the check is live again." if kind.answers_null else f"The {words}, live again.",
        example=None if kind.answers_null else _restored(kind),
        errors=(errors.NotArchived, *([errors.SlugTaken] if "slug" in kind.sql().c else [])),
    )


def _description(kind: type[Restorable], words: str) -> str:
    changed = "`archivedAt` becomes null" + (" and `updatedAt` is set" if "updated_at" in kind.sql().c else "")
    told = (
        f" The member who answers for it (`{to_camel(kind.responsible)}`) is notified, unless that is you."
        if kind.responsible
        else ""
    )
    return (
        f"Brings an archived {words} back: {changed}, every other field stays as it was. Of many callers at once"
        f" exactly one succeeds, the others are told that it is not archived. It takes a role of editor or more in the"
        f" record's organization, and a token with the scope `write`.{told}\n\n{kind.__doc__}"
    )


def _restored(kind: type[Restorable]) -> dict[str, Any] | None:
    """The demo's own archived record of the kind, as its restore answers it."""
    archived = next((record for record in _demo_records().get(kind.path, ()) if record.get("archivedAt")), None)
    if archived is None:
        return None
    restored = {name: archived.get(name) for name in wire_names(kind).values()} | {"archivedAt": None}
    return restored | {"updatedAt": _RESTORED_AT} if "updatedAt" in restored else restored


@cache
def _demo_records() -> Mapping[str, list[dict[str, Any]]]:
    records: Mapping[str, list[dict[str, Any]]] = json.loads(record_bundle().read_text("utf-8"))
    return records


OPERATIONS: tuple[Operation, ...] = tuple(restore_operation(kind) for kind in Restorable.kinds)
