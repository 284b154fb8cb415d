"""Recent changes as sentences by day: similar changes of one user are one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from normata.console.app.event_lines import Line, Title
from normata.console.app.row_links import Steps
from normata.console.filters import action_words, as_local, kind_word, kind_words, long_date, lower_first
from normata.console.texts import has_text, text

_ASSESSMENTS = "controlCoverages"
# Rows of these kinds are about one user only, and of no interest to others.
_OMITTED = frozenset({"sessions", "tokens", "notifications"})


@dataclass(slots=True)
class Sentence:
    """Who did what to how many rows. ``event`` is the first of them; only one about a single row may have a title."""

    event: Mapping[str, Any]
    who: str
    label: str = ""
    steps: Steps | None = None
    count: int = 0
    levels: Counter[str] = field(default_factory=Counter)

    @property
    def user_id(self) -> str:
        """Who did it; empty if it was the service."""
        return self.event["userId"] or ""

    @property
    def action(self) -> str:
        return str(self.event["action"])

    @property
    def kind(self) -> str:
        return str(self.event["kind"])

    @property
    def at(self) -> str:
        return str(self.event["at"])

    def entitle(self, title: Title, names: Mapping[str, str]) -> None:
        """Add what the sentence is about; a row without a name is called after the user that it belongs to."""
        if not has_text(f"feed.one.{self.kind}.{self.action}"):  # an import is of a file, not of the organization
            self.label, self.steps = title.label or names.get(title.of, ""), title.steps

    @property
    def did(self) -> str:
        """The action as a verb in the past tense."""
        for key in (f"did.{self.action}.{self.kind}", f"did.{self.action}"):
            if has_text(key):
                return text(key)
        return action_words(self.action).lower()

    @property
    def things(self) -> str:
        """The object of the sentence: a count of rows, or a noun for one row without a name."""
        if self.count == 1:
            return self._noun("one") or lower_first(kind_word(self.kind))
        words = self._noun("several") or lower_first(kind_words(self.kind))
        return text("feed.count", count=f"{self.count:,}", things=words)

    def _noun(self, number: str) -> str:
        """The noun that suits the action; else that of the kind; empty if neither has one of its own."""
        keys = (f"feed.{number}.{self.kind}.{self.action}", f"feed.{number}.{self.kind}")
        return next((text(key) for key in keys if has_text(key)), "")

    @property
    def what(self) -> str:
        """The noun before the name of a single row; empty where the name speaks for itself."""
        if self.kind in (_ASSESSMENTS, "controls", "frameworkAdoptions", "frameworks"):
            return ""
        for key in (f"feed.named.{self.kind}", f"feed.one.{self.kind}"):
            if has_text(key):
                return text(key)
        return lower_first(kind_word(self.kind))

    @property
    def results(self) -> list[tuple[str, int]]:
        """For assessments: how many have each status, the best status first."""
        return [(level, self.levels[level]) for level in ("FULL", "PARTIAL", "NONE") if self.levels[level]]


class Day(NamedTuple):
    """A day in the reader's time zone, with its sentences, newest first."""

    name: str
    date: str
    sentences: list[Sentence]


def days_of(events: Iterable[Mapping[str, Any]], names: Mapping[str, str], moment: str) -> list[Day]:
    """Events, newest first, as sentences by day. ``moment`` is the present time, for "today" and "yesterday"."""
    today = as_local(moment).date()
    shown = (event for event in events if event["kind"] not in _OMITTED)
    by_day = groupby(shown, key=lambda event: as_local(event["at"]).date())
    return [Day(_name(day, today), day.isoformat(), _sentences(found, names)) for day, found in by_day]


def happenings_of(
    lines: Sequence[Line], names: Mapping[str, str], moment: str
) -> list[tuple[str, list[tuple[Sentence, Line]]]]:
    """The same with one sentence for each event: pairs of the day's name and its sentences with their events."""
    today = as_local(moment).date()
    by_day = groupby(lines, key=lambda line: as_local(line.event["at"]).date())
    return [(_name(day, today), [(_happening(line, names), line) for line in found]) for day, found in by_day]


def _happening(line: Line, names: Mapping[str, str]) -> Sentence:
    (sentence,) = _sentences([line.event], names)
    sentence.entitle(line.title, names)
    return sentence


def _name(day: date, today: date) -> str:
    if day == today:
        return text("feed.today")
    if day == today - timedelta(days=1):
        return text("feed.yesterday")
    return long_date(day, with_year=day.year != today.year)


def _sentences(events: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> list[Sentence]:
    """The events of one day, with similar ones of one user merged, in the order of the latest."""
    found: dict[tuple[str, str, str], Sentence] = {}
    for event in events:
        who = event["userId"] or event["command"] or ""
        key = (who, event["action"], event["kind"])
        if key not in found:
            found[key] = Sentence(event, names.get(who, who) if event["userId"] else text("feed.service"))
        found[key].count += 1
        level = (event["after"] or {}).get("coverageStatus") if event["kind"] == _ASSESSMENTS else None
        if level:
            found[key].levels[level] += 1
    return list(found.values())
