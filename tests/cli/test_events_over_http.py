"""The log of an organization on the command line, from its database and from a server."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import pytest

from normata.cli.remote import log, transport
from tests import mostly_sqlite
from tests.cli.commands import SERVER, Run, bundle_file, failed
from tests.databases import on_both
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


@pytest.fixture
def labels(normata: Run, folder: Path, database_url: str) -> None:
    """Two labels that a command has made, and sealed."""
    rows = [{"id": f"l{number}", "organizationId": ALPHA, "name": f"Größe {number}"} for number in (1, 2)]
    assert normata("load", bundle_file(folder, {"labels": rows}), "--database", database_url).code == 0


@on_both
@pytest.mark.usefixtures("labels")
@pytest.mark.parametrize("command", [("alpha",), ("checkpoint", ALPHA)], ids=" ".join)
def test_both_print_the_same(normata: Run, run: Run, database_url: str, command: tuple[str, ...]) -> None:
    done = run("events", *command)
    assert (done.code, done.err) == (0, "")
    assert done.out == normata("events", *command, "--database", database_url).out
    assert done.out.count("\n") >= 2


@on_both
@pytest.mark.usefixtures("labels")
def test_what_was_exported_is_verified(normata: Run, run: Run, folder: Path) -> None:
    assert run("events", "export", "alpha", "--output", "log").code == 0
    (folder / "checkpoint").write_text(run("events", "checkpoint", "alpha").out)
    assert normata("events", "verify", "log", "checkpoint").out == "2 events match the checkpoint\n"
    (folder / "log").write_text((folder / "log").read_text("utf-8").replace("l1", "l3"), "utf-8")
    assert normata("events", "verify", "log", "checkpoint").code == 1


def test_a_server_has_no_log_of_the_operator(run: Run, where: tuple[str, str]) -> None:
    done = run("events", "checkpoint", "--operator")
    if where[0] == "--database":
        assert done.code == 0
    else:
        assert failed(done) == "a server shows the operator's log to nobody; --operator needs the database"


def test_new_events_are_followed_by_number(normata: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also past an answer that the server is busy."""
    monkeypatch.setenv("NORMATA_TOKEN", "nrm_x")
    monkeypatch.setattr(log, "_PAUSE", 0)
    monkeypatch.setattr(log, "_AFTER_REFUSAL", 0)
    asked: list[str | None] = []

    def item(number: int, body: str) -> dict[str, object]:
        return {"number": number, "id": f"e{number}", "leafHash": "0", "body": body}

    def answered(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/organizations/":
            return httpx2.Response(200, json={"items": [{"id": "o", "slug": "o"}]})
        if "limit" not in request.url.params:
            lines = [item(0, '{"action":"create","id":"e0","salt":"s"}'), item(1, "")]
            text = "".join(f"{json.dumps(line)}\n" for line in lines)
            return httpx2.Response(200, text=text, headers={"Content-Type": "application/x-ndjson"})
        asked.append(request.url.params.get("after"))
        if len(asked) == 1:
            return httpx2.Response(503, json={"code": "unavailable", "detail": "Not now."})
        if len(asked) == 4:
            raise KeyboardInterrupt
        items = [item(2, '{"action":"state","entityType":"Label","id":"e2"}')] if len(asked) == 2 else []
        return httpx2.Response(200, json={"items": items, "next": 2, "size": 3})

    monkeypatch.setattr(transport, "TRANSPORT", httpx2.MockTransport(answered))
    done = normata("events", "--follow", "--server", SERVER)
    assert done.code == 130
    assert asked == ["1", "1", "2", "2"]
    shown = [json.loads(line) for line in done.out.splitlines()]
    assert [(one["id"], one["action"], one["kind"]) for one in shown] == [
        ("e0", "create", None),
        ("e1", None, None),  # its content was erased
        ("e2", "state", "Label"),  # as an older version has sealed it
    ]
    assert "salt" not in shown[0]
