"""Passwords: choosing one, signing in with it, and guessing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from normata.identity import passwords
from normata.identity.sign_in_model import Password
from tests.console.browser import Browser, is_refused, text_of
from tests.served import Served, served
from tests.stored import every

SignIn = Callable[[Browser, str], None]

GOOD, OTHER = "a heron stands in the reeds", "two herons stand in the reeds"
EMAIL = "editor@alpha.example"
