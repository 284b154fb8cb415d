"""The pages that a process keeps: which, how many, and which of them goes first."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import ValidationError

from normata.core.http.content import Content
from normata.core.http.negotiation import CODINGS
from normata.core.http.page_cache import Page, PageCache
from normata.settings import Settings


def page(size: int, revision: str = "now") -> Page:
    """A page that takes so many bytes."""
    made = Page(revision, Content(b"x" * (size - 1_000)))
    assert made.content.size == size
    return made


def pack(content: Content, coding: str) -> None:
    """Have the content packed, as for a client that wants it so."""
    asyncio.run(content.representation({b"accept-encoding": coding.encode()}))


def kept(pages: PageCache, *keys: str) -> list[str]:
    return [key for key in keys if pages.find(key, "now") is not None]


def test_a_page_is_found_for_its_revision_only() -> None:
    pages = PageCache(10_000)
    first = page(2_000, "one")
    pages.store("key", first)
    assert pages.find("key", "one") is first
    assert pages.find("key", "two") is None
    assert pages.find("key", "") is None
    assert pages.find("other", "one") is None
    second = page(3_000, "two")
    pages.store("key", second)
    assert pages.find("key", "one") is None
    assert pages.find("key", "two") is second
    assert pages.bytes == 3_000 + len("key")


def test_they_take_no_more_than_the_limit() -> None:
    pages = PageCache(10_000)
    for number in range(100):
        pages.store(str(number), page(1_500 + number))
        assert pages.bytes <= 10_000
    assert kept(pages, *map(str, range(100))) == [str(number) for number in range(94, 100)]


def test_the_least_recently_used_goes_first() -> None:
    pages = PageCache(6_000 + len("abc"))
    for key in "abc":
        pages.store(key, page(2_000))
    assert pages.find("a", "now") is not None
    pages.store("d", page(2_000))
    assert kept(pages, *"abcd") == ["a", "c", "d"]
    pages.store("e", page(4_000))
    assert kept(pages, *"abcde") == ["d", "e"]


def test_to_look_for_another_revision_is_no_use_of_a_page() -> None:
    pages = PageCache(4_000 + len("new" + "third"))
    pages.store("old", page(2_000))
    pages.store("new", page(2_000))
    assert pages.find("old", "another") is None
    pages.store("third", page(2_000))
    assert kept(pages, "old", "new", "third") == ["new", "third"]


def test_a_page_larger_than_the_limit_is_not_kept_and_displaces_no_other() -> None:
    pages = PageCache(5_000 + len("exact"))
    pages.store("small", page(2_000))
    pages.store("large", page(5_001))
    assert kept(pages, "small", "large") == ["small"]
    pages.store("small", page(5_001))
    assert kept(pages, "small") == []
    assert pages.bytes == 0
    pages.store("exact", page(5_000))
    assert kept(pages, "exact") == ["exact"]


def test_what_a_page_is_packed_into_counts() -> None:
    pages = PageCache(100_000)
    growing = Page("now", Content(bytes(range(256)) * 100))
    pages.store("key", growing)
    before = pages.bytes
    for coding in (*CODINGS, "identity"):
        pack(growing.content, coding)
        pages.store("key", growing)
        assert pages.bytes == growing.content.size + len("key")
    packed = sum(len(growing.content.representations[coding].body) for coding in CODINGS)
    assert pages.bytes == before + packed


def test_a_page_that_outgrows_the_limit_goes() -> None:
    growing = Page("now", Content(b"x" * 4_000))
    pages = PageCache(growing.content.size + len("key"))
    pages.store("key", growing)
    assert kept(pages, "key") == ["key"]
    pack(growing.content, "gzip")
    pages.store("key", growing)
    assert kept(pages, "key") == []
    assert pages.bytes == 0


def test_a_limit_of_nothing_keeps_nothing() -> None:
    pages = PageCache(0)
    pages.store("key", Page("now", Content(b"")))
    assert kept(pages, "key") == []
    assert pages.bytes == 0


@pytest.mark.parametrize("value", ["-1", "x", "1.5", "65537", ""])
def test_refused_values_of_the_setting(value: str) -> None:
    with pytest.raises(ValidationError):
        Settings(page_cache_mib=value)
