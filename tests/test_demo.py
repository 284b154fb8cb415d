"""The demo: content worth looking at, a second run that harms nothing, and requests that work as they are printed."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args
from urllib.request import Request, urlopen

import pytest
from sqlalchemy import select

from normata.app import create_app
from normata.bundle import reading
from normata.cli import check as checkup
from normata.cli import demo
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.schema.table import Table, sql_table
from normata.core.schema.wire import columns, wire_names
from normata.demo import history
from normata.demo.files import ORGANIZATION, paths
from normata.demo.history import with_milliseconds
from normata.events.model import AuditEvent
from normata.files.opening import open_store
from normata.frameworks.model import ControlCoverage
from normata.notifications.texts import ENGLISH
from normata.operations import SECURITY
from normata.records.base import Restorable
from normata.settings import Settings
from tests import world
from tests.client import TestClient
from tests.databases import change, migrate, on_sqlite, open_url

Ask = Callable[..., Any]
BASE = "http://127.0.0.1:8000"
NORMATA = Path(sys.executable).with_name("normata")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the demo in it, to be copied."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    migrate(database := open_url(f"sqlite:///{path}", create=True))
    demo.fill(database, lambda *_: None, open_store(Settings()))
    database.close()
    return path


@pytest.fixture
def settings(filled: Path, tmp_path: Path) -> Settings:
    path = tmp_path / "demo.db"
    shutil.copy(filled, path)
    return Settings(database_url=f"sqlite:///{path}", log_level="error")


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    opened = open_url(settings.database_url)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def bundle() -> dict[str, list[dict[str, Any]]]:
    """All bundles of the demo as one."""
    arrays: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in reading.read(paths()):
        arrays[row.array].append(dict(row.values))
    return arrays


# --- Its content


def test_it_is_whole(database: Database) -> None:
    assert database.read_now(lambda transaction: list(checkup.faults(database, transaction, SECURITY))) == []


def test_there_is_one_organization_with_members_of_every_role(bundle: dict[str, list[dict[str, Any]]]) -> None:
    assert [row["id"] for row in bundle["organizations"]] == [ORGANIZATION]
    assert {row["role"] for row in bundle["memberships"]} == {"owner", "admin", "editor", "viewer"}
    assert demo.USER in {row.get("email") for row in bundle["users"]}


def test_it_has_the_catalogs_whole(bundle: dict[str, list[dict[str, Any]]]) -> None:
    frameworks = {row["identifier"]: row for row in bundle["frameworks"]}
    centralized = {name for name, row in frameworks.items() if row.get("organizationId") is None}
    assert len(centralized) == 2
    assert len(frameworks) == 3

    def of(framework_id: str) -> Counter[str]:
        return Counter(row["type"] for row in bundle["controls"] if row["frameworkId"] == framework_id)

    assert of("iso-27001-2022") == {"CATEGORY": 4, "CONTROL": 93}
    csf = [row for row in bundle["controls"] if row["frameworkId"] == "nist-csf-2.0"]
    functions = [row["identifier"] for row in csf if row["parentId"] is None]
    assert functions == ["GV", "ID", "PR", "DE", "RS", "RC"]
    categories = [row for row in csf if re.fullmatch(r"[A-Z]{2}\.[A-Z]{2}", row["identifier"])]
    assert len(categories) == 22
    assert {row["parentId"].rpartition(":")[2] for row in categories} == set(functions)


def test_annex_a_is_complete_in_its_themes(bundle: dict[str, list[dict[str, Any]]]) -> None:
    found = Counter(
        row["identifier"].rpartition(".")[0]
        for row in bundle["controls"]
        if row["frameworkId"] == "iso-27001-2022" and row["type"] == "CONTROL"
    )
    assert found == {"A.5": 37, "A.6": 8, "A.7": 14, "A.8": 34}


def test_every_control_of_a_catalog_has_a_purpose(bundle: dict[str, list[dict[str, Any]]]) -> None:
    assert [row["id"] for row in bundle["controls"] if not row.get("purpose")] == []


def test_frameworks_map_onto_each_other(bundle: dict[str, list[dict[str, Any]]]) -> None:
    framework = {row["id"]: row["frameworkId"] for row in bundle["controls"]}
    pairs = {(framework[row["sourceControlId"]], framework[row["targetControlId"]]) for row in bundle["controlMatches"]}
    assert {("nist-csf-2.0", "iso-27001-2022"), ("iso-27001-2022", "nist-csf-2.0")} <= pairs
    assert any("hrl-ics" in pair for pair in pairs)


def test_it_states_much_and_explains_what_is_missing(bundle: dict[str, list[dict[str, Any]]]) -> None:
    statements = bundle["controlCoverages"]
    assert len(statements) >= 300
    assert {row["coverageStatus"] for row in statements} == {"NONE", "PARTIAL", "FULL"}
    gaps = [row for row in statements if row["coverageStatus"] == "PARTIAL"]
    assert sum(bool(row.get("coverageGap")) for row in gaps) >= 0.9 * len(gaps)


def test_coverage_has_something_to_show(database: Database, settings: Settings) -> None:
    token = change(database, demo.new_token)
    with TestClient(create_app(settings)) as client:
        items = [
            item
            for page in range(1, 6)
            for item in client.get(
                "/controls/",
                params={"organizationId": ORGANIZATION, "page": page},
                headers={"Authorization": f"Bearer {token}"},
            ).json()["items"]
        ]
    assert len({item["framework"]["id"] for item in items}) == 3
    assert {item["effectiveCoverageStatus"] for item in items} == {"NONE", "PARTIAL", "FULL"}
    assert {item["isIndirectlyCovered"] for item in items} == {True, False}


@pytest.mark.parametrize("kind", Restorable.kinds)
def test_every_kind_has_archived_and_live_records(
    bundle: dict[str, list[dict[str, Any]]], kind: type[Restorable]
) -> None:
    archived = {row.get("archivedAt") is not None for row in bundle[kind.path]}
    assert archived == {True, False}
    assert len(bundle[kind.path]) >= 5, f"the demo needs more {kind.path}"


@pytest.fixture
def service(database: Database, settings: Settings) -> Iterator[Ask]:
    """Asks the demo's service for what is at a path of its organization, as the demo's user."""
    headers = {"Authorization": f"Bearer {change(database, demo.new_token)}"}
    with TestClient(create_app(settings)) as client:

        def ask(path: str, **query: Any) -> Any:
            answer = client.get(path, params={"organizationId": ORGANIZATION, **query}, headers=headers)
            assert answer.status_code == 200, path
            return answer.json()

        yield ask


def test_its_notifications_are_such_as_the_program_writes(service: Ask) -> None:
    texts: dict[str, str] = json.loads(ENGLISH.read_text("utf-8"))
    mine = service("/notifications/")["items"]
    assert {one["readAt"] is None for one in mine} == {True, False}
    assert len({one["category"] for one in mine}) >= 3
    assert {one["type"] for one in mine} >= {"record.assigned", "record.archived", "record.due_soon", "coverage.lost"}
    for payload in (one["payload"] for one in mine):
        for key in (payload["titleKey"], payload["bodyKey"]):
            assert texts[key].format(**payload["params"])
        service(payload["url"])


def test_its_archive_has_who_and_why(service: Ask, bundle: dict[str, list[dict[str, Any]]]) -> None:
    archived = [row["id"] for kind in Restorable.kinds for row in bundle[kind.path] if row.get("archivedAt")]
    found = service("/archive/")["items"]
    assert sorted(one["id"] for one in found) == sorted(archived)
    assert [one["id"] for one in found if not (one["archivedBy"] and one["reason"])] == []
    users = {row["id"]: row.get("name") for row in bundle["users"]}
    assert {users[one["archivedBy"]["id"]] == one["archivedBy"]["name"] for one in found} == {True}


def test_its_histories_lead_to_what_its_bundles_say(
    database: Database, bundle: dict[str, list[dict[str, Any]]]
) -> None:
    """Whatever is in the bundles is there, and every record was created at its time, by a member, before all else."""
    events: defaultdict[str, list[Any]] = defaultdict(list)
    for event in database.read_now(lambda transaction: transaction.rows(select(*sql_table(AuditEvent).c))):
        events[event.entity_id].append(event)
    members = {row["id"] for row in bundle["users"]}
    updated = 0
    for kind in Restorable.kinds:
        stored = {row["id"]: row for row in database.read_now(partial(stored_rows, table=kind))}
        for row in bundle[kind.path]:
            expected = with_milliseconds(row)
            assert {name: stored[row["id"]][name] for name in expected} == expected
            first, *others = sorted(events[row["id"]], key=lambda one: (one.at, one.id))
            assert (first.action, first.at, first.user_id in members) == ("create", expected["createdAt"], True)
            more = {"update", "remind", "plan", "add_external_id"}
            assert {one.action for one in others} <= {*get_args(history.Action), *more}
            updated += any(one.action == "update" for one in others)
    assert updated >= 100


def test_its_assessments_are_what_members_made_them(
    database: Database, bundle: dict[str, list[dict[str, Any]]]
) -> None:
    stored = {row["id"]: row for row in database.read_now(partial(stored_rows, table=ControlCoverage))}
    for row in bundle["controlCoverages"]:
        assert {name: stored[row["id"]][name] for name in row} == row
    query = select(sql_table(AuditEvent).c.entity_id).where(
        sql_table(AuditEvent).c.action == "assess", sql_table(AuditEvent).c.user_id.is_not(None)
    )
    assessed = set(database.read_now(lambda transaction: transaction.scalars(query)))
    assert {row["id"] for row in bundle["controlCoverages"] if row["coverageStatus"] != "NONE"} <= assessed


def stored_rows(transaction: Transaction, table: type[Table]) -> list[dict[str, Any]]:
    """The rows of a table by the wire's names."""
    names, rows = wire_names(table), transaction.rows(select(*columns(table)))
    return [{names[name]: value for name, value in row._asdict().items()} for row in rows]


