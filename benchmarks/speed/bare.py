"""The least that an application can do: it sends an answer that it holds in memory, whatever it is asked.

No Python application on the same server can be faster, so it is what the others are held against.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

ANSWER = "BENCH_ANSWER"  # the environment variable that names the file of the answer

# What the server adds by itself would be there twice.
_BY_THE_SERVER = ("date", "server", "connection", "transfer-encoding")


def keep_answer(path: Path, headers: Sequence[tuple[str, str]], body: bytes) -> None:
    """Write an answer down as `create_app` reads it: a line of headers, then the body."""
    kept = [(name.lower(), value) for name, value in headers if name.lower() not in _BY_THE_SERVER]
    path.write_bytes(json.dumps(kept).encode() + b"\n" + body)


def create_app() -> ASGIApp:
    """The application, over the answer that the environment names."""
    head, _, body = Path(os.environ[ANSWER]).read_bytes().partition(b"\n")
    start = {
        "type": "http.response.start",
        "status": 200,
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in json.loads(head)],
    }
    rest = {"type": "http.response.body", "body": body}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        await send(start)
        await send(rest)

    return app


async def _live(receive: Receive, send: Send) -> None:
    for event in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{event}.complete"})
