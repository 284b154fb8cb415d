"""The primary is lost under load: nothing that was acknowledged may be lost, and the service must come back by itself.

Not part of the suite: it takes its time, and a machine to itself. ``make test-failover`` runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from normata.database import open_database
from normata.identity import tokens
from normata.records.base import Restorable
from normata.records.kinds import Label
from normata.settings import Settings
from tests.failover.cluster import Cluster, Node, children, running_cluster, wait_until
from tests.failover.load import Answer, Load, Record, code, longest_gap, restoring, under_load
from tests.server import SCRIPT, free_port, wait_until_ready

ORGANIZATION = "org-failover"
OPERATIONS = ("restore", "controls", "frameworks", "notifications")
EDITORS = ("first@failover.example", "second@failover.example")
RECORDS_PER_KIND = 200


@dataclass
class Normata:
    """The running service."""

    process: subprocess.Popen[bytes]
    port: int
    pids: frozenset[int]  # of all its processes
    editors: list[str]  # a token of each


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A new cluster, in which Normata's database is still empty. Passwords come from a file, as they should."""
    for name in [name for name in os.environ if name.startswith(("NORMATA_DATABASE", "PG"))]:
        monkeypatch.delenv(name)
    with running_cluster() as cluster:
        monkeypatch.setenv("PGPASSFILE", str(cluster.password_file))
        yield cluster


@pytest.fixture
def normata(cluster: Cluster, tmp_path: Path) -> Iterator[Normata]:
    """The service over the cluster, with the records in it."""
    with _serving(cluster, tmp_path) as service:
        yield service


@pytest.mark.parametrize("lose", [Node.kill, Node.demote, Node.freeze], ids=["killed", "demoted", "frozen"])
def test_a_lost_primary_loses_nothing(
    lose: Callable[[Node], None], cluster: Cluster, normata: Normata, capsys: pytest.CaptureFixture[str]
) -> None:
    records = list(_records())
    with under_load(normata.port, normata.editors, records, ORGANIZATION) as load:
        wait_until(lambda: load.count("restore", 200) >= 150, "restores are served")
        lost = time.monotonic()
        lose(cluster.primary)
        # What an operator, or Patroni in his place, goes by.
        wait_until(lambda: load.count("readyz", 503, since=lost) > 0, "/readyz tells of the loss")
        cluster.standby.promote()
        promoted = time.monotonic()
        wait_until(lambda: load.count("restore", 200, since=promoted) >= 150, "restores are served again")
        resumed = time.monotonic()
        wait_until(
            lambda: all(load.count(name, 200, since=resumed) >= 5 for name in OPERATIONS), "all of it is served again"
        )

    assert _pids(normata.process) == normata.pids, "a process of the service has ended or was replaced"
    _check_answers(load, lost=lost, resumed=resumed)
    outcome = _check_records(records, load, cluster.standby)
    _report(load, outcome, lose.__name__, lost=lost, promoted=promoted, capsys=capsys)


def test_a_standby_that_is_silent_acknowledges_nothing(cluster: Cluster, normata: Normata) -> None:
    # Then the primary has the commit, but nobody else has: to answer 200 would be a promise that its loss breaks.
    label = next(record for record in _records() if record.table == Label.__tablename__)
    cluster.standby.freeze_receiver()
    client = restoring(normata.port, normata.editors[0], [label])
    client.start()
    wait_until(lambda: bool(client.answers), "the restore is answered")
    client.end()
    cluster.primary.kill()
    cluster.standby.kill()
    cluster.standby.start()
    cluster.standby.promote()

    (found,) = cluster.standby.query(
        f"SELECT archived_at FROM {label.table} WHERE id = '{label.id}'",  # noqa: S608 - our own
        database="normata",
    )
    assert found["archived_at"] is not None, "the standby had it after all, so this shows nothing"
    assert client.answers[0].status == 503


# --- What there is to serve


