"""Whom the provider names."""

from __future__ import annotations

from typing import NamedTuple


class Person(NamedTuple):
    """Who the provider says that somebody is.

    ``email`` is an address that the provider has verified, null where it tells none. ``groups`` are null where the
    configuration does not ask for any.
    """

    issuer: str
    subject: str
    email: str | None
    name: str | None
    groups: frozenset[str] | None
