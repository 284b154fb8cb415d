"""The pages that a process keeps: which, how many, and which of them goes first."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import ValidationError

from normata.core.http.content import Content
from normata.core.http.negotiation import CODINGS
from normata.core.http.page_cache import KeptPages, Page
from normata.settings import Settings


def page(size: int, revision: str = "now") -> Page:
    """A page that takes so many bytes."""
    made = Page(revision, Content(b"x" * (size - 1_000)))
    assert made.content.size == size
    return made


def pack(content: Content, coding: str) -> None:
    """Have the content packed, as for a client that wants it so."""
    asyncio.run(content.representation({b"accept-encoding": coding.encode()}))


def kept(pages: KeptPages, *keys: str) -> list[str]:
    return [key for key in keys if pages.find(key, "now") is not None]


def test_a_page_is_found_for_its_revision_only() -> None:
    pages = KeptPages(10_000)
    first = page(2_000, "one")
    pages.keep("key", first)
    assert pages.find("key", "one") is first
    assert pages.find("key", "two") is None
    assert pages.find("key", "") is None
    assert pages.find("other", "one") is None
    second = page(3_000, "two")
    pages.keep("key", second)
    assert pages.find("key", "one") is None
    assert pages.find("key", "two") is second
    assert pages.bytes == 3_000 + len("key")


def test_they_take_no_more_than_the_limit() -> None:
    pages = KeptPages(10_000)
    for number in range(100):
        pages.keep(str(number), page(1_500 + number))
        assert pages.bytes <= 10_000
    assert kept(pages, *map(str, range(100))) == [str(number) for number in range(94, 100)]


def test_the_least_recently_used_goes_first() -> None:
    pages = KeptPages(6_000 + len("abc"))
    for key in "abc":
        pages.keep(key, page(2_000))
    assert pages.find("a", "now") is not None
    pages.keep("d", page(2_000))
    assert kept(pages, *"abcd") == ["a", "c", "d"]
    pages.keep("e", page(4_000))
    assert kept(pages, *"abcde") == ["d", "e"]


def test_to_look_for_another_revision_is_no_use_of_a_page() -> None:
    pages = KeptPages(4_000 + len("new" + "third"))
    pages.keep("old", page(2_000))
    pages.keep("new", page(2_000))
    assert pages.find("old", "another") is None
    pages.keep("third", page(2_000))
    assert kept(pages, "old", "new", "third") == ["new", "third"]


def test_a_page_larger_than_the_limit_is_not_kept_and_displaces_no_other() -> None:
    pages = KeptPages(5_000 + len("exact"))
    pages.keep("small", page(2_000))
    pages.keep("large", page(5_001))
    assert kept(pages, "small", "large") == ["small"]
    pages.keep("small", page(5_001))
    assert kept(pages, "small") == []
    assert pages.bytes == 0
    pages.keep("exact", page(5_000))
    assert kept(pages, "exact") == ["exact"]


def test_what_a_page_is_packed_into_counts() -> None:
    pages = KeptPages(100_000)
    growing = Page("now", Content(bytes(range(256)) * 100))
    pages.keep("key", growing)
    before = pages.bytes
    for coding in (*CODINGS, "identity"):
        pack(growing.content, coding)
        pages.keep("key", growing)
        assert pages.bytes == growing.content.size + len("key")
    packed = sum(len(growing.content.representations[coding].body) for coding in CODINGS)
    assert pages.bytes == before + packed


def test_a_page_that_outgrows_the_limit_goes() -> None:
    growing = Page("now", Content(b"x" * 4_000))
    pages = KeptPages(growing.content.size + len("key"))
    pages.keep("key", growing)
    assert kept(pages, "key") == ["key"]
    pack(growing.content, "gzip")
    pages.keep("key", growing)
    assert kept(pages, "key") == []
    assert pages.bytes == 0


def test_a_limit_of_nothing_keeps_nothing() -> None:
    pages = KeptPages(0)
    pages.keep("key", Page("now", Content(b"")))
    assert kept(pages, "key") == []
    assert pages.bytes == 0


@pytest.mark.parametrize("value", ["-1", "x", "1.5", "65537", ""])
def test_refused_values_of_the_setting(value: str) -> None:
    with pytest.raises(ValidationError):
        Settings(page_cache_mib=value)
