"""The time to notify the authority of a breach, as a picture and in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from markupsafe import Markup

from normata.console import pictures
from normata.console.filters import moment_text
from normata.console.texts import counted, text

_SHORT = timedelta(days=1)  # less time left is a warning
_HOUR, _DAY = 60, 1440  # in minutes


class Clock(NamedTuple):
    """The time to notify the authority: a picture, a sentence about it, and the words and tone of its badge."""

    drawn: Markup
    note: str
    badge: str
    tone: str


def time_between(before: str, after: str) -> str:
    """The time between two moments, in its two largest units."""
    minutes = int((_time(after) - _time(before)).total_seconds() // 60)
    parts = ((minutes // _DAY, "days"), (minutes % _DAY // _HOUR, "hours"), (minutes % _HOUR, "minutes"))
    shown = [counted(f"time.{unit}", count) for count, unit in parts if count][:2]
    return " ".join(shown) or counted("time.minutes", 0)


def clock_of(incident: Mapping[str, Any], at: str) -> Clock | None:
    """The time of an incident as it is ``at`` a moment; null without a deadline."""
    deadline, notified = incident["notificationDeadline"], incident["authorityNotifiedAt"]
    began = incident["detectedAt"] or incident["createdAt"]
    if not deadline:
        return None
    then = notified or at
    is_late = then > deadline
    key = f"{'notified' if notified else 'open'}.{'late' if is_late else 'early'}"
    time = time_between(min(then, deadline), max(then, deadline))
    is_short = not notified and _time(deadline) - _time(then) < _SHORT
    tone = "none" if is_late else "partial" if is_short else "full"
    whole = (_time(deadline) - _time(began)).total_seconds()
    share = 100 * (_time(then) - _time(began)).total_seconds() / whole if whole > 0 else 100.0
    note, label = text(f"incident.notice.{key}", time=time), text(f"incident.clock.{'notified' if notified else 'now'}")
    ends = moment_text(began), moment_text(deadline)
    name = text("incident.clock")
    about = f"{text('incident.clock.about', began=ends[0], deadline=ends[1])} {note}"
    drawn = pictures.clock(name=name, about=about, share=share, tone=tone, label=label, ends=ends)
    return Clock(drawn, note, text(f"incident.badge.{key}"), tone)


def _time(moment: str) -> datetime:
    return datetime.fromisoformat(moment)
