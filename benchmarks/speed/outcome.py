"""A target compared with what was measured."""

from dataclasses import dataclass

from benchmarks.speed.figures import Spread


@dataclass(frozen=True, slots=True)
class Outcome:
    """A target compared with what was measured. Without a ``bound`` there is no target."""

    name: str
    measured: Spread
    bound: float | None = None
    at_least: bool = True
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the median meets the target. A bound of 0 must be met exactly."""
        if not self.bound:
            return self.bound is None or self.measured.value == 0
        return (self.measured.value >= self.bound) == self.at_least

    @property
    def target(self) -> str:
        if not self.bound:
            return "none" if self.bound is None else "0"
        return f"{'≥' if self.at_least else '<'} {self.bound:g}{self.unit}"
