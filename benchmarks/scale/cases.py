"""The requests that are measured, and the application that answers them."""

import asyncio
import re
import time
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple, get_args
from urllib.parse import urlencode

from benchmarks.speed.statements import Statement
from benchmarks.world import EDITOR, Tokens, World, made_id, member, moment
from normata.app import create_app
from normata.core.http.operation import ListOperation
from normata.operations import OPERATIONS
from normata.records.base import Restorable
from normata.records.kinds import Finding, Record, Task
from normata.settings import Settings

KINDS: tuple[type[Restorable], ...] = (Task, Finding, Record)
AT_ONCE = 32  # sign-ins that are answered together
SELDOM = 10  # requests that read all controls of the large organization are only in each 10th round

_QUERIES = {one.path: one.query for one in OPERATIONS if isinstance(one, ListOperation)}
# Statements, without those at the start of a connection.
_OWN = re.compile(r"(SELECT|INSERT|UPDATE|DELETE|WITH)\b(?!.*(set_config|sqlite_master))", re.DOTALL)


class Request(NamedTuple):
    method: str
    path: str
    user: int
    scope: str = "read"
    status: int = 200


class Case(NamedTuple):
    """Requests that are sent together, in each ``every``-th round. ``undo`` reverts their changes."""

    name: str
    requests: list[Request]
    every: int = 1
    undo: tuple[str, ...] = ()


def _listing(name: str, path: str, organization: int, every: int = 1, **query: Any) -> Case:
    sent = urlencode({"organizationId": made_id("organization", organization), **query}, doseq=True)
    return Case(name, [Request("GET", f"{path}?{sent}", member(organization, EDITOR))], every)


def _restoring(name: str, kind: type[Restorable], index: int, user: int, status: int = 200) -> Case:
    record = made_id(kind.__tablename__, index)
    undo = (
        f"UPDATE {kind.__tablename__} SET archived_at = '{moment(1_500)}' WHERE id = '{record}'",  # noqa: S608 - ours
        "DELETE FROM audit_event",
        "DELETE FROM notification WHERE created_at > '2026-01-01'",  # only restores make such recent ones
    )
    request = Request("POST", f"/{kind.path}/{record}/restore/", user, "write", status)
    return Case(name, [request], undo=undo if status == 200 else ())


def _sign_in(user: int, organization: int | None) -> Request:
    if organization is None:  # the request ends with the sign-in: the token cannot write,
        return Request("POST", "/tasks/none/restore/", user, status=403)
    # or the user is not a member of the organization.
    return Request("GET", f"/controls/?organizationId={made_id('organization', organization)}", user, status=404)


