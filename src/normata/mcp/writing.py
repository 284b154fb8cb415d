"""The tools that change something: they show first what would be done, and do it with the confirmation that they give.

What they show is the dry run of the operation, and what they do is the operation, with the state in which the record
was as ``If-Match`` and a key that follows from the confirmation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from normata.core.db.types import format_timestamp
from normata.core.http.operation import ChangeOperation
from normata.core.http.problems import InvalidRequest
from normata.core.schema.fields import Identifier
from normata.core.schema.wire import encode
from normata.coverage.assessments import AssessmentFields
from normata.mcp.bounded import bounded
from normata.mcp.calls import Refused, Wanted
from normata.mcp.confirmations import Confirmed, Refusal, call_of
from normata.mcp.tool import Arguments, Call, Result, Tool, fault

OUTPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "status": {"enum": ["confirmation_required", "done"]},
        "organizationId": {"type": "string"},
        "confirmation": {"type": "string", "description": "Send it with the same arguments, and it is done."},
        "expiresAt": {"type": "string", "description": "Until when it holds."},
        "as": {"type": "object", "description": "Whose change it would be."},
        "data": {
            "type": ["object", "null"],
            "description": "Done: the record. Else what would change, field by field, and what follows from it.",
        },
        "cut": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["status", "organizationId", "data", "cut"],
}

_PLANNED = ("changes", "notifications", "coverage", "conflicts", "stale")  # the answer would say it all again
_SHOWN = (
    "Nothing has changed yet. This is what would be done. Show it to the person you work for. If they agree, call the"
    " tool again with the same arguments and this confirmation; it holds for ten minutes, and once."
)
_NOTHING = "It would change nothing: everything is so already."


class WriteArguments(Arguments):
    """The arguments of every tool that changes something."""

    confirmation: Annotated[
        str | None,
        Field(
            max_length=500,
            description="Leave it out first: the answer shows what would change, with a confirmation. Send that here to"
            " do it.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change: the request, and the read whose answer is the state of the record; null if there is no record yet.

    ``state_of`` takes from that answer what the change must not overwrite unseen; null if its entity tag says that, by
    which the operation then compares as well.
    """

    wanted: Wanted
    state: Wanted | None = None
    state_of: Callable[[Any], Any] | None = None


async def write(call: Call, arguments: WriteArguments, organization_id: str, change: Change) -> Result:
    """Show a change, or make it with its confirmation. Raises Refused and InvalidRequest."""
    confirmed = Confirmed(
        f"{call.caller.user_id} {call.caller.token_id}",
        call_of(call.tool, {**call.arguments, "organizationId": organization_id, "confirmation": None}),
        "",
    )
    headers: dict[str, str] = {}
    wanted = change.wanted
    dry_run = wanted._replace(query=[*wanted.query, ("dryRun", "true")])
    if change.state is not None:
        try:
            answered = await call.calls.send(change.state)
        except Refused:
            await call.calls.send(dry_run)  # if it refuses this as well, that is the reason: a scope, for example
            raise
        if change.state_of is None:
            headers["If-Match"] = answered.tag
        tag = answered.tag if change.state_of is None else encode(change.state_of(answered.content)).decode()
        confirmed = confirmed._replace(state=tag)
    if arguments.confirmation is None:
        planned = (await call.calls.send(dry_run, headers)).content
        shown, cuts = bounded({name: value for name, value in planned.items() if name in _PLANNED})
        confirmation, end = call.confirmations.give(confirmed)
        content = {
            "status": "confirmation_required",
            "organizationId": organization_id,
            "confirmation": confirmation,
            "expiresAt": format_timestamp(datetime.fromtimestamp(end, UTC)),
            "as": {"userId": call.caller.user_id, "name": call.caller.user_name},
        }
        words = _SHOWN if planned["changes"] else _NOTHING
        return Result(words, content | {"data": shown, "cut": [cut.as_json() for cut in cuts]})
    try:
        key = call.confirmations.require(arguments.confirmation, confirmed)
    except Refusal as error:
        message = f"does not hold. {error} Call the tool without it to see again what would change"
        raise InvalidRequest.of([fault("confirmation", "invalid", message)]) from None
    operation = call.operations[wanted.method, wanted.path]
    if isinstance(operation, ChangeOperation) and operation.takes_key:
        headers["Idempotency-Key"] = key
    done, cuts = bounded((await call.calls.send(wanted, headers)).content)
    content = {"status": "done", "organizationId": organization_id, "data": done}
    return Result("Done.", content | {"cut": [cut.as_json() for cut in cuts]})


Kind = Annotated[
    Identifier,
    Field(description="The kind of the record, as in its path: `risks`, `tasks`. `read` with `kinds` lists them."),
]
Id = Annotated[Identifier, Field(description="The id of the record.")]


async def _write_record(call: Call, arguments: WriteArguments, wanted: Wanted) -> Result:
    """:func:`write` for a request about a record. Raises InvalidRequest if it has no kind that there is."""
    organization = call.organization(arguments.organization_id)
    if not _is_of_records(call, wanted.method, wanted.path):
        known = sorted({path.split("/")[1] for method, path in call.operations if _is_of_records(call, method, path)})
        raise InvalidRequest.of([fault("kind", "unknown", "is no kind of record", known)])
    kind = wanted.path.split("/")[1]
    state = Wanted("GET", f"/{kind}/{{id}}/", wanted.id, [("organizationId", organization)])
    return await write(call, arguments, organization, Change(wanted, state if wanted.id else None))


