"""Clients that send too much, too little, or another protocol: the server itself bounds what they cost."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from normata.core.http import server as serving
from normata.core.http.server import HTTP1
from tests.core.http.serving.processes import PATIENCE, Processes, Serve, wait_for
from tests.server import PLAIN

SECONDS = HTTP1.header_read_timeout / 1_000
GET = b"GET /livez HTTP/1.1\r\nHost: normata\r\n"


@contextmanager
def connection(server: Processes) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as opened:
        yield opened


def status(server: Processes, request: bytes) -> int | None:
    """The status of the answer; null where the connection ends without one."""
    with connection(server) as opened:
        with suppress(BrokenPipeError, ConnectionResetError):  # the server may refuse before it has all
            opened.sendall(request)
        try:
            answer = opened.recv(65_536)
        except ConnectionResetError:
            return None
    return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else None


def test_a_head_is_bounded_in_size_and_in_headers(serve: Serve) -> None:
    server = serve(1)

    def with_header(size: int) -> bytes:
        return GET + b"X-Large: " + b"x" * size + b"\r\nConnection: close\r\n\r\n"

    def with_headers(count: int) -> bytes:
        return GET + b"".join(b"X-%d: x\r\n" % number for number in range(count)) + b"Connection: close\r\n\r\n"

    assert status(server, with_header(12_000)) == 200
    assert status(server, with_header(17_000)) == 431
    assert status(server, with_header(1_000_000)) in (431, None)
    assert status(server, with_headers(90)) == 200
    assert status(server, with_headers(200)) == 431
    long_address = GET.replace(b"/livez", b"/livez?" + b"x" * 20_000)
    assert status(server, long_address + b"Connection: close\r\n\r\n") in (414, 431)
    assert status(server, GET + b"Connection: close\r\n\r\n") == 200


def test_only_http_1_is_spoken(serve: Serve) -> None:
    """HTTP/2 compresses headers: 20 kB of them kept a worker busy for seconds."""
    server = serve(1)
    settings = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    with connection(server) as opened:
        opened.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)
        assert not opened.recv(65_536).startswith(b"\x00")  # no frame: nothing, or an answer in HTTP/1.1
    upgrade = b"Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAA\r\n"
    assert status(server, GET + upgrade + b"\r\n") == 200
    assert server.answers()


@pytest.mark.long
def test_idle_connections_lock_nobody_out_and_are_closed(serve: Serve) -> None:
    """More than Granian would take by itself, most of them silent, some slow, some after a request."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 3_000:
        if hard < 3_000:
            pytest.skip("this process may not open enough connections")
        resource.setrlimit(resource.RLIMIT_NOFILE, (3_000, hard))
    server = serve(1, NORMATA_ADDRESS_CONNECTIONS="0")
    with ExitStack() as stack:
        opened = [stack.enter_context(connection(server)) for _ in range(1_500)]
        started = time.monotonic()
        assert httpx2.get(f"{server.address}/livez", timeout=5, verify=PLAIN).status_code == 200
        assert time.monotonic() - started < 5
        slow, after_request, *silent = opened
        slow.sendall(GET)
        after_request.sendall(GET + b"\r\n")
        assert after_request.recv(65_536).startswith(b"HTTP/1.1 200")
        for one in (slow, after_request, silent[0], silent[-1]):
            one.settimeout(SECONDS + 20)
            assert one.recv(65_536) == b""
        assert time.monotonic() - started < SECONDS + 20
    assert server.answers()


def connect(server: Processes, source: str) -> socket.socket:
    """A connection from an address of the loopback interface."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE, source_address=(source, 0))


def is_open(one: socket.socket) -> bool:
    """Whether the server has not closed a connection that has had no answer."""
    one.setblocking(False)
    try:
        return bool(one.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="connections have no limit there")
def test_an_address_has_a_number_of_connections(serve: Serve) -> None:
    """The newest beyond it are closed, without harm to others, and a trusted proxy has as many as it likes."""
    server = serve(1, NORMATA_ADDRESS_CONNECTIONS="20", NORMATA_TRUSTED_PROXIES="127.0.0.3,127.0.0.4/32")
    head = GET.replace(b"GET /livez", b"POST /labels/") + b"Content-Length: 1\r\n"
    with ExitStack() as stack:

        def opened(source: str, count: int) -> list[socket.socket]:
            made = [stack.enter_context(connect(server, source)) for _ in range(count)]
            for one in made:
                one.sendall(head)
            return made

        first, other, proxy = opened("127.0.0.1", 15), opened("127.0.0.2", 10), opened("127.0.0.3", 60)
        wait_for(server.answers)
        late = opened("127.0.0.1", 40)
        wait_for(lambda: sum(map(is_open, late)) <= 5)
        assert [sum(map(is_open, group)) for group in (first, other, proxy)] == [15, 10, 60]
        with connect(server, "127.0.0.2") as one:
            one.sendall(GET + b"\r\n")
            assert one.recv(65_536).startswith(b"HTTP/1.1 200")


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="connections have no limit there")
def test_one_worker_may_have_all_connections_of_an_address(serve: Serve) -> None:
    """The limit is that of each worker: the system does not spread connections evenly, least while workers start."""
    server = serve(4, NORMATA_ADDRESS_CONNECTIONS="8")
    with ExitStack() as stack:
        opened = [stack.enter_context(connect(server, "127.0.0.5")) for _ in range(8)]
        for one in opened:
            one.sendall(GET)
        time.sleep(1.5)  # three looks at the connections
        assert all(map(is_open, opened))


def test_there_are_never_more_connections_than_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker with no file left would try again without a pause."""
    limits: dict[str, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: limits.update(now=new))
    for now, connections, soft in (
        ((1_024, 1_024), 768, 1_024),
        ((1_024, 4_096), 3_840, 4_096),
        ((1_024, 1_000_000), serving.CONNECTIONS, serving.CONNECTIONS + 256),
        ((1_024, resource.RLIM_INFINITY), serving.CONNECTIONS, serving.CONNECTIONS + 256),
        ((500_000, 500_000), serving.CONNECTIONS, 500_000),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), serving.CONNECTIONS, resource.RLIM_INFINITY),
    ):
        limits["now"] = now
        assert serving.connection_limit() == connections
        assert limits["now"][0] == soft


@pytest.mark.parametrize("unit", ["normata.service", "normata-sqlite.service"])
def test_the_units_allow_as_many_files_as_a_worker_needs(unit: str) -> None:
    lines = (Path(__file__).parents[4] / "deploy" / unit).read_text("utf-8").splitlines()
    assert f"LimitNOFILE={serving.CONNECTIONS + serving._OTHER_FILES}" in lines
