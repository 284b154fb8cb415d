"""What the history in time costs: assessments with and without it, answers of the past and today, and over time."""

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import quote, urlencode

from benchmarks.installations import Store, normata, tell
from benchmarks.speed.contenders import Contender, Request
from benchmarks.speed.coverage import assessments, one_by_one
from benchmarks.speed.data import FRAMEWORKS, ORGANIZATION, SHORT, SHORT_FRAMEWORK
from benchmarks.world import made_id
from normata.core.db.types import format_timestamp
from normata.core.schema.history_triggers import BEGINNING, FOREVER
from normata.core.schema.table import sql_table
from normata.frameworks.model import Control, EffectiveCoverage
from normata.history.model import (
    HISTORY_TABLES,
    AssessmentHistory,
    ControlHistory,
    EffectiveHistory,
    FrameworkHistory,
    HistoryStart,
)

DAYS = 730  # of the past, with a change on each of them
_IMPORTED, _LATER, _EARLIER = 600, 700, 300  # the days on which a catalog changed, and of which answers are asked
_TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
WITHOUT = "without-history"

# The answers that are asked, by the target that they have.
PAGES = ("controls", "coverage", "control", "explanation")
REPORTS = ("summary", "gaps", "statement")
EARLIER = ("then", "before")  # an import
STEPS = ("day", "week")


def day(number: int) -> str:
    """The moment of a day: 0 is the first one of the known past."""
    return format_timestamp(_TODAY - timedelta(days=DAYS - number))


def remember(store: Store, label: str, first_control: int, controls: int) -> None:
    """Give a database two years of past, in each day of which another one of these controls has changed.

    On one day a catalog has changed, so that what is asked of earlier days has to find how it was.
    """
    effective = sql_table(EffectiveCoverage).name
    # The past is as well covered as today, else its reports would be longer or shorter.
    kinds = [(status, is_indirect) for status in range(3) for is_indirect in ("false", "true")]
    last = made_id("control", first_control + controls - 1)
    within = f"control_id BETWEEN '{made_id('control', first_control)}' AND '{last}'"
    weights = store.ask(
        label,
        *(
            f"SELECT count(*) FROM {effective} WHERE {within} AND status = {status} AND is_indirect = {is_indirect}"  # noqa: S608 - ours
            for status, is_indirect in kinds
        ),
    )
    rng = random.Random(4)
    changes: defaultdict[str, list[str]] = defaultdict(list)
    for number in range(DAYS):
        changes[made_id("control", first_control + number * 7 % controls)].append(day(number))
    current = [sql_table(one).name for one in HISTORY_TABLES if "was_absent" not in sql_table(one).c]
    statements = [
        statement
        for table in current
        if table != sql_table(HistoryStart).name
        for statement in (
            f"DELETE FROM {table} WHERE valid_to <> '{FOREVER}'",  # noqa: S608 - ours
            f"UPDATE {table} SET valid_from = '{day(0)}'",  # noqa: S608 - ours
        )
    ]
    # What the load itself has changed.
    statements += [f"DELETE FROM {sql_table(one).name}" for one in (FrameworkHistory, ControlHistory)]  # noqa: S608 - ours
    statements.append(f"UPDATE {sql_table(HistoryStart).name} SET since = '{day(0)}'")  # noqa: S608 - ours
    for history, values in ((EffectiveHistory, {"own": 0, "rank": 0}), (AssessmentHistory, {"reasons": "''"})):
        table = sql_table(history)
        rows = []
        for control, days in changes.items():
            statements.append(
                f"UPDATE {table.name} SET valid_from = '{days[-1]}'"  # noqa: S608 - ours
                f" WHERE control_id = '{control}' AND valid_to = '{FOREVER}'"
            )
            for number, (start, end) in enumerate(itertools.pairwise([day(0), *days])):
                if start == end:
                    continue
                status, is_indirect = rng.choices(kinds, weights)[0]
                row = {"organization_id": f"'{ORGANIZATION}'", "control_id": f"'{control}'", **values}
                row |= {"status": status, "is_indirect": is_indirect, "applies": "true"}
                row |= {"id": f"'past-{control}'", "coverage_status": status, "review_due_at": f"'{day(number * 20)}'"}
                row |= {"assessed_at": f"'{start}'", "valid_from": f"'{start}'", "valid_to": f"'{end}'"}
                rows.append(", ".join(str(row.get(column.name, "NULL")) for column in table.c))
        names = ", ".join(column.name for column in table.c)
        statements.append(f"INSERT INTO {table.name} ({names}) VALUES {', '.join(f'({row})' for row in rows)}")  # noqa: S608 - ours
    columns = ", ".join(f'"{column.name}"' for column in sql_table(Control).c)
    statements.append(
        f"INSERT INTO {sql_table(ControlHistory).name} ({columns}, was_absent, valid_from, valid_to)"  # noqa: S608 - ours
        f" SELECT {columns}, false, '{BEGINNING}', '{day(_IMPORTED)}' FROM control"
        f" WHERE id = '{last}'"
    )
    store.ask(label, *statements, *store.settling)


