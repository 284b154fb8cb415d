"""The ways to sign in, in a real browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Open
from tests.browser.demonstrated import NEWCOMER, PLACE, Demo
from tests.identity.openid.forging import CLIENT, SECRET
from tests.identity.openid.mock import running_mock
from tests.server import SCRIPT, free_port, serving, wait_until_ready

WORD = "four robots weld at night"


@pytest.fixture
def fresh(chromium: Browser) -> Iterator[Page]:
    """A page of a browser that nobody has used."""
    context = chromium.new_context()
    yield context.new_page()
    context.close()


@contextmanager
def _demo(folder: Path) -> Iterator[list[str]]:
    """``normata demo`` as a newcomer starts it: what it has printed."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NORMATA_")}
    command = [str(SCRIPT), "demo", "--port", str(port)]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Stop with"):
                break
        wait_until_ready(f"http://127.0.0.1:{port}", process)
        yield lines
        process.terminate()


def test_by_the_link_of_the_demo(fresh: Page, tmp_path: Path) -> None:
    with _demo(tmp_path) as lines:
        [link] = re.findall(r"http://\S+/sign-in/link/\S+", "".join(lines))
        fresh.goto(link)
        fresh.get_by_role("button", name="Sign in as Dana Demo").click()
        expect(fresh).to_have_url(re.compile(re.escape(PLACE) + "$"))
        expect(fresh.get_by_role("heading", level=1)).to_have_text("Harbourlight Robotics")
        fresh.goto(link)
        expect(fresh.get_by_text("This link has already been used")).to_be_visible()


def test_by_a_password_back_to_where_one_was_going(open_page: Open) -> None:
    page = open_page(path="/account/")
    page.get_by_label("New password").fill(WORD)
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_text("Set on")).to_be_visible()

    other = open_page(None, f"{PLACE}crosswalk/?from=nist-csf-2-0")
    other.get_by_label("Email address").fill("demo@normata.example")
    other.get_by_label("Password").fill("four robots rest at night")
    other.get_by_role("button", name="Sign in", exact=True).click()
    expect(other.get_by_role("alert")).to_have_text("The email address or password is wrong.")
    other.get_by_label("Password").fill(WORD)
    other.get_by_role("button", name="Sign in", exact=True).click()
    expect(other.get_by_role("heading", level=1)).to_have_text("Crosswalk")
    assert other.url.endswith("crosswalk/?from=nist-csf-2-0")

    other.get_by_role("button", name="Dana Demo").click()
    other.get_by_role("button", name="Sign out").click()
    expect(other.get_by_role("heading", level=1)).to_have_text("Sign in")
    other.goto(PLACE)
    expect(other.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_by_the_provider(fresh: Page, demo: Demo, tmp_path: Path) -> None:
    database = tmp_path / "normata.db"
    shutil.copy(demo.path, database)
    with running_mock() as mock:
        mock.know("femke", email=NEWCOMER, email_verified=True)
        settings = {
            "NORMATA_PUBLIC_URL": "http://localhost:{port}",
            "NORMATA_OIDC_ISSUER": mock.issuer,
            "NORMATA_OIDC_CLIENT_ID": CLIENT,
            "NORMATA_OIDC_CLIENT_SECRET": SECRET,
            "NORMATA_OIDC_NAME": "Example",
        }
        with serving(f"sqlite:///{database}", settings=settings) as base:
            fresh.goto(f"{base.replace('127.0.0.1', 'localhost')}{PLACE}frameworks/")
            fresh.get_by_role("link", name="Sign in with Example").click()
            fresh.locator("input[name=sub]").first.fill("femke")
            fresh.locator("[type=submit]").first.click()
            expect(fresh.get_by_role("heading", level=1)).to_have_text(re.compile("Frameworks"))
            expect(fresh.get_by_role("button", name="Femke de Graaf")).to_be_visible()
