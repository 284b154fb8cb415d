"""The server of the Model Context Protocol, by the package `mcp`, which is an optional extra and slow to import."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ToolOfProtocol
from starlette.types import Receive, Scope, Send

from normata import __version__
from normata.core.http.context import context_of
from normata.core.http.openapi_schemas import schema_of
from normata.core.log import logger
from normata.mcp import reading, writing
from normata.mcp.calls import Refused, refused
from normata.mcp.texts import INSTRUCTIONS, of_problem, of_result
from normata.mcp.tool import MAKE_CALL, Call, Tool

TOOLS: Sequence[Tool] = (*reading.TOOLS, *writing.TOOLS)
_BY_NAME: Mapping[str, Tool] = {tool.name: tool for tool in TOOLS}

Context = ServerRequestContext[Any, Any]


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one POST of a client, for whom the scope has what makes calls. Nothing is left of it afterwards."""
    manager = StreamableHTTPSessionManager(_SERVER, json_response=True, stateless=True, max_request_body_size=2**31)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


async def _list_tools(_context: Context, _parameters: PaginatedRequestParams | None) -> ListToolsResult:
    return _LISTED


async def _call_tool(context: Context, parameters: CallToolRequestParams) -> CallToolResult:
    tool = _BY_NAME.get(parameters.name)
    if tool is None:
        raise MCPError(INVALID_PARAMS, f"There is no such tool. The tools are {', '.join(_BY_NAME)}.")
    assert context.request is not None  # noqa: S101 - every message comes in a request
    scope: Scope = context.request.scope
    arguments = parameters.arguments or {}
    call: Call = scope[MAKE_CALL](tool=tool.name, arguments=arguments)
    started, problem = time.perf_counter(), None
    try:
        result = await tool.run(call, tool.parse(arguments))
    except Exception as error:
        refusal = error if isinstance(error, Refused) else refused(error, context_of(scope))
        problem = refusal.problem["code"]
        text = of_problem(refusal.problem, refusal.retry_after)
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
    finally:
        _log(scope, call, problem, time.perf_counter() - started)
    return CallToolResult(
        content=[TextContent(type="text", text=of_result(result))], structured_content=dict(result.content)
    )


def _log(scope: Scope, call: Call, problem: str | None, seconds: float) -> None:
    context = context_of(scope)
    with suppress(OSError, ValueError):  # a log that cannot be written must not prevent answers
        logger.info(
            "tool",
            request_id=context.request_id,
            tool=call.tool,
            problem=problem,
            milliseconds=round(seconds * 1000, 1),
            organization=context.organization_id,
            user=call.caller.user_id,
            token=call.caller.token_id,
        )


def _of_protocol(tool: Tool) -> ToolOfProtocol:
    return ToolOfProtocol(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=_input_schema(tool),
        output_schema=dict(tool.output),
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.is_read,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=False,
        ),
    )


def _input_schema(tool: Tool) -> dict[str, Any]:
    """The schema of a tool's arguments, without null as a default: a client that sends defaults would clear fields."""
    schema = schema_of(tool.arguments)
    for value in schema["properties"].values():
        if "default" in value and value["default"] is None:
            del value["default"]
    return schema


_LISTED = ListToolsResult(tools=[_of_protocol(tool) for tool in TOOLS])
_SERVER: Server[Any] = Server(
    "normata",
    version=__version__,
    title="Normata",
    instructions=INSTRUCTIONS,
    on_list_tools=_list_tools,
    on_call_tool=_call_tool,
    get_tool_input_schema=lambda _: None,  # no argument is also a header, so the package need not look for those
)
_SERVER.middleware.clear()  # it would make spans that nobody has configured
