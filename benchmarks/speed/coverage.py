"""Times of single requests about coverage: assessments, gaps, explanations, searches and sorting."""

import http.client
import itertools
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from benchmarks.installations import PATIENCE, Server, Store, normata
from benchmarks.speed.contenders import PAGE, Contender, Load, MeasurementFailed, Request, archive_again
from benchmarks.speed.data import ORGANIZATION, SHORT, SHORT_FRAMEWORK, policy_id
from benchmarks.speed.figures import Sample
from benchmarks.world import made_id

SORTS = ("identifier", "name", "slug", "type", "isMandatory", "coverageStatus", "effectiveCoverageStatus", "updatedAt")
# Words in all controls, in some of them, and in none.
SEARCHES = ("a", "access", "control policy", "nothing of the kind")


class Sizes(NamedTuple):
    """The numbers of controls in the databases `small`, `large` and `adopted`, which also has a short framework."""

    small: int
    large: int
    adopted: int


@contextmanager
def coverage(stores: Mapping[str, Store], policies: int, sizes: Sizes, token: str) -> Iterator[dict[str, Contender]]:
    """All contenders: assessments and gaps in all ``stores``, the others in "sqlite" only."""
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        servers: dict[tuple[str, str], Server] = {}

        def add(
            key: str, label: str, size: str, requests: Callable[[], Iterator[Request]], on: str = "sqlite", **hooks: Any
        ) -> None:
            store = stores[on]
            if (on, size) not in servers:
                servers[on, size] = stack.enter_context(normata(store, size, page_cache_mib=0))
            server = servers[on, size]
            load = partial(one_by_one, server, token, requests())
            pids = server.pid, store.pid
            contenders[key] = Contender(f"Normata, {store.name}, {label}", load, pids, connections=1, **hooks)

        posts = [Request("POST", f"/policies/{policy_id(number)}/restore/") for number in range(policies)]
        short = Request("GET", f"/frameworks/{quote(SHORT_FRAMEWORK)}/gaps/?organizationId={ORGANIZATION}")
        many = f"{sizes.adopted:,} adopted"
        for on, store in stores.items():
            prefix = "" if on == "sqlite" else f"{on}-"
            again = partial(archive_again, store)
            add(f"{prefix}restore", "restore", "small", partial(itertools.cycle, posts), on, prepare=again)
            add(f"{prefix}assess", "assessment", "small", partial(assessments, sizes.small), on)
            add(f"{prefix}assess-many", f"assessment, {many}", "adopted", partial(assessments, sizes.adopted), on)
            add(f"{prefix}gaps", f"gaps of {SHORT}, {many}", "adopted", partial(itertools.repeat, short), on)
        large = sizes.large
        add("explain", "explanation, large", "large", partial(explanations, large))
        add("first", "first page, large", "large", partial(itertools.repeat, Request("GET", PAGE)))
        for column in SORTS:
            asked = partial(itertools.repeat, Request("GET", f"{PAGE}&sortColumn={column}"))
            add(f"sort-{column}", f"sorted by {column}, large", "large", asked)
        for words in SEARCHES:
            asked = partial(itertools.repeat, Request("GET", f"{PAGE}&{urlencode({'search': words})}"))
            add(f"search-{words}", f"search for “{words}”, large", "large", asked)
        yield contenders


def assessments(controls: int) -> Iterator[Request]:
    """Assessments of random controls; each one changes the status."""
    rng, assessed = random.Random(1), dict[str, str]()
    while True:
        control = made_id("control", rng.randrange(controls))
        others = [one for one in ("NONE", "PARTIAL", "FULL") if one != assessed.get(control)]
        status = assessed[control] = rng.choice(others)
        body = {"organizationId": ORGANIZATION, "coverageStatus": status, "coverageGap": f"{rng.random()}"}
        yield Request("PUT", f"/controls/{quote(control)}/coverage/", body)


def explanations(controls: int) -> Iterator[Request]:
    """Explanations of random controls."""
    rng = random.Random(2)
    while True:
        control = made_id("control", rng.randrange(controls))
        yield Request("GET", f"/controls/{quote(control)}/coverage/?organizationId={ORGANIZATION}")


def one_by_one(server: Server, token: str, requests: Iterator[Request], seconds: int) -> Load:
    """Send requests one after the other for some seconds, over one connection."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return send(server, headers, requests, seconds)


def send(
    server: Server, headers: Mapping[str, str], requests: Iterator[Request], seconds: int, *, most: int | None = None
) -> Load:
    """The same with these headers, and at most ``most`` requests."""
    taken: list[float] = []
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)) as connection:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end and (most is None or len(taken) < most):
            request = next(requests)
            body = None if request.body is None else json.dumps(request.body)
            begun = time.perf_counter()
            connection.request(request.method, request.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            taken.append((time.perf_counter() - begun) * 1000)
            if answer.status != 200:
                raise MeasurementFailed(f"{request.method} {request.path}: {answer.status} {content[:200]!r}")
    taken.sort()
    middle = statistics.median(taken)
    return len(taken), Sample(per_second=1000 / middle, p50=middle, p99=taken[int(len(taken) * 0.99)])
