"""The page cache: encoded pages of lists that a process stores as long as nothing has changed."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from normata.core.http.content import Content


class Page(NamedTuple):
    """A page as it was at a revision of its list; the revision is empty if it is not to be cached.

    ``total`` is how many items all pages have together, null if it is no page of a list. What names the request of
    one client, such as links to other pages, is not stored with it: many share the page.
    """

    revision: str
    content: Content
    total: int | None = None


class PageCache:
    """Pages that a process stores, up to so many bytes; the least recently used goes first.

    A page is sent only for the revision that its list has now. The token lookup of the same request has just read that
    from the database, so it does not matter which process has changed something: no old page is ever sent.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pages: OrderedDict[str, Page] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self.bytes = 0

    def find(self, key: str, revision: str) -> Page | None:
        """The page that is stored under ``key``, if it is of this revision."""
        page = self._pages.get(key)
        if page is None or page.revision != revision:
            return None
        self._pages.move_to_end(key)
        return page

    def store(self, key: str, page: Page) -> None:
        """Store a page, or know that the one that is stored has grown."""
        self._drop(key)
        size = page.content.size + len(key)
        if size > self._limit:
            return
        self._pages[key] = page
        self._sizes[key] = size
        self.bytes += size
        while self.bytes > self._limit:
            self._drop(next(iter(self._pages)))

    def _drop(self, key: str) -> None:
        if self._pages.pop(key, None) is not None:
            self.bytes -= self._sizes.pop(key)
