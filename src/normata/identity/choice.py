"""What is said of an organization that somebody has named, and that there is not. It needs no database."""

from __future__ import annotations

from collections.abc import Sequence

from normata.errors import CommandError


class NoSuchOrganization(CommandError):
    """There is no such organization; the message lists the existing ones."""

    @classmethod
    def of(cls, name: str | None, slugs: Sequence[str]) -> NoSuchOrganization:
        """The error for a name, null if none was given, where there are organizations with these slugs."""
        there = f"there is {', '.join(slugs)}" if slugs else "there is none yet; `normata init` makes one"
        return cls(f"name an organization: {there}" if name is None else f"no organization {name!r}; {there}")
