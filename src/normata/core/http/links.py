"""Where the other pages of a list are (RFC 8288)."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote, unquote_plus

LONGEST_LINKED = 2_000  # bytes of a query: four links repeat it, and proxies take headers of some kilobytes

# What may stand in a path and in a query as it is (RFC 3986, appendix A), a percent sign that escapes included.
_IN_PATH = "/%:@!$&'()*+,;=~"
_IN_QUERY = _IN_PATH + "?"


@lru_cache(maxsize=1_000)
def page_links(path: str, query_string: bytes, page: int, limit: int, total: int) -> bytes:
    """The value of ``Link`` for a page: first, prev, next and last, as far as there are such.

    ``path`` and ``query_string`` are those of the request, with the prefix under which its sender sees the application.
    All but ``page`` is kept as it was sent. A page past the end comes after the last one.
    """
    last = max(1, -(-total // limit))
    pages = {"first": 1}
    if page > 1:
        pages["prev"] = min(page - 1, last)
    if page < last:
        pages["next"] = page + 1
    pages["last"] = last
    remaining = [one for one in query_string.decode("latin-1").split("&") if one and not _is_page(one)]
    base = quote(path, safe=_IN_PATH, encoding="latin-1") + "?"
    base += "".join(quote(one, safe=_IN_QUERY, encoding="latin-1") + "&" for one in remaining)
    return ", ".join(f'<{base}page={number}>; rel="{name}"' for name, number in pages.items()).encode("latin-1")


def _is_page(parameter: str) -> bool:
    return unquote_plus(parameter.partition("=")[0]) == "page"
