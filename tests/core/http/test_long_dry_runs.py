"""The dry run of a large import is the same in another process, and an import of its own where there is none."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from httpx2 import Response

from normata.core.http.failure import Failure
from normata.core.http.long_dry_runs import ChangingHere, PackedDryRun
from normata.core.http.read_processes import NoProcess
from normata.operations import OPERATIONS
from tests.databases import on_both
from tests.served import Served, served
from tests.world import ALPHA

OPERATIONS_BY_ID = {one.operation_id: one for one in OPERATIONS}
ROWS = 1_000
TABLE = "identifier,name,description\n" + "".join(f"{n},Berth {n},Locked at night by its keeper\n" for n in range(ROWS))
WRONG = TABLE + "7,Berth 7,Twice\n"


class Elsewhere:
    """In place of processes: all that comes and goes is pickled, as it would be on its way to one and back."""

    def __init__(self, service: Served, *, interrupted: bool = False) -> None:
        self._services = service.app.services
        self._interrupted = interrupted
        self.may_read = True
        self.questions = 0
        self.allowed = 0

    async def read(self, organization_id: str, question: PackedDryRun) -> Any:
        """Make the dry run here."""
        self.questions += 1
        assert organization_id == ALPHA
        if self._interrupted:
            raise NoProcess
        arrived: PackedDryRun = pickle.loads(pickle.dumps(question))  # noqa: S301 - our own
        by = ChangingHere(self._services.changes, self._services.require_operator)
        try:
            answer = await arrived.unpacked(OPERATIONS_BY_ID, self._services.means).run(by, self.allow)
        except Exception as error:
            raise pickle.loads(pickle.dumps(Failure.of(error))).error() from None  # noqa: S301 - our own
        return pickle.loads(pickle.dumps(answer))  # noqa: S301 - our own

    async def allow(self) -> None:
        """Count."""
        self.allowed += 1


@contextmanager
def with_processes(service: Served, processes: Elsewhere) -> Iterator[None]:
    """All operations find ``processes``."""
    services = service.app.services
    before = services.processes
    object.__setattr__(services, "processes", processes)
    try:
        yield
    finally:
        object.__setattr__(services, "processes", before)


def preview(service: Served, table: str, user: str = "admin", **query: str) -> Response:
    headers = service.bearer(user) | {"Content-Type": "text/csv"}
    params = {"organizationId": ALPHA, "name": "Docks", "dryRun": "true"} | query
    return service.client.post("/imports/", params=params, content=table, headers=headers)


def timeless(answer: Response) -> dict[str, Any]:
    """The body of an answer, without its own id and the moments in it."""
    body: dict[str, Any] = json.loads(re.sub(r'"20[0-9-]+T[0-9:.]+Z"', '""', answer.text))
    body.pop("requestId", None)
    return body


@on_both
def test_a_large_import_is_previewed_the_same_elsewhere(database_url: str) -> None:
    with served(database_url) as service:
        elsewhere = Elsewhere(service)
        cases = [(TABLE, "admin"), (WRONG, "admin"), ("nothing,here\n" * 4_000, "admin"), (TABLE, "viewer")]
        here = [preview(service, table, user) for table, user in cases]
        with with_processes(service, elsewhere):
            there = [preview(service, table, user) for table, user in cases]
    assert [one.status_code for one in there] == [200, 400, 400, 403]
    assert there[0].json()["answer"]["controls"]["new"] == ROWS
    assert [timeless(one) for one in here] == [timeless(one) for one in there]
    assert (elsewhere.questions, elsewhere.allowed) == (4, 1), "nothing may be locked before it is compared"


@pytest.mark.parametrize("why", ["small", "interrupted", "no process", "no dry run"])
def test_what_no_process_previews_is_previewed_here(sqlite_url: str, why: str) -> None:
    with served(sqlite_url) as service:
        elsewhere = Elsewhere(service, interrupted=why == "interrupted")
        elsewhere.may_read = why != "no process"
        table = "identifier,name\n1,Berths\n" if why == "small" else TABLE
        with with_processes(service, elsewhere):
            answer = preview(service, table, **({"dryRun": "false"} if why == "no dry run" else {}))
    assert answer.status_code == 200
    assert elsewhere.questions == (why == "interrupted")
