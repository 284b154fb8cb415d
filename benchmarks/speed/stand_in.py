"""Serves another application exactly as `normata serve` serves Normata: same server, same configuration.

python -m benchmarks.speed.stand_in benchmarks.speed.stand_in:bare --port 8001
"""

import json
import os
import sys
from pathlib import Path

from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from normata.core.http.server import run
from normata.settings import Settings

ANSWER = "BENCH_ANSWER"  # the environment variable with the file that contains the bare application's answer

_BY_THE_SERVER = ("date", "server", "connection", "transfer-encoding")  # headers that the server adds itself


def bare() -> ASGIApp:
    """The minimal application: it sends one answer from memory for all requests.

    No Python application can be faster on the same server, so the others are compared with it.
    """
    head, _, body = Path(os.environ[ANSWER]).read_bytes().partition(b"\n")
    headers = [(name.encode(), value.encode()) for name, value in json.loads(head) if name not in _BY_THE_SERVER]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _start_and_end(receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def static() -> ASGIApp:
    """The files of a folder, as many programs serve them."""
    files = StaticFiles(directory=os.environ["BENCH_FOLDER"])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _start_and_end(receive, send)
            return
        await files(scope, receive, send)

    return app


async def _start_and_end(receive: Receive, send: Send) -> None:
    for event in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{event}.complete"})


if __name__ == "__main__":
    _, application, _, port = sys.argv
    run(Settings(port=int(port), workers=1), application)
