"""The page cache: encoded pages of lists, cached by a process as long as their list has not changed."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

from normata.core.http.content import Content
from normata.core.schema.paging import MOST_COUNTED, Envelope, OwnPageQuery, Query


class Place(NamedTuple):
    """The place of a page in its list: the number of the last page, and the cursor of the next.

    They are null if the last page is not known or has no number, and if there is no next one.
    """

    last: int | None
    next: str | None


class Page(NamedTuple):
    """A page at a revision of its list; the revision is empty if it is not to be cached.

    ``place`` is null if it is not a page of a list. Data of a single request, such as links to other pages, is not
    stored with it, because requests share the page.
    """

    revision: str
    content: Content
    place: Place | None = None


def place_of(answer: Any, query: Query) -> Place | None:
    """The place of a page in its list; null if it is not one."""
    if not isinstance(answer, Envelope) or not isinstance(query, OwnPageQuery):
        return None
    last = max(1, -(-answer["total"] // query.limit))
    is_known = answer.get("totalIsExact", True) and (query.counts_all or answer["total"] <= MOST_COUNTED)
    return Place(last if is_known else None, answer.next)


class PageCache:
    """The pages that a process caches, up to a number of bytes; the least recently used is removed first.

    A page is sent only for the current revision of its list. The token lookup of the same request has just read that
    from the database, so an old page is never sent, whichever process has changed something.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pages: OrderedDict[str, Page] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self.bytes = 0

    def find(self, key: str, revision: str) -> Page | None:
        """The page cached under ``key``, if it is of this revision; else null."""
        page = self._pages.get(key)
        if page is None or page.revision != revision:
            return None
        self._pages.move_to_end(key)
        return page

    def store(self, key: str, page: Page) -> None:
        """Cache a page, or update the size of a cached one."""
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
