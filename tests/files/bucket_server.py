"""An object store on this machine, as a process of its own, with a new bucket for each test.

A ``conftest.py`` takes the fixtures as its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "not secret", "AWS_REGION": "eu-central-1"}


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server that speaks S3, which forgets everything at the end."""
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output, subprocess.Popen(command, stderr=output) as process:
            try:
                while not (found := re.search(r"http://127[\d.]+:\d+", log.read_text("utf-8"))):
                    assert process.poll() is None, log.read_text("utf-8")
                    time.sleep(0.02)
                yield found[0]
            finally:
                process.terminate()


def make_bucket(address: str, name: str) -> None:
    """Make a bucket."""
    request = urllib.request.Request(f"{address}/{name}", method="PUT")
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def uploads(address: str, name: str) -> int:
    """How many uploads in parts a bucket has that are not complete."""
    with urllib.request.urlopen(f"{address}/{name}?uploads") as answer:
        return int(answer.read().count(b"<Upload>"))


def point_at(address: str, patch: pytest.MonkeyPatch) -> None:
    """Have object stores of this process be at an address."""
    for variable, value in (ENVIRONMENT | {"AWS_ENDPOINT_URL": address}).items():
        patch.setenv(variable, value)


@pytest.fixture(scope="session")
def object_store_server() -> Iterator[str]:
    """The address of an object store that all tests of a process share."""
    with serving() as address:
        yield address


@pytest.fixture
def bucket_url(object_store_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the files in a new bucket."""
    point_at(object_store_server, monkeypatch)
    name = f"bucket-{uuid4()}"
    make_bucket(object_store_server, name)
    return f"s3://{name}/some/files"
