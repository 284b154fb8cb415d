"""An upgrade without a pause: the version before goes on serving while the schema changes, beside the next one."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from normata.core.schema import migrations
from normata.records.kinds import Label, Task
from tests import world
from tests.core.db.sessions import as_role, session, wait_until
from tests.databases import open_url
from tests.postgres import Server
from tests.postgresql.conftest import environment, new_token
from tests.server import PLAIN, reserved_port, wait_until_ready
from tests.world import ALPHA, ARCHIVED

SOURCE = Path(__file__).parents[2] / "src"
LISTS = [f"{path}?organizationId={ALPHA}" for path in ("/controls/", "/frameworks/", "/notifications/")]
RECORDS = 1_500  # of each of two kinds: more than are restored while the test lasts

# --- The next version: labels have remarks, and no color any more


BEFORE, AFTER = "29990101_01", "29990101_02"

ADDS_REMARKS = f"""
import sqlalchemy as sa
from alembic import op
from normata.core.db.types import text

revision = "{BEFORE}"
down_revision = "{migrations.head()}"


def upgrade() -> None:
    op.add_column("label", sa.Column("remark", text(), nullable=True))
"""
REMOVES_COLORS = f"""
from alembic import op

revision = "{AFTER}"
down_revision = "{BEFORE}"


def upgrade() -> None:
    op.drop_column("label", "color")
"""


@dataclass(frozen=True)
class Version:
    """A version of the program: the folder that its package is in."""

    folder: Path
    work: Path  # where its processes run

    def start(self, *arguments: str, url: str, **options: Any) -> subprocess.Popen[Any]:
        """``normata`` of this version, started."""
        return subprocess.Popen(
            [sys.executable, "-m", "normata.cli.main", *arguments, "--database", url],
            env=environment(PYTHONPATH=str(self.folder)),
            cwd=self.work,
            **options,
        )

    def run(self, *arguments: str, url: str) -> subprocess.CompletedProcess[str]:
        """``normata`` of this version, run to its end."""
        process = self.start(*arguments, url=url, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            output, errors = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    @contextmanager
    def serving(self, url: str) -> Iterator[str]:
        """The base of the addresses of a server of this version, once it is ready."""
        with reserved_port() as port, (self.work / f"log-{port}").open("wb") as log:
            process = self.start("serve", "--port", str(port), url=url, stdout=log, stderr=log)
            base = f"http://127.0.0.1:{port}"
            try:
                wait_until_ready(base, process)
                yield base
            finally:
                process.terminate()
                assert process.wait(60) == 0


@pytest.fixture
def old(tmp_path: Path) -> Version:
    """The version before: what is here."""
    return Version(SOURCE, tmp_path)


@pytest.fixture
def new(tmp_path: Path) -> Version:
    """The next version."""
    folder = tmp_path / "next"
    package = shutil.copytree(SOURCE / "normata", folder / "normata")  # with its bytecode
    kinds = package / "records" / "kinds.py"
    before, label, after = kinds.read_text("utf-8").partition("class Label(Maintained):")
    color = "    color: Mapped[ShortText | None]\n"
    assert color in after.partition("\nclass ")[0]
    kinds.write_text(before + label + after.replace(color, "    remark: Mapped[Text | None]\n", 1), "utf-8")
    descriptions = package / "core" / "schema" / "descriptions.py"
    described = descriptions.read_text("utf-8").replace("FIELDS = {", 'FIELDS = {"remark": "A remark.",', 1)
    descriptions.write_text(described, "utf-8")
    versions = package / "core" / "schema" / "migrations" / "versions"
    (versions / f"{BEFORE}_labels_have_remarks.py").write_text(ADDS_REMARKS, "utf-8")
    (versions / f"{AFTER}_after_labels_had_colors.py").write_text(REMOVES_COLORS, "utf-8")
    return Version(folder, tmp_path)


# --- Clients


class Wanted:
    """The addresses of restores, handed out to all clients of all servers in turns: each of them twice."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = iter([path for path in paths for _ in range(2)])
        self._lock = threading.Lock()

    def take(self) -> str:
        """The next one."""
        with self._lock:
            return next(self._paths)


@dataclass
class Load:
    """Clients of one server, who list and restore until they are told to stop."""

    base: str
    token: str
    wanted: Wanted
    statuses: Counter[int] = field(default_factory=Counter)
    restored: list[str] = field(default_factory=list)
    fields: set[frozenset[str]] = field(default_factory=set)  # of the labels that were restored
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """What one client does."""
        headers = {"Authorization": f"Bearer {self.token}"}
        lists = cycle(LISTS)
        try:
            with httpx2.Client(base_url=self.base, headers=headers, timeout=60, verify=PLAIN) as client:
                while not self._stop.is_set():
                    path = self.wanted.take()
                    answer = client.post(path)
                    self.statuses[answer.status_code] += 1
                    if answer.status_code == 200:
                        self.restored.append(path)
                        if path.startswith("/labels/"):
                            self.fields.add(frozenset(answer.json()))
                    listed = client.get(next(lists))
                    assert listed.status_code == 200, listed.text
                    time.sleep(0.05)
        finally:
            self.stop()  # where one fails, the others need not go on

    def stop(self) -> None:
        """Tell all to end with the request that they are at."""
        self._stop.set()

    def goes_on(self, restores: int) -> None:
        """Return once there have been so many restores more."""
        target = len(self.restored) + restores
        wait_until(lambda: len(self.restored) >= target or self._stop.is_set(), 60)


