"""The pages of the console: all of them with the demo, and the controls with each filter in the large database."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import repeat
from urllib.parse import urlencode

from benchmarks.installations import Store, normata, tell
from benchmarks.speed.contenders import Contender, Request
from benchmarks.speed.coverage import SEARCHES, send
from benchmarks.speed.data import CALLER
from normata.console.page_request import SESSION_COOKIE
from normata.core.schema.fields import COVERAGE_STATUSES
from normata.identity.sessions import sessions
from tests.browser.demonstrated import filled
from tests.browser.pages import addresses_of
from tests.databases import change, open_url

DEMO = "demo"
CONTROLS = "/app/organization-0/controls/"
_MOST = 25  # requests for each page in a round, since there are many pages
_YES_NO = ("true", "false")

# Each filter of the page with its values, and a late page without a filter.
QUERIES: tuple[Mapping[str, str], ...] = (
    {},
    {"page": "100"},
    {"frameworks": "framework-1"},
    *({"coverageStatus": status} for status in COVERAGE_STATUSES),
    *({"effectiveCoverageStatus": status} for status in COVERAGE_STATUSES),
    *({name: value} for name in ("isIndirectlyCovered", "hasGap", "isApplicable", "isAssessed") for value in _YES_NO),
    {"type": "CONTROL"},
    {"type": "CATEGORY"},
    *({"search": words} for words in SEARCHES),
)


def demonstrate(store: Store) -> str:
    """Create a database with the demo, and return the secret of its user's session."""
    tell(f"making the demo in {store.name}")
    store.copy(DEMO, "")
    secrets, user = filled(store.url(DEMO))
    store.ask(DEMO, *store.settling)
    return secrets[user]


def cookie(secret: str) -> dict[str, str]:
    """The headers of a browser that is signed in."""
    return {"Cookie": f"{SESSION_COOKIE}={secret}", "Accept-Encoding": "gzip, deflate, br, zstd"}


@contextmanager
def pages(stores: Mapping[str, Store], secrets: Mapping[str, str]) -> Iterator[dict[str, Contender]]:
    """All pages, by database, store and path; ``secrets`` are those of the demos."""
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for prefix, secret in secrets.items():
            store = stores[prefix]

            def add(
                label: str, secret: str, asked: Mapping[str, str], prefix: str = prefix, store: Store = store
            ) -> None:
                server = stack.enter_context(normata(store, label))
                for name, path in asked.items():
                    load = partial(send, server, cookie(secret), repeat(Request("GET", path)), most=_MOST)
                    contenders[f"{label} {prefix} {name}"] = Contender(
                        f"{name or 'home'}, {label}, {store.name}", load, (server.pid, store.pid), connections=1
                    )

            with normata(store, DEMO) as server:
                found = addresses_of(f"http://localhost:{server.port}", secret)
            add(DEMO, secret, found)
            large = {urlencode(query): f"{CONTROLS}?{urlencode(query)}" for query in QUERIES}
            add("large", _sign_in(store), large)
        yield contenders


def _sign_in(store: Store) -> str:
    with closing(open_url(store.url("large"))) as database:
        return change(
            database, lambda unit: sessions.begin(unit, CALLER, "link", address="127.0.0.1", user_agent="benchmark")
        )
