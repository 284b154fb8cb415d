"""A promise beside what was measured."""

from dataclasses import dataclass

from benchmarks.speed.figures import Spread


@dataclass(frozen=True, slots=True)
class Outcome:
    """A promise beside what was measured. Without a ``bound`` nothing is promised."""

    name: str
    measured: Spread
    bound: float | None = None
    at_least: bool = True
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the target is met, going by the median. What has to be nothing may be no more than that."""
        if not self.bound:
            return self.bound is None or self.measured.value == 0
        return (self.measured.value >= self.bound) == self.at_least

    @property
    def target(self) -> str:
        if not self.bound:
            return "none" if self.bound is None else "0"
        return f"{'≥' if self.at_least else '<'} {self.bound:g}{self.unit}"
