"""Values that are needed again, but not now: they wait on disk, so that memory does not grow with them."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from tempfile import SpooledTemporaryFile
from typing import Any

from pydantic_core import from_json, to_json

_IN_MEMORY = 16 * 2**20  # bytes; what is smaller needs no disk


class Shelf:
    """A temporary file with a JSON object a line. It is gone when nothing refers to it any more."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed below
        self._end = 0
        self._is_at_end = True

    def __del__(self) -> None:
        self._file.close()

    def put(self, values: Mapping[str, Any]) -> Shelved:
        """Keep ``values``, which must be what JSON can hold; raises ValueError for half of a surrogate pair."""
        if not self._is_at_end:  # to seek would write out what is gathered
            self._file.seek(self._end)
            self._is_at_end = True
        start = self._end
        self._end += self._file.write(to_json(values) + b"\n")
        return Shelved(self, start)

    def get(self, start: int) -> dict[str, Any]:
        """What was put there."""
        self._file.seek(start)
        self._is_at_end = False
        values: dict[str, Any] = from_json(self._file.readline())
        return values


class Shelved(Mapping[str, Any]):
    """An object on a shelf, read anew whenever it is looked at."""

    __slots__ = ("_shelf", "_start")

    def __init__(self, shelf: Shelf, start: int) -> None:
        self._shelf, self._start = shelf, start

    def load(self) -> dict[str, Any]:
        """The whole of it."""
        return self._shelf.get(self._start)

    def __getitem__(self, name: str) -> Any:
        return self.load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.load())

    def __len__(self) -> int:
        return len(self.load())

    def items(self) -> ItemsView[str, Any]:
        """All at once: the inherited one would read the line again for each name."""
        return self.load().items()
