"""How often passwords may be guessed: counted in the database, by all processes together."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from normata.console import throttles as module
from normata.console.throttles import Throttles
from normata.core.db.types import format_timestamp
from normata.identity.errors import SignInRefused
from normata.identity.sign_in_model import SignInCount
from tests import stored
from tests.served import Served

EMAIL, ADDRESS = "Ann@alpha.example", "192.0.2.7"


def process(instance: Served, per_minute: int) -> Throttles:
    """What one more process counts with."""
    return Throttles(instance.app.services.changes, per_minute)


def attempts(
    instance: Served,
    throttles: Throttles,
    count: int = 1,
    *,
    address: str = ADDRESS,
    email: str | None = EMAIL,
    longest: int = 60,
) -> list[str]:
    """The causes for which attempts at the same time are refused; empty for those that are not."""

    async def attempt() -> str:
        try:
            await throttles.count(address, email)
        except SignInRefused as error:
            waits.append(error.wait)
            return error.cause
        return ""

    async def together() -> list[str]:
        return await asyncio.gather(*(attempt() for _ in range(count)))

    waits: list[int] = []
    portal = instance.client.portal
    assert portal is not None
    causes = sorted(portal.call(together))
    assert all(1 <= wait <= longest for wait in waits)
    return causes


def move(instance: Served, seconds: float) -> None:
    """Have all windows end so many seconds later."""
    for row in stored.rows(instance.database, SignInCount):
        end = format_timestamp(datetime.fromisoformat(row["expires_at"]) + timedelta(seconds=seconds))
        instance.sql(f"UPDATE sign_in_count SET expires_at = '{end}' WHERE digest = '{row['digest']}'")


def test_attempts_at_the_same_time_are_all_counted(instance: Served) -> None:
    found = attempts(instance, process(instance, 3), 8)
    assert found == [""] * 3 + ["too_many_for_account"] * 5


def test_processes_count_together(instance: Served) -> None:
    first, second = process(instance, 2), process(instance, 2)
    assert [attempts(instance, one) for one in (first, second, first, second)] == [
        [""], [""], ["too_many_for_account"], ["too_many_for_account"],
    ]  # fmt: skip
    assert attempts(instance, second, address="198.51.100.1", email=EMAIL.upper()) == ["too_many_for_account"]
    assert attempts(instance, second, email="bob@alpha.example") == [""]


def test_what_is_refused_for_the_address_does_not_count_for_the_account(instance: Served) -> None:
    throttles = process(instance, 1)
    assert attempts(instance, throttles, 25, email=None) == [""] * 20 + ["too_many_from_address"] * 5
    assert attempts(instance, process(instance, 1)) == ["too_many_from_address"]
    assert attempts(instance, throttles, address="198.51.100.1") == [""]


def test_a_flood_of_refused_attempts_writes_nothing(instance: Served) -> None:
    throttles = process(instance, 1)
    attempts(instance, throttles)
    assert attempts(instance, throttles) == ["too_many_for_account"]
    before = stored.rows(instance.database, SignInCount)
    assert attempts(instance, throttles, 50) == ["too_many_for_account"] * 50
    assert stored.rows(instance.database, SignInCount) == before


def test_keys_that_are_refused_take_little_memory(instance: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_REFUSED", 2)
    throttles = process(instance, 1)
    for number in range(5):
        email = f"{number}@alpha.example"
        assert attempts(instance, throttles, 2, email=email) == ["", "too_many_for_account"]
        assert len(throttles._refused) <= 2


def test_a_window_ends_and_its_row_goes(instance: Served) -> None:
    assert attempts(instance, process(instance, 1), 2) == ["", "too_many_for_account"]
    assert len(stored.rows(instance.database, SignInCount)) == 2
    move(instance, -60)
    assert attempts(instance, process(instance, 1), address="198.51.100.1", email=None) == [""]
    assert len(stored.rows(instance.database, SignInCount)) == 1
    assert attempts(instance, process(instance, 1)) == [""]


def test_a_clock_that_was_set_back_locks_nobody_out(instance: Served) -> None:
    """The clocks of hosts may differ a little: what ends a bit late still counts."""
    assert attempts(instance, process(instance, 1), 2) == ["", "too_many_for_account"]
    move(instance, 30)
    assert attempts(instance, process(instance, 1), longest=90) == ["too_many_for_account"]
    move(instance, 3_600)
    assert attempts(instance, process(instance, 1)) == [""]


def test_neither_account_nor_address_can_be_read_from_the_table(instance: Served) -> None:
    attempts(instance, process(instance, 1))
    stored_text = str(stored.rows(instance.database, SignInCount)).lower()
    assert EMAIL.lower() not in stored_text
    assert ADDRESS not in stored_text


def test_without_a_limit_nothing_is_stored(instance: Served) -> None:
    assert attempts(instance, process(instance, 0), 5) == [""] * 5
    assert stored.rows(instance.database, SignInCount) == []