def _records() -> Iterator[Record]:
    """Records of every kind, in turn."""
    for number in range(RECORDS_PER_KIND):
        for kind in Restorable.kinds:
            yield Record(kind.__tablename__, kind.path, f"{kind.path}-{number}", kind.answerable is not None)


def _bundle() -> dict[str, list[dict[str, Any]]]:
    """Two editors, a third member who answers for every record, and a framework of a hundred controls."""
    users = [*EDITORS, "owner@failover.example"]
    document: dict[str, list[dict[str, Any]]] = {
        "organizations": [{"id": ORGANIZATION, "name": "Failover"}],
        "users": [{"id": email.partition("@")[0], "email": email} for email in users],
        "memberships": [
            {
                "id": f"member-{email.partition('@')[0]}",
                "organizationId": ORGANIZATION,
                "userId": email.partition("@")[0],
                "role": "editor",
            }
            for email in users
        ],
        "frameworks": [{"id": "framework", "identifier": "FO", "name": "Failover Standard"}],
        "frameworkAdoptions": [{"id": "adoption", "organizationId": ORGANIZATION, "frameworkId": "framework"}],
        "controls": [
            {"id": f"control-{number}", "frameworkId": "framework", "identifier": f"F.{number}", "name": f"F {number}"}
            for number in range(100)
        ],
    }
    for kind in Restorable.kinds:
        answers = {to_camel(kind.answerable): "member-owner"} if kind.answerable else {}
        document[kind.path] = [
            {
                "id": f"{kind.path}-{number}",
                "organizationId": ORGANIZATION,
                to_camel(kind.title_column()): f"{kind.words()} {number}",
                "archivedAt": "2026-01-02T03:04:05.678Z",
                **answers,
            }
            for number in range(RECORDS_PER_KIND)
        ]
    return document


