"""The tools that read: each calls one operation, and bounds its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from normata.core.http.openapi_schemas import schema_of
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.problems import InvalidRequest
from normata.core.schema.fields import Identifier
from normata.core.schema.paging import OrganizationQuery
from normata.mcp.bounded import NoSuchPlace, bounded, part_of
from normata.mcp.calls import Pairs, Wanted
from normata.mcp.tool import Arguments, Call, Result, Tool, fault

# What belongs to the caller, and what an agent needs to find its way.
_OWN = frozenset({"/me/", "/organizations/", "/organizations/{id}/"})

_COUNT = {"type": "integer"}
OUTPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "organizationId": {"type": ["string", "null"]},
        "data": {"description": "What the operation answers."},
        "cut": {
            "type": "array",
            "description": "Texts and lists that were too long: where, and of how many characters or items how many"
            " are here. To read on, repeat the call with this `at`, and `next` as `from`.",
            "items": {"type": "object", "properties": dict.fromkeys(("from", "shown", "of", "next"), _COUNT)},
        },
    },
    "required": ["organizationId", "data", "cut"],
}

Moment = Annotated[
    str | None, Field(description="What held at this moment instead of now, such as `2026-03-31`. The default is now.")
]


class ReadArguments(Arguments):
    """The arguments of every tool that reads."""

    at: Annotated[
        str | None,
        Field(max_length=500, description="Answer only what is at this JSON Pointer, such as `/items/3/description`."),
    ] = None
    from_: Annotated[
        int, Field(alias="from", ge=0, le=10_000_000, description="Leave out so many characters or items there.")
    ] = 0


async def read(call: Call, arguments: ReadArguments, wanted: Wanted, organization_id: str | None) -> Result:
    """What an operation answers, bounded. Raises Refused and InvalidRequest."""
    content = (await call.calls.send(wanted)).content
    at = arguments.at or ""
    try:
        part = part_of(content, at, arguments.from_)
    except NoSuchPlace:
        message = "is no place of the answer that can be read so"
        raise InvalidRequest.of([fault("at", "invalid", message)]) from None
    data, cuts = bounded(part, at=at, start=arguments.from_)
    found = {"organizationId": organization_id, "data": data, "cut": [cut.as_json() for cut in cuts]}
    return Result(f"The answer of {wanted.method} {wanted.path}.", found)


def pairs(**values: Any) -> Pairs:
    """A query: the values that are not null, by their names on the wire."""
    return [pair for name, value in values.items() for pair in _pairs_of(name, value)]


def _pairs_of(name: str, value: Any) -> Pairs:
    if value is None:
        return []
    if isinstance(value, bool):
        return [(name, "true" if value else "false")]
    return [(name, str(one)) for one in (value if isinstance(value, list) else [value])]


class _Search(ReadArguments):
    search: Annotated[str | None, Field(min_length=1, max_length=500, description="Words of the title.")] = None
    ids: Annotated[list[Identifier] | None, Field(max_length=100, description="Only records with these ids.")] = None
    kinds: Annotated[
        list[Identifier] | None, Field(max_length=50, description="Only these kinds, such as `risks`.")
    ] = None
    archived: Annotated[bool, Field(description="Whether to find archived records, too.")] = False
    limit: Annotated[int, Field(ge=1, le=100, description="The most records to find.")] = 20


async def _search(call: Call, arguments: _Search) -> Result:
    organization = call.organization(arguments.organization_id)
    query = pairs(
        organizationId=organization,
        search=arguments.search,
        id=arguments.ids,
        kind=arguments.kinds,
        archived="include" if arguments.archived else None,
        limit=arguments.limit,
    )
    return await read(call, arguments, Wanted("GET", "/search/", query=query), organization)


class _Read(ReadArguments):
    kind: Annotated[
        Identifier,
        Field(
            description="What to read, such as `risks`, `controls`, `frameworks`, `members`, `comments`, `archive`,"
            " `organizations`. `kinds` lists the kinds of records."
        ),
    ]
    id: Annotated[Identifier | None, Field(description="The id of one. Left out: the list of them.")] = None
    part: Annotated[
        str | None,
        Field(max_length=100, description="What belongs to that one, such as `events`, or `draft` of a policy."),
    ] = None
    query: Annotated[
        dict[str, str | int | bool | list[str]],
        Field(description="Filters and paging of a list: `search`, `status`, `limit`, `cursor`, and what else it has."),
    ] = Field(default_factory=dict)
    fields: Annotated[
        bool,
        Field(description="Instead of data: the filters of the list, and the fields to create and change a record."),
    ] = False


async def _read(call: Call, arguments: _Read) -> Result:
    path = "/".join(["", arguments.kind, *(["{id}"] if arguments.id else []), *_steps(arguments.part), ""])
    operation = readable(call.operations.get(("GET", path)))
    if operation is None:
        known = sorted(_beside(call.operations, path))
        name = "part" if arguments.part else "kind"
        raise InvalidRequest.of([fault(name, "unknown", "is nothing that can be read so", known)])
    if arguments.fields:
        return Result(f"The fields of {arguments.kind}.", _fields(call, arguments.kind))
    if "format" in arguments.query:
        raise InvalidRequest.of([fault("query/format", "not_allowed", "must be left out: answers are JSON")])
    organization = None
    query = list(pairs(**arguments.query))
    if issubclass(operation.query, OrganizationQuery):
        organization = call.organization(arguments.organization_id)
        query = [("organizationId", organization), *(pair for pair in query if pair[0] != "organizationId")]
    return await read(call, arguments, Wanted("GET", path, arguments.id or "", query), organization)


def _steps(part: str | None) -> list[str]:
    return part.strip("/").split("/") if part else []


def readable(operation: Operation | None) -> ReadOperation | None:
    """The operation, if ``read`` calls it: one that answers JSON of the organization."""
    if not isinstance(operation, ReadOperation) or operation.sends_file:
        return None
    if operation.formats is not None and "json" not in operation.formats.by_name:
        return None
    return operation if operation.authority == "organization" or operation.path in _OWN else None


def _beside(operations: Mapping[tuple[str, str], Operation], path: str) -> set[str]:
    """What can be read in place of the last step of a path, or of its first one."""
    found = [one.split("/") for (method, one), operation in operations.items() if readable(operation)]
    steps = path.split("/")
    if "{id}" in steps:
        same = {"/".join(one[3:-1]) for one in found if one[1:3] == steps[1:3] and len(one) > 4}
        if any(one[1:3] == steps[1:3] for one in found):
            return same
    return {one[1] for one in found}


def _fields(call: Call, kind: str) -> Mapping[str, Any]:
    of_list = call.operations.get(("GET", f"/{kind}/"))
    data: dict[str, Any] = {}
    if isinstance(of_list, ReadOperation):
        data["filters"] = schema_of(of_list.query)
    for name, place in (("create", ("POST", f"/{kind}/")), ("change", ("PATCH", f"/{kind}/{{id}}/"))):
        operation = call.operations.get(place)
        if isinstance(operation, ChangeOperation) and operation.body is not None:
            data[name] = schema_of(operation.body)
    return {"organizationId": None, "data": data, "cut": []}


class _Explain(ReadArguments):
    control_id: Annotated[Identifier, Field(description="The id of a control.")]
    as_of: Moment = None


async def _explain(call: Call, arguments: _Explain) -> Result:
    organization = call.organization(arguments.organization_id)
    query = pairs(organizationId=organization, asOf=arguments.as_of)
    wanted = Wanted("GET", "/controls/{id}/coverage/", arguments.control_id, query)
    return await read(call, arguments, wanted, organization)


class _Gaps(ReadArguments):
    framework_id: Annotated[Identifier, Field(description="The id of a framework that the organization has adopted.")]
    steps: Annotated[
        int | None,
        Field(ge=1, le=100, description="With it: a plan of at most so many steps to close the gaps, the best first."),
    ] = None
    as_of: Moment = None


async def _gaps(call: Call, arguments: _Gaps) -> Result:
    organization = call.organization(arguments.organization_id)
    if arguments.steps is not None and arguments.as_of is not None:
        raise InvalidRequest.of([fault("asOf", "not_allowed", "cannot be combined with steps: a plan is of now")])
    path = "/frameworks/{id}/gaps/" if arguments.steps is None else "/frameworks/{id}/gaps/plan/"
    query = pairs(organizationId=organization, steps=arguments.steps, asOf=arguments.as_of)
    return await read(call, arguments, Wanted("GET", path, arguments.framework_id, query), organization)


class _Due(ReadArguments):
    within: Annotated[int, Field(ge=0, le=9_999, description="How many days to look ahead.")] = 30
    mine: Annotated[bool, Field(description="Only what you are responsible for.")] = False
    limit: Annotated[int, Field(ge=5, le=100, description="The most dates.")] = 25
    cursor: Annotated[str | None, Field(description="`nextCursor` of the page before, for the next one.")] = None


async def _due(call: Call, arguments: _Due) -> Result:
    organization = call.organization(arguments.organization_id)
    query = pairs(
        organizationId=organization,
        within=f"{arguments.within}d",
        mine=arguments.mine or None,
        limit=arguments.limit,
        cursor=arguments.cursor,
    )
    return await read(call, arguments, Wanted("GET", "/due/", query=query), organization)


class _Events(ReadArguments):
    after: Annotated[
        int | None,
        Field(ge=0, description="The number of the last event that you know. Left out: from the beginning."),
    ] = None
    limit: Annotated[int, Field(ge=1, le=100, description="The most events.")] = 25


async def _events(call: Call, arguments: _Events) -> Result:
    organization = call.organization(arguments.organization_id)
    query = pairs(organizationId=organization, after=arguments.after, limit=arguments.limit)
    return await read(call, arguments, Wanted("GET", "/events/log/", query=query), organization)


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="search",
        title="Search records",
        description="Find records of all kinds by words of their titles, or by id. Answers their kinds, ids and titles;"
        " `read` has their fields.",
        arguments=_Search,
        output=OUTPUT,
        run=_search,
    ),
    Tool(
        name="read",
        title="Read records",
        description="Read one record, with `kind` and `id`, or a list of them, with `kind` alone; `part` reads what"
        " belongs to one. With `fields`, it answers which filters and fields a kind has instead: read that before you"
        " create or change a record.",
        arguments=_Read,
        output=OUTPUT,
        run=_read,
    ),
    Tool(
        name="explain_coverage",
        title="Explain the coverage of a control",
        description="Why a control has its coverage status: its assessment, the requirements below it, and the matches"
        " with controls of other frameworks that lift it.",
        arguments=_Explain,
        output=OUTPUT,
        run=_explain,
    ),
    Tool(
        name="gaps",
        title="Gaps of a framework, and a plan",
        description="The requirements of a framework that are not fully covered, and what would lift them. With"
        " `steps`, a plan instead: which controls to assess as FULL, in which order, to close most gaps.",
        arguments=_Gaps,
        output=OUTPUT,
        run=_gaps,
    ),
    Tool(
        name="due",
        title="What is due",
        description="What is overdue, or due within the next days, across all kinds of records, soonest first.",
        arguments=_Due,
        output=OUTPUT,
        run=_due,
    ),
    Tool(
        name="events_since",
        title="Events since a number",
        description="What has happened in the organization after an event's number, in order. `next` of the answer is"
        " the number to continue after. Takes the role of an auditor, an admin or an owner.",
        arguments=_Events,
        output=OUTPUT,
        run=_events,
    ),
)
