"""The three ways to call a database, for tests that want to know how each of them fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select, update

from normata.core.db.transaction import Transaction
from normata.errors import Unavailable
from tests.core.db.example import ALPHA, IN_ALPHA, NOON, WHO, framework, label
from tests.core.db.sessions import Service, Session

ANSWER = [("user-alpha", ALPHA, NOON)]


def rename(transaction: Transaction) -> str:
    """Two statements: a framework is added for the organization, and the label is changed."""
    transaction.rows(framework.insert().values(id="new", organization_id=ALPHA, name="new"))
    return str(
        transaction.scalar(update(label).values(name="new").where(label.c.id == "label-alpha").returning(label.c.id))
    )


def count(transaction: Transaction) -> Any:
    return transaction.scalar(select(func.count()).select_from(label))


Call = Callable[[Service], Any]


def reads(service: Service) -> Any:
    return service.read(count, IN_ALPHA)


def writes(service: Service) -> Any:
    return service.write(rename, IN_ALPHA)


def looks_up(service: Service) -> Any:
    return service.run(service.database.look_up(WHO, "secret-alpha", None))


CALLS: list[Call] = [reads, writes, looks_up]


def untouched(admin: Session) -> bool:
    """Whether no trace of the change is there."""
    return bool(
        admin.value("SELECT name = 'alpha' FROM label WHERE id = 'label-alpha'")
        and admin.value("SELECT count(*) FROM framework WHERE id = 'new'") == 0
    )


def is_unavailable(service: Service, calls: list[Call], seconds: float = 10) -> None:
    """Each of the calls raises Unavailable, in time."""
    for call in calls:
        started = time.monotonic()
        with pytest.raises(Unavailable) as caught:
            call(service)
        assert time.monotonic() - started < seconds
        assert "\n" not in str(caught.value)


async def crowd(service: Service, size: int) -> list[Any]:
    """The outcomes, errors included, of reads at the same moment."""
    reading = (service.database.read(count, IN_ALPHA) for _ in range(size))
    return await asyncio.gather(*reading, return_exceptions=True)
