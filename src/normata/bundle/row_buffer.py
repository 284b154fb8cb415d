"""The row buffer: row values that are needed again later are stored on disk, so that memory does not grow with them."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import Any
from weakref import finalize

from pydantic_core import from_json, to_json

_IN_MEMORY = 16 * 2**20  # bytes; less needs no disk


_NO_FILE = BytesIO()
_NO_FILE.close()


class _Temporary(SpooledTemporaryFile[bytes]):
    """A temporary file whose finalizer does not fail if an interrupt came before the file was opened."""

    _file = _NO_FILE


class RowBuffer:
    """A temporary file with one JSON object per line. It is removed when nothing refers to it any more."""

    def __init__(self) -> None:
        self._file = _Temporary(_IN_MEMORY)  # closed by the finalizer
        finalize(self, self._file.close)
        self._end = 0
        self._is_at_end = True

    def put(self, values: Mapping[str, Any]) -> BufferedRow:
        """Store ``values``, which must be what JSON can hold; raises ValueError for half of a surrogate pair."""
        if not self._is_at_end:  # a seek writes the buffer out, so avoid it
            self._file.seek(self._end)
            self._is_at_end = True
        start = self._end
        self._end += self._file.write(to_json(values) + b"\n")
        return BufferedRow(self, start)

    def get(self, start: int) -> dict[str, Any]:
        """The values that were put at ``start``."""
        self._file.seek(start)
        self._is_at_end = False
        values: dict[str, Any] = from_json(self._file.readline())
        return values


class BufferedRow(Mapping[str, Any]):
    """An object in a row buffer, read from it on each access."""

    __slots__ = ("_buffer", "_start")

    def __init__(self, buffer: RowBuffer, start: int) -> None:
        self._buffer, self._start = buffer, start

    def __getitem__(self, name: str) -> Any:
        return self._load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def items(self) -> ItemsView[str, Any]:
        """All items at once: the inherited method would read the line again for each name."""
        return self._load().items()

    def _load(self) -> dict[str, Any]:
        return self._buffer.get(self._start)
