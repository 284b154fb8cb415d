"""The foot of the pages."""

from __future__ import annotations

from normata import __version__
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA
from tests.console.browser import Browser, text_of


def test_the_foot_has_the_version_for_those_who_have_signed_in(readers: People) -> None:
    assert f"Normata {__version__}" in text_of(readers["viewer"].get(ALPHA))
    stranger = Browser(readers.instance)
    assert __version__ not in stranger.get("/sign-in/").text
