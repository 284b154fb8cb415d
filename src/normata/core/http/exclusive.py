"""Exclusive work: done by one request at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from normata.errors import ImportInProgress


class Exclusive:
    """The names of exclusive work that requests of this process are doing."""

    def __init__(self) -> None:
        self._held: set[str] = set()

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Refuse others of the same name while a block runs. Raises ImportInProgress."""
        if name in self._held:
            raise ImportInProgress
        self._held.add(name)
        try:
            yield
        finally:
            self._held.remove(name)
