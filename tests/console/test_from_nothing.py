"""From an empty machine to somebody who leaves: what a newcomer does, with real processes, step by step."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import pytest

from tests import prepared
from tests.postgres import Server
from tests.server import PLAIN, SCRIPT, serving

LINK = re.compile(r"http://localhost:8000(/sign-in/\S+)")
PASSWORD = "a heron stands in the reeds"
BOAT = {
    "urn": "urn:example:library:boat",
    "ref_id": "boat",
    "name": "Boat",
    "version": 1,
    "objects": {
        "framework": {
            "urn": "urn:example:framework:boat",
            "ref_id": "BOAT",
            "name": "Boat",
            "requirement_nodes": [{"urn": "urn:boat:1", "assessable": True, "ref_id": "1", "name": "Sails"}],
        }
    },
}


@pytest.fixture(params=["sqlite", "postgresql"])
def nowhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database that is not there, or has no tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'new.db'}"
        return
    server: Server = request.getfixturevalue("postgres")
    name = f"normata_{uuid4().hex}"
    yield server.create(name)
    server.drop(name)


class Person:
    """Somebody with a browser, and later with a token."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.browser = httpx2.Client(base_url=base, headers={"Sec-Fetch-Site": "same-origin"}, verify=PLAIN)
        self.token = ""

    def open(self, link: str, **fields: str) -> httpx2.Response:
        """Open a link that they were given, wherever the instance says that it is, and press its button, if any."""
        parts = urlsplit(link)
        page = self.browser.get(f"{parts.path}?{parts.query}")
        if page.status_code != 200:
            return page
        secret = parts.query.removeprefix("secret=")
        return self.browser.post(parts.path, data={"secret": secret, **fields})

    def make_token(self, scope: str) -> None:
        """Make a token on the page of their account."""
        page = self.browser.post(
            "/account/tokens/", data={"name": "First", "scope": scope, "days": "30", "organization": ""}
        )
        found = re.search(r"nrm_\w{49}", unescape(page.text))
        assert found is not None, page.text
        self.token = found[0]

    def ask(self, method: str, path: str, *, base: str = "", **more: Any) -> httpx2.Response:
        """Ask the API, of another server where ``base`` names one."""
        headers = {"Authorization": f"Bearer {self.token}", **more.pop("headers", {})}
        return httpx2.request(method, f"{base or self.base}{path}", headers=headers, verify=PLAIN, **more)


@contextmanager
def person(base: str) -> Iterator[Person]:
    """A person, whose browser is closed in the end."""
    somebody = Person(base)
    with somebody.browser:
        yield somebody


@contextmanager
def two_servers(url: str) -> Iterator[tuple[str, str]]:
    """Two servers over one database: their bases."""
    with serving(url) as one, serving(url) as other:
        yield one, other


def normata(*arguments: str, url: str) -> str:
    """What a command prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NORMATA_")}
    environment["NORMATA_EVENT_KEY"] = os.environ.get("NORMATA_EVENT_KEY", "")
    done = prepared.run([SCRIPT, *arguments, "--database", url], 120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def link_in(text: str) -> str:
    """The link that is printed or answered."""
    found = LINK.search(text)
    assert found is not None, text
    return found[0]


@pytest.mark.long
def test_a_second_person_comes_states_coverage_and_is_removed(nowhere: str, tmp_path: Path) -> None:
    link = link_in(normata("init", "--organization", "Brightleaf", "--email", "me@example.org", url=nowhere))
    catalog = tmp_path / "boat.json"
    catalog.write_text(json.dumps(BOAT), "utf-8")
    normata("import", str(catalog), url=nowhere)
    normata("adopt", "brightleaf", "BOAT", url=nowhere)

    with two_servers(nowhere) as (base, other), person(base) as me, person(base) as second:
        assert me.open(link).status_code == 303
        assert me.open(link).status_code == 403  # it was good once
        me.make_token("admin")
        assert me.ask("GET", "/me/").json()["organizations"][0]["role"] == "owner"

        wanted = {"organizationId": "brightleaf", "email": "second@example.org", "role": "editor"}
        invitation = me.ask("POST", "/invitations/", json=wanted)
        assert invitation.status_code == 201, invitation.text
        assert second.open(invitation.json()["link"], name="Second").status_code == 303
        assert second.browser.post("/account/password/", data={"password": PASSWORD}).status_code == 303
        assert second.browser.post("/sign-out/").status_code == 303
        signed_in = second.browser.post(
            "/sign-in/password/", data={"email": "second@example.org", "password": PASSWORD}
        )
        assert signed_in.status_code == 303
        second.make_token("write")

        controls = "/controls/?organizationId=brightleaf"
        (control,) = second.ask("GET", controls).json()["items"]
        stated = second.ask(
            "PUT",
            f"/controls/{control['id']}/coverage/",
            json={"organizationId": "brightleaf", "coverageStatus": "FULL"},
        )
        assert stated.status_code == 200, stated.text
        tags = {}
        for server in (base, other):
            for _ in range(2):  # the second is a kept page
                page = second.ask("GET", controls, base=server)
                assert page.json()["items"][0]["effectiveCoverageStatus"] == "FULL"
            tags[server] = page.headers["etag"]

        members = me.ask("GET", "/members/?organizationId=brightleaf").json()["items"]
        (member,) = [one for one in members if one["role"] == "editor"]
        assert me.ask("DELETE", f"/members/{member['id']}/").status_code == 200

        for server in (base, other):
            assert second.ask("GET", controls, base=server).status_code in (401, 404)
            known = second.ask("GET", controls, base=server, headers={"If-None-Match": tags[server]})
            assert known.status_code in (401, 404)
            again = second.ask(
                "PUT",
                f"/controls/{control['id']}/coverage/",
                base=server,
                json={"organizationId": "brightleaf", "coverageStatus": "NONE"},
            )
            assert again.status_code in (401, 404)
            with httpx2.Client(base_url=server, cookies=dict(second.browser.cookies), verify=PLAIN) as browser:
                assert browser.get("/account/").headers["location"].startswith("/sign-in/")
            assert me.ask("GET", controls, base=server).json()["items"][0]["effectiveCoverageStatus"] == "FULL"
