"""The English texts of notifications, for clients to fetch."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.routing import Route

from normata.core.http.content import Content
from normata.core.http.pages import content_page
from normata.notifications.texts import ENGLISH

_AN_HOUR = b"public, max-age=3600"


def routes() -> Iterator[Route]:
    """The route of /notifications/texts/. Everybody may read what is in the source anyway."""
    content = Content(ENGLISH.read_bytes(), cache_control=_AN_HOUR, vary=b"accept-encoding")
    yield content_page("/notifications/texts/", lambda _root: content)
