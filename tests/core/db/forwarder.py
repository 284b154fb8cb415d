"""A proxy in front of servers, as HAProxy is: new connections go to one of them, and old ones stay where they are."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit


class Forwarder:
    """Forwards connections to ``port`` to the server of a URL, until another one is named."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def address(self, url: str) -> str:
        """The address of that URL's database, by way of here."""
        return f"postgresql://postgres:nothing@127.0.0.1:{self.port}{urlsplit(url).path}?sslmode=disable"

    def refuse(self) -> None:
        """Take no more connections; those that are open stay."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def close(self) -> None:
        """Forward no more."""
        self.refuse()
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            folder = parse_qs(urlsplit(self.url).query)["host"][0]
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(f"{folder}/.s.PGSQL.5432")
            except OSError:
                client.close()
                server.close()
                continue
            self._open += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=_copy, args=(source, sink), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