@contextmanager
def clients(base: str, token: str, wanted: Wanted) -> Iterator[Load]:
    """Two clients at work while the block runs; what goes wrong with one of them fails the test."""
    load = Load(base, token, wanted)
    with ThreadPoolExecutor(2) as threads:
        running: list[Future[None]] = [threads.submit(load.run) for _ in range(2)]
        try:
            yield load
        finally:
            load.stop()
    for one in running:
        one.result()


def archived(url: str) -> Wanted:
    """Load archived records of two kinds; the addresses of their restores, of both in turns."""
    common = {"organizationId": ALPHA, "archivedAt": ARCHIVED}
    ids = [f"upgrade-{number}" for number in range(RECORDS)]
    document: dict[str, list[dict[str, Any]]] = {
        Label.path: [{"id": one, "name": one, "color": "red", **common} for one in ids],
        Task.path: [{"id": one, "title": one, "assigneeMemberId": "member-owner", **common} for one in ids],
    }
    with closing(open_url(url)) as database:
        world.load(database, document)
    return Wanted([f"/{path}/{one}/restore/" for one in ids for path in document])


@pytest.fixture
def weak_url(postgres: Server, postgres_url: str) -> Iterator[str]:
    """The address of the world for the login that serves."""
    name = f"normata_login_{uuid4().hex[:12]}"
    postgres.run(f"CREATE ROLE {name} LOGIN PASSWORD 'login' IN ROLE normata_service")
    yield as_role(postgres_url, name, "login")
    postgres.run(f"DROP ROLE {name}")


def is_ready(base: str) -> bool:
    return httpx2.get(f"{base}/readyz", timeout=30, verify=PLAIN).status_code == 200


@pytest.mark.long
def test_an_upgrade_costs_nobody_an_answer(old: Version, new: Version, postgres_url: str, weak_url: str) -> None:
    wanted, token = archived(postgres_url), new_token(postgres_url)
    with ExitStack() as new_ones:
        with old.serving(weak_url) as old_base, clients(old_base, token, wanted) as before:
            before.goes_on(20)
            done = new.run("migrate", url=postgres_url)
            assert (done.returncode, done.stdout) == (0, f"the schema is at {BEFORE}\n"), done.stderr
            assert done.stderr == "once no process of an older version serves, run `normata migrate --after`\n"
            before.goes_on(20)
            assert is_ready(old_base)
            new_base = new_ones.enter_context(new.serving(weak_url))
            after = new_ones.enter_context(clients(new_base, token, wanted))
            for one in (after, before, after):
                one.goes_on(20)
            assert is_ready(old_base)
        # Here the old one has ended.
        done = new.run("migrate", "--after", url=postgres_url)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"the schema is at {AFTER}\n", "")
        after.goes_on(20)
        assert is_ready(new_base)
        checked = new.run("check", url=postgres_url)
        assert checked.returncode == 0
        assert all("the extension pg_trgm" in warning for warning in checked.stderr.splitlines())
        assert "integrity: good" in checked.stdout.splitlines()
    refused = old.run("dump", ALPHA, url=postgres_url)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "normata: the database was made by a newer version of Normata; upgrade the program\n"
    assert set(before.statuses) | set(after.statuses) == {200, 409}
    (old_fields,), (new_fields,) = before.fields, after.fields
    assert (set(old_fields - new_fields), set(new_fields - old_fields)) == ({"color"}, {"remark"})
    every = [*before.restored, *after.restored]
    assert len(every) == len(set(every)), "no record is restored twice"
    with session(postgres_url) as admin:
        events = "SELECT '/' || CASE entity_type WHEN 'Task' THEN 'tasks' ELSE 'labels' END || '/' || entity_id"
        assert {
            path for (path,) in admin.rows(f"{events} || '/restore/' FROM audit_event WHERE user_id IS NOT NULL")
        } == set(every)
        tasks = sum(path.startswith("/tasks/") for path in every)
        assert admin.value("SELECT count(*) FROM notification WHERE type = 'record.restored'") == tasks
        live = "SELECT count(*) FROM {} WHERE id LIKE 'upgrade-%' AND archived_at IS NULL"
        assert sum(admin.value(live.format(table)) for table in ("label", "task")) == len(every)
