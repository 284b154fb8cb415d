"""Passwords: choosing one, signing in with it, and guessing."""

from __future__ import annotations

from collections.abc import Callable

from tests.console.browser import Browser

SignIn = Callable[[Browser, str], None]

GOOD, OTHER = "a heron stands in the reeds", "two herons stand in the reeds"
EMAIL = "editor@alpha.example"