def test_the_readme_shows_the_answers_to_its_restore(database: Database, settings: Settings) -> None:
    """Its lines are broken to fit, and the time is that of the reader's restore."""
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    path, shown = re.findall(r"-X POST 'http://127.0.0.1:8000(/[^']+)'\n```\n\n```\n(.*?)\n```", readme, re.DOTALL)[0]
    token = change(database, demo.new_token)
    with TestClient(create_app(settings)) as client:
        answer = client.post(path, headers={"Authorization": f"Bearer {token}"})

    def comparable(text: str) -> str:
        return re.sub(r'"updatedAt":"[^"]+"', "", re.sub(r"\s", "", text))

    assert comparable(shown) == comparable(answer.text)


# --- The command


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[tuple[int, list[str]]]:
    """The demo as a newcomer starts it, once it listens; with the lines that it has printed."""
    port = free_port()
    command = [str(NORMATA), "demo", "--port", str(port), *arguments]
    with (folder / "stderr").open("w+") as stderr:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=stderr, text=True)
        assert process.stdout is not None
        guard = threading.Timer(180, process.kill)  # so that a demo that hangs ends the test, not the day
        guard.start()
        try:
            lines = []
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                if line.startswith("Stop with"):
                    break
            assert process.poll() is None, (folder / "stderr").read_text()
            yield port, lines
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
        finally:
            process.kill()
            process.wait(timeout=10)
            guard.cancel()
            process.stdout.close()
        assert "Traceback" not in (folder / "stderr").read_text()


