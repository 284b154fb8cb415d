"""Long reads of a worker run in processes of its own, which live and die with it."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from normata.identity.tokens import tokens
from tests import world
from tests.core.http.serving.processes import PATIENCE, Serve, wait_for
from tests.databases import change, on_both, open_url
from tests.server import PLAIN
from tests.world import ALPHA

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found in /proc")


def children(process_id: int) -> list[int]:
    """The processes that a process has started from its main thread, and that have not ended."""
    found = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    return [one for one in map(int, found) if "(zombie)" not in Path(f"/proc/{one}/status").read_text()]


@on_both
def test_a_long_read_is_answered_by_a_process_of_its_own(serve: Serve, database_url: str) -> None:
    with closing(open_url(database_url)) as database:
        token = change(
            database,
            lambda unit: tokens.create(unit, email=world.USERS["viewer"], scope="read", lifetime=timedelta(hours=1)),
        )
    server = serve(NORMATA_LONG_READ_PROCESS_AFTER="0")
    ((forking,),) = map(children, server.workers())

    def report(accept: str = "application/json", framework: str = "fw-sun") -> httpx2.Response:
        return httpx2.get(
            f"{server.address}/frameworks/{framework}/gaps/",
            params={"organizationId": ALPHA},
            headers={"Authorization": f"Bearer {token}", "Accept": accept},
            timeout=PATIENCE,
            verify=PLAIN,
        )

    first = report()
    assert (first.status_code, first.json()["framework"]["id"]) == (200, "fw-sun")
    (reading,) = children(forking)
    assert report("text/csv").headers["content-type"].startswith("text/csv")
    missing = report(framework="fw-nowhere")
    assert (missing.status_code, missing.json()["requestId"]) == (404, missing.headers["x-request-id"])
    assert children(forking) == [reading], "it is used again"
    os.kill(reading, signal.SIGKILL)
    wait_for(lambda: children(forking) == [])
    assert report().content == first.content
    (another,) = children(forking)
    assert another != reading
    assert (
        'normata_database_wait_seconds_count{wait="read_process"}'
        in httpx2.get(f"{server.address}/metrics", verify=PLAIN).text
    )
    for one in (forking, another):
        os.kill(one, signal.SIGKILL)
    wait_for(lambda: report().status_code == 200 and "read_process_missing" in server.log)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 0
    wait_for(lambda: not server.alive())


@on_both
def test_a_process_previews_a_large_import(serve: Serve, database_url: str) -> None:
    with closing(open_url(database_url)) as database:
        token = change(
            database,
            lambda unit: tokens.create(unit, email=world.USERS["admin"], scope="write", lifetime=timedelta(hours=1)),
        )
    server = serve()
    ((forking,),) = map(children, server.workers())
    answer = httpx2.post(
        f"{server.address}/imports/",
        params={"organizationId": ALPHA, "name": "Docks", "dryRun": "true"},
        headers={"Authorization": f"Bearer {token}", "Content-Type": "text/csv"},
        content="identifier,name\n" + "".join(f"{n},Berth number {n}\n" for n in range(2_000)),
        timeout=PATIENCE,
        verify=PLAIN,
    )
    assert (answer.status_code, answer.json()["answer"]["controls"]["new"]) == (200, 2_000)
    assert len(children(forking)) == 1
