"""Dry runs: what a change would do, to the last consequence, in place of doing it."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from starlette.datastructures import QueryParams

from normata.core.changes.difference import difference
from normata.core.changes.idempotency import Answer
from normata.core.changes.unit_of_work import Change, Preview
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.schema.fields import Token
from normata.core.schema.paging import QueryFlag
from normata.core.schema.wire import Wire


class ChangeQuery(BaseModel):
    """What every request to change something takes in its query."""

    model_config = ConfigDict(alias_generator=to_camel)

    dry_run: QueryFlag = False


class PlannedChange(Wire):
    """Something that a request would change."""

    kind: str = Field(description="What it is, named as in paths and bundles: `tasks`, `controlCoverages`.")
    id: str | None = Field(description="Its id; null where many of a kind change together.")
    organization_id: str | None = Field(description="The organization that it belongs to.")
    action: str = Field(description="What would be done to it: `restore`, `create`.")
    before: dict[str, Any] | None = Field(description="The fields that would change, as they are; null if it is new.")
    after: dict[str, Any] | None = Field(description="The same fields, as they would be; null if it would be gone.")


class PlannedNotification(Wire):
    """Somebody whom a request would notify of a change."""

    organization_id: str = Field(description="The organization that it is about.")
    user_id: str = Field(description="Who would be notified.")
    type: str = Field(description="The type of message, such as `record.restored`.")
    category: Token = Field(description="What it is about.")


class DryRun(Wire):
    """What a request would do; nothing of it has been done."""

    dry_run: Literal[True] = Field(description="That nothing has been changed.")
    status: int = Field(description="The status that the request would be answered with.")
    answer: Any = Field(description="What the request would be answered with. What is made new has another id then.")
    changes: list[PlannedChange] = Field(description="What it would change, in this order.")
    notifications: list[PlannedNotification] = Field(description="Whom it would notify, and of what.")


def parse_dry_run(query_string: bytes) -> tuple[bool, list[FieldFault]]:
    """Whether a query asks for a dry run, and what is wrong with that.

    One that asks for it in a way that will be refused counts as one that does: it must not change anything either.
    """
    if not query_string:
        return False, []
    try:
        return ChangeQuery.model_validate(dict(QueryParams(query_string).multi_items())).dry_run, []
    except ValidationError as error:
        return True, [*InvalidRequest.of_validation("query", error).faults]


def preview_answer(preview: Preview[Answer], organizations: Set[str | None] | None = None) -> dict[str, Any]:
    """The members of :class:`DryRun`, for a change whose result is an answer.

    Of what it would do, it has only what belongs to ``organizations``; null for all.
    """

    def is_shown(one: Any) -> bool:
        return organizations is None or one.organization_id in organizations

    return {
        "dryRun": True,
        "status": preview.result.status,
        "answer": preview.result.content,
        # What follows from a change, and is no row of its own to anybody, has no name in paths and bundles.
        "changes": [_planned(change) for change in preview.changes if change.table.array and is_shown(change)],
        "notifications": [
            {name: getattr(row, column) for column, name in _NOTIFICATION.items()}
            for row in preview.added
            if is_shown(row)
        ],
    }


_NOTIFICATION = {"organization_id": "organizationId", "user_id": "userId", "type": "type", "category": "category"}


def _planned(change: Change) -> dict[str, Any]:
    before, after = difference(change)
    return {
        "kind": change.table.array,
        "id": change.row_id,
        "organizationId": change.organization_id,
        "action": change.action,
        "before": before,
        "after": after,
    }
