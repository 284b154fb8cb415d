"""The primary is lost under load: nothing that was acknowledged may be lost, and the service must come back by itself.

Not part of the suite: it takes its time, and a machine to itself. ``make test-failover`` runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from normata.records.kinds import Label
from tests.failover.cluster import Cluster, Node, children, running_cluster, wait_until
from tests.failover.load import Load, code, longest_gap, restoring, under_load
from tests.failover.records import EDITORS, ORGANIZATION, Outcome, all_records, check_records, fill, new_tokens
from tests.server import free_port, serve_command, wait_until_ready

LISTS = ("controls", "frameworks", "notifications")
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
        fill(cluster.url("normata_owner"))
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
            yield Normata(process, port, _pids(process), new_tokens(cluster.url("normata_owner"), EDITORS))
        finally:
            process.terminate()
            process.wait(30)


@pytest.mark.parametrize("lose", [Node.kill, Node.demote, Node.freeze], ids=["killed", "demoted", "frozen"])
def test_a_lost_primary_loses_nothing(
    lose: Callable[[Node], None], cluster: Cluster, normata: Normata, capsys: pytest.CaptureFixture[str]
) -> None:
    records = list(all_records())
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
    outcome = check_records(records, load.answers("restore"), partial(cluster.standby.query, database="normata"))
    _report(load, outcome, lose.__name__, lost=lost, promoted=promoted, capsys=capsys)


def test_a_standby_that_is_silent_acknowledges_nothing(cluster: Cluster, normata: Normata) -> None:
    # Then the primary has the commit, but nobody else has: to answer 200 would be a promise that its loss breaks.
    label = next(record for record in all_records() if record.table == Label.__tablename__)
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


def _clear_environment(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> None:
    """Let the environment say nothing of databases but where the passwords are."""
    for name in [name for name in os.environ if name.startswith(("NORMATA_", "PG")) and name != REPORT]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGPASSFILE", str(cluster.password_file))


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
