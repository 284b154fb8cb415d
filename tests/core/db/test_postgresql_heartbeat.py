"""What a server has answered counts only if it is the same primary still when the answer is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from normata.core.db.postgresql.lookup import Lookups
from normata.core.db.transaction import Transaction
from normata.errors import NotFound, Unavailable
from tests.core.db.calls import ANSWER, count, looks_up, rename
from tests.core.db.example import IN_ALPHA
from tests.core.db.sessions import Service


@pytest.fixture
def service(postgres_url: str) -> Iterator[Service]:
    """A service that knows the primary."""
    with closing(Service(postgres_url)) as opened:
        opened.run(opened.database.require_ready())
        yield opened


class Replacing:
    """Work in the middle of which another server becomes the primary, when it is run for the first time."""

    def __init__(self, service: Service, work: Callable[[Transaction], Any]) -> None:
        self.runs = 0
        self._heartbeat: Any = service.database._pool.heartbeat  # type: ignore[attr-defined]
        self._work = work

    def replace(self) -> None:
        """Have the heartbeat find another server, which it has confirmed; it answers just as the one before."""
        self.runs += 1
        if self.runs == 1:
            self._heartbeat._server = replace(self._heartbeat._server)

    def __call__(self, transaction: Transaction) -> Any:
        self.replace()
        return self._work(transaction)


def test_what_the_server_before_has_read_is_read_again(service: Service) -> None:
    work = Replacing(service, count)
    assert service.read(work, IN_ALPHA) == 1
    assert work.runs == 2


def test_what_was_refused_for_what_the_server_before_has_is_tried_again(service: Service) -> None:
    def refuse(_transaction: Transaction) -> None:
        raise NotFound

    work = Replacing(service, refuse)
    with pytest.raises(NotFound):
        service.write(work, IN_ALPHA)
    assert work.runs == 2


def test_a_dry_run_over_the_server_before_is_run_again(service: Service) -> None:
    work = Replacing(service, rename)
    assert service.run(service.database.dry_run(work, IN_ALPHA)) == "label-alpha"
    assert work.runs == 2


def test_what_the_server_before_has_committed_is_not_acknowledged(service: Service) -> None:
    work = Replacing(service, rename)
    with pytest.raises(Unavailable) as caught:
        service.write(work, IN_ALPHA)
    assert caught.value.reason == "unconfirmed"
    assert work.runs == 1


def test_what_the_server_before_has_looked_up_is_looked_up_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    replacing = Replacing(service, count)
    fetch = Lookups._fetch_anywhere

    async def fetch_and_replace(lookups: Lookups, *arguments: Any) -> Any:
        found = await fetch(lookups, *arguments)
        replacing.replace()
        return found

    monkeypatch.setattr(Lookups, "_fetch_anywhere", fetch_and_replace)
    assert looks_up(service) == ANSWER
    assert replacing.runs == 2


@pytest.mark.parametrize("timeline", ["00000009", "FFFFFFFF"])
def test_a_server_that_is_not_the_primary_before_is_not_confirmed(service: Service, timeline: str) -> None:
    """It commits, but is of an older timeline than the primary that was known."""
    heartbeat: Any = service.database._pool.heartbeat  # type: ignore[attr-defined]

    async def ready() -> None:
        heartbeat._server = replace(heartbeat._server, timeline=timeline)
        heartbeat.doubt(heartbeat._server)
        await service.database.require_ready()

    with pytest.raises(Unavailable, match="is not the primary before"):
        service.run(ready())