def ask(line: str) -> tuple[int, Any]:
    """What a printed line gives in a shell, as it is: the status is all that is added."""
    done = subprocess.run(
        ["bash", "-c", line + " -w '\\n%{http_code}'"], capture_output=True, text=True, timeout=30, check=True
    )
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body)


def token_in(lines: list[str]) -> str:
    [token] = [line.split()[1] for line in lines if line.startswith("Token:")]
    return token


def is_pdf(port: int, token: str) -> bool:
    """Whether the statement of applicability is a PDF: its process was forked before the demo had any threads."""
    path = f"frameworks/iso-27001-2022/statement-of-applicability/?organizationId={ORGANIZATION}&format=pdf"
    request = Request(f"http://127.0.0.1:{port}/{path}", headers={"Authorization": f"Bearer {token}"})
    return bool(urlopen(request, timeout=30).read().startswith(b"%PDF-"))


@pytest.mark.long
@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="the printed lines need curl and bash")
def test_the_printed_requests_work_as_they_are_printed_and_twice_is_harmless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundle: dict[str, list[dict[str, Any]]]
) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"NORMATA_{name.upper()}", raising=False)
    url = f"sqlite:///{tmp_path / 'demo.db'}"

    def curls(lines: list[str]) -> list[str]:
        found = [line for line in lines if line.startswith("curl ")]
        assert len(found) == 3
        return found

    with running(tmp_path, "--database", url) as (port, lines):
        assert any(ORGANIZATION in line for line in lines if line.startswith("Organization:"))
        controls, notifications, restore = curls(lines)
        status, page = ask(controls)
        assert (status, len(page["items"]), page["total"]) == (200, 5, len(bundle["controls"]))
        status, page = ask(notifications)
        assert status == 200
        assert {item["readAt"] for item in page["items"]} == {None}
        status, restored = ask(restore)
        assert (status, restored["archivedAt"]) == (200, None)
        first_token = token_in(lines)
        assert is_pdf(port, first_token)
    with running(tmp_path, "--database", url) as (port, lines):
        assert [ask(line)[0] for line in curls(lines)] == [200, 200, 200]
        assert token_in(lines) != first_token
        assert restored["id"] not in curls(lines)[2]
        old = f"curl -s -H 'Authorization: Bearer {first_token}' "
        base = f"http://127.0.0.1:{port}"
        assert ask(f"{old} '{base}/frameworks/?organizationId={ORGANIZATION}'")[0] == 200
        again = re.sub(r"^.*/([^/]+)/([^/]+)/restore/'$", rf"{old} -X POST '{base}/\1/\2/restore/'", restore)
        status, problem = ask(again)
        assert (status, problem["code"]) == (409, "not_archived")


@pytest.mark.long
@on_sqlite
@pytest.mark.parametrize("arguments", [(), ("--database", "sqlite:///normata.db")])
def test_a_database_with_another_organization_is_refused(
    database_url: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    assert database_url == f"sqlite:///{tmp_path / 'normata.db'}"  # the default in that folder

    def look() -> dict[str, list[str]]:
        with closing(open_url(database_url)) as opened:
            return world.contents(opened)

    before = look()
    done = subprocess.run(
        [str(NORMATA), "demo", "--port", str(free_port()), *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "normata: the database has an organization that is not the demo's; use another database with --database\n"
    )
    assert look() == before


def test_an_address_in_use_is_told_before_anything_is_promised(tmp_path: Path) -> None:
    """Lines that cannot work must not be printed."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        done = subprocess.run(
            [str(NORMATA), "demo", "--port", port],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(f"normata: 127.0.0.1:{port}: cannot listen there")
    assert done.stdout == ""
