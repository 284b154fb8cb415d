"""Who sends many passwords waits behind themselves: somebody elsewhere signs in meanwhile."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice

import pytest
from argon2 import PasswordHasher
from httpx2 import Response
from starlette.types import Receive, Scope, Send

from normata.identity.sign_in import passwords
from tests.client import TestClient
from tests.console.browser import Browser, is_refused
from tests.databases import change, on_both
from tests.served import Served

PASSWORD = "a heron stands in the reeds"
ATTEMPTS, AT_ONCE = 70, 2
ATTACKERS = ("192.0.2.7", "192.0.2.8", "2001:db8:0:1::{}")  # the last one has many addresses of a /64


class Gate(PasswordHasher):
    """Notes which passwords are compared, and compares none before the gate is open."""

    def __init__(self) -> None:
        super().__init__(1, 1024, 1)
        self.is_open = threading.Event()
        self.compared: list[str] = []

    def verify(self, hash: str | bytes, password: str | bytes) -> bool:  # type: ignore[override] # noqa: A002
        self.compared.append(str(password))
        assert self.is_open.wait(60)
        return super().verify(hash, password)


@pytest.fixture(autouse=True)
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """What the application compares passwords with, on a machine of two processors."""
    gate = Gate()
    monkeypatch.setattr(passwords, "PasswordHasher", lambda: gate)
    monkeypatch.setattr("os.cpu_count", lambda: AT_ONCE)
    return gate


def browser_at(instance: Served, address: str) -> Browser:
    """A browser at an address."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await instance.app({**scope, "client": (address, 50_000)}, receive, send)

    browser = Browser(instance)
    browser.client = TestClient(application, base_url="http://localhost:8000", follow_redirects=False)
    browser.client.portal = instance.client.portal
    return browser


@on_both
def test_somebody_elsewhere_signs_in_during_a_flood(instance: Served, gate: Gate) -> None:
    change(instance.database, lambda unit: passwords.store(unit, "user-editor", gate.hash(PASSWORD)))

    def attempt(number: int) -> Response:
        address = ATTACKERS[number % len(ATTACKERS)].format(number)
        return browser_at(instance, address).post(
            "/sign-in/password/", email=f"{number}@alpha.example", password=f"guess {number}"
        )

    with ThreadPoolExecutor(ATTEMPTS + 1) as threads:
        flood = [threads.submit(attempt, number) for number in range(ATTEMPTS)]
        try:
            waiting = len(ATTACKERS) * 3
            answered = islice(as_completed(flood, 30), ATTEMPTS - AT_ONCE - waiting)
            refused = [answer.result() for answer in answered]
            assert all(is_refused(answer, status=429) for answer in refused)
            assert {answer.headers["retry-after"] for answer in refused} == {"1"}
            honest = threads.submit(
                browser_at(instance, "198.51.100.1").post,
                "/sign-in/password/",
                email="editor@alpha.example",
                password=PASSWORD,
            )
        finally:
            gate.is_open.set()
        assert honest.result().status_code == 303
        assert Counter(answer.result().status_code for answer in flood) == {403: AT_ONCE + waiting, 429: len(refused)}
    assert len(gate.compared) == AT_ONCE + waiting + 1
