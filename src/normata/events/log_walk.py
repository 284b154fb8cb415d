"""A walk along the leaves of a log: finds the faults of each, and checks the roots of checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from normata.events.content import values_of
from normata.events.merkle import Frontier, leaf_hash

_NAMED = 5  # events in one sentence


class Roots(Protocol):
    """The roots of the checkpoints of a log."""

    def get(self, size: int, /) -> str | None:
        """The root at a size; null if there is no checkpoint."""


class Walk:
    """Goes along the leaves of one log, in their order. ``roots`` has its checkpoints: the root at each size.

    ``frontier`` is the start, and grows; null for the first leaf. ``broken`` has the leaves between the last checkpoint
    that matches and the first that does not; null if all match.
    """

    def __init__(self, roots: Roots, frontier: Frontier | None = None) -> None:
        self.frontier = frontier or Frontier()
        self.broken: str | None = None
        self._roots = roots
        self._since: list[str] = []

    def up_to(self, number: int) -> Iterator[str]:
        """Advance to the place of a leaf; yields a sentence for each missing leaf before it."""
        while self.frontier.size < number:
            yield f"leaf {self.frontier.size} is missing: an event was removed"
            self.add("", leaf_hash(""))

    def add(self, event_id: str, found: str) -> bool:
        """Pass a leaf; returns false if its hash is not valid."""
        is_hash = True
        try:
            self.frontier.append(found)
        except ValueError:
            is_hash = False
            self.frontier.append(leaf_hash(""))
        self._since.append(event_id)
        root = self._roots.get(self.frontier.size)
        if root is not None and self.broken is None:
            self._compare(root)
        return is_hash

    def _compare(self, root: str) -> None:
        if root == self.frontier.root:
            self._since.clear()
        else:
            first, last = self.frontier.size - len(self._since), self.frontier.size - 1
            shown = ", ".join(self._since[:_NAMED]) + (", …" if len(self._since) > _NAMED else "")
            self.broken = (
                f"leaf {first} (the event {shown})" if first == last else f"leaves {first} to {last} (of {shown})"
            )


def content_faults(event_id: str, number: int, found: str, text: str | None) -> Iterator[str]:
    """The faults of an event: ``found`` is its leaf's hash, ``text`` the text that should have it.

    The text is null if there is no event, and empty if its content was erased.
    """
    name = f"the event {event_id} (leaf {number})"
    if text is None:
        yield f"{name} is missing: it was removed"
    elif text and leaf_hash(text) != found:
        yield f"{name} was changed: it is not what was sealed"
    elif text and _id_of(text) != event_id:
        yield f"{name} was changed: it has the content of another event"


def _id_of(text: str) -> Any:
    try:
        return values_of(text)["id"]
    except (ValueError, TypeError, KeyError):
        return None
