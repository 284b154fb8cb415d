"""What Normata promises whatever happens to the cluster, compared with what clients saw."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.failover.load import BROKEN, Answer, Record
from tests.failover.records import Outcome, Query, check_records
from tests.patroni.watch import LISTS, Seen, total

LEASE = 3.0  # seconds after which a process believes no server that has not been confirmed since
READY = 2.0  # seconds for which /readyz may say 200 while restores fail
BACK = 5.0  # seconds after there is a primary again
GOOD = (200, 409)  # what was restored before says so
SLACK = 0.5  # of a machine that runs the cluster, the service and all clients at once


@dataclass(frozen=True)
class Gap:
    """A time without a successful answer."""

    begin: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.end - self.begin


def gaps(answers: Sequence[Answer], *, longer: float = 1.0) -> list[Gap]:
    """The times without a good answer between two of them, or up to the last answer, if they are longer than that."""
    moments = [answer.ended for answer in answers if answer.status in GOOD or answer is answers[-1]]
    return [Gap(before, after) for before, after in pairwise(moments) if after - before > longer]


def slowest_return(restores: Sequence[Answer], without: Sequence[tuple[float, float]]) -> float:
    """How many seconds after Patroni had a primary again the service had one, at the most."""
    slowest = 0.0
    for gap in gaps(restores):
        ends = [end for begin, end in without if begin < gap.end and end > gap.begin]
        slowest = max(slowest, gap.end - min(gap.end, max([gap.begin, *ends])))
    return slowest


def longest_untrue_readiness(seen: Seen) -> float:
    """For how long /readyz said 200 without a break, at the most, while every restore failed that was sent.

    One that was sent before, and is answered late, says nothing of the moment at which /readyz was asked.
    """
    longest = 0.0
    asked = sorted(seen.load.answers("readyz"), key=lambda answer: answer.started)
    for failing in failing_stretches(seen.load.answers("restore")):
        # What was true before restores began to fail is untrue from then on.
        untrue_since: float | None = failing.begin
        for answer in asked:
            if not failing.begin < answer.started < failing.end:
                continue
            if answer.status != 200:
                untrue_since = None
            else:
                untrue_since = answer.started if untrue_since is None else untrue_since
                longest = max(longest, answer.started - untrue_since)
    return longest


def failing_stretches(restores: Sequence[Answer]) -> list[Gap]:
    """The times between two restores that failed, with none in between that did not, by when they were sent."""
    stretches: list[Gap] = []
    failed: list[float] = []
    for answer in [*sorted(restores, key=lambda answer: answer.started), None]:
        if answer is not None and answer.status not in GOOD:
            failed.append(answer.started)
            continue
        if len(failed) > 1:
            stretches.append(Gap(failed[0], failed[-1]))
        failed = []
    return stretches


def latest_accepted(seen: Seen) -> float:
    """How many seconds after its revocation a token was accepted, at the latest; 0 where none was."""
    return max((one.after for one in seen.intruder.tried if one.status == 200), default=0.0)


def stale_reads(seen: Seen, every: Sequence[Answer], *, within: float) -> int:
    """How many of the process's lists of notifications lacked one that had to be in it.

    Each restore of ``every`` that was acknowledged ``within`` seconds before a list began has told the owner.
    """
    acknowledged = sorted(
        one.ended for one in every if one.status == 200 and one.record is not None and one.record.told
    )
    lists = [answer for answer in seen.load.answers("inbox") if answer.status == 200]
    return sum(total(one) < bisect_right(acknowledged, one.started - within) for one in lists)


@dataclass
class Verdict:
    """What was measured, and which promises were broken, a sentence each."""

    figures: dict[str, object]
    broken: list[str]


def judge(
    seen: Sequence[Seen],
    records: Sequence[Record],
    query: Query,
    *,
    struck: float,
    without: Sequence[tuple[float, float]],
    is_rolled: bool = False,
) -> Verdict:
    """Compare all that was seen with the promises. Raises AssertionError where a record is not as its answers say."""
    every = [answer for one in seen for answer in one.load.answers("restore")]
    broken: list[str] = []
    figures: dict[str, object] = {"withoutPrimary": round(sum(end - begin for begin, end in without), 1)}
    for one in seen:
        restores = one.load.answers("restore")
        lists = [answer for answer in one.load.answers() if answer.operation in LISTS]
        measured = {
            "restoresAway": round(sum(gap.seconds for gap in gaps(restores)), 1),
            "listsAway": round(sum(gap.seconds for gap in gaps(lists)), 1),
            "backAfter": round(slowest_return(restores, without), 1),
            "readyUntrue": round(longest_untrue_readiness(one), 1),
            "revokedAccepted": round(latest_accepted(one), 2),
            "staleOwn": stale_reads(one, restores, within=0),
            "staleOthers": stale_reads(one, every, within=LEASE),
            "slowest": round(max(answer.ended - answer.started for answer in one.load.answers()), 1),
            "restores": _counts(restores),
            "lists": _counts(lists),
            "readyz": _counts(one.load.answers("readyz")),
        }
        figures[one.process.name] = measured
        broken += _broken(one, measured, is_rolled=is_rolled)
    outcome: Outcome = check_records(records, every, query)
    figures["records"] = vars(outcome)
    figures["lastSecondsBefore"] = round(struck - min(answer.started for answer in every), 1)
    return Verdict(figures, broken)


def _broken(one: Seen, measured: dict[str, object], *, is_rolled: bool) -> list[str]:
    found = []
    limits = {"backAfter": BACK, "readyUntrue": READY, "revokedAccepted": LEASE, "staleOwn": 0, "staleOthers": 0}
    for name, limit in limits.items():
        value = measured[name]
        assert isinstance(value, float | int)
        if value > limit + (SLACK if limit else 0) and not (is_rolled and name in {"backAfter", "readyUntrue"}):
            found.append(f"{one.process.name}: {name} is {value}, more than {limit}")
    allowed = {200, 409, 503} | ({BROKEN} if is_rolled else set())
    odd = Counter((answer.operation, answer.status) for answer in one.load.answers() if answer.status not in allowed)
    found += [f"{one.process.name}: {count} times {status} for {name}" for (name, status), count in odd.items()]
    if any(answer.status not in {200, BROKEN} for answer in one.load.answers("livez")):
        found.append(f"{one.process.name}: /livez was not 200")
    return found


def _counts(answers: Sequence[Answer]) -> dict[str, int]:
    return {str(status): count for status, count in sorted(Counter(answer.status for answer in answers).items())}
