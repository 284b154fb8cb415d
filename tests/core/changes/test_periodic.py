"""What the service does periodically goes on after failures, and does not fill the log with them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from normata.core.changes import periodic
from normata.errors import Unavailable

_UNAVAILABLE = Unavailable("it is not there", "unconfirmed")


def pauses_of(outcomes: Sequence[Exception | None], usual: float, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before each round, where these are the outcomes of the rounds."""
    pauses: list[float] = []
    left = list(outcomes)

    async def sleep(seconds: float) -> None:
        if not left:
            raise asyncio.CancelledError
        pauses.append(seconds)

    async def work() -> None:
        outcome = left.pop(0)
        if outcome is not None:
            raise outcome

    monkeypatch.setattr("normata.core.changes.periodic.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(periodic.repeat(work, pause=lambda: usual, failure="not_done"))
    return pauses


def test_failures_in_a_row_are_further_and_further_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    with capture_logs() as logs:
        pauses = pauses_of([*[ValueError()] * 9, None, ValueError(), None], 0.5, monkeypatch)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60, 0.5, 1]
    assert [line["event"] for line in logs] == ["not_done"] * 10


def test_what_waits_long_anyhow_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pauses_of([ValueError()] * 3, 600.0, monkeypatch) == [600.0] * 3


def test_a_database_that_is_away_is_looked_for_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    with capture_logs() as logs:
        assert pauses_of([_UNAVAILABLE] * 5, 0.5, monkeypatch) == [0.5] * 5
    assert not logs
