"""Coverage over time as pages show it: its picture, what happened beside it, and what has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from markupsafe import Markup

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.filters import as_local, day_text, whole_percent
from normata.console.pictures import LEVELS, Counts, summary
from normata.console.series_pictures import Happening, Marker, areas, markers_of, sparkline
from normata.console.texts import counted, text

AUDITS = ApiQuery("listAudits", {"sortColumn": "started", "sortDirection": "desc", "limit": "100"})

Rows = Sequence[Mapping[str, Any]]
Series = Mapping[str, Any]
_NONE: Counts = dict.fromkeys(LEVELS, 0)
_DASH = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"


class Change(NamedTuple):
    """What has changed since an earlier moment: ``tone`` is ``up``, ``down`` or empty."""

    words: str
    since: str = ""
    tone: str = ""


class Shown(NamedTuple):
    """The coverage of a framework over time. ``rows`` are points, newest first, each with what happened until then."""

    picture: Markup
    markers: Sequence[Marker]
    rows: Sequence[tuple[Mapping[str, Any], Sequence[Happening]]]
    last: Mapping[str, Any] | None


def show(page_request: OrganizationRequest, name: str, series: Series, baselines: Rows, audits: Rows) -> Shown | None:
    """The coverage of a framework over time with what happened; null if there is no more than today of it."""
    points = series["points"]
    adopted = [point for point in points if point["isAdopted"]]
    if not _is_longer_than_a_day(points):
        return None
    place = _places(points)
    found = (*_adoptions(page_request, series, baselines), *_audits(page_request, series["frameworkId"], audits))
    happened = sorted(one for one in found if points[0]["at"] <= one.at <= points[-1]["at"])
    markers = markers_of([(place(one.at), one) for one in happened])
    notes = [f"{marker.letter}: {marker.words}." for marker in markers]
    about = text("picture.areas", first=_counts_on(points[0]), last=_counts_on(points[-1]))
    middle = points[len(points) // 2]["at"]
    picture = areas(
        text("app.over_time.of", name=name),
        " ".join([about, *notes]),
        _drawn(series, place),
        [(place(at), day_text(at)) for at in (points[0]["at"], middle, points[-1]["at"])],
        markers,
    )
    before = ["", *(point["at"] for point in points)]
    rows = [
        (point, [one for one in happened if earlier < one.at <= point["at"]])
        for earlier, point in zip(before, points, strict=False)
    ]
    is_shown = [(point, found) for point, found in reversed(rows) if point["isAdopted"] or found]
    return Shown(picture, markers, is_shown, adopted[-1] if adopted else None)


def change_of(series: Series, now: Counts) -> Change:
    """By how many points readiness has changed in 30 days; or in the time that is known, or when that begins.

    ``now`` are the present counts, as the page shows them: the last point may be of a moment earlier.
    """
    known, at = _compared(series)
    if not known["isAdopted"]:
        days = _days_between(_adopted_since(series), at)
        return Change(text("change.adopted_today") if days == 0 else counted("change.adopted", days))
    if _days_between(known["at"], at) == 0:
        return Change(text("change.begun"))
    more = _ready(now) - _ready(known)
    if more == 0:
        return Change(text("change.none"), _since(series))
    tone = "up" if more > 0 else "down"
    return Change(counted("change.points", abs(more), sign=_sign(more)), _since(series), tone)


def counts_changed(series: Series, now: Counts) -> str:
    """The same in counts, as ``In 30 days: +4 full``; empty if there is nothing to compare."""
    known, at = _compared(series)
    if not known["isAdopted"] or _days_between(known["at"], at) == 0:
        return ""
    names = {**{level: f"status.{level.upper()}" for level in LEVELS}, "excluded": "status.excluded"}
    changes = ((now[name] - known[name], text(key).lower()) for name, key in names.items())
    parts = [f"{_sign(more)}{abs(more):,} {words}" for more, words in changes if more]
    since = _since(series)
    return text("change.counts", since=f"{since[0].upper()}{since[1:]}", parts=", ".join(parts) or text("change.none"))


def _compared(series: Series) -> tuple[Mapping[str, Any], str]:
    """The point that the present is compared with, and the moment of the last one."""
    return series["thirtyDaysBefore"] or series["points"][0], series["points"][-1]["at"]


def _since(series: Series) -> str:
    if series["thirtyDaysBefore"]:
        return text("change.days")
    return text("change.since", day=day_text(series["points"][0]["at"]))


def line(name: str, series: Series) -> Markup:
    """Readiness over time as a small picture; empty if there is no more than a day of it."""
    points = [point for point in series["points"] if point["isAdopted"]]
    if not points or not _is_longer_than_a_day(points):
        return Markup()
    place = _places(series["points"])
    first, last = (f"{_ready(point)} %, {day_text(point['at'])}" for point in (points[0], points[-1]))
    return sparkline(
        text("change.line", name=name, first=first, last=last), [(place(one["at"]), _ready(one)) for one in points]
    )


def readiness_in_rows(every: Sequence[Series | None]) -> list[tuple[str, list[str]]]:
    """Moments, newest first, each with the readiness of each framework then; a dash while it was not adopted.

    None if there is no more than a day of it.
    """
    points: Rows = next((one["points"] for one in every if one is not None), [])
    if not points or not _is_longer_than_a_day(points):
        return []
    return [
        (point["at"], [_ready_at(place, one) for one in every]) for place, point in reversed(list(enumerate(points)))
    ]


def _ready_at(place: int, series: Series | None) -> str:
    point = None if series is None else series["points"][place]
    return f"{_ready(point)} %" if point is not None and point["isAdopted"] else _DASH


def _ready(point: Mapping[str, Any]) -> int:
    return whole_percent(point["full"], sum(point[level] for level in LEVELS))


def _sign(number: int) -> str:
    return "+" if number > 0 else _MINUS


def _counts_on(point: Mapping[str, Any]) -> str:
    return f"{day_text(point['at'])}: {summary(point)}"


def _days_between(earlier: str, later: str) -> int:
    return (as_local(later).date() - as_local(earlier).date()).days


def _is_longer_than_a_day(points: Rows) -> bool:
    return _days_between(points[0]["at"], points[-1]["at"]) > 0


def _places(points: Rows) -> Callable[[str], float]:
    """Where a moment lies between the first point and the last, from 0 to 1."""
    first, last = (datetime.fromisoformat(point["at"]) for point in (points[0], points[-1]))
    return lambda at: (datetime.fromisoformat(at) - first) / (last - first)


def _drawn(series: Series, place: Callable[[str], float]) -> list[tuple[float, Counts]]:
    """The points with their places. An adoption is an edge at its moment, and no slope from the point before."""
    points = series["points"]
    edges = [at for span in series["adoptions"] for at in (span["since"], span["until"]) if at]
    drawn: list[tuple[float, Counts]] = [(0, points[0])]
    for earlier, later in pairwise(points):
        if earlier["isAdopted"] != later["isAdopted"]:
            found = [at for at in edges if earlier["at"] < at <= later["at"]]
            at = place(found[-1] if found else later["at"])
            drawn += [(at, earlier), (at, later)] if earlier["isAdopted"] else [(at, _NONE), (at, later)]
        drawn.append((place(later["at"]), later))
    return drawn


# --- What happened


def _adopted_since(series: Series) -> str:
    """When the adoption of the last moment began, whatever its baseline."""
    last = series["points"][-1]["at"]
    spans = [span for span in series["adoptions"] if span["since"] <= last] or series["adoptions"]
    since = spans[-1]["since"]
    for span in reversed(spans[:-1]):
        if span["until"] != since:
            break
        since = span["since"]
    return str(since)


def _adoptions(page_request: OrganizationRequest, series: Series, baselines: Rows) -> Iterator[Happening]:
    """When the framework was adopted and left, and when another baseline was taken."""
    names = {one["id"]: one["name"] for one in baselines}

    def happening(at: str, what: str, baseline_id: str | None = None) -> Happening:
        baseline = names.get(baseline_id or "")
        words = text(f"happened.{what}_with", baseline=baseline) if baseline else text(f"happened.{what}")
        if not page_request.may("auditor"):  # nobody else reads events
            return Happening(at, "adoption", words)
        day = as_local(at).date().isoformat()
        query = {"kind": "frameworkAdoptions", "from": day, "to": day}
        return Happening(at, "adoption", words, page_request.context.prefix + page_request.path("events", query=query))

    spans = series["adoptions"]
    if spans[0]["adoptedAt"] >= series["knownSince"]:
        yield happening(spans[0]["since"], "adopted", spans[0]["baselineId"])
    for earlier, later in pairwise(spans):
        if earlier["until"] != later["since"]:
            yield happening(earlier["until"], "left")
            yield happening(later["since"], "adopted", later["baselineId"])
        elif earlier["baselineId"] != later["baselineId"]:
            yield happening(later["since"], "changed", later["baselineId"])
    if spans[-1]["until"] is not None:
        yield happening(spans[-1]["until"], "left")


def _audits(page_request: OrganizationRequest, framework_id: str, audits: Rows) -> Iterator[Happening]:
    """Those of the framework, and those of none, which are about all of the organization."""
    for audit in audits:
        at = audit["started"] or audit["ended"]
        if at is not None and audit["frameworkId"] in (None, framework_id):
            path = page_request.context.prefix + page_request.path("records", "audits", audit["id"])
            yield Happening(at, "audit", audit["name"], path)
