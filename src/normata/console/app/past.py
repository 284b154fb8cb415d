"""Pages as of a day of the past: which pages can be shown so, and the moment that an address names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from pydantic import ValidationError

from normata.console.filters import READER, as_local
from normata.core.db.types import format_timestamp, now
from normata.core.http.problems import InvalidRequest
from normata.core.schema.paging import PastQuery

PARAMETER = "asOf"  # of an address, as of the API: a day, or a moment
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LAST = timedelta(milliseconds=1)  # of a day, as exactly as moments are noted
# The pages that show what held at a moment. A link from one of them to another carries it.
_PAGES = frozenset(
    {
        ("controls",),
        ("controls", "{id}"),
        ("crosswalk",),
        ("frameworks",),
        ("frameworks", "{id}"),
        ("frameworks", "{id}", "gaps"),
        ("frameworks", "{id}", "gaps", "file"),
        ("frameworks", "{id}", "oscal", "file"),
        ("frameworks", "{id}", "statement-of-applicability"),
        ("frameworks", "{id}", "statement-of-applicability", "file"),
        ("risk-matrix",),
    }
)


class Past(NamedTuple):
    """A moment of the past: as the address has it, and on the wire. ``is_day`` if it is the end of a day."""

    sent: str
    moment: str
    is_day: bool

    @property
    def day(self) -> str:
        """The day in the reader's time zone, as the field of a form has it."""
        return self.sent if self.is_day else as_local(self.moment).date().isoformat()


def has_past(steps: Sequence[str]) -> bool:
    """Whether the page at a path, or of a route, can show the past. ``steps`` are those after the organization."""
    return (*steps[:1], *("{id}" for _ in steps[1:2]), *steps[2:]) in _PAGES


def past_of(sent: str, organization_id: str) -> Past | None:
    """The moment that an address names: a day stands for its end in the reader's time zone. Null for today.

    Raises InvalidRequest.
    """
    if _DAY.fullmatch(sent):
        with suppress(ValueError, OverflowError):  # no day, or the last one that there is
            return _end_of(sent)
    try:
        query = PastQuery.read([("organizationId", organization_id), (PARAMETER, sent)])
    except ValidationError as error:
        raise InvalidRequest.of_validation("query", error) from None
    return None if query.as_of is None else Past(sent, query.as_of, is_day=False)


def just_before(moment: str) -> str:
    """The last moment before another one."""
    return format_timestamp(datetime.fromisoformat(moment) - _LAST)


def _end_of(sent: str) -> Past | None:
    day = date.fromisoformat(sent)
    if day == as_local(now()).date():
        return None
    end = datetime.combine(day + timedelta(days=1), time(), READER.get().zone) - _LAST
    return Past(sent, format_timestamp(end.astimezone(UTC)), is_day=True)
