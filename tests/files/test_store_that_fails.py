"""An object store that hangs or breaks off: 503 in time, nothing is half done, and it comes back by itself."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from normata.files.model import File
from normata.files.store import FileStore
from tests import stored
from tests.files.bucket_server import point_at
from tests.files.listening import listening
from tests.files.rows import FILE_CONTENT, everything, fill
from tests.served import Served, refused, served
from tests.world import ALPHA

CONTENTS = [b"small", bytes(7_000_000)]  # in one request, and in parts


class Line:
    """What is between the service and the store: it passes all on, is ``silent``, or breaks ``off`` in the middle.

    While it ``waits``, it holds back what comes.
    """

    def __init__(self, address: str) -> None:
        self.state = "up"
        self.has_waiting = threading.Event()
        self._target = urlsplit(address)

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what comes over a connection, and the answers."""
        other_reader, other_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
        await asyncio.gather(self._pass_on(reader, other_writer), self._pass_on(other_reader, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while content := await reader.read(2**16):
                while self.state == "waits":
                    self.has_waiting.set()
                    await asyncio.sleep(0.01)
                if self.state == "off":
                    writer.write(content[: len(content) // 2])
                    break
                if self.state == "up":
                    writer.write(content)
                    await writer.drain()
        finally:
            writer.close()


@pytest.fixture
def line(object_store_server: str, store: FileStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    """The line to the store, which has the files of the world. The test's own store has another."""
    fill(store, ALPHA)
    line = Line(object_store_server)
    with listening(line.connect) as port:
        point_at(f"http://127.0.0.1:{port}", monkeypatch)
        yield line


@pytest.fixture
def timeout() -> float:
    """How long a request to the store may take."""
    return 0.4


@pytest.fixture
def service(sqlite_url: str, store_url: str, line: Line, timeout: float) -> Iterator[Served]:
    """The application with a store at the end of the line."""
    del line
    with served(sqlite_url, files_url=store_url, files_timeout=timeout, log_level="error") as opened:
        yield opened


def upload(service: Served, content: bytes) -> Any:
    query = {"organizationId": ALPHA, "name": "a"}
    return service.client.post("/files/", params=query, content=content, headers=service.bearer("editor"))


def download(service: Served) -> Any:
    address, query = f"/files/file-of-{ALPHA}/content/", {"organizationId": ALPHA}
    return service.client.get(address, params=query, headers=service.bearer("viewer"))


@pytest.mark.parametrize("store_url", ["bucket"], indirect=True)
@pytest.mark.parametrize("state", ["silent", "off"])
def test_uploads_and_downloads_are_answered_503(service: Served, store: FileStore, line: Line, state: str) -> None:
    before = everything(store)
    line.state = state
    for answer in (*(upload(service, content) for content in CONTENTS), download(service)):
        refused(answer, 503, "unavailable")
        assert answer.headers["retry-after"]
    assert service.client.get("/readyz").status_code == 200  # all else is served
    line.state = "up"
    store.remove_unfinished(time.time() - 3_600)  # as the job does with what the service could not remove
    assert everything(store) == before
    assert len(stored.rows(service.database, File)) == 2
    assert [upload(service, content).status_code for content in CONTENTS] == [201, 201]
    assert download(service).content == FILE_CONTENT


@pytest.mark.parametrize("store_url", ["bucket"], indirect=True)
@pytest.mark.parametrize("timeout", [60.0])
def test_others_are_answered_while_uploads_wait(service: Served, line: Line) -> None:
    line.state = "waits"
    with ThreadPoolExecutor(20) as threads:
        uploads = [threads.submit(upload, service, b"x") for _ in range(20)]
        assert line.has_waiting.wait(30)
        answer = service.client.get("/evidence/", params={"organizationId": ALPHA}, headers=service.bearer("viewer"))
        assert answer.status_code == 200
        assert not any(one.done() for one in uploads)
        line.state = "up"
        assert [one.result().status_code for one in uploads] == [201] * 20
