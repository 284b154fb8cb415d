"""How passwords are hashed: with which parameters, and how many at once."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from argon2 import PasswordHasher

from normata.identity.errors import SignInRefused
from normata.identity.sign_in import passwords
from normata.identity.sign_in.passwords import Hashing

PASSWORD = "a heron stands in the reeds"


def test_the_parameters_are_the_second_recommended_option_of_rfc_9106() -> None:
    hashing = Hashing()

    async def walk() -> tuple[str, bool, bool]:
        hashed = await hashing.hashed(PASSWORD)
        return hashed, await hashing.is_right(PASSWORD, hashed), await hashing.is_right(PASSWORD + ".", hashed)

    hashed, right, wrong = asyncio.run(walk())
    assert hashed.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert (right, wrong) == (True, False)
    assert not hashing.is_outdated(hashed)


@pytest.mark.parametrize("stored", [None, "", "plain", "$argon2id$v=19$m=65536,t=3,p=4$broken"])
def test_what_is_no_hash_is_nobodys(stored: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "PasswordHasher", lambda: PasswordHasher(1, 1024, 1))
    assert not asyncio.run(Hashing().is_right(PASSWORD, stored))


@pytest.mark.parametrize(("workers", "threads"), [(1, 2), (2, 1), (3, 1)])
def test_a_flood_takes_few_threads_and_few_of_it_wait(
    monkeypatch: pytest.MonkeyPatch, workers: int, threads: int
) -> None:
    at_once, most, lock = 0, 0, threading.Lock()

    class Slow(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> bool:  # type: ignore[override] # noqa: A002
            nonlocal at_once, most
            del hash, password
            with lock:
                at_once += 1
                most = max(most, at_once)
            time.sleep(0.005)
            with lock:
                at_once -= 1
            return True

    monkeypatch.setattr(passwords, "PasswordHasher", lambda: Slow(1, 1024, 1))
    monkeypatch.setattr("os.cpu_count", lambda: 2)

    async def flood() -> list[bool | BaseException]:
        hashing = Hashing(workers=workers)

        async def attempt(number: int) -> bool:
            # Each of these networks has many addresses.
            async with hashing.turn(f"2001:db8:0:{number % 3}::{number}"):
                return await hashing.is_right(PASSWORD, "x")

        return await asyncio.gather(*map(attempt, range(60)), return_exceptions=True)

    answers = asyncio.run(flood())
    assert most == threads
    refused = [answer for answer in answers if isinstance(answer, SignInRefused)]
    assert {(error.cause, error.wait) for error in refused} == {("too_many_waiting", 1)}
    assert answers.count(True) == threads + 3 * 3
    assert len(refused) == 60 - threads - 9
