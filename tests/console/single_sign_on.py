"""What the tests of single sign-on share: an instance with a provider, and a browser that goes there and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import structlog
from httpx2 import Response

from normata.core.http.roles import Role
from normata.identity.invitations.invitations import invite
from normata.wiring import changes_of
from tests import world
from tests.console.browser import Browser, is_refused
from tests.identity.openid.forging import CLIENT, SECRET, Forger
from tests.served import Served, served

SESSION = "normata-session"


@contextmanager
def instance_of(url: str, issuer: str, **settings: Any) -> Iterator[Served]:
    """The shipped application, with a provider. Nobody has a token: their addresses lead to their accounts."""
    given = {"oidc_client_id": CLIENT, "oidc_client_secret": SECRET, "log_level": "warning"} | settings
    with served(url, oidc_issuer=issuer, **given) as application:
        application.sql("DELETE FROM access_token")
        yield application


def begun(browser: Browser, return_to: str = "") -> str:
    """The address at the provider that the browser is sent to."""
    answer = browser.get("/sign-in/oidc/" + (f"?return_to={return_to}" if return_to else ""))
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def back(browser: Browser, address: str) -> Response:
    """The answer to the browser that comes back from the provider, which is another site."""
    parts = urlsplit(address)
    return browser.get(f"{parts.path}?{parts.query}", **{"Sec-Fetch-Site": "cross-site"})


def sign_in(browser: Browser, forger: Forger) -> Response:
    """Go there and back."""
    return back(browser, forger.authorize(begun(browser)))


def invited(instance: Served, email: str, role: Role = "editor", organization_id: str = world.ALPHA) -> None:
    """Invite somebody, as a command does."""
    changes_of(instance.database).make_now(lambda unit: invite(unit, organization_id, email, role))


class Log:
    """What has been logged, as it would be written."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def causes(self, event: str = "sign_in_refused") -> list[tuple[str, str]]:
        """Causes and request ids of the events of a name."""
        return [(line["cause"], line["request_id"]) for line in self.lines if line["event"] == event]

    def organizations(self, event: str) -> list[list[str]]:
        """The organizations that the events of a name are about."""
        return [line["organizations"] for line in self.lines if line["event"] == event]


@contextmanager
def logged() -> Iterator[Log]:
    """What is logged meanwhile."""
    log = Log()
    with structlog.testing.capture_logs() as log.lines:
        yield log


def assert_refused(browser: Browser, answer: Response, log: Log, cause: str) -> None:
    """Somebody is refused: told so with the request's id, logged with the cause, and not signed in."""
    assert is_refused(answer), answer.text
    assert log.causes() == [(cause, answer.headers["x-request-id"])]
    assert SESSION not in browser.cookies
    written = repr(log.lines)
    assert "@" not in written
    assert "Ada" not in written
