"""Dry runs: reporting all consequences of a change without storing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from normata.core.changes.difference import difference
from normata.core.changes.idempotency import Answer
from normata.core.changes.unit_of_work import Change, Preview, Shown
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.schema.fields import CoverageStatus, Token
from normata.core.schema.paging import QueryFlag
from normata.core.schema.wire import Wire


class ChangeQuery(BaseModel):
    """The query of every change."""

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
    """A notification that a request would send."""

    organization_id: str = Field(description="The organization that it is about.")
    user_id: str = Field(description="Who would be notified.")
    type: str = Field(description="The type of message, such as `record.restored`.")
    category: Token = Field(description="What it is about.")


MAX_EFFECTS = 500  # controls in a list of effects


class AffectedControl(Wire):
    """A control of an organization that a request would affect without changing it."""

    organization_id: str = Field(description="The organization.")
    control_id: str = Field(description="The id of the control.")
    identifier: str = Field(description="The identifier of the control.")
    name: str = Field(description="The name of the control.")
    framework_id: str = Field(description="The id of the framework that the control belongs to.")


class AffectedControls(Wire):
    """Controls that a request would affect."""

    count: int = Field(description="How many there are.")
    controls: list[AffectedControl] = Field(
        description=f"By framework and in catalog order, the first {MAX_EFFECTS} of them."
    )


class MovedControl(AffectedControl):
    """A control whose effective status a request would change."""

    before: CoverageStatus = Field(
        alias="from", description="Its effective status now: `NONE` if its framework is not adopted."
    )
    after: CoverageStatus = Field(
        alias="to", description="What it would be: `NONE` if its framework is adopted no longer."
    )


class MovedControls(Wire):
    """The controls whose effective status a request would change."""

    count: int = Field(description="How many there are.")
    controls: list[MovedControl] = Field(
        description=f"By framework and in catalog order, the first {MAX_EFFECTS} of them."
    )


class PlannedConflicts(Wire):
    """The conflicts that a request would make, and those that it would end."""

    appearing: AffectedControls = Field(description="The controls whose assessments would come into conflict.")
    disappearing: AffectedControls = Field(description="The controls whose assessments would be in conflict no longer.")


class DryRun(Wire):
    """The result of a dry run; nothing was stored."""

    dry_run: Literal[True] = Field(description="That nothing has been changed.")
    status: int = Field(description="The status that the request would be answered with.")
    answer: Any = Field(description="What the request would be answered with. What is made new has another id then.")
    changes: list[PlannedChange] = Field(description="What it would change, in this order.")
    notifications: list[PlannedNotification] = Field(description="Whom it would notify, and of what.")
    coverage: MovedControls = Field(
        description="The controls of adopted frameworks whose effective status would be another one."
    )
    conflicts: PlannedConflicts = Field(description="The conflicts that it would make, and those that it would end.")
    stale: AffectedControls = Field(description="The controls whose assessments would become stale by it.")


def parse_dry_run(pairs: Sequence[tuple[str, str]]) -> tuple[bool, list[FieldFault]]:
    """Whether a query, by its names and values, requests a dry run, and the faults of that.

    An invalid value counts as a dry run, because such a request must not change anything either.
    """
    if not pairs:
        return False, []
    try:
        return ChangeQuery.model_validate(dict(pairs)).dry_run, []
    except ValidationError as error:
        return True, [*InvalidRequest.of_validation("query", error).faults]


def preview_answer(preview: Preview[Answer], shown: Shown = None) -> dict[str, Any]:
    """The members of :class:`DryRun`, for a change whose result is an answer.

    Of what it would do, it has only what belongs to the organizations that are ``shown``. The effects are of these.
    """

    def is_shown(one: Any) -> bool:
        return shown is None or one.organization_id in shown

    return {
        "dryRun": True,
        "status": preview.result.status,
        "answer": preview.result.content,
        # Tables without an array are implementation details, so their rows are not shown.
        "changes": [_planned(change) for change in preview.changes if change.table.array and is_shown(change)],
        "notifications": [
            {name: getattr(row, column) for column, name in _NOTIFICATION.items()}
            for row in preview.added
            if is_shown(row)
        ],
        **preview.effects,
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
