"""What a tool is, and what it gets and answers. Nothing here needs the package `mcp`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any

from pydantic import Field, ValidationError

from normata.core.http.caller import Caller
from normata.core.http.operation import Operation
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.schema.fields import Identifier
from normata.core.schema.wire import Input, encode
from normata.errors import NotFound
from normata.mcp.calls import Calls
from normata.mcp.confirmations import Confirmations

MAKE_CALL = "normata.make_call"  # where the scope of a request has what makes a Call of a tool and its arguments
_HALVES = re.compile("[\ud800-\udfff]")  # of surrogate pairs
_MOST_NAMED = 50  # organizations in a message


class Arguments(Input):
    """The arguments of every tool."""

    organization_id: Annotated[
        Identifier | None,
        Field(description="The organization, by id or slug. Needed if you are a member of several."),
    ] = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool: who calls, the operations, and the arguments as they were sent."""

    tool: str
    caller: Caller
    calls: Calls
    operations: Mapping[tuple[str, str], Operation]
    confirmations: Confirmations
    arguments: Mapping[str, Any]

    def organization(self, named: str | None) -> str:
        """The organization of the call: the ``named`` one, else the only one. Raises NotFound and InvalidRequest."""
        own = list(self.caller.roles)
        if named is not None or len(own) == 1:
            return named if named is not None else own[0]
        if not own:
            raise NotFound
        message = "is required, since you are a member of several organizations"
        allowed = sorted(own)[:_MOST_NAMED]
        raise InvalidRequest.of([fault("organizationId", "required", message, allowed)])


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answers: ``content`` is the structured answer, ``words`` what a model reads before its data."""

    words: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool. ``run`` raises Refused, and errors of HTTP and of the domain.

    ``is_read`` is true if it changes nothing, ``is_destructive`` if it replaces or archives what is there, and
    ``is_idempotent`` if doing it again changes nothing more.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    output: Mapping[str, Any]
    run: Callable[[Call, Any], Awaitable[Result]]
    is_read: bool = True
    is_destructive: bool = False
    is_idempotent: bool = True

    def parse(self, sent: Mapping[str, Any]) -> Arguments:
        """The arguments that were sent. Raises InvalidRequest with all faults."""
        if not _is_json(sent):
            message = "have a number or a text that JSON cannot have: NaN, or half of a character"
            raise InvalidRequest.of([fault("", "invalid", message)])
        try:
            return self.arguments.model_validate_json(encode(sent))
        except ValidationError as error:
            raise InvalidRequest.of_validation("body", error) from None


def _is_json(value: Any) -> bool:
    """Whether a value can be sent as JSON (RFC 8259): parsers of JSON accept more."""
    remaining = [value]
    while remaining:
        one = remaining.pop()
        if isinstance(one, dict):
            remaining += (*one.keys(), *one.values())
        elif isinstance(one, list):
            remaining += one
        elif (isinstance(one, float) and not isfinite(one)) or (isinstance(one, str) and _HALVES.search(one)):
            return False
    return True


def fault(name: str, code: str, message: str, allowed: list[str] | None = None) -> FieldFault:
    """A fault of an argument."""
    return FieldFault(in_="body", name=name, code=code, message=message, allowed=allowed)
