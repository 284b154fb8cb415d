"""Calls of commands, which have no event loop: however they end, the next one begins, and an interrupt is one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from normata.core.db.postgresql.runner import Runner


@pytest.fixture
def runner() -> Iterator[Runner]:
    opened = Runner()
    yield opened
    opened.close()


Call = Callable[[], Coroutine[Any, Any, int]]


async def answer() -> int:
    await asyncio.sleep(0)
    return 7


async def failing(error: BaseException) -> int:
    await asyncio.sleep(0)
    raise error


async def interrupted() -> int:
    signal.raise_signal(signal.SIGINT)
    await asyncio.sleep(60)
    return 7


async def interrupted_and_deaf() -> int:
    """It takes the cancellation for something else, and goes on."""
    try:
        return await interrupted()
    except asyncio.CancelledError:
        return 7


async def interrupted_and_confused() -> int:
    try:
        return await interrupted()
    except asyncio.CancelledError:
        raise TimeoutError from None


@pytest.mark.parametrize("error", [ValueError(), SystemExit(3), asyncio.CancelledError()], ids=repr)
def test_what_is_raised_is_raised_and_nothing_else_is_said(
    runner: Runner, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(type(error)):
        runner.run(lambda: failing(error))
    assert runner.run(answer) == 7
    runner.close()
    assert caplog.messages == []


@pytest.mark.parametrize("call", [interrupted, interrupted_and_deaf, interrupted_and_confused])
def test_an_interrupt_is_raised_as_one_whatever_becomes_of_the_call(runner: Runner, call: Call) -> None:
    with pytest.raises(KeyboardInterrupt):
        runner.run(call)
    assert runner.run(answer) == 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_call_that_waits_on_is_cancelled_again(runner: Runner) -> None:
    """As asyncpg's `executemany` does, with a future that nobody ever sets."""

    async def waiting_on() -> int:
        try:
            return await interrupted()
        except asyncio.CancelledError:
            await asyncio.Event().wait()
            return 7

    with pytest.raises(KeyboardInterrupt):
        runner.run(waiting_on)
    assert runner.run(answer) == 7


def test_another_interrupt_does_not_wait(runner: Runner) -> None:
    async def stubborn() -> int:
        try:
            return await interrupted()
        except asyncio.CancelledError:
            return await interrupted()

    with pytest.raises(KeyboardInterrupt):
        runner.run(stubborn)


def test_other_handlers_are_left_alone(runner: Runner) -> None:
    seen: list[int] = []
    former = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:

        async def call() -> int:
            signal.raise_signal(signal.SIGINT)
            return await answer()

        assert runner.run(call) == 7
    finally:
        signal.signal(signal.SIGINT, former)
    assert seen == [signal.SIGINT]
