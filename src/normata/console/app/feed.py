"""Recent changes as sentences by day: similar changes of one user are one sentence."""

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
# Rows of these kinds are about one user only, and of no interest to others.
_OMITTED = frozenset({"sessions", "tokens", "notifications"})


@dataclass(slots=True)
class Sentence:
    """Who did what to how many rows. ``label`` and ``steps`` are those of the first one."""

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
        """The action as a verb in the past tense."""
        key = f"did.{self.action}"
        return text(key) if has_text(key) else action_words(self.action).lower()

    @property
    def things(self) -> str:
        """The object of the sentence: a count of rows, or a noun for one row without a name."""
        one, several = f"feed.one.{self.kind}", f"feed.several.{self.kind}"
        if self.count == 1:
            record = KINDS.get(self.kind)
            return text(one) if has_text(one) else record.words() if record else kind_words(self.kind).lower()
        words = text(several) if has_text(several) else kind_words(self.kind).lower()
        return text("feed.count", count=f"{self.count:,}", things=words)

    @property
    def what(self) -> str:
        """The noun before the name of a single row; empty where the name speaks for itself."""
        if self.kind in (_ASSESSMENTS, "controls", "frameworkAdoptions", "frameworks"):
            return ""
        key, record = f"feed.one.{self.kind}", KINDS.get(self.kind)
        if has_text(key):
            return text(key)
        return "" if record is None else record.words()

    @property
    def results(self) -> list[tuple[str, int]]:
        """For assessments: how many have each status, the best status first."""
        return [(level, self.levels[level]) for level in ("FULL", "PARTIAL", "NONE") if self.levels[level]]


class Day(NamedTuple):
    """A day in the reader's time zone, with its sentences, newest first."""

    name: str
    date: str
    sentences: list[Sentence]


def days_of(lines: Sequence[Line], names: Mapping[str, str], moment: str) -> list[Day]:
    """Events, newest first, as sentences by day. ``moment`` is the present time, for "today" and "yesterday"."""
    today = as_local(moment).date()
    shown = (line for line in lines if line.event["kind"] not in _OMITTED)
    by_day = groupby(shown, key=lambda line: as_local(line.event["at"]).date())
    return [Day(_name(day, today), day.isoformat(), list(_sentences(found, names))) for day, found in by_day]


def happenings_of(
    lines: Sequence[Line], names: Mapping[str, str], moment: str
) -> list[tuple[str, list[tuple[Sentence, Line]]]]:
    """The same with one sentence for each event: pairs of the day's name and its sentences with their events."""
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
    """The events of one day, with similar ones of one user merged, in the order of the latest."""
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
