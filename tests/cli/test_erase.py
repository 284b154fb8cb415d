"""Erasing a person: what is asked and told, what is left in files, and what a running server says."""

from __future__ import annotations

import json
import sqlite3
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from normata.core.changes.idempotency import IdempotencyKey
from normata.core.schema.table import Table
from normata.erasure.columns import called
from normata.errors import Unavailable
from normata.identity.model import AccessToken, Invitation, Membership, Operator, User
from normata.identity.sign_in_model import Passkey, Password, Session, SignInAttempt
from normata.notifications.model import Notification
from normata.records.archiving import ArchiveEntry
from normata.records.kinds import Policy, Task
from tests import stored
from tests.cli.commands import Run, failed, on_terminal
from tests.databases import on_sqlite, open_url
from tests.erasure.people import ADDRESS, ANN, NAME, bearer, join, named, traces, work
from tests.served import Served, served
from tests.server import serving
from tests.world import ALPHA, USERS, record_id

pytestmark = pytest.mark.long


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a world in which Ann works."""
    with served(database_url) as opened:
        join(opened)
        work(opened)
        yield opened


def counted(table: type[Table], count: int = 1) -> str:
    """What the command says of the rows of a table."""
    return f"{called(table)} {count}"


def test_what_was_done_is_told(normata: Run, service: Served) -> None:
    done = normata("user", "erase", ADDRESS, "--yes", "--database", service.url)
    assert done.code == 0
    first, *others = done.out.splitlines()
    assert first == f"{ADDRESS}: erased"
    told = {what: set(counts.split(", ")) for what, counts in (line.split(": ") for line in others)}
    assert told.keys() == {"deleted", "changed", "events without their content"}
    others_own = {counted(table) for table in (AccessToken, IdempotencyKey, Passkey, Session)}
    texts = {counted(table) for table in (ArchiveEntry, Policy, Task)}
    # Users: Ann, and a service account that was called after her.
    several = {counted(Membership, 2), counted(Notification, 3), counted(User, 2)}
    assert told["changed"] == others_own | texts | several
    own = {counted(table) for table in (Invitation, Operator, Password, Session, SignInAttempt)}
    assert own | {counted(Notification, 2)} <= told["deleted"]
    assert named(service.database) == []
    for command in ("check", "events"):
        assert normata(command, "--database", service.url).code == 0
    [event] = [
        one
        for one in map(json.loads, normata("events", "--database", service.url).out.splitlines())
        if one["action"] == "erase" and one["organizationId"] is None
    ]
    assert (event["command"], event["kind"], event["recordId"]) == ("normata user erase", "users", ANN)
    again = normata("user", "erase", ANN, "--yes", "--database", service.url)
    assert (again.code, again.out) == (0, f"{ANN}: already erased\n")


def test_a_dry_run_lists_rows_and_changes_nothing(normata: Run, service: Served) -> None:
    before = stored.everything(service.database)
    done = normata("user", "erase", ADDRESS, "--dry-run", "--database", service.url)
    assert (done.code, done.err) == (0, "")
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert ["change", "policies", record_id(Policy, "live"), "title content last_approved_by"] in rows
    assert ["delete", called(Password), ANN, ""] in rows
    assert not traces(done.out)
    assert stored.everything(service.database) == before


def test_nobody_is_erased_by_accident(normata: Run, service: Served) -> None:
    before = stored.everything(service.database)
    told = failed_with_warnings(normata("user", "erase", ADDRESS, "--database", service.url))
    assert told == "there is no terminal to ask for confirmation; use --yes to erase without it"
    for who, reason in (
        (USERS["owner"], "is the last owner of the organization org-alpha; make somebody else an owner there first"),
        ("user-nobody-knows", "there is no user with the id user-nobody-knows; name an email address, or an id"),
    ):
        assert failed(normata("user", "erase", who, "--yes", "--database", service.url)).endswith(reason)
    assert stored.everything(service.database) == before


def failed_with_warnings(done: Any) -> str:
    """The sentence that a failed command told."""
    assert (done.code, done.out) == (1, "")
    return str(done.err.splitlines()[-1].removeprefix("normata: "))


@on_sqlite
def test_on_a_terminal_it_asks(service: Served) -> None:
    code, shown = on_terminal("user", "erase", ADDRESS, "--database", service.url, typed="n\n")
    assert code == 1
    assert "will be erased for good; rows that name them: " in shown
    assert "nothing was changed" in shown
    assert named(service.database)
    code, shown = on_terminal("user", "erase", ADDRESS, "--database", service.url, typed="y\n")
    assert code == 0
    assert named(service.database) == []


def test_doubts_are_told(normata: Run, service: Served) -> None:
    service.load(
        {
            "users": [
                {"id": "twin", "email": "x@y.example", "name": "Ann"},
                {"id": "short", "email": "short@y.example", "name": "Ann"},
            ],
            "labels": [{"id": f"of {ADDRESS}", "organizationId": ALPHA, "name": "Ann, of old"}],
        }
    )
    told = normata("user", "erase", "short@y.example", "--yes", "--database", service.url).err
    assert "another user has the same name" in told
    assert "texts have a word that may be the name" in told
    assert "and cannot be changed" in normata("user", "erase", ADDRESS, "--yes", "--database", service.url).err
    assert "no user has this address" in normata("user", "erase", "q@q.example", "--yes", "--database", service.url).err


def test_the_server_of_postgresql_forgets_in_its_own_time(normata: Run, postgres_url: str) -> None:
    done = normata("user", "erase", USERS["viewer"], "--yes", "--database", postgres_url)
    assert done.code == 0
    assert "until it vacuums" in done.err


# --- Files and processes


def files_that_name(folder: Path) -> list[str]:
    """The files beside a database whose bytes name the person."""
    needles = [spelled.encode() for spelled in (ADDRESS, ADDRESS.lower(), NAME, NAME.upper(), "ann-smith")]
    return [
        path.name for path in folder.iterdir() if path.is_file() and any(one in path.read_bytes() for one in needles)
    ]


@on_sqlite
def test_the_bytes_leave_the_files(normata: Run, service: Served) -> None:
    """Also those of rows that were overwritten long ago, while a server has the file open."""
    folder = Path(service.url.removeprefix("sqlite:///")).parent
    assert files_that_name(folder)
    assert service.client.get("/tasks/", params={"organizationId": ALPHA}, headers=service.bearer("viewer")).is_success
    assert normata("user", "erase", ADDRESS, "--yes", "--database", service.url).code == 0
    assert files_that_name(folder) == []
    assert service.client.get("/tasks/", params={"organizationId": ALPHA}, headers=service.bearer("viewer")).is_success
    assert service.client.post(
        "/labels/", json={"organizationId": ALPHA, "name": "New"}, headers=service.bearer("editor")
    ).is_success


@on_sqlite
def test_a_file_that_cannot_be_written_anew_is_told(
    normata: Run, service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long read of another process keeps what it reads."""
    monkeypatch.setenv("NORMATA_DATABASE_TIMEOUT", "0.2")
    path = service.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM user_account").fetchone()
        done = normata("user", "erase", ADDRESS, "--yes", "--database", service.url)
        assert done.code == 1
        assert "the person was erased, but the file still has some of the bytes" in done.err
        assert named(service.database) == []
    assert normata("user", "erase", ANN, "--yes", "--database", service.url).code == 0
    assert files_that_name(Path(path).parent) == []


