"""Many cells in one test: each is tried, and all failures are reported together, with their places.

A test for each cell of a large matrix would take more time in pytest than in the service.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any

At = Callable[[object], AbstractContextManager[None]]
Test = Callable[..., None]


@contextmanager
def all_cells() -> Iterator[At]:
    """Tries each cell in a block of its own, ``with at("sun"):``, and raises all failures as a group at the end."""
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


def each(
    names: str | tuple[str, ...], cells: Iterable[Any], show: Callable[[Any], object] = repr
) -> Callable[[Test], Test]:
    """Like ``pytest.mark.parametrize``, but with all cells in one test, which share its fixtures.

    So the test must leave its fixtures unchanged. ``show`` gives the name of a value in failures.
    """
    given = [part.strip() for part in names.split(",")] if isinstance(names, str) else list(names)
    values = [(cell,) if len(given) == 1 else tuple(cell) for cell in cells]

    def decorate(test: Test) -> Test:
        @wraps(test)
        def tried(**fixtures: Any) -> None:
            with all_cells() as at:
                for cell in values:
                    chosen = dict(zip(given, cell, strict=True))
                    with at(", ".join(f"{name}={show(value)!s:.100}" for name, value in chosen.items())):
                        test(**fixtures, **chosen)

        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name not in given]
        assert len(others) + len(given) == len(signature.parameters), f"{test.__name__} does not take {names}"
        vars(tried)["__signature__"] = signature.replace(parameters=others)
        return tried

    return decorate
