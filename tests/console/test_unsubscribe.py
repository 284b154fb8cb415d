"""Ending mail with the link in a mail, as a person and as a mail program do it, without signing in (RFC 8058)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx2 import Response

from normata.events.keys import Signer
from normata.events.model import AuditEvent
from normata.identity.model import User
from normata.notifications import unsubscribing
from tests import stored
from tests.client import TestClient
from tests.console.browser import text_of
from tests.databases import on_both
from tests.notifications.posting import SITE, Post, posting

ONE_CLICK = {"List-Unsubscribe": "One-Click"}


@pytest.fixture
def post(database_url: str) -> Iterator[Post]:
    """The service with a mail server, in which the viewer gets mail immediately."""
    with posting(database_url) as opened:
        opened.choose("IMMEDIATELY", {"record.archived": "DAILY"})
        yield opened


def link_of(post: Post) -> str:
    """The path of the link in the headers of a message that has come."""
    post.notify("Task")
    post.run()
    message = post.inbox.messages[-1]
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    found = re.fullmatch(rf"<{SITE}(/unsubscribe/\?[!-~]+)>", message["List-Unsubscribe"])
    assert found is not None, message["List-Unsubscribe"]
    for part in message.iter_parts():
        assert found[1].split("&")[0] in part.get_content()
    return found[1]


def choice(post: Post) -> tuple[str | None, dict[str, str] | None]:
    """What is stored of the viewer's choice."""
    row = stored.row(post.service.database, User, "user-viewer")
    return row["mail"], row["mail_by_type"]


def post_to(post: Post, path: str, **headers: str) -> Response:
    """What a mail program gets: it has no cookies, and says nothing of where it comes from."""
    client = TestClient(post.service.app, base_url=SITE, follow_redirects=False)
    client.portal = post.service.client.portal
    return client.post(path, data=ONE_CLICK, headers=headers)


@on_both
def test_one_click_ends_mail_and_repeating_it_is_harmless(post: Post) -> None:
    link = link_of(post)
    for _ in range(2):
        answer = post_to(post, link)
        assert (answer.status_code, "set-cookie" in answer.headers) == (200, False)
        assert choice(post) == ("OFF", None)
    (event,) = stored.rows(post.service.database, AuditEvent, entity_id="user-viewer", action="update")
    assert event["user_id"] is None, "the link does not prove who has it"
    post.notify("Another")
    assert post.run() == []


def test_looking_changes_nothing_and_its_button_does(post: Post) -> None:
    """Mail scanners open links."""
    link = link_of(post)
    client = post.service.client
    for method in ("GET", "HEAD"):
        assert client.request(method, link).status_code == 200
    page = client.get(link)
    assert choice(post) == ("IMMEDIATELY", {"record.archived": "DAILY"})
    assert page.headers["referrer-policy"] == "no-referrer"
    action = re.search(r'<form[^>]* action="([^"]+)"', page.text)
    assert action is not None
    done = client.post(action[1].replace("&amp;", "&"), headers={"Sec-Fetch-Site": "same-origin"})
    assert "mails you nothing more" in text_of(done)
    assert choice(post) == ("OFF", None)


def test_the_link_of_one_person_is_of_no_use_for_another(post: Post) -> None:
    token = parse_qs(urlsplit(link_of(post)).query)["token"][0]
    for user, sent in (
        ("user-editor", token),
        ("user-viewer", token[:-3]),
        ("user-viewer", f"{token[:-6]}AAAAAA"),
        ("user-viewer", ""),
        ("user-viewer", "\u00e4\0"),
        ("", token),
    ):
        for method in ("GET", "POST"):
            answer = post.service.client.request(method, "/unsubscribe/", params={"user": user, "token": sent})
            assert answer.status_code == 404
    assert choice(post)[0] == "IMMEDIATELY"
    assert stored.row(post.service.database, User, "user-editor")["mail"] is None


def test_whoever_is_gone_gets_no_mail_anyway(post: Post) -> None:
    link = unsubscribing.link(post.service.app.services.means[Signer], "", "user-who-never-was")
    assert post_to(post, link).status_code == 200
