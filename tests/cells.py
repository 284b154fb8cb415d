"""Many cells in one test: each is tried, and all that fail are told together, with their places.

A test for each cell of a large matrix costs more in pytest than in the service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

At = Callable[[object], AbstractContextManager[None]]


@contextmanager
def all_cells() -> Iterator[At]:
    """Tries each cell in a block of its own, ``with at("sun"):``, and raises all failures as a group in the end."""
    failures: list[Exception] = []
    tried = 0

    @contextmanager
    def at(place: object) -> Iterator[None]:
        nonlocal tried
        tried += 1
        try:
            yield
        except Exception as error:
            error.add_note(f"at {place}")
            failures.append(error)

    yield at
    assert tried, "there was no cell to try"
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {tried} cells", failures)
