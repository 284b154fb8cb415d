"""The primary is lost under load: nothing that was acknowledged may be lost, and the service must come back by itself.

Not part of the suite: it takes its time, and a machine to itself. ``make test-failover`` runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from normata.db.database import open_database
from normata.identity import tokens
from normata.records.base import Restorable
from normata.records.kinds import Label
from normata.settings import Settings
from normata.wiring import changes_of
from tests.failover.cluster import Cluster, Node, children, running_cluster, wait_until
from tests.failover.load import Answer, Load, Record, code, longest_gap, restoring, under_load
from tests.server import SCRIPT, free_port, serve_command, wait_until_ready

ORGANIZATION = "org-failover"
LISTS = ("controls", "frameworks", "notifications")
EDITORS = ("first@failover.example", "second@failover.example")
RECORDS_PER_KIND = 200
DATABASE_TIMEOUT = 2  # seconds; less than the default, so that the test of a server that hangs takes less, too
REPORT = "NORMATA_FAILOVER_REPORT"


@dataclass
class Normata:
    """The running service."""

    process: subprocess.Popen[bytes]
    port: int
    pids: frozenset[int]  # of all its processes
    editors: list[str]  # a token of each


@pytest.fixture(scope="module")
def template() -> Iterator[Cluster]:
    """A cluster with the records in it, stopped, to be copied."""
    with pytest.MonkeyPatch.context() as monkeypatch, running_cluster() as cluster:
        _clear_environment(monkeypatch, cluster)
        _fill(cluster)
        cluster.stop()
        yield cluster


@pytest.fixture
def cluster(template: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A running cluster with the records in it, none of them restored."""
    with running_cluster(template) as cluster:
        _clear_environment(monkeypatch, cluster)
        yield cluster


@pytest.fixture
def normata(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Normata]:
    """The service over the cluster, as a role that may no more than serve."""
    monkeypatch.setenv("NORMATA_DATABASE_TIMEOUT", str(DATABASE_TIMEOUT))
    port = free_port()
    command = serve_command(port, cluster.url("normata"), workers=2)
    with (tmp_path / "normata.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until_ready(f"http://127.0.0.1:{port}", process)
            yield Normata(process, port, _pids(process), _new_tokens(cluster))
        finally:
            process.terminate()
            process.wait(30)


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
        wait_until(
            lambda: all(load.last(name, 5, since=promoted) == [200] * 5 for name in (*LISTS, "readyz")),
            "all of it is served again",
        )

    assert _pids(normata.process) == normata.pids, "a process of the service has ended or was replaced"
    _check_answers(load, lost)
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
        f"SELECT archived_at FROM {label.table} WHERE id = '{label.id}'", database="normata"
    )
    assert found["archived_at"] is not None, "the standby had it after all, so this shows nothing"
    assert client.answers[0].status == 503


# --- What there is to serve


def _records() -> Iterator[Record]:
    """Records of every kind, in turn."""
    for number in range(RECORDS_PER_KIND):
        for kind in Restorable.kinds:
            yield Record(kind.__tablename__, kind.path, f"{kind.path}-{number}", kind.responsible is not None)


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
        answers = {to_camel(kind.responsible): "member-owner"} if kind.responsible else {}
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


def _fill(cluster: Cluster) -> None:
    """Set the database up as its owner does."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as bundle:
        json.dump(_bundle(), bundle)
        bundle.flush()
        for arguments in (["migrate"], ["load", bundle.name]):
            command: list[str | Path] = [SCRIPT, *arguments, "--database", cluster.url("normata_owner")]
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr


def _clear_environment(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> None:
    """Let the environment say nothing of databases but where the passwords are."""
    for name in [name for name in os.environ if name.startswith(("NORMATA_", "PG")) and name != REPORT]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGPASSFILE", str(cluster.password_file))


def _new_tokens(cluster: Cluster) -> list[str]:
    database = open_database(Settings(database_url=cluster.url("normata_owner")))
    try:
        return [
            changes_of(database).make_now(
                partial(tokens.create, email=email, scope="write", lifetime=timedelta(hours=1))
            )
            for email in EDITORS
        ]
    finally:
        database.close()


def _pids(process: subprocess.Popen[bytes]) -> frozenset[int]:
    assert process.poll() is None, f"the service ended with {process.returncode}"
    return frozenset([process.pid, *children(process.pid)])


# --- What must hold afterwards


def _check_answers(load: Load, lost: float) -> None:
    """Whatever happens behind it, the service answers, in the words that it has for it."""
    odd = [answer for answer in load.answers() if answer.status not in (200, 409, 503)]
    # Nothing excuses a broken connection: no process of the service ends, and none may give up on a client. Nor 404:
    # every record that is asked for is there, on either server.
    told = [
        (odd_one.operation, odd_one.status, round(odd_one.started - lost, 3), round(odd_one.ended - odd_one.started, 3))
        for odd_one in odd
    ]
    assert not odd, f"operation, status, start after the loss and duration in seconds: {told}"
    assert all(answer.retry_after for answer in load.answers() if answer.status == 503)
    assert {code(answer) for answer in load.answers() if answer.status == 409} == {"not_archived"}
    assert {answer.status for answer in load.answers("livez")} == {200}
    # That it said 503 afterwards, and 200 in the end, has been waited for.
    assert {answer.status for answer in load.answers("readyz") if answer.ended < lost} == {200}


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
        f"SELECT '{kind.__tablename__}' AS name, id, archived_at IS NOT NULL AS archived FROM {kind.__tablename__}"
        for kind in Restorable.kinds
    )
    archived = {(row["name"], row["id"]): row["archived"] for row in primary.query(tables, database="normata")}
    audited = defaultdict(list)
    for row in primary.query(
        "SELECT entity_id, request_id FROM audit_event WHERE user_id IS NOT NULL", database="normata"
    ):
        audited[row["entity_id"]].append(row["request_id"])
    notified = primary.query("SELECT payload ->> 'entityId' AS id FROM notification", database="normata")
    return archived, audited, Counter(row["id"] for row in notified)


# --- What is told


def _report(
    load: Load, outcome: Outcome, how: str, *, lost: float, promoted: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Print how long each operation was away, and add it to the file that the environment names."""
    gaps = {name: longest_gap(load.answers(name), lost, promoted) for name in ("restore", *LISTS)}
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
            for name in ("restore", *LISTS, "livez", "readyz")
        },
    }
    with capsys.disabled():
        print(f"\n{json.dumps(report, indent=2)}")  # noqa: T201 - the report is half of what this test is for
    path = os.environ.get(REPORT)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(report) + "\n")
