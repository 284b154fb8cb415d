"""The first page of a kind of records, with each filter, with few and with many records."""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from urllib.parse import urlencode

from benchmarks.installations import Store, normata, tell
from benchmarks.speed.contenders import Contender, Request
from benchmarks.speed.coverage import one_by_one
from benchmarks.speed.data import ORGANIZATION, arrays
from benchmarks.world import Tokens, made_id, member
from normata.records.kinds import Task

FEW, MANY = 1_000, 1_000_000  # tasks, of which half are archived

# They find all live tasks, the archived ones, or a third of the live ones.
FILTERS: Mapping[str, str] = {
    "": "",
    "archived": "only",
    "status": "TODO",
    "type": "OTHER",
    "assigneeMemberId": made_id("membership", member(0, 3)),
    "updatedSince": "2025-01-01",
}


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
                for name, value in FILTERS.items():
                    query = urlencode({"organizationId": ORGANIZATION, **({name: value} if name else {})})
                    asked = itertools.repeat(Request("GET", f"/tasks/?{query}"))
                    words = f"Normata, {store.name}, {label} tasks{f', {name}={value}' if name else ''}"
                    load = partial(one_by_one, server, token, asked)
                    contenders[f"{prefix}-{label}-{name}"] = Contender(
                        words, load, (server.pid, store.pid), connections=1
                    )
        yield contenders