@contextmanager
def writing(base: str, headers: dict[str, str]) -> Iterator[list[int]]:
    """Somebody makes labels all the while; what each request was answered."""
    answers: list[int] = []
    done = threading.Event()

    def write() -> None:
        body = json.dumps({"organizationId": ALPHA, "name": "Label"}).encode()
        while not done.is_set() or not answers:
            request = urllib.request.Request(
                f"{base}/labels/", data=body, headers=headers | {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=10) as answer:
                answers.append(answer.status)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield answers
    finally:
        done.set()
        writer.join()


def test_running_servers_forget_them_at_once(
    normata: Run, service: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that a second process has kept, too; and no log has ever named them."""
    gap = {"id": "say-sun.A.2", "organizationId": ALPHA, "coverageGap": f"{NAME} <{ADDRESS}> knows"}
    service.load({"controlCoverages": [gap]})
    viewer, ann = service.bearer("viewer"), bearer(service)
    monkeypatch.delenv("NORMATA_EVENT_KEY", raising=False)
    settings = {"NORMATA_EVENT_KEY": str(tmp_path / "key")}
    log = tmp_path / "served.log"
    with serving(service.url, workers=2, log=log, settings=settings) as base:

        def get(path: str, headers: dict[str, str]) -> tuple[int, str]:
            request = urllib.request.Request(f"{base}{path}?organizationId={ALPHA}", headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        for _ in range(8):  # both processes keep the page
            status, page = get("/controls/", viewer)
            assert (status, bool(traces(page))) == (200, True)
            assert get("/tasks/", ann)[0] == 200
        with writing(base, service.bearer("editor")) as answers:
            assert normata("user", "erase", ADDRESS, "--yes", "--database", service.url).code == 0
        assert set(answers) == {201}, "they go on all the while"
        for _ in range(8):
            status, page = get("/controls/", viewer)
            assert (status, traces(page)) == (200, [])
            assert get("/tasks/", ann)[0] == 401
    lines = log.read_text()
    assert '"event":"request"' in lines
    assert ANN in lines
    assert traces(lines) == []


def test_scrubbing_an_unreachable_database_is_unavailable(folder: Path) -> None:
    """Not an error of SQLite's own."""
    with closing(open_url(f"sqlite:///{folder}/none.db")) as database, pytest.raises(Unavailable):
        database.scrub()


@pytest.mark.parametrize("who", ["", "  "])
@on_sqlite
def test_nobody_is_erased_without_a_name(who: str, service: Served, normata: Run) -> None:
    told = failed(normata("user", "erase", who, "--yes", "--database", service.url))
    assert told == "name the person, by an email address or an id"
