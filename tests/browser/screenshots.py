"""``make screenshots``: every page in light, dark and on a phone, and the telling ones for the documentation."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2
from PIL import Image
from playwright.sync_api import Browser, Page

from normata.console.page_request import SESSION_COOKIE
from tests.browser import components
from tests.browser.demonstrated import PLACE, Demo, demonstrated
from tests.browser.driving import launched
from tests.browser.pages import addresses_of
from tests.server import PLAIN, serving

ROOT = Path(__file__).parents[2]
BUILD, DOCS = ROOT / "build" / "screenshots", ROOT / "docs" / "images"
_ISO = f"{PLACE}frameworks/iso-27001-2022/"

_WIDE: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
_PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
_VARIANTS: dict[str, dict[str, Any]] = {
    "light": _WIDE | {"color_scheme": "light"},
    "dark": _WIDE | {"color_scheme": "dark"},
    "phone": _PHONE | {"color_scheme": "light"},
    "phone-dark": _PHONE | {"color_scheme": "dark"},
}


def _palette(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("supplier")
    page.get_by_role("option").nth(5).wait_for()


class Telling(NamedTuple):
    """A picture for the documentation, and what is done on the page before it is taken."""

    name: str
    path: str
    variant: str = "light"
    prepare: Callable[[Page], None] = lambda _page: None


TELLING = (
    Telling("home", PLACE),
    Telling("controls", f"{PLACE}controls/?frameworks=iso-27001-2022&page=1"),
    Telling("control", f"{PLACE}controls/iso-27001-2022%3AA.7.11/"),
    Telling("gaps", f"{_ISO}gaps/", "dark"),
    Telling("palette", f"{PLACE}frameworks/", prepare=_palette),
    Telling("work-phone", f"{_ISO}work/", "phone"),
    Telling("controls-phone", f"{PLACE}controls/?frameworks=iso-27001-2022", "phone-dark"),
)


def main() -> None:
    """Take them all."""
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        demo = demonstrated(Path(folder) / "normata.db")
        with serving(f"sqlite:///{demo.path}") as address:
            base = address.replace("127.0.0.1", "localhost")
            _work(base, demo)
            _components(browser, Path(folder))
            for path in (*_every(browser, base, demo), *_telling(browser, base, demo)):
                sys.stdout.write(f"{path.relative_to(ROOT)}\n")


def _work(base: str, demo: Demo) -> None:
    """Have people state some controls, so that there is something to see."""
    for user, control, status in (
        ("user-priya", "hrl-ics:HRL-12.3", "FULL"),
        ("user-ines", "iso-27001-2022:A.5.7", "FULL"),
        ("user-tomasz", "hrl-ics:HRL-09.3", "PARTIAL"),
        ("user-ines", "nist-csf-2.0:GV.SC-07", "FULL"),
        ("user-lukas", "hrl-ics:HRL-03.8", "PARTIAL"),
        ("user-tomasz", "iso-27001-2022:A.8.18", "PARTIAL"),
    ):
        path = f"{base}{PLACE}controls/{quote(control, safe='')}/coverage/"
        headers = {"Sec-Fetch-Site": "same-origin", "Cookie": f"{SESSION_COOKIE}={demo.secrets[user]}"}
        answer = httpx2.post(path, data={"coverageStatus": status}, headers=headers, verify=PLAIN)
        assert answer.status_code == 303, answer.text


def _every(browser: Browser, base: str, demo: Demo) -> Iterator[Path]:
    addresses = addresses_of(base, demo.secrets[demo.user])
    BUILD.mkdir(parents=True, exist_ok=True)
    for variant in _VARIANTS:
        page = _page(browser, base, demo, variant)
        for route, address in addresses.items():
            page.goto(address)
            name = re.sub(r"[^{\w}]+", "-", route.removeprefix(PLACE)).strip("-") or "home"
            path = BUILD / f"{name}.{variant}.png"
            page.screenshot(path=path)
            yield path
        page.context.close()


def _components(browser: Browser, folder: Path) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    address = components.written(folder)
    for variant, options in _VARIANTS.items():
        context = browser.new_context(reduced_motion="reduce", **options)
        page = context.new_page()
        page.goto(address)
        page.screenshot(path=BUILD / f"components.{variant}.png", full_page=True)
        context.close()


def _telling(browser: Browser, base: str, demo: Demo) -> Iterator[Path]:
    DOCS.mkdir(parents=True, exist_ok=True)
    for one in TELLING:
        page = _page(browser, base, demo, one.variant)
        page.goto(one.path)
        one.prepare(page)
        path = DOCS / f"console-{one.name}.png"
        _save(page.screenshot(), path)
        yield path
        page.context.close()


def _save(taken: bytes, path: Path) -> None:
    """Save a picture with 256 colours: it is a third of the size, and nobody sees the difference."""
    with Image.open(BytesIO(taken)) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def _page(browser: Browser, base: str, demo: Demo, variant: str) -> Page:
    context = browser.new_context(base_url=base, reduced_motion="reduce", **_VARIANTS[variant])
    context.add_cookies([demo.cookie(demo.user, base)])
    return context.new_page()


if __name__ == "__main__":
    main()
