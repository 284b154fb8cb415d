"""Dry runs of changes: in this process, or in one of their own, so that they do not hold Python's lock from others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from normata.core.changes.idempotency import Answer
from normata.core.changes.unit_of_work import Changes, UnitOfWork
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.http.caller import Caller
from normata.core.http.dry_run import preview_answer
from normata.core.http.operation import ChangeOperation, Operation
from normata.core.http.read_processes import NoProcess, ReadProcesses
from normata.core.http.request import Means, PackedRequest, Request

_SMALL = 32 * 2**10  # bytes of a body, some hundred rows, that are read and compared faster than they reach a process

Respond = Callable[[ChangeOperation, Request, Any], Answer]


@dataclass(frozen=True, slots=True)
class UnreadBody:
    """A body in one of the formats of its operation, which has not been read yet."""

    media_type: str
    content: bytes


class Changing(Protocol):
    """What changes need besides their request; see :class:`normata.core.http.services.Services`."""

    @property
    def changes(self) -> Changes:
        """Where changes are made."""

    @property
    def require_operator(self) -> Callable[[Transaction, Caller], None]:
        """Raises NotOperator."""


class ChangingHere(NamedTuple):
    """:class:`Changing` where there are no services."""

    changes: Changes
    require_operator: Callable[[Transaction, Caller], None]


@dataclass(frozen=True, slots=True)
class DryRunOf:
    """A dry run of the change of a request, whose body may be unread."""

    operation: ChangeOperation
    request: Request
    reach: TenantScope
    respond: Respond

    async def run(self, by: Changing, allow: Callable[[], Awaitable[None]] | None = None) -> Answer:
        """The preview. ``allow`` is called before it may lock what others write. Raises what the operation declares.

        It has no entity tag, because it is not the state of a resource.
        """
        operation, reach = self.operation, self.reach
        request = await with_plan(operation, by, await with_body(operation, self.request), reach)

        def work(unit: UnitOfWork) -> Answer:
            return answer_of(operation, by, unit, request, self.respond)

        if allow is not None:
            await allow()
        # An operator's change may affect organizations that the operator cannot see.
        known = {None, *reach.readable} if operation.authority == "operator" else None
        planned = await by.changes.dry_run(
            work, actor=request.actor, scope=reach, writes=operation.writes, is_long=operation.is_long, shown=known
        )
        shown = preview_answer(planned, known)
        return Answer(200, {}, shown | {"answer": _without(operation.secret_fields, shown["answer"])})


class PackedDryRun(NamedTuple):
    """A dry run for another process, which has the same operations."""

    operation_id: str
    packed: PackedRequest
    reach: TenantScope
    respond: Respond

    @classmethod
    def of(cls, dry_run: DryRunOf) -> PackedDryRun:
        """Pack a dry run."""
        packed = PackedRequest.of(dry_run.request)
        return cls(dry_run.operation.operation_id, packed, dry_run.reach, dry_run.respond)

    def unpacked(self, operations: Mapping[str, Operation], means: Means) -> DryRunOf:
        """The dry run, with the ``means`` of this process."""
        operation = operations[self.operation_id]
        assert isinstance(operation, ChangeOperation)  # noqa: S101 - narrows the type
        return DryRunOf(operation, self.packed.unpacked(operation.query, means), self.reach, self.respond)


async def preview_of(dry_run: DryRunOf, by: Changing, processes: ReadProcesses) -> Answer:
    """The preview, from another process if its body is large. Raises what the operation declares, and Unavailable."""
    body = dry_run.request.body
    if isinstance(body, UnreadBody) and len(body.content) > _SMALL and processes.may_read:
        key = organization_of(dry_run.request, dry_run.reach)
        with suppress(NoProcess):  # it runs here then: slower for others, but it writes with them in turns
            answer: Answer = await processes.read(key, PackedDryRun.of(dry_run))
            return answer
    return await dry_run.run(by)


def organization_of(request: Request, reach: TenantScope) -> str:
    """The organization that a change is about; empty if it is about several, or about none."""
    named: str = getattr(request.query, "organization_id", "") or getattr(request.body, "organization_id", "")
    return reach.writable[0] if len(reach.writable) == 1 else named or ""


async def with_body(operation: ChangeOperation, request: Request) -> Request:
    """The request with its body read. Raises InvalidRequest."""
    body = request.body
    if not isinstance(body, UnreadBody):
        return request
    read = operation.body_formats[body.media_type].read
    return replace(request, body=await asyncio.to_thread(read, body.content, request.query))


async def with_plan(operation: ChangeOperation, by: Changing, request: Request, reach: TenantScope) -> Request:
    """The request with the plan that the operation prepares. Raises what the operation declares."""
    prepare = operation.prepare
    if prepare is None:
        return request
    plan = await by.changes.plan(lambda unit: prepare(unit, request), actor=request.actor, scope=reach)
    return replace(request, plan=plan)


def answer_of(operation: ChangeOperation, by: Changing, unit: UnitOfWork, request: Request, respond: Respond) -> Answer:
    """Carry out an operation, and return its answer as ``respond`` makes it. Raises what the operation declares."""
    result, content = execute(operation, by, unit, request)
    answer = respond(operation, request, content)
    answer.result = result
    if operation.found is not None and operation.found(result):
        answer.status = 200
    return answer


def execute(operation: ChangeOperation, by: Changing, unit: UnitOfWork, request: Request) -> tuple[Any, Any]:
    """Carry out an operation, and return its result and the presented result. Raises what the operation declares."""
    if operation.authority == "operator":
        by.require_operator(unit, request.caller)
    result = operation.work(unit, request)
    return result, operation.present(result)


def _without(secret_fields: Sequence[str], content: Any) -> Any:
    """An answer with null in place of secrets at any depth, because the secrets of a dry run are not valid."""
    if not secret_fields or not isinstance(content, Mapping):
        return content
    return {name: None if name in secret_fields else _without(secret_fields, value) for name, value in content.items()}
