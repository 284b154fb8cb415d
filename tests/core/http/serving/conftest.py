"""What the tests of the serving processes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.http.serving.processes import Processes, Serve


@pytest.fixture
def serve(database_url: str, tmp_path: Path) -> Iterator[Serve]:
    """Starts servers over the test world; whatever is left of them in the end is killed."""
    started: list[Processes] = []

    def start(workers: int = 1, host: str = "127.0.0.1", **options: Any) -> Processes:
        server = Processes(database_url, tmp_path / "server.log", workers, host, **options)
        started.append(server)
        server.wait_until_ready()
        return server

    yield start
    for server in started:
        server.kill()
