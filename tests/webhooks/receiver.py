"""A receiver of webhooks on this machine, and the verification of what it gets, written as a receiver would."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import orjson
from typing_extensions import override


class Got(NamedTuple):
    """A message that has arrived. ``peer`` is the sender's port: the same on one connection."""

    path: str
    headers: dict[str, str]
    body: bytes
    peer: int

    @property
    def id(self) -> str:
        """The id of the message."""
        return self.headers["webhook-id"]

    @property
    def data(self) -> Any:
        """What the message says."""
        return orjson.loads(self.body)["data"]


def is_signed(got: Got, secret: str) -> bool:
    """Whether a message has a signature by a secret (Standard Webhooks)."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = b".".join([got.headers["webhook-id"].encode(), got.headers["webhook-timestamp"].encode(), got.body])
    wanted = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return wanted in got.headers["webhook-signature"].split(" ")


@dataclass
class Receiver:
    """What has arrived. ``answer`` returns the status of the answer, and its headers."""

    port: int = 0
    got: list[Got] = field(default_factory=list)
    answer: Callable[[Got], tuple[int, dict[str, str]]] = lambda _got: (204, {})

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/hook?key=secret-in-a-url"

    @property
    def numbers(self) -> list[int]:
        """The numbers of the events that have arrived."""
        return [one.data["number"] for one in self.got]


@contextmanager
def receiving(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver that answers 204 until it is told otherwise."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            got = Got(self.path, headers, body, self.client_address[1])
            receiver.got.append(got)
            status, more = receiver.answer(got)
            self.send_response(status)
            for name, value in {"Content-Length": "0", **more}.items():
                self.send_header(name, value)
            self.end_headers()

        @override
        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        @override
        def handle_error(self, request: Any, client_address: Any) -> None:
            del request, client_address  # a sender was killed

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
