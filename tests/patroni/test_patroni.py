"""Every fault on every route to the database, under load: nothing is lost, nothing stale is told, and all comes back.

Not part of the suite: it takes an hour, and a machine to itself. ``make test-patroni`` runs it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from tests.failover.records import EDITORS, OWNER, all_records, fill, new_tokens
from tests.patroni.cluster import ROUTES, Observer, PatroniCluster, running_cluster
from tests.patroni.faults import FAULTS, Fault
from tests.patroni.parts import missing
from tests.patroni.promises import judge
from tests.patroni.watch import Normata, Revoker, Seen, watched

REPORT = "NORMATA_PATRONI_REPORT"
TOKENS_TO_REVOKE = 150
_STEADY = 6  # seconds of load before the fault, and at least so many after the service is back

pytestmark = pytest.mark.skipif(bool(missing()), reason="; ".join(missing()) or "nothing is missing")


@dataclass
class Place:
    """Where a test runs and writes."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]


@dataclass
class World:
    """The cluster, with a filled database that each test gets a copy of, and its tokens."""

    cluster: PatroniCluster
    editors: list[str]
    owner: str
    to_revoke: list[str]

    def renew(self) -> None:
        """Have ``normata`` be a fresh copy."""
        primary = self.cluster.primary()
        primary.query("DROP DATABASE IF EXISTS normata WITH (FORCE)")
        primary.query("CREATE DATABASE normata TEMPLATE filled OWNER normata_owner")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """The cluster, whole."""
    with pytest.MonkeyPatch.context() as monkeypatch, running_cluster() as cluster:
        for name in [name for name in os.environ if name.startswith(("NORMATA_", "PG")) and name != REPORT]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PGPASSFILE", str(cluster.password_file))
        monkeypatch.setenv("NORMATA_BAD_TOKEN_LIMIT", "0")
        url = cluster.url("hosts", "normata_owner")
        fill(url)
        tokens = new_tokens(url, [*EDITORS, *[OWNER] * (1 + TOKENS_TO_REVOKE)])
        cluster.primary().query("ALTER DATABASE normata RENAME TO filled")
        yield World(cluster, tokens[:2], tokens[2], tokens[3:])


@pytest.fixture
def cluster(world: World) -> Iterator[PatroniCluster]:
    """The cluster with a fresh database; what a test breaks in it is repaired afterwards."""
    world.renew()
    yield world.cluster
    world.cluster.repair()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    """Where a test runs and writes."""
    return Place(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault(fault: Fault, route: str, world: World, cluster: PatroniCluster, place: Place) -> None:
    if route == "pgbouncer":
        place.monkeypatch.setenv("NORMATA_DATABASE_STATEMENT_CACHE", "0")
    records = list(all_records())
    processes = [Normata(name, cluster.url(route), place.folder) for name in ("a", "b")]
    observer = Observer(cluster.members)
    revoker = Revoker(world.to_revoke, _revoking(cluster, observer))
    with ExitStack() as stack:
        for process in processes:
            stack.callback(process.stop)
            process.start()
        pids = [process.pid for process in processes]
        observer.start()
        stack.callback(observer.end)
        with watched(processes, world.editors, world.owner, records, revoker) as seen:
            time.sleep(_STEADY)
            struck = time.monotonic()
            fault.befall(cluster, processes)
            time.sleep(max(0.0, struck + fault.seconds - time.monotonic()))
            is_back = _within(30, partial(_all_restore, seen, struck))
            time.sleep(_STEADY)
        is_rolled = fault.name.startswith("roll")
        if not is_rolled:
            assert [process.pid for process in processes] == pids
        without = observer.without(struck, time.monotonic())
        query = partial(cluster.primary().query, database="normata")
        verdict = judge(seen, records, query, struck=struck, without=without, is_rolled=is_rolled)
    if not is_back:
        verdict.broken.append("the service did not come back")
    at = datetime.now().astimezone().isoformat(timespec="seconds")
    report: dict[str, object] = {"fault": fault.name, "route": route, "at": at}
    report |= {"load": round(os.getloadavg()[0], 1), "broken": verdict.broken, **verdict.figures}
    with place.capsys.disabled():
        print(f"\n{json.dumps(report)}")  # noqa: T201 - the report is half of what this test is for
    if REPORT in os.environ:
        with Path(os.environ[REPORT]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(report | {"versions": cluster.binaries.versions()}) + "\n")
    assert not verdict.broken


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.2)
    return condition()


def _all_restore(seen: Sequence[Seen], since: float) -> bool:
    last = [one.load.last("restore", 5, since=since) for one in seen]
    return all(len(statuses) == 5 and set(statuses) <= {200, 409} for statuses in last)


def _revoking(cluster: PatroniCluster, observer: Observer) -> Callable[[str], bool]:
    """Revokes tokens on whichever server is the primary now, as a process would that has gone there."""
    members = {member.name: member for member in cluster.members}

    def revoke(digest: str) -> bool:
        name = observer.samples[-1].primary if observer.samples else None
        if name is None:
            return False
        statement = f"UPDATE access_token SET revoked_at = now() WHERE digest = '{digest}' RETURNING id"
        try:
            return bool(members[name].query(statement, database="normata", timeout=3))
        except Exception:
            return False

    return revoke
