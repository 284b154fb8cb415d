"""The person that the provider names."""

from __future__ import annotations

from typing import NamedTuple


class Person(NamedTuple):
    """A person, by the provider's claims.

    ``email`` is an address that the provider has verified, null if there is none. ``groups`` are null if the
    configuration does not ask for any.
    """

    issuer: str
    subject: str
    email: str | None
    name: str | None
    groups: frozenset[str] | None
