"""The log: one event a line, whatever is in it, and nothing secret."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from normata.core import log
from normata.settings import Settings

EVIL = "\x1b[2J\x9b31m\u202e\nevent"
SHOWN = "\\u001b[2J\\u009b31m\\u202e\\u000aevent"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


class Log:
    """Standard error, with what was logged to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, log_format: str) -> None:
        raw = io.BytesIO()
        self._stream = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
        self._raw = raw
        monkeypatch.setattr(sys, "stderr", self._stream)
        log.configure(Settings(log_format=log_format))
        self.logger: Any = structlog.get_logger("normata")

    def close(self) -> None:
        self._stream.close()

    @property
    def text(self) -> str:
        return self._raw.getvalue().decode()


def fail_with(secret: str) -> None:
    assert secret
    raise ValueError(EVIL)


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_line_holds_an_event_and_no_control_character(monkeypatch: pytest.MonkeyPatch, log_format: str) -> None:
    shown = Log(monkeypatch, log_format)
    shown.logger.info("request", path=EVIL, user=None, count=3, others=[EVIL], half="\ud800")
    (line,) = shown.text.splitlines()
    assert line.isprintable()
    assert "path" in line
    if log_format == "json":
        event = json.loads(line)
        assert (event["event"], event["path"], event["count"], event["user"]) in [
            ("request", EVIL, 3, None),
            ("request", SHOWN, 3, None),  # where a half of a surrogate pair is in the event
        ]
    else:
        assert SHOWN in line


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_traceback_shows_no_local_variable(monkeypatch: pytest.MonkeyPatch, log_format: str) -> None:
    """They may hold a token."""
    shown = Log(monkeypatch, log_format)
    token = "nrm_" + "secret"
    try:
        fail_with(token)
    except ValueError as error:
        shown.logger.warning("internal_error", exc_info=error)
    assert "fail_with" in shown.text
    assert "ValueError" in shown.text
    assert "nrm_secret" not in shown.text
    assert "\x1b" not in shown.text


def test_colors_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    raw = io.BytesIO()
    terminal = Terminal(raw)
    monkeypatch.setattr(sys, "stderr", terminal)
    log.configure(Settings(log_format="text"))
    structlog.get_logger("normata").info("request", path="\x1b[2J")
    assert "\x1b[0m" in raw.getvalue().decode()
    assert "\x1b[2J" not in raw.getvalue().decode()


def test_information_of_one_turn_is_written_together_and_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Log(monkeypatch, "json")

    async def work() -> list[int]:
        lines = []
        for level in ("info", "info", "error", "info"):
            getattr(shown.logger, level)("event")
            lines.append(len(shown.text.splitlines()))
        await asyncio.sleep(0)
        return [*lines, len(shown.text.splitlines())]

    assert asyncio.run(work()) == [0, 0, 3, 3, 4]
    shown.logger.info("no loop runs")
    assert len(shown.text.splitlines()) == 5


def test_a_log_that_cannot_be_written_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Log(monkeypatch, "json")

    async def work() -> list[object]:
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        shown.logger.info("event")
        shown.close()
        await asyncio.sleep(0)
        return told

    assert asyncio.run(work()) == []
