"""An input as rows, with the place of every row, and its faults.

Input is a file of a load, or the body of a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from normata.errors import DomainError


def pointer(*steps: str | int) -> str:
    """A JSON Pointer (RFC 6901) to a value: ``pointer("controls", 17)`` is ``/controls/17``."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


_NONE_DIFFER: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Row:
    """One object of the input, whatever it was read from.

    ``values`` has the wire's names (camelCase). ``array`` is the name of the kind of row on the wire. ``file`` is the
    file's name, or ``body`` for a request. ``place`` is a JSON Pointer into it, empty for the whole. ``origin`` maps a
    wire name to its name in the input, so that faults use the input's names; equal names are left out.
    """

    array: str
    file: str
    place: str
    values: Mapping[str, Any]
    origin: Mapping[str, str] = field(default_factory=lambda: _NONE_DIFFER)

    def fault(self, name: str | None, reason: str, code: str = "invalid") -> Fault:
        """A fault of this row, or of its field ``name`` (a wire name)."""
        place = self.place if name is None else self.place + pointer(self.origin.get(name, name))
        return Fault(self.file, place, reason, code)


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing that is wrong with the input: where (``place`` is a JSON Pointer, empty for the whole) and why.

    ``code`` names the type of fault for programs.
    """

    file: str
    place: str
    reason: str
    code: str = "invalid"

    def __str__(self) -> str:
        return f"{self.file}: {self.place}: {self.reason}" if self.place else f"{self.file}: {self.reason}"


class FaultyInput(DomainError):
    """The input has ``faults``. Nothing of the input is stored."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(f"{len(faults)} fault{'s' if len(faults) != 1 else ''} found")
        self.faults = faults
