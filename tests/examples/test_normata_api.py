"""What the integrations share: it waits, sends again with the same key, and gives the token to nobody else."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import ModuleType
from typing import Any

import pytest

from tests import world
from tests.examples.integrating import FOLDER, Integrations

Answer = tuple[int, dict[str, str], Any]

ME: Answer = (200, {}, {"id": "user-robot", "organizations": [{"id": "org-alpha"}]})
BUSY = {"code": "unavailable", "detail": "The database is busy."}


@pytest.fixture(scope="module")
def api() -> ModuleType:
    """The module that the programs import."""
    spec = importlib.util.spec_from_file_location("normata_api", FOLDER / "normata_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pauses(api: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it has waited: in the test, not at all."""
    waited: list[float] = []
    monkeypatch.setattr(api.time, "sleep", waited.append)
    return waited


@contextmanager
def answering(*answers: Answer) -> Iterator[tuple[str, list[tuple[str, str, str | None]]]]:
    """A server with these answers, one after another: its address, and what was sent: method, path and key."""
    sent: list[tuple[str, str, str | None]] = []
    left = iter(answers)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            sent.append((self.command, self.path, self.headers.get("Idempotency-Key")))
            status, headers, body = next(left)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 # the names that the library calls

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", sent
        finally:
            server.shutdown()
            thread.join()


def test_it_waits_as_told_and_sends_the_same_key_again(api: ModuleType, pauses: list[float]) -> None:
    answers: list[Answer] = [
        (429, {"Retry-After": "7"}, BUSY),
        (503, {"Retry-After": "9999"}, BUSY),
        (502, {}, b"<html>"),
        (409, {"Retry-After": "1"}, {"code": "request_in_progress", "detail": "It is in progress."}),
        (200, {}, b"{"),
        (201, {}, {"id": "t1"}),
    ]
    with answering(ME, *answers) as (base, sent):
        assert api.Organization(base, "t").change("POST", "/tasks/", {"title": "A"}) == {"id": "t1"}
    assert pauses == [7, 120, 4, 1, 16]
    assert {path for _, path, _ in sent[1:]} == {"/tasks/"}
    assert len({key for _, _, key in sent[1:]}) == 1


def test_it_gives_up_in_the_end(api: ModuleType, pauses: list[float]) -> None:
    with answering(ME, *[(503, {}, BUSY)] * 6) as (base, sent):
        organization = api.Organization(base, "t")
        with pytest.raises(api.Failed, match=r"^DELETE /members/m/: 503 unavailable: The database is busy\.$"):
            organization.change("DELETE", "/members/m/")
    assert len(sent) == 7
    assert pauses == [1, 2, 4, 8, 16]


@pytest.mark.usefixtures("pauses")
def test_it_says_that_nobody_is_there(api: ModuleType) -> None:
    with answering() as (base, _):
        pass
    with pytest.raises(api.Failed, match="refused"):
        api.Organization(base, "t")


def test_it_follows_no_redirect(api: ModuleType, pauses: list[float]) -> None:
    with (
        answering() as (elsewhere, received),
        answering((302, {"Location": elsewhere}, b"")) as (base, _),
        pytest.raises(api.Failed, match="302 Found"),
    ):
        api.Organization(base, "t")
    assert (received, pauses) == ([], [])


@pytest.mark.parametrize("server", ["http://normata.example.org", "file:///etc", "127.0.0.1:8000", "http:127.0.0.1"])
def test_it_shows_the_token_to_nobody_on_the_way(api: ModuleType, server: str) -> None:
    with pytest.raises(api.Failed, match="does not begin with https://"):
        api.Organization(server, "t")


def test_it_works_for_one_organization(api: ModuleType) -> None:
    two = {"id": "user-ann", "organizations": [{"id": "org-alpha"}, {"id": "org-beta"}]}
    with answering((200, {}, two)) as (base, _), pytest.raises(api.Failed, match="reaches 2 organizations"):
        api.Organization(base, "t")


def test_it_reads_all_pages(unchanged: Integrations, api: ModuleType) -> None:
    organization = api.Organization(unchanged.base, unchanged.token("owner", "read"))
    controls = organization.items("/controls/", limit=5)
    assert len({control["id"] for control in controls}) == organization.get("/controls/")["total"] > 5
    with pytest.raises(api.Failed, match=r"400 validation: .*emial"):
        list(organization.items("/members/", emial=world.USERS["viewer"]))
    with pytest.raises(api.Failed, match=r"400 validation: .*adopted_only"):
        organization.get("/frameworks/", adopted_only="true", colour="blue")


def test_it_says_what_is_missing(unchanged: Integrations) -> None:
    for token, why in (("", "set NORMATA_SERVER and NORMATA_TOKEN"), ("nrm_nobody", "401 unauthenticated")):
        done = unchanged.run("leavers_from_directory.py", unchanged.folder / "people.csv", token=token)
        assert done.status
        assert why in done.refused[-1]


@pytest.mark.parametrize("program", sorted(one.name for one in FOLDER.glob("*_*_*.py")))
def test_programs_are_short_and_on_the_page(program: str) -> None:
    assert len((FOLDER / program).read_text("utf-8").splitlines()) < 80
    assert f"](../examples/{program})" in (FOLDER.parent / "docs" / "integrating.md").read_text("utf-8")
