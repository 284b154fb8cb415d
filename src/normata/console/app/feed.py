"""What changed, as sentences: what somebody did alike to several things is one of them, and each day has its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby
from typing import NamedTuple

from normata.console.app.event_lines import Line
from normata.console.app.row_links import Steps
from normata.console.filters import action_words, as_local, kind_words, long_date
from normata.console.texts import has_text, text
from normata.records.archive.queries import KINDS

_ASSESSMENTS = "controlCoverages"
# Of these the event says whose it is, and nothing that people would look for.
_OMITTED = frozenset({"sessions", "tokens", "notifications"})


@dataclass(slots=True)
class Sentence:
    """Who did what to how many things. ``label`` and ``steps`` are those of the first of them."""

    user_id: str
    who: str
    action: str
    kind: str
    at: str
    label: str
    steps: Steps | None
    count: int = 0
    levels: Counter[str] = field(default_factory=Counter)

    @property
    def did(self) -> str:
        """The verb: what people call the action, in the past."""
        key = f"did.{self.action}"
        return text(key) if has_text(key) else action_words(self.action).lower()

    @property
    def things(self) -> str:
        """What it was done to, where that is several things, or something that has no name."""
        one, several = f"feed.one.{self.kind}", f"feed.several.{self.kind}"
        if self.count == 1:
            record = KINDS.get(self.kind)
            return text(one) if has_text(one) else record.words() if record else kind_words(self.kind).lower()
        words = text(several) if has_text(several) else kind_words(self.kind).lower()
        return text("feed.count", count=f"{self.count:,}", things=words)

    @property
    def what(self) -> str:
        """The sort of the one thing, before its name; empty for controls, whose names say it."""
        if self.kind in (_ASSESSMENTS, "controls", "frameworkAdoptions", "frameworks"):
            return ""
        key, record = f"feed.one.{self.kind}", KINDS.get(self.kind)
        if has_text(key):
            return text(key)
        return "" if record is None else record.words()

    @property
    def results(self) -> list[tuple[str, int]]:
        """Of assessments: how many of each status, the best first."""
        return [(level, self.levels[level]) for level in ("FULL", "PARTIAL", "NONE") if self.levels[level]]


class Day(NamedTuple):
    """A day of the reader's, and what was done then, newest first."""

    name: str
    date: str
    sentences: list[Sentence]


def days_of(lines: Sequence[Line], names: Mapping[str, str], moment: str) -> list[Day]:
    """Events, newest first, as sentences by day; ``moment`` is now."""
    today = as_local(moment).date()
    shown = (line for line in lines if line.event["kind"] not in _OMITTED)
    by_day = groupby(shown, key=lambda line: as_local(line.event["at"]).date())
    return [Day(_name(day, today), day.isoformat(), list(_sentences(found, names))) for day, found in by_day]


def happenings_of(
    lines: Sequence[Line], names: Mapping[str, str], moment: str
) -> list[tuple[str, list[tuple[Sentence, Line]]]]:
    """The same with a sentence for each event, beside the event itself: days by their names."""
    today = as_local(moment).date()
    by_day = groupby(lines, key=lambda line: as_local(line.event["at"]).date())
    return [
        (_name(day, today), [(sentence, line) for line in found for sentence in _sentences([line], names)])
        for day, found in by_day
    ]


def _name(day: date, today: date) -> str:
    if day == today:
        return text("feed.today")
    if day == today - timedelta(days=1):
        return text("feed.yesterday")
    return long_date(day, with_year=day.year != today.year)


def _sentences(lines: Iterable[Line], names: Mapping[str, str]) -> Iterator[Sentence]:
    """What one did alike on one day, each once, in the order of its last time."""
    found: dict[tuple[str, str, str], Sentence] = {}
    for line in lines:
        event = line.event
        who = event["userId"] or event["command"] or ""
        key = (who, event["action"], event["kind"])
        if key not in found:
            called = names.get(who, who) if event["userId"] else text("feed.service")
            label = line.label or names.get(line.of, "")
            found[key] = Sentence(
                event["userId"] or "", called, event["action"], event["kind"], event["at"], label, line.steps
            )
        found[key].count += 1
        level = (event["after"] or {}).get("coverageStatus") if event["kind"] == _ASSESSMENTS else None
        if level:
            found[key].levels[level] += 1
    yield from found.values()
