"""Lists of a kind of records, with each filter, sort and search, with few and with many records."""

import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from http import HTTPStatus
from urllib.parse import urlencode

from benchmarks.installations import Server, Store, normata, tell
from benchmarks.speed.contenders import Contender, MeasurementFailed, Request
from benchmarks.speed.coverage import one_by_one
from benchmarks.speed.data import ORGANIZATION, arrays
from benchmarks.speed.figures import Figures, ratio
from benchmarks.speed.outcome import Outcome
from benchmarks.world import Tokens, made_id, member
from normata.records.kinds import Task
from normata.records.listing import record_query

FEW, MANY = 2_000, 600_000  # tasks, of which half are archived

# They find all live tasks, the archived ones, or a third of the live ones.
FILTERS: Mapping[str, str] = {
    "": "",
    "archived": "only",
    "status": "TODO",
    "type": "OTHER",
    "assigneeMemberId": made_id("membership", member(0, 3)),
    "updatedSince": "2025-01-01",
}
SORTS = ("title", "deadline", "updatedAt", "createdAt")
# One live task of a thousand has the first, all have the second, none the third.
SEARCHES = ("0001777", "task", "qwxzvk")
LAST = "last"  # the last page, by a cursor


def load(stores: Mapping[str, Store], tokens: Tokens, many: int) -> None:
    """Create the databases `few` and `many`."""
    for store in stores.values():
        if store.is_ours:
            tell(f"loading {many:,} tasks into {store.name}")
            store.create("few")
            store.load("few", arrays(tokens, controls=100, policies=0, tasks=FEW))
            store.ask("few", *store.settling)
            store.copy("many", "few")
            multiply(store, "many", many)


def multiply(store: Store, label: str, records: int) -> None:
    """Copy the existing tasks until there are ``records``; the copies have other ids."""
    (there,) = store.ask(label, "SELECT count(*) FROM task")
    apart = {"id": "id || '-' || n", "slug": "slug || '-' || n", "short_id": f"short_id + n * {there}"}
    names = ", ".join(f'"{column.name}"' for column in Task.sql().c)
    values = ", ".join(apart.get(column.name, f'"{column.name}"') for column in Task.sql().c)
    store.ask(
        label,
        f"WITH RECURSIVE copy (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < {records // there - 1})"  # noqa: S608 - ours
        f" INSERT INTO task ({names}) SELECT {values} FROM task CROSS JOIN copy",
        *store.settling,
    )


@contextmanager
def lists(stores: Mapping[str, Store], token: str) -> Iterator[dict[str, Contender]]:
    """The lists in the databases `few` and `many` of the stores."""
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for prefix, store in stores.items():
            if not store.is_ours:
                continue
            for label in ("few", "many"):
                server = stack.enter_context(normata(store, label, page_cache_mib=0))
                for name, words, query in _queries(server, token):
                    asked = itertools.repeat(Request("GET", f"/tasks/?{urlencode(query)}"))
                    load = partial(one_by_one, server, token, asked)
                    contenders[f"{prefix}-{label}-{name}"] = Contender(
                        f"Normata, {store.name}, {label} tasks{words}", load, (server.pid, store.pid), connections=1
                    )
        yield contenders


def _queries(server: Server, token: str) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """A key, a description and the parameters of each list."""
    all_of = {"organizationId": ORGANIZATION}
    for name, value in FILTERS.items():
        yield name, f", {name}={value}" if name else "", {**all_of, **({name: value} if name else {})}
    for column in SORTS:
        yield f"sort-{column}", f", sorted by {column}", {**all_of, "sortColumn": column}
    for searched in SEARCHES:
        yield f"search-{searched}", f", search for “{searched}”", {**all_of, "search": searched}
    yield LAST, ", the last page", {**all_of, "cursor": _last_cursor(server, token)}


def _last_cursor(server: Server, token: str) -> str:
    """The cursor that a client gets for the last page, without following all the pages before."""
    status, _, body = server.get(f"/tasks/?organizationId={ORGANIZATION}&sortDirection=desc", token)
    if status != HTTPStatus.OK:
        raise MeasurementFailed(f"the oldest tasks: {status}")
    first_on_it = json.loads(body)["items"][-1]
    query = record_query(Task).read([("organizationId", ORGANIZATION)]).of_list("/tasks/ ")
    return query.next_cursor((first_on_it["createdAt"], first_on_it["id"]))


def of_records(figures: Figures) -> Iterator[Outcome]:
    """How much slower the first page is with many records than with few, and the last page than the first."""
    many = {key: one for key, one in figures.records.items() if "-many-" in key}
    for prefix, name in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL")):
        for group, words, bound in (("sort-", "sort", 3), ("search-", "search", 4), ("", "filter", 2)):
            keys = [key for key in many if key.startswith(f"{prefix}-many-{group}") and _is_of(key, group)]
            found = [ratio(figures.records, key.replace("-many-", "-few-"), key) for key in keys]
            if slowest := max((one for one in found if one is not None), key=lambda one: one.value, default=None):
                yield Outcome(f"First page, many records / few, {name}, slowest {words}, time", slowest, bound, False)
        if found_last := ratio(figures.records, f"{prefix}-many-", f"{prefix}-many-{LAST}"):
            yield Outcome(f"Last page by cursor / first, many records, {name}, time", found_last, 2, False)


def _is_of(key: str, group: str) -> bool:
    """Whether a key is of a group; the empty one is of filters."""
    name = key.partition("-many-")[2]
    return bool(group) or (name != LAST and not name.startswith(("sort-", "search-")))
