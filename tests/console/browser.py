"""A browser, as far as the console needs one: it keeps cookies, and says which page a request comes from."""

from __future__ import annotations

import re
from html import unescape

from httpx2 import Response

from normata.identity.sign_in import links as sign_in_links
from tests.client import TestClient
from tests.databases import change
from tests.served import Served


class Browser:
    """One browser. It follows no redirects, so that tests see them."""

    def __init__(self, instance: Served, base_url: str = "http://localhost:8000") -> None:
        self.client = TestClient(instance.app, base_url=base_url, follow_redirects=False)
        self.client.portal = instance.client.portal  # one event loop for all browsers

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies that it has, by their names."""
        return {cookie.name: cookie.value or "" for cookie in self.client.cookies.jar}

    def get(self, path: str, **headers: str) -> Response:
        """The page at a path."""
        return self.client.get(path, headers={"Sec-Fetch-Site": "none"} | headers)

    def post(self, path: str, /, *, headers: dict[str, str] | None = None, **fields: str) -> Response:
        """The answer to a form of ours; to another page's where ``headers`` say so."""
        sent = {"Sec-Fetch-Site": "same-origin"} if headers is None else headers
        return self.client.post(path, data=fields, headers=sent)


def new_link(instance: Served, user: str) -> str:
    """The secret of a new link for one of the world's users, made as the command line does."""
    return change(instance.database, lambda unit: sign_in_links.create(unit, f"user-{user}"))


def text_of(page: Response) -> str:
    """What a page says, without its tags."""
    assert page.headers["content-type"].startswith("text/html"), page.text[:200]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", page.text)))


def is_refused(page: Response, *, status: int = 403) -> bool:
    """Whether a page refuses something, and tells the id of the request."""
    return page.status_code == status and page.headers["x-request-id"] in text_of(page)
