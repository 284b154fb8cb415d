"""Requests to addresses that users have entered: which are refused, and that only what was checked is connected to."""

from __future__ import annotations

import asyncio
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from itertools import chain, repeat
from typing import NoReturn

import pytest

from normata.core.http import outgoing
from normata.core.http.outgoing import Answer, NoAnswer, Outgoing
from normata.core.http.outgoing_addresses import is_allowed, is_public, networks_of, url_fault
from tests.cells import each
from tests.identity.smtp_server import certificate as certificate_for
from tests.webhooks.receiver import receiving

HERE = networks_of("127.0.0.0/8")

NOT_PUBLIC = (
    *("0.0.0.1", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1"),
    *("172.31.255.255", "192.0.0.8", "192.0.2.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "240.0.0.1"),
    *("255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1"),
    *("64:ff9b:1::a00:1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::", "fc00::1"),
    *("fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1"),
)


@each("address", NOT_PUBLIC)
def test_what_is_not_public_is_refused(address: str) -> None:
    assert not is_public(ip_address(address))
    url = f"https://{f'[{address}]' if ':' in address else address}/hook"
    assert url_fault(url, ()) is not None
    assert url_fault(url, HERE) is not None or ip_address(address) in HERE[0]


@each("address", ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::1"])
def test_public_addresses_are_allowed_with_encryption_only(address: str) -> None:
    assert is_allowed(ip_address(address), ())
    assert not is_allowed(ip_address(address), HERE, is_encrypted=False)


@each("inner", ["7f00:1", "a00:1", "a9fe:a9fe", "8.8.8.8"])
def test_who_lists_a_translator_has_not_listed_what_is_private_behind_it(inner: str) -> None:
    address, listed = ip_address(f"64:ff9b::{inner}"), networks_of("64:ff9b::/96")
    assert is_allowed(address, listed) == (inner == "8.8.8.8")
    assert not is_allowed(address, listed, is_encrypted=False)
    assert is_allowed(address, (*listed, *networks_of("127.0.0.0/8,10.0.0.0/8,169.254.0.0/16")))
    assert not is_allowed(ip_address("::ffff:127.0.0.1"), networks_of("::/0"))


@each(
    "url",
    [
        *("https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/", "https://127.0.0.1./"),
        *("https://a.0x7f/", "https://user@receiver.example/", "https://user:word@receiver.example/"),
        *("https://@receiver.example/", "https://receiver.example/#part", "https://receiver.example:25/"),
        *("https://receiver.example:0/", "https://receiver.example:65536/", "https:///path", "https://"),
        *("http://receiver.example/", "ftp://receiver.example/", "https://receiver.example/a b", "//receiver.example/"),
        *("https://receiver.example\\@127.0.0.1/", "https://bücher.example/", "https://[::1%25lo]/", "https://a..b/"),
        *(
            "https://[2606:4700::1111]25/",
            "https://[2606:4700::1111];/",
            "https://a[2606:4700::1111]/",
            "https://[v1.com]/",
        ),
        *("https://receiver.example/\r\nHost: other", "https://-a.example/", f"https://receiver.example/{'x' * 2_000}"),
    ],
)
def test_what_is_no_url_of_a_receiver_is_refused(url: str) -> None:
    assert url_fault(url, ()) is not None


@each(
    "url",
    [
        *("https://receiver.example/a?b=c&d=%20", "https://RECEIVER.example:8443", "https://8.8.8.8/", "https://a_b/"),
        *("https://[2606:4700::1111]/", "https://[2606:4700::1111]:8443/"),
    ],
)
def test_what_is_one_is_not(url: str) -> None:
    assert url_fault(url, ()) is None


def send(out: Outgoing, url: str, times: int = 1, between: Callable[[], None] = lambda: None) -> list[Answer | str]:
    """Send some requests by one connection; their answers, or the reasons why there are none."""

    async def all_of_them() -> list[Answer | str]:
        connection, found = await out.connection(url), list[Answer | str]()
        for _ in range(times):
            try:
                found.append(await connection.post({"webhook-id": "one"}, b'{"data": {}}'))
            except NoAnswer as error:
                found.append(error.reason)
            between()
        await connection.aclose()
        return found

    return asyncio.run(all_of_them())


class Names:
    """A server of names, which says something else each time."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(self, _host: str, _port: int) -> Sequence[str]:
        """The next answer; the last one again if there is no other."""
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


def test_a_name_that_means_something_else_later_leads_nowhere_else() -> None:
    with receiving() as receiver, receiving() as elsewhere:
        names = Names(["127.0.0.1"], ["127.0.0.2"])
        out = Outgoing(networks_of("127.0.0.1"), names.resolve)
        url = f"http://receiver.example:{receiver.port}/hook"

        def forget() -> None:
            """Have the receiver close its connection, so that the next request opens another."""
            receiver.answer = lambda _: (204, {"Connection": "close"})

        found = send(out, url, 3, forget)
        assert [answer.status for answer in found if isinstance(answer, Answer)] == [204] * 3
        assert names.asked == 1
        assert {one.headers["host"] for one in receiver.got} == {f"receiver.example:{receiver.port}"}
        assert len({one.peer for one in receiver.got}) > 1
        # The next connection asks again, and refuses what is not in the list.
        assert send(out, url) == ["NOT_ALLOWED"]
        assert not elsewhere.got


@each("found", [["8.8.8.8", "127.0.0.1"], ["10.0.0.1"], ["::1"], ["::ffff:127.0.0.1"], ["64:ff9b::7f00:1"]])
def test_every_address_of_a_name_has_to_be_allowed(found: list[str]) -> None:
    assert send(Outgoing((), Names(found).resolve), "https://receiver.example/") == ["NOT_ALLOWED"]


def test_an_unknown_name_and_a_closed_port_are_told_apart() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        assert send(Outgoing(HERE), f"http://127.0.0.1:{port}/") == ["UNREACHABLE"]
    assert send(Outgoing(HERE, Names([]).resolve), "https://receiver.example/") == ["UNRESOLVED"]


def test_another_address_is_tried_where_one_does_not_answer() -> None:
    with receiving() as receiver:
        names = Names(["127.0.0.9", "127.0.0.1"])
        [answer] = send(Outgoing(HERE, names.resolve), f"http://receiver.example:{receiver.port}/")
        assert isinstance(answer, Answer)


def test_redirects_are_not_followed_and_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as receiver, receiving() as elsewhere:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{elsewhere.port}")
        receiver.answer = lambda _: (307, {"Location": elsewhere.url})
        assert send(Outgoing(HERE), receiver.url) == [Answer(307, None)]
        assert (len(receiver.got), elsewhere.got) == (1, [])


def test_one_connection_is_used_for_all_requests_and_opened_again_where_it_was_closed() -> None:
    with receiving() as receiver:
        answers = send(Outgoing(HERE), receiver.url, 5)
        assert len({one.peer for one in receiver.got}) == 1
        receiver.answer = lambda _: (200, {"Retry-After": "7", "Content-Length": "0"})
        assert send(Outgoing(HERE), receiver.url) == [Answer(200, 7.0)]
        assert len(answers) == 5


def test_nobody_waits_longer_than_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "WITHIN", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        assert send(Outgoing(HERE), f"http://127.0.0.1:{silent.getsockname()[1]}/") == ["TIMEOUT"]
        assert time.monotonic() - began < 5


def endless(*pieces: bytes) -> Callable[[socketserver.BaseRequestHandler], None]:
    """A receiver that sends something, and then the last of it again and again."""

    def handle(handler: socketserver.BaseRequestHandler) -> None:
        handler.request.recv(65_536)
        with suppress(OSError):
            for piece in chain(pieces, repeat(pieces[-1])):
                handler.request.sendall(piece)

    return handle


_HEAD = b"HTTP/1.1 200 OK\r\n"


@each(
    ("sent", "answer"),
    [
        ([b"HTTP/1.1 100 Continue\r\n\r\n" * 100], "BROKEN"),
        ([_HEAD, b"X-More: and more\r\n" * 100], "BROKEN"),
        ([b"HTTP/1.1 200 ", b"x" * 10_000], "BROKEN"),
        ([b"no HTTP\r\n" * 100], "BROKEN"),
        ([b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"], "BROKEN"),
        ([_HEAD + b"Content-Length: 100000000\r\n\r\n", b"x" * 10_000], Answer(200, None)),
        ([_HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x" * 10_000], Answer(200, None)),
        ([_HEAD + b"Content-Encoding: gzip\r\nContent-Length: 9999999\r\n\r\n", bytes(10_000)], Answer(200, None)),
    ],
)
def test_an_answer_without_end_is_not_read_to_its_end(sent: list[bytes], answer: Answer | str) -> None:
    class Handler(socketserver.BaseRequestHandler):
        handle = endless(*sent)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            assert send(Outgoing(HERE), f"http://127.0.0.1:{server.server_address[1]}/") == [answer]
        finally:
            server.shutdown()


def test_a_name_that_takes_long_to_resolve_has_its_thread_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "WITHIN", 0.05)
    over = threading.Event()

    def look_up(_host: str, _port: int) -> NoReturn:
        over.wait(20)
        raise socket.gaierror

    monkeypatch.setattr(outgoing, "look_up", look_up)

    async def attempt() -> None:
        connection = await Outgoing((), trusted=ssl.create_default_context()).connection("https://receiver.example/")
        with pytest.raises(NoAnswer, match="TIMEOUT"):
            await connection.post({}, b"")
        await connection.aclose()
        waiting = asyncio.create_task(connection.resolved())
        done, _ = await asyncio.wait([waiting], timeout=0.1)
        assert not done
        over.set()
        await waiting

    asyncio.run(attempt())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The contexts of a server named receiver.example, and of a client that trusts it."""
    file = str(certificate_for(tmp_path_factory.mktemp("certificate"), "receiver.example"))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cafile=file)


def test_certificates_are_verified_for_the_name(certificate: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server, trusted = certificate
    names = Names(["127.0.0.1"])
    with receiving(server) as receiver:

        def answer(host: str, trust: ssl.SSLContext | None) -> list[Answer | str]:
            return send(Outgoing(HERE, names.resolve, trust), f"https://{host}:{receiver.port}/")

        assert answer("receiver.example", trusted) == [Answer(204, None)]
        assert answer("other.example", trusted) == ["TLS"]
        assert answer("127.0.0.1", trusted) == ["TLS"]
        assert answer("receiver.example", None) == ["TLS"]
        assert [one.headers["host"] for one in receiver.got] == [f"receiver.example:{receiver.port}"]
