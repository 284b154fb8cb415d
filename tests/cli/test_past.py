"""What was covered, since when that is no longer so, and who has made it so, on the command line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable

from normata.core.db.types import now
from tests import mostly_sqlite
from tests.cli.commands import Run, failed
from tests.client import TestClient
from tests.databases import on_both
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


@on_both
def test_what_was_covered_and_who_changed_it(
    run: Run, client: TestClient, bearer: Callable[..., dict[str, str]]
) -> None:
    before = now()
    gaps, statement, reason = (
        ("gaps", ALPHA, "own", "--format", "csv"),
        ("soa", ALPHA, "own", "--format", "csv"),
        ("explain", ALPHA, "own.A.3"),
    )
    of_then = [run(*command).out for command in (gaps, statement, reason)]
    answer = client.patch(
        "/controls/coverage/",
        json={"organizationId": ALPHA, "assessments": [{"controlId": "own.A.3", "coverageStatus": "FULL"}]},
        headers=bearer("editor"),
    )
    assert answer.status_code == 200, answer.text

    for command, then in zip((gaps, statement, reason), of_then, strict=True):
        assert run(*command).out != then
        assert run(*command, "--as-of", before).out == then

    done = run("coverage", "changes", ALPHA, "--from", before, "--format", "csv")
    assert (done.code, done.err) == (0, "")
    [head, *lines] = csv.reader(done.out.splitlines())
    assert head == ["framework", "control", "before", "after", "at", "by", "action"]
    assert [(*line[1:4], *line[5:]) for line in lines if line[1] == "A.3"] == [
        ("A.3", "NONE", "FULL", "Editor", "assess")
    ]
    found = json.loads(run("coverage", "changes", ALPHA, "--from", before, "--format", "json").out)
    assert {one["id"] for one in found} >= {"own.A.3"}
    assert "A.3" in run("coverage", "changes", "alpha", "--from", before).out

    points = json.loads(run("coverage", "history", ALPHA, "own", "--from", before, "--format", "json").out)["points"]
    assert points[-1]["full"] == points[0]["full"] + 1
    head, first, *_ = csv.reader(
        run("coverage", "history", ALPHA, "own", "--from", before, "--format", "csv").out.splitlines()
    )
    assert dict(zip(head, first, strict=True))["full"] == str(points[0]["full"])
    assert "Full" in run("coverage", "history", "alpha", "own").out


def test_a_moment_that_is_none_or_not_known(run: Run) -> None:
    assert "is no moment" in failed(run("coverage", "changes", ALPHA, "--from", "yesterday"), 2)
    assert "since when the past is known" in failed(run("coverage", "changes", ALPHA, "--from", "2001-01-01"))
    assert "since when the past is known" in failed(run("coverage", "history", ALPHA, "own", "--from", "2001-01-01"))
    assert "2001-01-01T00:00:00.000Z" in failed(run("gaps", ALPHA, "own", "--as-of", "2001-01-01"))