def _is_of_records(call: Call, method: str, path: str) -> bool:
    """Whether an operation creates, changes, archives or restores a record: what can be archived is one."""
    kind, _, end = path[1:].partition("/")
    is_one_of_all = (method, end) in {("POST", ""), ("PATCH", "{id}/"), ("POST", _ARCHIVE), ("POST", _RESTORE)}
    return is_one_of_all and ("POST", f"/{kind}/{_ARCHIVE}") in call.operations and (method, path) in call.operations


_ARCHIVE, _RESTORE = "{id}/archive/", "{id}/restore/"


class _Create(WriteArguments):
    kind: Kind
    values: Annotated[
        dict[str, Any], Field(description="The fields of the new record, by name; `read` with `fields` lists them.")
    ]


async def _create(call: Call, arguments: _Create) -> Result:
    organization = call.organization(arguments.organization_id)
    body = {"organizationId": organization, **call.arguments["values"]}
    if body["organizationId"] != organization:
        message = "is another organization than that of the call: name it as organizationId beside kind"
        raise InvalidRequest.of([fault("values/organizationId", "invalid", message)])
    return await _write_record(call, arguments, Wanted("POST", f"/{arguments.kind}/", body=body))


class _ChangeRecord(WriteArguments):
    kind: Kind
    id: Id
    values: Annotated[
        dict[str, Any],
        Field(description="The fields to change, by name. Others stay as they are, and null clears a field."),
    ]


async def _change(call: Call, arguments: _ChangeRecord) -> Result:
    wanted = Wanted("PATCH", f"/{arguments.kind}/{{id}}/", arguments.id, body=call.arguments["values"])
    return await _write_record(call, arguments, wanted)


class _Archive(WriteArguments):
    kind: Kind
    id: Id
    reason: Annotated[str | None, Field(max_length=1_000, description="Why, for later readers.")] = None


async def _archive(call: Call, arguments: _Archive) -> Result:
    wanted = Wanted("POST", f"/{arguments.kind}/{_ARCHIVE}", arguments.id, body={"reason": arguments.reason})
    return await _write_record(call, arguments, wanted)


class _Restore(WriteArguments):
    kind: Kind
    id: Id


async def _restore(call: Call, arguments: _Restore) -> Result:
    return await _write_record(call, arguments, Wanted("POST", f"/{arguments.kind}/{_RESTORE}", arguments.id))


class _Assess(WriteArguments, AssessmentFields):
    control_id: Annotated[Identifier, Field(description="The id of a control of an adopted framework.")]


async def _assess(call: Call, arguments: _Assess) -> Result:
    organization = call.organization(arguments.organization_id)
    own = {"organizationId", "confirmation"}
    assessment = {name: value for name, value in call.arguments.items() if name not in own}
    body = {"organizationId": organization, "assessments": [assessment]}
    state = Wanted("GET", "/controls/{id}/", arguments.control_id, [("organizationId", organization)])
    wanted = Wanted("PATCH", "/controls/coverage/", body=body)
    # The rest of that answer also follows from other controls, which may change meanwhile.
    change = Change(wanted, state, lambda answer: answer["coverage"])
    return await write(call, arguments, organization, change)


class _Comment(WriteArguments):
    kind: Annotated[Identifier, Field(description="The kind of what it is about: of a record, or `controls`.")]
    id: Annotated[Identifier, Field(description="The id of what it is about.")]
    text: Annotated[str, Field(min_length=1, description="What it says, in Markdown. `@` and a name mention a member.")]


async def _comment(call: Call, arguments: _Comment) -> Result:
    organization = call.organization(arguments.organization_id)
    about = {"kind": arguments.kind, "id": arguments.id}
    body = {"organizationId": organization, "about": about, "text": arguments.text}
    return await write(call, arguments, organization, Change(Wanted("POST", "/comments/", body=body)))


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="assess",
        title="Assess a control",
        description="Record how far the organization covers a control, what is missing, and whether it applies. Fields"
        " that you leave out stay as they are, and null removes what is recorded. Shows first what would change.",
        arguments=_Assess,
        output=OUTPUT,
        run=_assess,
        is_read=False,
        is_destructive=True,
    ),
    Tool(
        name="create",
        title="Create a record",
        description="Create a record of any kind. Shows first what would change.",
        arguments=_Create,
        output=OUTPUT,
        run=_create,
        is_read=False,
        is_idempotent=False,
    ),
    Tool(
        name="change",
        title="Change a record",
        description="Change fields of a record. Shows first what would change, field by field.",
        arguments=_ChangeRecord,
        output=OUTPUT,
        run=_change,
        is_read=False,
        is_destructive=True,
    ),
    Tool(
        name="archive",
        title="Archive a record",
        description="Archive a record: it becomes read-only and leaves the lists. Nothing is deleted, and `restore`"
        " takes it back. Shows first what would change.",
        arguments=_Archive,
        output=OUTPUT,
        run=_archive,
        is_read=False,
        is_destructive=True,
    ),
    Tool(
        name="restore",
        title="Restore an archived record",
        description="Restore an archived record as it was. Shows first what would change.",
        arguments=_Restore,
        output=OUTPUT,
        run=_restore,
        is_read=False,
    ),
    Tool(
        name="comment",
        title="Comment on a record",
        description="Write a comment on a record or a control. It notifies who is responsible for it and who is"
        " mentioned. Shows first whom.",
        arguments=_Comment,
        output=OUTPUT,
        run=_comment,
        is_read=False,
        is_idempotent=False,
    ),
)
