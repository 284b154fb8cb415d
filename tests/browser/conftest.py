"""The shipped server over the demo's data, and a real browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright
from sqlalchemy import select

from normata.demo import content
from normata.identity import sign_in_links
from normata.identity.model import User
from normata.wiring import changes_of
from tests.databases import migrate, open_url
from tests.server import serving

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MISSING = "no Chromium: install it (on Debian: apt-get install chromium), or name it in NORMATA_TEST_CHROMIUM"
# The browser asks nobody but our server; the sandbox of its own is not to be had by root, as whom CI runs.
_ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    *(["--no-sandbox"] if os.geteuid() == 0 else []),
)

Open = Callable[..., Page]

_DEMO_USER = select(User.id).where(User.email == content.USER)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with the demo in it, to be copied."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    with closing(open_url(f"sqlite:///{path}", create=True)) as database:
        migrate(database)
        changes_of(database).make_now(lambda unit: content.fill(unit, lambda *_: None))
    return path


@pytest.fixture
def demo_url(demo: Path, tmp_path: Path) -> str:
    """The address of a fresh copy of the demo."""
    shutil.copy(demo, tmp_path / "normata.db")
    return f"sqlite:///{tmp_path / 'normata.db'}"


@pytest.fixture
def base(demo_url: str) -> Iterator[str]:
    """The server over a fresh copy of the demo."""
    with serving(demo_url) as address:
        yield address.replace("127.0.0.1", "localhost")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's Chromium."""
    program = os.environ.get("NORMATA_TEST_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.fail(_MISSING, pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser, base: str, demo_url: str) -> Iterator[Open]:
    """Opens a page of a new browser in which the demo's user has signed in by a link.

    What the browser complains of, such as a script that the policy refuses, fails the test.
    """
    complaints: list[str] = []
    contexts: list[BrowserContext] = []

    def note(message: ConsoleMessage) -> None:
        # An answer of 4xx is what some walks are about.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            complaints.append(message.text)

    def open_page(**options: Any) -> Page:
        context = chromium.new_context(base_url=base, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"/sign-in/link/?secret={_new_link(demo_url)}")
        page.locator("main button").click()
        page.goto("/app/")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _new_link(url: str) -> str:
    with closing(open_url(url)) as database:
        return changes_of(database).make_now(lambda unit: sign_in_links.create(unit, str(unit.scalar(_DEMO_USER))))
