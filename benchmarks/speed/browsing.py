"""The console in a browser: bytes over the network, time to the first view, and reaction to keys."""

from importlib.util import find_spec

from benchmarks.installations import Store, normata, tell
from benchmarks.speed.console import DEMO, cookie
from benchmarks.speed.figures import Browsed, Seen
from tests.browser.demonstrated import PLACE
from tests.browser.pages import addresses_of

_CONTROLS = f"{PLACE}controls/"


def browse(store: Store, secret: str, rounds: int) -> Browsed:
    """What Chromium measures with the demo; empty if Chromium or Playwright is missing."""
    if find_spec("playwright") is None:
        return _nothing("Playwright is missing; `requirements/browser.txt` has it")
    from tests.browser import driving, watching  # noqa: PLC0415 - only importable if Playwright is installed

    if driving.program() is None:
        return _nothing(driving.MISSING)
    with normata(store, DEMO) as server, driving.launched() as chromium:
        base = f"http://localhost:{server.port}"
        addresses = addresses_of(base, secret)
        context = chromium.new_context(base_url=base)
        name, _, value = cookie(secret)["Cookie"].partition("=")
        context.add_cookies([{"name": name, "value": value, "url": base}])
        watching.watch(context)
        page = context.new_page()
        browsed = Browsed(browser=f"Chromium {chromium.version}")
        for number in range(rounds):
            for route, address in addresses.items():
                seen = watching.seen(page, address)
                kept = browsed.pages.setdefault(route, Seen(label=route))
                kept.paint.append(seen.paint)
                kept.shift.append(seen.shift)
                kept.task.append(seen.task)
            page.goto(_CONTROLS)
            browsed.reactions.append(watching.slowest_key(page))
            slowest = max(one.paint[-1] for one in browsed.pages.values())
            tell(f"round {number + 1} of {rounds}: seen after {slowest:.0f} ms at most")
        context.close()
        fresh = chromium.new_context(base_url=base)  # with an empty cache
        fresh.add_cookies([{"name": name, "value": value, "url": base}])
        first = fresh.new_page()
        first.goto(_CONTROLS)
        browsed.first_view = sum(one.encoded for one in watching.loaded(first))
        fresh.close()
    return browsed


def _nothing(reason: str) -> Browsed:
    tell(f"nothing is measured in a browser: {reason}")
    return Browsed(missing=reason)
