"""What a browser tells of a page: what came over the network, how soon it is seen, and how soon a key does something.

The limits are those that the tests hold, and ``make bench`` measures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # `make bench` goes without a browser where there is none
    from playwright.sync_api import BrowserContext, Page

FIRST_VIEW = 45_000  # bytes
FIRST_PAINT, LONGEST_TASK, REACTION = 200, 50, 100  # milliseconds

_KEYS = ("j", "j", "k", "?", "Escape", "Control+k", "a", "c", "ArrowDown", "Escape")
_AFTER = 200  # milliseconds in which the browser tells of the last key


class Loaded(NamedTuple):
    """What came over the network: its address, and its bytes as they were sent and as they are."""

    address: str
    encoded: int
    decoded: int


class Seen(NamedTuple):
    """Milliseconds to the first contentful paint, the layout shift, and the milliseconds of the longest task."""

    paint: float
    shift: float
    task: float


def watch(context: BrowserContext) -> None:
    """Watch what becomes of the pages of a context."""
    context.add_init_script(_WATCH)


def seen(page: Page, address: str) -> Seen:
    """Load a page of a context that is watched."""
    page.goto(address)
    return Seen(**page.evaluate(_SEEN))


def loaded(page: Page) -> list[Loaded]:
    """What has come over the network for a page."""
    return [Loaded(*one) for one in page.evaluate(_LOADED)]


def slowest_key(page: Page) -> float:
    """Milliseconds from a key to what it does, as is seen on a list: of several, the longest."""
    page.reload()
    page.evaluate(_EVENTS)
    for key in _KEYS:
        page.keyboard.press(key)
    page.wait_for_timeout(_AFTER)
    longest: Any = page.evaluate("Math.max(...window.events)")
    return float(longest)


def palette_answer(page: Page, typed: str) -> float:
    """Milliseconds from the last key of what is typed to all that the palette finds by it, painted."""
    page.keyboard.press("Control+k")
    page.keyboard.type(typed[:-1])
    page.locator("#palette:not([aria-busy])").wait_for()
    page.evaluate(_PALETTE)
    page.keyboard.press(typed[-1])
    found: Any = page.evaluate("window.answered")
    page.keyboard.press("Escape")
    return float(found)


_LOADED = (
    "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
    ".map((entry) => [entry.name, entry.encodedBodySize, entry.decodedBodySize])"
)
_WATCH = """
window.seen = { paint: Infinity, shift: 0, task: 0 };
const watch = (type, note) =>
  new PerformanceObserver((list) => list.getEntries().forEach(note)).observe({ type, buffered: true });
watch("paint", (entry) => { if (entry.name === "first-contentful-paint") seen.paint = entry.startTime; });
watch("layout-shift", (entry) => { seen.shift += entry.value; });
watch("longtask", (entry) => { seen.task = Math.max(seen.task, entry.duration); });
"""
_SEEN = """() => new Promise((resolve) => {
  const look = (left) => {
    const isThere = seen.paint < Infinity || left === 0;
    setTimeout(isThere ? () => resolve(seen) : () => look(left - 1), isThere ? 100 : 20);
  };
  look(100);
})"""
_PALETTE = """() => {
  window.answered = new Promise((resolve) => {
    addEventListener("keydown", ({ timeStamp }) => {
      const look = () => {
        const isBusy = document.querySelector("#palette").hasAttribute("aria-busy");
        requestAnimationFrame(isBusy ? look : () => setTimeout(() => resolve(performance.now() - timeStamp)));
      };
      setTimeout(look);  // the field has the letter by then
    }, { once: true, capture: true });
  });
}"""
_EVENTS = """() => {
  window.events = [0];
  const note = (entry) => { if (entry.name.startsWith("key")) events.push(entry.duration); };
  new PerformanceObserver((list) => list.getEntries().forEach(note)).observe({ type: "event", durationThreshold: 16 });
}"""