def forget(store: Store, label: str, source: str) -> None:
    """Copy a database, and have nothing write its history any more."""
    store.copy(label, source)
    triggers = [
        (table.name, trigger.name)
        for table in HISTORY_TABLES[0].metadata.sorted_tables
        for trigger in table.info.get("triggers", ())
        if "_history_" in trigger.name
    ]
    on = " ON {}" if store.of_trigger else ""
    store.ask(label, *(f"DROP TRIGGER {name}{on.format(table)}" for table, name in triggers), *store.settling)


@contextmanager
def measured(
    stores: Mapping[str, Store], sizes: Mapping[str, int], token: str
) -> Iterator[tuple[dict[str, Contender], dict[str, Contender]]]:
    """All contenders, those that change something first. ``sizes`` has the number of controls by database.

    The databases get another past, and `small` a copy without the history.
    """
    for store in stores.values():
        for label, controls in sizes.items():
            tell(f"giving {controls:,} controls on {store.name} two years of past")
            remember(store, label, *changing(label, controls))
        forget(store, WITHOUT, "small")
    with changes(stores, sizes["small"], token) as changed, answers(stores, sizes, token) as asked:
        yield changed, asked


@contextmanager
def changes(stores: Mapping[str, Store], controls: int, token: str) -> Iterator[dict[str, Contender]]:
    """Assessments with the history and without it, in the database `small` and a copy of it."""
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for prefix, store in stores.items():
            for label, words in (("small", "assessment"), (WITHOUT, "assessment, no history")):
                server = stack.enter_context(normata(store, label, page_cache_mib=0))
                load = partial(one_by_one, server, token, assessments(controls))
                key, pids = f"{prefix}-{label}-assess", (server.pid, store.pid)
                contenders[key] = Contender(f"Normata, {store.name}, {words}", load, pids, connections=1)
        yield contenders


@contextmanager
def answers(stores: Mapping[str, Store], sizes: Mapping[str, int], token: str) -> Iterator[dict[str, Contender]]:
    """Answers of today and of the past, and of coverage over time. ``sizes`` has the number of controls by database."""
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for prefix, store in stores.items():
            for label, controls in sizes.items():
                server = stack.enter_context(normata(store, label, page_cache_mib=0))
                for name, words, request in _asked(label):
                    load = partial(one_by_one, server, token, itertools.repeat(request))
                    contenders[f"{prefix}-{label}-{name}"] = Contender(
                        f"Normata, {store.name}, {controls:,} controls, {words}",
                        *(load, (server.pid, store.pid)),
                        connections=1,
                    )
        yield contenders


def _asked(label: str) -> Iterator[tuple[str, str, Request]]:
    """What is asked, with a key and words for it."""
    control = f"/controls/{quote(made_id('control', 31))}/"
    framework = f"/frameworks/{quote(framework_of(label))}"
    paths = {"controls": "/controls/", "coverage": "/coverage/", "control": control}
    paths |= {"explanation": f"{control}coverage/", "summary": f"{framework}/coverage/", "gaps": f"{framework}/gaps/"}
    paths |= {"statement": f"{framework}/statement-of-applicability/"}
    moments: dict[str, tuple[str, dict[str, str]]] = {
        "now": ("", {}),
        "then": (" as of a day", {"asOf": day(_LATER)}),
        "before": (" as of a day before an import", {"asOf": day(_EARLIER)}),
    }
    for name, path in paths.items():
        of_page = {"limit": "100"} if path.count("/") == 2 else {}
        for when, (words, query) in moments.items():
            if when == "before" and label != "adopted":
                continue  # where there is less to be found, it takes less
            asked = urlencode({"organizationId": ORGANIZATION} | of_page | query)
            yield f"{name}-{when}", f"{name}{words}", Request("GET", f"{path}?{asked}")
    for step in STEPS:
        asked = urlencode({"organizationId": ORGANIZATION, "from": day(0), "step": step})
        request = Request("GET", f"{framework}/coverage/history/?{asked}")
        yield f"over-time-{step}", f"over two years by the {step}", request


def framework_of(label: str) -> str:
    """The framework whose controls change in a database: the short one of the large organization, or the last one."""
    return SHORT_FRAMEWORK if label == "adopted" else made_id("framework", FRAMEWORKS - 1)


def changing(label: str, controls: int) -> tuple[int, int]:
    """The first control of that framework, and how many it has."""
    size = SHORT if label == "adopted" else controls // FRAMEWORKS
    return controls - size, size
