"""Records as the tests of their pages make them, ask for them, and fill them in."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from httpx2 import Response

from normata.records.base import Restorable
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA
from tests.console.browser import Browser
from tests.world import ALPHA as ALPHA_ID

ARCHIVE = f"{ALPHA}archive/"


def page_of(kind: type[Restorable], *steps: str, query: str = "") -> str:
    """The address of a page about a kind."""
    within = "".join(f"{quote(step, safe='')}/" for step in steps)
    return f"{ALPHA}records/{kind.path}/{within}" + (f"?{query}" if query else "")


def new_of(kind: type[Restorable], query: str = "") -> str:
    """The address of the form of a new record."""
    return f"{ALPHA}new/{kind.path}/" + (f"?{query}" if query else "")


def made(people: People, kind: type[Restorable], **values: Any) -> str:
    """The id of a new record of alpha's, with a title of its own unless it is given one."""
    body = {"organizationId": ALPHA_ID, kind.title_column(): f"New {uuid4()}", **values}
    answer = people.instance.client.post(f"/{kind.path}/", json=body, headers=bearer(people, "editor"))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def bearer(people: People, user: str) -> dict[str, str]:
    """The header with a token of a user; of the same people always the same."""
    if user not in people.bearers:
        people.bearers[user] = people.instance.bearer(user)
    return people.bearers[user]


def stored(people: People, kind: type[Restorable], record_id: str) -> dict[str, Any]:
    """A record as the interface has it."""
    instance = people.instance
    answer = instance.client.get(
        f"/{kind.path}/{quote(record_id, safe='')}/",
        params={"organizationId": ALPHA_ID},
        headers=bearer(people, "viewer"),
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


class Sheet(HTMLParser):
    """A form of a page, filled in as a browser would send it untouched; fields can be set before it is sent."""

    def __init__(self, page: Response, ending: str) -> None:
        super().__init__(convert_charrefs=True)
        assert page.headers["content-type"].startswith("text/html"), page.text[:300]
        self.action = ""
        self.fields: dict[str, list[str]] = {}
        self._ending = ending
        self._is_here = False
        self._area: str | None = None
        self._select: str | None = None
        self.feed(page.text)
        assert self.action, f"no form for {ending}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a field."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and given.get("method") == "post" and given.get("action", "").endswith(self._ending):
            self._is_here = not self.action
            self.action = self.action or given["action"]
        if not self._is_here:
            return
        match tag:
            case "input" if "name" in given and (given.get("type") != "checkbox" or "checked" in given):
                self.fields.setdefault(given["name"], []).append(given.get("value", ""))
            case "textarea":
                self._area = given["name"]
                self.fields[self._area] = [""]
            case "select":
                self._select = given["name"]
            case "option" if self._select and ("selected" in given or self._select not in self.fields):
                self.fields[self._select] = [given["value"]]

    def handle_endtag(self, tag: str) -> None:
        """Note where a field ends, and drop the line's end that a browser drops."""
        if tag == "textarea" and self._area is not None:
            self.fields[self._area] = [self.fields[self._area][0].removeprefix("\n").replace("\n", "\r\n")]
            self._area = None
        elif tag == "select":
            self._select = None
        elif tag == "form":
            self._is_here = False

    def handle_data(self, data: str) -> None:
        """Note the text of a field."""
        if self._area is not None:
            self.fields[self._area][0] += data

    def value(self, name: str) -> str:
        """What stands in a field."""
        return self.fields[name][-1]

    def send(self, browser: Browser, **changed: str | list[str] | None) -> Response:
        """The answer to it, with some fields changed; those that are null are left out."""
        fields: dict[str, Any] = {**self.fields, **changed}
        fields = {name: value for name, value in fields.items() if value is not None}
        return browser.client.post(self.action, data=fields, headers={"Sec-Fetch-Site": "same-origin"})