def timed(world: World, index: int) -> Iterator[Case]:
    """The cases of a round: it restores the records with this number, and reads lists of two organizations."""
    small, count = world.holder(index | 1), len(world.organizations)
    asking = [(index + number) % count for number in range(AT_ONCE)]
    at_once = [_sign_in(member(one, EDITOR), (one + 1) % count if one % 2 else None) for one in asking]
    yield Case("sign-in", [_sign_in(member(small, EDITOR), 0)])
    yield Case("sign-in, no organization named", [_sign_in(member(small, EDITOR), None)])
    yield Case(f"{AT_ONCE} sign-ins at once", at_once)
    for kind in KINDS:
        yield _restoring(f"restore a {kind.words()}", kind, index, member(world.holder(index), EDITOR))
    yield _listing("notifications", "/notifications/", small)
    yield _listing("frameworks", "/frameworks/", small)
    for name, one, every in (("controls of some 1,500", small, 1), ("controls of 50,000", 0, SELDOM)):
        yield _listing(name, "/controls/", one)
        yield _listing(f"{name}, last page", "/controls/", one, page=world.control_count(one) // 100)
        yield _listing(f"{name}, search", "/controls/", one, every, search="encryption backup")
        yield _listing(f"{name} by name", "/controls/", one, every, sortColumn="name")


def planned(world: World, records: int) -> Iterator[Case]:
    yield from timed(world, 3)
    consultant, large, small = member(len(world.organizations), 0), member(0, EDITOR), member(world.holder(3), EDITOR)
    yield Case("sign-in, member of many", [_sign_in(consultant, 0)])
    yield Case("sign-in, member of many, no organization named", [_sign_in(consultant, None)])
    for name, one in (("controls of some 1,500", 1), ("controls of 50,000", 0)):
        chosen = [made_id("framework", world.adopted[one][0]), "FRAMEWORK-1"]
        yield _listing(f"{name}, search without a hit", "/controls/", one, search="heliotrope")
        yield _listing(f"{name}, one framework", "/controls/", one, frameworks=chosen)
        yield from _sorted(name, "/controls/", one)
    yield _listing("frameworks, adopted only", "/frameworks/", 1, adoptedOnly="true")
    yield _listing("frameworks, centralized only", "/frameworks/", 1, includeUserDefined="false")
    yield _listing("frameworks, search", "/frameworks/", 1, search="encryption backup")
    yield from _sorted("frameworks", "/frameworks/", 1)
    yield _listing("frameworks of the large organization", "/frameworks/", 0)
    yield _listing("notifications, unread", "/notifications/", 1, unreadOnly="true")
    yield _listing("notifications, last page", "/notifications/", 1, page=2)
    for kind in KINDS:
        name = f"restore a {kind.words()}"
        yield _restoring(f"{name} of the large organization", kind, 2, large)
        yield _restoring(f"{name}, member of many", kind, 1, consultant)
        yield _restoring(f"{name}, slug taken", kind, 0, large, 409)
        yield _restoring(f"{name}, live already", kind, records + 2, large, 409)
        yield _restoring(f"{name}, of somebody else", kind, 2, small, 404)


def _sorted(name: str, path: str, organization: int) -> Iterator[Case]:
    literal, _ = get_args(_QUERIES[path].model_fields["sort_column"].annotation)
    for column, order in product(get_args(literal), ("asc", "desc")):
        yield _listing(f"{name} by {column} {order}", path, organization, sortColumn=column, sortDirection=order)


class Application:
    """The shipped application without a server, with one connection and without a page cache."""

    def __init__(self, url: str, tokens: Tokens, sessions: list[list[Statement]]) -> None:
        settings: Any = {"database_pool_size": 1, "database_timeout": 60, "page_cache_mib": 0, "log_level": "error"}
        self.service: Any = create_app(Settings(database_url=url, **settings))
        self._tokens, self._sessions = tokens, sessions

    async def ask(self, case: Case) -> dict[str, float]:
        """The milliseconds of a case, and of a restore up to its commit; empty if the answer is not as expected."""
        for sent in self._sessions:
            sent.clear()
        started = time.perf_counter()
        statuses = await asyncio.gather(*map(self._status, case.requests))
        times = {case.name: (time.perf_counter() - started) * 1000}
        if case.undo:
            commits = [one.sent_at for sent in self._sessions for one in sent if one.text == "COMMIT"]
            times[f"{case.name}, before the commit"] = (max(commits, default=started) - started) * 1000
        return times if statuses == [request.status for request in case.requests] else {}

    def sent(self) -> Iterator[tuple[str, Statement]]:
        """The statements of the last case, each with the start of its transaction; sign-ins have none."""
        for sent in self._sessions:
            begin = next((statement.text for statement in sent if statement.text.startswith("BEGIN")), "")
            yield from ((begin, statement) for statement in sent if _OWN.match(statement.text))

    async def _status(self, request: Request) -> int:
        path, _, query = request.path.partition("?")
        token = self._tokens[request.user, request.scope]
        scope: dict[str, Any] = {"type": "http", "http_version": "1.1", "scheme": "http", "method": request.method}
        scope |= {"path": path, "raw_path": path.encode(), "query_string": query.encode(), "client": ("127.0.0.1", 1)}
        scope["headers"] = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
        sent: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b""}

        await self.service(scope, receive, send)
        return int(sent[0]["status"])
