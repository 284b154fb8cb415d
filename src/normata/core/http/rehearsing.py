"""Dry runs: what a change would do, to the last consequence, told instead of done."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from starlette.datastructures import QueryParams
from starlette.types import Scope

from normata.core.changes.idempotency import Answer
from normata.core.changes.unit_of_work import Change, Rehearsed
from normata.core.http.responses import encode
from normata.core.schema.fields import Token
from normata.core.schema.paging import QueryFlag
from normata.core.schema.wire import Wire
from normata.events.content import difference


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
    """Somebody whom a request would tell of a change."""

    organization_id: str = Field(description="The organization that it is about.")
    user_id: str = Field(description="Who would be told.")
    type: str = Field(description="The sort of message, such as `record.restored`.")
    category: Token = Field(description="What it is about.")


class DryRun(Wire):
    """What a request would do; nothing of it has been done."""

    dry_run: Literal[True] = Field(description="That nothing has been changed.")
    status: int = Field(description="The status that the request would be answered with.")
    answer: Any = Field(description="What the request would be answered with. What is made new has another id then.")
    changes: list[PlannedChange] = Field(description="What it would change, in this order.")
    notifications: list[PlannedNotification] = Field(description="Whom it would notify, and of what.")


def is_dry_run(scope: Scope) -> bool:
    """Whether a request asks for a dry run. Raises :class:`pydantic.ValidationError` where that cannot be told."""
    query = scope["query_string"]
    if not query:
        return False
    return ChangeQuery.model_validate(dict(QueryParams(query).multi_items())).dry_run


def asks_for_dry_run(scope: Scope) -> bool:
    """Whether a request asks for a dry run; also where it does so in a way that will be refused."""
    try:
        return is_dry_run(scope)
    except ValidationError:
        return True


def told(rehearsed: Rehearsed[Answer], organizations: Set[str | None] | None = None) -> bytes:
    """A dry run as it travels, for a change whose result is an answer.

    Of what it would do, only what belongs to ``organizations`` is told; null for all.
    """
    answer = rehearsed.result

    def is_told(one: Any) -> bool:
        return organizations is None or one.organization_id in organizations

    rest = {
        # What follows from a change, and is no row of its own to anybody, has no name in paths and bundles.
        "changes": [_planned(change) for change in rehearsed.changes if change.table.array and is_told(change)],
        "notifications": [
            {name: getattr(row, column) for column, name in _TOLD.items()} for row in rehearsed.added if is_told(row)
        ],
    }
    # The answer has been encoded already, as it would have been sent.
    return b'{"dryRun":true,"status":%d,"answer":%b,%b' % (answer.status, answer.body, encode(rest)[1:])


_TOLD = {"organization_id": "organizationId", "user_id": "userId", "type": "type", "category": "category"}


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
