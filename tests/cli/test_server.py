"""Commands over HTTP: which server and token they take, and what they say of servers that fail or mean harm."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path

import httpx2
import pytest

from normata.cli import calls
from normata.cli.backend import Call
from normata.cli.remote import address, transport
from normata.errors import BadSetting
from normata.operations import OPERATIONS
from tests import mostly_sqlite
from tests.certificates import self_signed
from tests.cli.commands import SERVER, Run, failed
from tests.client import TestClient
from tests.databases import on_both
from tests.server import serving

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

TOKEN = "nrm_secret-of-the-test"
LIST = ("record", "list", "alpha", "labels")

CALLS = [one for one in vars(calls).values() if isinstance(one, Call)]


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token, which no sentence may show."""
    monkeypatch.setenv("NORMATA_TOKEN", TOKEN)


@pytest.fixture
def served_here(client: TestClient, make_token: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Serves the test world at :data:`SERVER`: the token of an owner."""
    monkeypatch.setattr(transport, "TRANSPORT", client._transport)
    return make_token("owner")


# --- Operations


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_every_call_is_a_declared_operation_of_its_module(call: Call) -> None:
    declared = [one for one in OPERATIONS if (one.method, one.path) == (call.method, call.path)]
    assert len(declared) == 1
    assert declared[0].operation_id in {one.operation_id for one in import_module(call.module).OPERATIONS}


# --- Which server, and which token


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "ftp://a.example", "https://", "https://u:hunter2@a.example", "https://a.example/?x=1"),
        *("https://a:b", "https://a.example/#x", "https://a.example/\n", "http://a b", "http://["),
        "http://normata.example",
    ],
)
def test_an_address_that_is_none(normata: Run, text: str) -> None:
    if not text:
        with pytest.raises(BadSetting):
            address.base_of(text, is_option=True)
        return
    told = failed(normata(*LIST, "--server", text), 2)
    assert told.startswith("--server ")
    assert "hunter2" not in told


@pytest.mark.parametrize("text", ["http://localhost:1/", "http://127.0.0.2", "http://[::1]:80", "https://a.example/n/"])
def test_an_address_that_is_one(text: str) -> None:
    assert address.base_of(text, is_option=False) == text.rstrip("/")


def test_plain_http_elsewhere_must_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMATA_INSECURE_HTTP", "on")
    assert address.base_of("http://normata.example", is_option=True) == "http://normata.example"
    monkeypatch.setenv("NORMATA_INSECURE_HTTP", "maybe")
    with pytest.raises(BadSetting, match="NORMATA_INSECURE_HTTP is wrong"):
        address.base_of("http://normata.example", is_option=True)


@pytest.mark.parametrize("value", ["a\nb", "a\r\nX: y", "a b", "ä", "a\n"])
def test_a_token_that_is_none_is_not_sent(normata: Run, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("NORMATA_TOKEN", value)
    told = failed(normata(*LIST, "--server", SERVER), 2)
    assert told == "the token in NORMATA_TOKEN must be one line of letters, digits and signs, without blanks"


def test_without_a_token(normata: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NORMATA_TOKEN")
    assert "set NORMATA_TOKEN" in failed(normata(*LIST, "--server", SERVER), 2)


def test_two_places_are_none(normata: Run) -> None:
    told = failed(normata(*LIST, "--server", SERVER, "--database", "sqlite:///x.db"), 2)
    assert told == "--server and --database name two places; use one of them"


def test_a_token_in_a_file_and_a_server_in_the_environment(
    normata: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, served_here: str, database_url: str
) -> None:
    path = folder / "token"
    path.write_text(f"{served_here}\n")
    (folder / "settings").write_text(f"NORMATA_SERVER={SERVER}\nNORMATA_TOKEN_FILE={path}\n")
    monkeypatch.delenv("NORMATA_TOKEN")
    assert normata(*LIST, "--env-file", "settings").code == 0
    monkeypatch.setenv("NORMATA_TOKEN", TOKEN)
    monkeypatch.setenv("NORMATA_TOKEN_FILE", str(path))
    assert "both set" in failed(normata(*LIST, "--server", SERVER), 2)
    monkeypatch.setenv("NORMATA_SERVER", "nonsense")
    assert normata(*LIST, "--database", database_url).code == 0, "the option counts more than the environment"


@pytest.mark.usefixtures("served_here")
def test_what_a_token_may_not(normata: Run, monkeypatch: pytest.MonkeyPatch, make_token: Callable[..., str]) -> None:
    told = failed(normata(*LIST, "--server", SERVER))
    assert told == f"{SERVER} does not accept the token: it is unknown, revoked or expired"
    monkeypatch.setenv("NORMATA_TOKEN", make_token("viewer"))
    told = failed(normata("record", "create", "alpha", "labels", "name=x", "--server", SERVER))
    assert told == f"{SERVER} does not allow this: This takes the role editor or a larger one in the organization."
    assert failed(normata("record", "list", "beta", "labels", "--server", SERVER)) == (
        "no organization 'beta'; there is alpha"
    )


# --- Answers

_JSON = {"Content-Type": "application/json"}


def problem(status: int, wait: str = "", detail: str = "Not now.") -> httpx2.Response:
    headers = {"Retry-After": wait} if wait else {}
    return httpx2.Response(status, json={"code": "x", "detail": detail, "errors": []}, headers=headers)


def organizations(answer: httpx2.Response) -> Callable[[httpx2.Request], httpx2.Response]:
    """Answers the list of organizations, and ``answer`` to what comes after it."""
    items = {"items": [{"id": "org-alpha", "slug": "alpha"}], "total": 1}
    return lambda request: httpx2.Response(200, json=items) if request.url.path == "/organizations/" else answer


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (problem(429, "7"), "takes no more requests at the moment: Not now. Repeat it in 7 seconds."),
        (problem(429, "1"), "takes no more requests at the moment: Not now. Repeat it in 1 second."),
        (problem(503, "soon"), "cannot do this at the moment: Not now."),
        (problem(500), "cannot do this at the moment: Not now."),
        (problem(404, detail="Not found."), None),
        (httpx2.Response(502, text="<html>"), "answers with status 502, and not as Normata does: is it its address?"),
        (
            httpx2.Response(308, headers={"Location": "https://evil.example/x"}),
            "redirects to https://evil.example/x, which is not followed; give that address",
        ),
        (httpx2.Response(200, html="<html>"), "answers with text/html instead"),
        (httpx2.Response(200, content=b"{]", headers=_JSON), "answers with what is not"),
        (httpx2.Response(200, json=[]), "answers with what is not JSON"),
        (httpx2.Response(200, json={}), "answers without items"),
        (httpx2.Response(200, json={"items": [7]}), "answers with other fields than this version knows"),
        (httpx2.Response(200, content=b"[" * 99_999, headers=_JSON), "answers with what is not"),
    ],
)  # fmt: skip
def test_what_a_server_answers(
    normata: Run, monkeypatch: pytest.MonkeyPatch, answer: httpx2.Response, sentence: str | None
) -> None:
    seen: list[httpx2.Request] = []

    def answered(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return organizations(answer)(request)

    monkeypatch.setattr(transport, "TRANSPORT", httpx2.MockTransport(answered))
    told = normata(*LIST, "--server", SERVER)
    assert (told.code, TOKEN in told.err, "Traceback" in told.err) == (1, False, False)
    expected = "Not found." if sentence is None else f"{SERVER} {sentence}"
    assert told.err.startswith(f"normata: {expected}")
    assert told.err.count("\n") == 1
    assert {request.url.host for request in seen} == {"127.0.0.1"}, "nothing else gets the token"


def test_a_sentence_of_a_server_cannot_write_to_the_terminal(normata: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = problem(409, detail="\x1b[2J\nnormata: done" + "x" * 10_000)
    monkeypatch.setattr(transport, "TRANSPORT", httpx2.MockTransport(organizations(answer)))
    told = failed(normata(*LIST, "--server", SERVER))
    assert "\x1b" not in told
    assert len(told) < 1_000
    answer = httpx2.Response(200, json={"note": "a\n\u009b2J\u202e"})
    monkeypatch.setattr(transport, "TRANSPORT", httpx2.MockTransport(organizations(answer)))
    assert normata("events", "checkpoint", "--server", SERVER).out == "a\n\\u009b2J\\u202e"


def test_a_link_to_the_next_page_gives_its_cursor_alone(normata: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def answered(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        if request.url.path == "/organizations/":
            return organizations(problem(500))(request)
        if "cursor" in request.url.params:
            return httpx2.Response(200, json={"items": []})
        link = '<file:///etc/passwd?cursor=c1&organizationId=other>; rel="next"'
        return httpx2.Response(200, json={"items": []}, headers={"Link": link})

    monkeypatch.setattr(transport, "TRANSPORT", httpx2.MockTransport(answered))
    assert normata(*LIST, "--server", SERVER).code == 0
    last = seen[-1].url
    assert (last.host, last.path, dict(last.params)["cursor"]) == ("127.0.0.1", "/labels/", "c1")
    assert last.params["organizationId"] == "org-alpha"


def test_a_list_that_does_not_end(normata: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    again = {"Link": '<https://a.example/?cursor=c>; rel="next"'}
    for items in ([], [{"id": "a", "slug": "a"}]):
        page = partial(httpx2.Response, 200, json={"items": items}, headers=again)
        monkeypatch.setattr(transport, "TRANSPORT", httpx2.MockTransport(lambda _, page=page: page()))
        assert failed(normata(*LIST, "--server", SERVER)) == "the server sends a list that does not end"


@pytest.mark.parametrize("line", ["{]", "[1]", "[" * 99_999, '{"number": 1, "id": "a", "body": "{]"}', "9" * 5_000])
def test_events_that_are_none(normata: Run, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    answer = httpx2.Response(200, content=f"{line}\n", headers={"Content-Type": "application/x-ndjson"})
    monkeypatch.setattr(transport, "TRANSPORT", httpx2.MockTransport(organizations(answer)))
    told = failed(normata("events", "list", "--server", SERVER))
    assert told == f"{SERVER} answers with what is not JSON: is it Normata's address?"


def test_a_change_of_which_nobody_knows_whether_it_was_made(normata: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            raise httpx2.ReadTimeout("late", request=request)
        return organizations(problem(500))(request)

    monkeypatch.setattr(transport, "TRANSPORT", httpx2.MockTransport(answered))
    told = failed(normata("record", "create", "alpha", "labels", "name=x", "--server", SERVER))
    assert told.endswith("seconds; look whether the change was made before you repeat it")


# --- The wire


@contextmanager
def listening(answer: Callable[[socket.socket], None], wrap: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server that answers each connection in its own way: its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with suppress(OSError), connection:
                        if wrap is None:
                            answer(connection)
                            continue
                        with wrap.wrap_socket(connection, server_side=True) as encrypted:
                            answer(encrypted)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def saying(head: bytes, more: bytes = b"", times: int = 1) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(head)
        for _ in range(times):
            connection.sendall(more)

    return answer


_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda _: None, "broke off"),
        (saying(b"220 mail.example ESMTP\r\n"), "broke off"),
        (saying(_OK + b"Content-Length: 100\r\n\r\n{"), "broke off"),
        (saying(_OK + b"X: ", b"x" * 65_536, 100), "broke off"),
        (saying(_OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"), "broke off"),
        (saying(_OK + b"\r\n", b" " * 65_536, 2_000), "answers with more than 1 MiB"),
    ],
)
def test_a_server_that_is_broken_or_means_harm(
    normata: Run, monkeypatch: pytest.MonkeyPatch, answer: Callable[[socket.socket], None], sentence: str
) -> None:
    monkeypatch.setattr(transport, "_LARGEST", 2**20)
    with listening(answer) as port:
        told = failed(normata(*LIST, "--server", f"http://127.0.0.1:{port}"))
    assert sentence in told


@pytest.mark.long
@on_both
def test_a_real_server(
    normata: Run, monkeypatch: pytest.MonkeyPatch, make_token: Callable[..., str], database_url: str
) -> None:
    monkeypatch.setenv("NORMATA_TOKEN", make_token("owner"))
    with serving(database_url) as base:
        for command in (("explain", "alpha", "own.A.2"), ("export-records", "alpha", "tasks", "-"), LIST):
            done = normata(*command, "--server", base)
            assert (done.code, done.err) == (0, "")
            assert done.out == normata(*command, "--database", database_url).out != ""


def test_a_port_that_nobody_listens_on(normata: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    told = failed(normata(*LIST, "--server", f"http://127.0.0.1:{port}"))
    assert told == f"http://127.0.0.1:{port} cannot be reached: connection refused"


def test_a_server_that_says_nothing(normata: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_SILENCE", 0.2)
    done = threading.Event()

    def wait(_: socket.socket) -> None:
        done.wait(30)

    with listening(wait) as port:
        told = failed(normata(*LIST, "--server", f"http://127.0.0.1:{port}"))
        done.set()
    assert told == f"http://127.0.0.1:{port} has not answered for 0.2 seconds"


def test_certificates(normata: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps({"items": [], "total": 0}).encode()
    answer = saying(_OK + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
    with listening(answer) as port:
        told = failed(normata(*LIST, "--server", f"https://localhost:{port}"))
    assert told.endswith("cannot be reached: it does not speak TLS as it should; is the address right?")
    certificate, context = self_signed(folder, "localhost")
    with listening(answer, context) as port:
        told = failed(normata(*LIST, "--server", f"https://localhost:{port}"))
        assert "cannot be reached: its certificate is not valid (self-signed certificate" in told
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        told = failed(normata(*LIST, "--server", f"https://localhost:{port}"))
        assert told.startswith("no organization 'alpha'"), "it was trusted, and answered"
        told = failed(normata(*LIST, "--server", f"https://127.0.0.1:{port}"))
        assert "its certificate is not valid" in told
