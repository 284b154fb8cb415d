"""Every file is scanned before it is stored: what is refused is 422, and without an answer nothing is stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from normata.errors import MalwareFound, Unavailable
from normata.files.model import File
from normata.files.scanner import Scanner
from normata.files.store import FileStore
from tests import stored
from tests.files.clamd import LIMIT, MARKER, Clamd, clamd
from tests.files.rows import everything
from tests.served import Served, refused, served
from tests.world import ALPHA

CLEAN = bytes(2_500_000)  # of several parts


@pytest.fixture
def scanner() -> Iterator[Clamd]:
    """A scanner that runs."""
    with clamd() as scanner:
        yield scanner


@pytest.fixture
def service(sqlite_url: str, store_url: str, scanner: Clamd) -> Iterator[Served]:
    """The application with a scanner."""
    settings: dict[str, Any] = {"scanner": scanner.address, "scanner_timeout": 0.3, "files_url": store_url}
    with served(sqlite_url, **settings) as opened:
        yield opened


def upload(service: Served, content: bytes, **query: str) -> Any:
    query = {"organizationId": ALPHA, "name": "a"} | query
    return service.client.post("/files/", params=query, content=content, headers=service.bearer("editor"))


def rows(service: Served) -> int:
    return len([row for row in stored.rows(service.database, File) if not row["id"].startswith("file-of-")])


@pytest.mark.parametrize("content", [b"", b"clean", CLEAN])
def test_a_clean_file_is_stored(service: Served, store: FileStore, scanner: Clamd, content: bytes) -> None:
    assert upload(service, content).status_code == 201
    assert (rows(service), len(everything(store)), scanner.received) == (1, 1, [len(content)])


def test_what_it_finds_is_named_and_not_stored(service: Served, store: FileStore) -> None:
    for query in ({}, {"dryRun": "true"}):
        problem = refused(upload(service, CLEAN + MARKER, **query), 422, "malware_found")
        assert problem["detail"] == "The malware scanner found Normata.Test.Marker in the file. Nothing was stored."
    assert (rows(service), everything(store)) == (0, [])


@pytest.mark.parametrize("state", ["hanging", "off", "busy"])
def test_without_an_answer_nothing_is_stored(service: Served, store: FileStore, scanner: Clamd, state: str) -> None:
    scanner.state = state
    answer = upload(service, CLEAN)
    assert "checked for malware" in refused(answer, 503, "unavailable")["detail"]
    assert answer.headers["retry-after"]
    assert (rows(service), everything(store)) == (0, [])
    assert service.client.get("/readyz").status_code == 200
    scanner.state = "up"
    assert upload(service, CLEAN).status_code == 201


def test_a_file_that_is_too_large_for_it_is_not_stored(service: Served, store: FileStore, scanner: Clamd) -> None:
    refused(upload(service, bytes(LIMIT + 2_000_000)), 503, "unavailable")
    assert (rows(service), everything(store)) == (0, [])
    with pytest.raises(Unavailable) as caught:
        Scanner(scanner.address, 5).scan_now([bytes(LIMIT + 1)])
    assert str(caught.value.__cause__) == "the scanner answered 'INSTREAM size limit exceeded. ERROR'"


def test_a_scanner_that_is_not_there(sqlite_url: str, store_url: str, store: FileStore, tmp_path: Path) -> None:
    with served(sqlite_url, scanner=f"unix:{tmp_path}/nothing", files_url=store_url) as service:
        refused(upload(service, b"a"), 503, "unavailable")
        assert (rows(service), everything(store)) == (0, [])


def test_a_socket_of_the_file_system(tmp_path: Path) -> None:
    with clamd(f"{tmp_path}/clamd.ctl") as scanner:
        scanning = Scanner(scanner.address, 5)
        scanning.scan_now([b"a", b"b"])
        with pytest.raises(MalwareFound, match=r"Normata\.Test\.Marker"):
            scanning.scan_now([MARKER[:9], MARKER[9:]])