def _run(cluster: Cluster, *arguments: str | Path) -> None:
    command = [SCRIPT, *arguments, "--database", cluster.url("normata_owner")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@contextmanager
def _serving(cluster: Cluster, folder: Path) -> Iterator[Normata]:
    """The database, set up by its owner, and served by somebody who may less."""
    bundle = folder / "bundle.json"
    bundle.write_text(json.dumps(_bundle()))
    _run(cluster, "migrate")
    _run(cluster, "load", bundle)
    editors = _new_tokens(cluster)
    port = free_port()
    with (folder / "normata.log").open("wb") as log:
        process = subprocess.Popen(
            [SCRIPT, "serve", "--port", str(port), "--workers", "2", "--database", cluster.url("normata")],
            stdout=log,
            stderr=log,
        )
        try:
            wait_until_ready(f"http://127.0.0.1:{port}", process)
            yield Normata(process, port, _pids(process), editors)
        finally:
            process.terminate()
            process.wait(30)


def _new_tokens(cluster: Cluster) -> list[str]:
    database = open_database(Settings(database_url=cluster.url("normata_owner")))
    try:
        return [
            database.write_now(partial(tokens.create, email=email, scope="write", lifetime=timedelta(hours=1)))
            for email in EDITORS
        ]
    finally:
        database.close()


def _pids(process: subprocess.Popen[bytes]) -> frozenset[int]:
    assert process.poll() is None, f"the service ended with {process.returncode}"
    return frozenset([process.pid, *children(process.pid)])


# --- What must hold afterwards


def _check_answers(load: Load, *, lost: float, resumed: float) -> None:
    """Whatever happens behind it, the service answers, in the words that it has for it."""
    odd = [answer for answer in load.answers() if answer.status not in (200, 409, 503)]
    # Nothing excuses a broken connection: no process of the service ends, and none may give up on a client. Nor 404:
    # every record that is asked for is there, on either server.
    assert not odd
    assert all(answer.retry_after for answer in load.answers() if answer.status == 503)
    assert {code(answer) for answer in load.answers() if answer.status == 409} == {"not_archived"}
    assert {answer.status for answer in load.answers("livez")} == {200}
    ready = load.answers("readyz")
    assert {answer.status for answer in ready if answer.ended < lost} == {200}
    assert {answer.status for answer in ready if answer.started > resumed} == {200}


@dataclass
class Outcome:
    """What became of the records, in numbers."""

    acknowledged: int = 0  # restored, and a client was told so
    arrived: int = 0  # restored by a request that was answered with 503: its commit was on its way when the server went
    untouched: int = 0


def _check_records(records: list[Record], load: Load, primary: Node) -> Outcome:
    """Every record is as its answers say, to the very request that restored it. A list of all faults, not the first."""
    answers: dict[Record, list[Answer]] = defaultdict(list)
    for answer in load.answers("restore"):
        assert answer.record is not None
        answers[answer.record].append(answer)
    archived, audited, told = _stored(primary)
    outcome, faults = Outcome(), []
    for record in records:
        key = (record.table, record.id)
        by_status: dict[int, list[str]] = defaultdict(list)
        for answer in answers[record]:
            by_status[answer.status].append(answer.request_id)
        restored_by = audited[record.id]
        if by_status[200]:
            # Acknowledged: exactly once, and stored by that very request.
            good = restored_by == by_status[200]
            outcome.acknowledged += 1
        elif restored_by:
            # Nobody was told, but a request whose commit was on its way did it. Nobody else did, then or later.
            good = len(restored_by) == 1 and restored_by[0] in by_status[503]
            outcome.arrived += 1
        else:
            # Nobody was told that it is live, either.
            good = not by_status[409]
            outcome.untouched += 1
        whole = archived[key] != bool(restored_by) and told[record.id] == (1 if restored_by and record.told else 0)
        if not (good and whole):
            faults.append((record, dict(by_status), restored_by, archived[key], told[record.id]))
    assert not faults
    assert sum(map(len, audited.values())) == outcome.acknowledged + outcome.arrived
    return outcome


def _stored(primary: Node) -> tuple[dict[tuple[str, str], bool], dict[str, list[str]], Counter[str]]:
    """Which records are archived, by which requests each was restored, and how often somebody was told."""
    tables = " UNION ALL ".join(
        f"SELECT '{kind.__tablename__}' AS name, id, archived_at IS NOT NULL AS archived FROM {kind.__tablename__}"  # noqa: S608
        for kind in Restorable.kinds
    )
    archived = {(row["name"], row["id"]): row["archived"] for row in primary.query(tables, database="normata")}
    audited = defaultdict(list)
    for row in primary.query("SELECT entity_id, request_id FROM audit_event", database="normata"):
        audited[row["entity_id"]].append(row["request_id"])
    notified = primary.query("SELECT payload ->> 'entityId' AS id FROM notification", database="normata")
    return archived, audited, Counter(row["id"] for row in notified)


# --- What is told


def _report(
    load: Load, outcome: Outcome, how: str, *, lost: float, promoted: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Print how long each operation was away, and add it to the file that the environment names."""
    gaps = {name: longest_gap(load.answers(name), lambda answer: answer.status == 200) for name in OPERATIONS}
    report = {
        "primary": how,
        "seconds": {
            "fromLossToPromoted": round(promoted - lost, 2),
            "fromPromotedToFirstRestore": round(gaps["restore"][1] - promoted, 2),
            "withoutService": {name: round(after - before, 2) for name, (before, after) in gaps.items()},
            "slowestAnswer": round(max(answer.ended - answer.started for answer in load.answers()), 2),
        },
        "records": vars(outcome),
        "answers": {
            name: dict(sorted(Counter(answer.status for answer in load.answers(name)).items()))
            for name in (*OPERATIONS, "livez", "readyz")
        },
    }
    with capsys.disabled():
        print(f"\n{json.dumps(report, indent=2)}")  # noqa: T201 - the report is half of what this test is for
    path = os.environ.get("NORMATA_FAILOVER_REPORT")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(report) + "\n")
