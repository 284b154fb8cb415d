"""What is rendered of Markdown is bounded in time, and cached."""

from __future__ import annotations

import gc
import time
from unittest import mock

import pytest

from normata.console import markdown as rendering
from normata.console.markdown import markdown
from normata.console.texts import text
from normata.core.documents import markdown_source

NOTE = text("record.markdown.plain")
SLOW = {
    "brackets": "[" * 50_000,
    "pictures": "![" * 25_000,
    "emphasis": "**a**b*" * 7_000,
    "mixed emphasis": "*_" * 25_000,
    "emphasis that nothing ends": "_a *b " * 16_000,
    "emphasis that nothing begins": "*a " * 16_000 + "b_ " * 16_000,
    "emphasis in a link": "[" + "**a**b*" * 7_000 + "](x)",
    "angles": "<a@" * 16_000,
    "references": "".join(f"[a{number}]: x\n" for number in range(4_000)),
    "a long line of a table": "|" * 2_000 + "\n" + "|-" * 2_000 + "\n" + "|a" * 20_000,
}


@pytest.mark.parametrize("written", SLOW.values(), ids=SLOW)
def test_no_text_takes_long(written: str) -> None:
    """Counted in time of this thread, of which the brackets alone took 11 seconds, and without garbage collection."""
    gc.disable()
    try:
        before = time.thread_time()
        markdown(written + ".")
        taken = time.thread_time() - before
    finally:
        gc.enable()
    assert taken < 2


ORDINARY = {
    "bold words": "**long** " * 1_100,
    "italic words": "*a* " * 2_500,
    "links": "[a](https://a.example/b) " * 400,
    "code": "`a` " * 2_500,
    "a list": "- one *two*\n" * 800,
    "a table": "| a | b |\n|---|---|\n" + "| **1** | 2 |\n" * 700,
    "nested quotes": "> > one\n\n" * 1_000,
    "words": "Everybody reports incidents.\nAt once.\n\n" * 250,
}


@pytest.mark.parametrize("written", ORDINARY.values(), ids=ORDINARY)
def test_a_long_policy_is_rendered_however_busy_the_machine_is(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock finds all time used up."""
    assert 9_000 <= len(written) <= 11_000
    monkeypatch.setattr(markdown_source, "_SECONDS", 0)
    assert NOTE not in markdown(written)
    assert NOTE in markdown("[" * 10_000)


def test_what_takes_too_long_is_shown_as_it_was_written() -> None:
    shown = markdown(SLOW["brackets"] + "<b>")
    assert NOTE in shown
    assert shown.endswith("[&lt;b&gt;</p>")
    assert NOTE not in markdown("A *short* text")


def test_a_text_is_rendered_once() -> None:
    with mock.patch.object(rendering, "_render", wraps=rendering._render) as render:
        assert markdown("once *only*") == markdown("once *only*") == "<p>once <em>only</em></p>\n"
        assert NOTE in markdown("[" * 40_000)
        assert NOTE in markdown("[" * 40_000)
    assert render.call_count == 2


def test_what_was_rendered_last_is_cached() -> None:
    cache = rendering._Cache()
    half = markdown("x") * (rendering._CACHED // 2 // len(markdown("x")))
    for key in (b"1", b"2"):
        cache.put(key, half)
    assert cache.get(b"1") is not None
    cache.put(b"3", half)
    assert [cache.get(key) is not None for key in (b"1", b"2", b"3")] == [True, False, True]
