"""The past in a dump: another database has it, too."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from normata.bundle.dumping import dump
from normata.core.db.types import now
from tests.history.answers import Answers, answers, without
from tests.served import Headers, Served, served
from tests.world import ALPHA

FRAMEWORKS = ("fw-sun", "fw-moon", "fw-own", "fw-star")


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a copy of the world."""
    with served(database_url) as opened:
        yield opened


@pytest.mark.parametrize("has_past", [True, False])
def test_a_dump_brings_the_past_along(service: Served, empty_url: str, tmp_path: Path, *, has_past: bool) -> None:
    """Another database answers of the past as the first did; without the array its past begins with the load."""

    def read(asked: Served, headers: Headers) -> list[Answers]:
        return [without(answers(asked, headers, ALPHA, FRAMEWORKS, moment), "log") for moment in moments]

    admin = service.bearer("admin")
    moments = []
    for status in ("FULL", "NONE", "PARTIAL"):
        body = {"organizationId": ALPHA, "assessments": [{"controlId": "sun.A.2", "coverageStatus": status}]}
        assert service.client.patch("/controls/coverage/", json=body, headers=admin).is_success
        time.sleep(0.003)
        moments.append(now())
    service.load({"controls": [{"id": "sun.A.3", "frameworkId": "fw-sun", "type": "CATEGORY"}]})
    expected_then = read(service, admin)
    written = io.StringIO()
    service.database.read_now(lambda transaction: dump(transaction, ALPHA, written))
    bundle = json.loads(written.getvalue())
    if not has_past:
        del bundle["history"]
    (file := tmp_path / "alpha.json").write_text(json.dumps(bundle), "utf-8")
    with served(empty_url) as other:
        other.load(json.loads(file.read_text("utf-8")))
        reader = other.bearer("admin")
        if has_past:
            assert read(other, reader) == expected_then
            again = io.StringIO()
            other.database.read_now(lambda transaction: dump(transaction, ALPHA, again))
            assert json.loads(again.getvalue()) == bundle
            return
        query = {"organizationId": ALPHA, "asOf": moments[0]}
        refused = other.client.get("/controls/", params=query, headers=reader)
        assert refused.status_code == 400
        (fault,) = refused.json()["errors"]
        assert (fault["name"], fault["code"]) == ("asOf", "past_unknown")
        since = fault["message"].split()[2].rstrip(",")
        assert other.client.get("/controls/", params=query | {"asOf": since}, headers=reader).is_success
        assert other.client.get("/controls/", params=query | {"asOf": "2999-01-01"}, headers=reader).status_code == 400
