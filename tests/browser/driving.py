"""The system's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no Chromium: install it (on Debian: apt-get install chromium), or name it in NORMATA_TEST_CHROMIUM"
# The browser asks nobody but our server; the sandbox of its own is not to be had by root, as whom CI runs.
_ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    # Each window would have two more pages of its own, for an address bar that nobody sees.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    *(["--no-sandbox"] if os.geteuid() == 0 else []),
)


def program() -> str | None:
    """Where it is; null where there is none."""
    return os.environ.get("NORMATA_TEST_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def launched() -> Iterator[Browser]:
    """It, closed at the end."""
    path = program()
    if path is None:
        pytest.fail(MISSING, pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield browser
        browser.close()
