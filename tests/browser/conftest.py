"""The shipped server over the demo's data, and a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from tests.browser.demonstrated import Demo, demonstrated
from tests.browser.driving import launched
from tests.browser.pages import Addresses, addresses_of
from tests.server import serving

Open = Callable[..., Page]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """A database file with the demo in it, to be copied, in which its people have signed in."""
    return demonstrated(tmp_path_factory.mktemp("demo") / "demo.db")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's Chromium."""
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def shared_base(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for all tests that change nothing."""
    with _served(demo, tmp_path_factory.mktemp("shared")) as base:
        yield base


@pytest.fixture
def base(demo: Demo, tmp_path: Path) -> Iterator[str]:
    """A server over a fresh copy of the demo."""
    with _served(demo, tmp_path) as base:
        yield base


@contextmanager
def _served(demo: Demo, folder: Path) -> Iterator[str]:
    shutil.copy(demo.path, folder / "normata.db")
    with serving(f"sqlite:///{folder / 'normata.db'}") as address:
        yield address.replace("127.0.0.1", "localhost")


@pytest.fixture(scope="session")
def addresses(shared_base: str, demo: Demo) -> Addresses:
    """An address of every page, by its route."""
    return addresses_of(shared_base, demo.secrets[demo.user])


@pytest.fixture
def open_page(chromium: Browser, base: str, demo: Demo) -> Iterator[Open]:
    """Opens the console in a new browser, on a server of the test's own, for somebody who has signed in."""
    with opening(chromium, base, demo) as opened:
        yield opened


@pytest.fixture
def look(chromium: Browser, shared_base: str, demo: Demo) -> Iterator[Open]:
    """The same on the shared server, for tests that change nothing."""
    with opening(chromium, shared_base, demo) as opened:
        yield opened


@contextmanager
def opening(chromium: Browser, base: str, demo: Demo) -> Iterator[Open]:
    """What the browser complains of, such as a script that the policy refuses, fails the test."""
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        # An answer of 4xx is what some walks are about.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            complaints.append(message.text)

    with ExitStack() as stack:

        def open_page(user: str | None = "", path: str = "/app/", **options: Any) -> Page:
            """A page of a new browser at ``path``: of the demo's user, of ``user``, or with null of nobody."""
            context: BrowserContext = chromium.new_context(base_url=base, **options)
            stack.callback(context.close)
            if user is not None:
                context.add_cookies([demo.cookie(user or demo.user, base)])
            page = context.new_page()
            page.on("console", note)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.goto(path)
            return page

        yield open_page
    assert complaints == []
