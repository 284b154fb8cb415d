"""Processes for long reads: they are used again, end when nobody waits for them, and are replaced when they die."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

PATIENCE = 60  # seconds

# In a process of its own, because these processes are forked from one without threads.
SCRIPT = """
import asyncio, json, os, signal, sys, time
from pathlib import Path
from normata.core.db.monitoring import NoMonitor
from normata.core.http import read_processes
from normata.core.http.forks import Forks
from normata.core.http.read_processes import ReadProcesses, answer_questions
from normata.errors import InUse, Unavailable

async def answer(question, allow):
    match question:
        case "lock":
            await allow()
            await asyncio.sleep(3_600)
        case "die":
            os._exit(1)
        case "compute":
            await asyncio.to_thread(lambda: [time.sleep(0.01) for _ in range(1_000_000)])
        case "refuse":
            raise InUse("another")
        case "ignores":
            return [signal.getsignal(one).name for one in (signal.SIGTERM, signal.SIGINT)]
    return os.getpid()

full, fork = Path(sys.argv[1]), os.fork

def fork_unless_full():
    if full.exists():
        raise BlockingIOError("no process left")
    return fork()

os.fork = fork_unless_full
forks = Forks(lambda connection: answer_questions(connection, answer))

def is_there(pid):
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the second while it is being read
        return False

async def until_gone(pid):
    async with asyncio.timeout(30):
        while is_there(pid):
            await asyncio.sleep(0.01)
    return True

async def reason_of(reading):
    try:
        return await reading
    except Unavailable as error:
        return error.reason

async def is_missing(reading):
    try:
        await reading
    except read_processes.NoProcess:
        return True

async def main():
    processes = ReadProcesses(forks.fork, 2, timeout=0.1, waits=NoMonitor())
    read = lambda question: processes.read("alpha", question)
    first = await read("who")
    found = {"again": await read("who") == first, "signals": await read("ignores")}
    try:
        await read("refuse")
    except InUse as error:
        found["refused"] = error.conflicting_id
    found["died"] = await reason_of(read("die"))
    second = await read("who")
    found["replaced"] = second != first and await until_gone(first)
    os.kill(second, signal.SIGKILL)
    await until_gone(second)
    third = await read("who")
    found["replaced while idle"] = third != second
    computing = [asyncio.create_task(read("compute")) for _ in range(2)]
    await asyncio.sleep(0.05)
    found["crowded"] = await reason_of(read("who"))
    for one in computing:
        one.cancel()
    await asyncio.wait(computing)
    found["ended"] = await until_gone(third)
    locking = asyncio.create_task(is_missing(read("lock")))
    found["nobody to interrupt"] = not processes.interrupt()
    async with asyncio.timeout(30):
        while not await asyncio.to_thread(processes.interrupt):
            await asyncio.sleep(0.01)
    found["interrupted"] = await locking and not processes.interrupt()
    read_processes.IDLE = 0.0
    fourth = await read("who")
    found["idle"] = await until_gone(fourth)
    full.touch()
    found["cannot be forked"] = await is_missing(read("who")) and not processes.may_read
    full.unlink()
    processes._retry_at = 0.0
    fifth = await read("who") if processes.may_read else fourth
    found["can be forked again"] = fifth != fourth and await until_gone(fifth)
    forks.close()
    found["none"] = await is_missing(read("who"))
    found["without any"] = ReadProcesses(None, 2, timeout=0.1, waits=NoMonitor()).may_read
    print(json.dumps(found))

asyncio.run(main())
"""


@cache
def found() -> dict[str, Any]:
    """What the script has found."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-c", SCRIPT, f"{folder}/full"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    *log, last = done.stdout.splitlines()
    assert [line for line in log if "read_process_missing" in line] == log
    assert len(log) == 2, "once each time that they get missing"
    result: dict[str, Any] = json.loads(last)
    return result


def test_a_process_reads_again_and_refuses_as_others_do() -> None:
    assert (found()["again"], found()["refused"]) == (True, "another")


def test_a_process_that_dies_is_replaced_and_what_kills_two_is_refused() -> None:
    assert (found()["died"], found()["replaced"], found()["replaced while idle"]) == ("lost", True, True)


def test_a_process_ends_when_nobody_waits_for_it() -> None:
    assert (found()["ended"], found()["idle"]) == (True, True)


def test_a_writer_interrupts_a_process_that_has_allowed_it() -> None:
    assert (found()["nobody to interrupt"], found()["interrupted"]) == (True, True)


def test_who_gets_no_turn_is_refused() -> None:
    assert found()["crowded"] == "crowded"


def test_who_finds_no_process_learns_it_and_later_there_may_be_one_again() -> None:
    assert (found()["cannot be forked"], found()["can be forked again"]) == (True, True)
    assert (found()["none"], found()["without any"]) == (True, False)


def test_only_the_end_of_its_worker_ends_a_process() -> None:
    """A worker that is to end finishes its requests first."""
    assert found()["signals"] == ["SIG_IGN", "SIG_IGN"]
