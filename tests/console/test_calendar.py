"""A person's calendar: its secret address, what programs fetch there, and what nobody else learns of it."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from httpx2 import Response
from icalendar import Calendar

from normata.events.model import AuditEvent
from normata.identity.last_use import CalendarUse
from normata.identity.members import members, removal
from normata.identity.model import CalendarAddress, User
from normata.identity.secrets import digest_of
from tests import stored
from tests.console.browser import Browser, is_refused, text_of
from tests.databases import change, on_both
from tests.identity.token_requests import admin, guest_of_beta
from tests.served import Served, refused, served
from tests.world import ALPHA, BETA

SignIn = Callable[[Browser, str], None]

OWN, PATH = "/me/calendar/", "/account/calendar/"
FAR = "2027-03-28T00:00:00.000Z"  # a plain date, on the day that clocks change in Europe
TIMED = "2026-10-30T16:00:00.500Z"
LONG = "Überprüfung der Lieferanten, mit; Zeichen\\n und\x07\x1b[1m\r\nUID:x\x7f " + "vielen Wörtern " * 12


def add(service: Served, task_id: str, organization: str = ALPHA, user: str = "member-editor", **values: Any) -> None:
    """Load a task for which the member is responsible."""
    row = {"id": task_id, "organizationId": organization, "title": task_id, "deadline": FAR}
    service.load({"tasks": [row | {"assigneeMemberId": user} | values]})


def make(service: Served, user: str = "editor", **body: Any) -> str:
    """The path of a new calendar of a member."""
    answer = service.client.post(OWN, json=body, headers=admin(service, user))
    assert answer.status_code == 200, answer.text
    parts = urlsplit(answer.json()["url"])
    assert f"{parts.scheme}://{parts.netloc}" == "http://localhost:8000"
    assert parts.path.endswith(".ics")
    return str(parts.path)


def fetch(service: Served, path: str, method: str = "GET", **headers: str) -> Response:
    """What a calendar program gets: it sends no token, and no cookie."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return service.client.request(method, path, headers={"Accept-Encoding": "identity"} | sent)


def events(answer: Response) -> dict[str, Any]:
    """The events of a calendar by their UIDs, read by a parser."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    found = {str(one["UID"]): one for one in Calendar.from_ical(answer.content).walk("VEVENT")}
    assert len(found) == answer.content.count(b"BEGIN:VEVENT")
    return found


def uid(task_id: str) -> str:
    return f"tasks/{task_id}/deadline@localhost"


@on_both
def test_it_has_what_is_due_for_its_person(instance: Served) -> None:
    add(instance, "a plain/one", title=LONG)
    add(instance, "timed", deadline=TIMED, description="nobody sees this")
    add(instance, "of-another", user="member-admin")
    add(instance, "done", status="DONE")
    answer = fetch(instance, make(instance))
    found = events(answer)

    mine = instance.client.get(
        "/due/",
        params={"organizationId": ALPHA, "mine": True, "within": "999d", "limit": 100},
        headers=admin(instance, "editor"),
    ).json()["items"]
    assert {(one["kind"], one["what"]) for one in mine} == {
        (name.split("/")[0], name.split("/")[-1].split("@")[0]) for name in found
    }
    assert len(mine) == len(found)
    plain, timed = found[uid("a%20plain%2Fone")], found[uid("timed")]
    assert (plain["DTSTART"].dt, plain["DTSTART"].params["VALUE"]) == (date(2027, 3, 28), "DATE")
    words = LONG.replace("\x07\x1b", " ").replace("\x7f", " ").split()
    assert str(plain["SUMMARY"]) == f"{' '.join(words)} (Task: Deadline)"
    assert plain["URL"] == "http://localhost:8000/app/alpha/records/tasks/a%20plain%2Fone/"
    assert timed["DTSTART"].dt == datetime.fromisoformat("2026-10-30T16:00:00Z")
    assert timed["DTSTAMP"].dt == timed["LAST-MODIFIED"].dt
    assert "CATEGORIES" not in timed
    assert b"nobody sees this" not in answer.content
    assert all(len(line) <= 75 for line in answer.content.split(b"\r\n"))
    assert not re.search(rb"[\x00-\x1f\x7f]", answer.content.replace(b"\r\n", b""))


@on_both
def test_programs_ask_again_in_their_ways(instance: Served) -> None:
    """The same data are the same bytes; HEAD, a tag that they have, and compression work."""
    for number in range(9):
        add(instance, f"task-{number}")
    path = make(instance)
    first = fetch(instance, path)
    assert fetch(instance, path).content == first.content
    assert (first.headers["cache-control"], first.headers["referrer-policy"]) == ("private, no-cache", "no-referrer")
    assert b"REFRESH-INTERVAL;VALUE=DURATION:PT1H" in first.content
    head = fetch(instance, path, "HEAD")
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", first.headers["etag"])
    held = fetch(instance, path, If_None_Match=first.headers["etag"])
    assert (held.status_code, held.content) == (304, b"")
    with instance.client.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as packed:
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(b"".join(packed.iter_raw())) == first.content
    assert fetch(instance, path.removesuffix(".ics")).content == first.content
    add(instance, "task-9")
    assert fetch(instance, path, If_None_Match=first.headers["etag"]).status_code == 200


@on_both
def test_it_is_of_all_organizations_or_of_one(instance: Served) -> None:
    guest_of_beta(instance, "editor")
    member = instance.client.get("/me/", headers=admin(instance, "editor")).json()["organizations"][-1]["memberId"]
    add(instance, "in-alpha")
    add(instance, "in-beta", BETA, user=member)
    every = events(fetch(instance, make(instance)))
    assert {uid("in-alpha"), uid("in-beta")} <= every.keys()
    assert every[uid("in-beta")]["CATEGORIES"].cats == ["Beta"]
    one = events(fetch(instance, make(instance, organizationId="beta")))
    assert (uid("in-alpha") in one, uid("in-beta") in one) == (False, True)
    path = make(instance)
    change(instance.database, lambda unit: members.remove(unit, member))
    assert (uid("in-alpha") in (left := events(fetch(instance, path))), uid("in-beta") in left) == (True, False)
    answer = instance.client.post(OWN, json={"organizationId": BETA}, headers=admin(instance, "viewer"))
    refused(answer, 404, "not_found")


@on_both
def test_an_address_ends(instance: Served) -> None:
    """By a new one, by its end, and with its person: then it is like one that there never was."""
    replaced = make(instance)
    ended = make(instance)
    assert fetch(instance, replaced).status_code == 404
    assert fetch(instance, ended).status_code == 200
    for _ in range(2):
        answer = instance.client.delete(OWN, headers=admin(instance, "editor"))
        assert (answer.status_code, answer.json()["createdAt"]) == (200, None)
    left, removed = make(instance, "viewer"), make(instance, "admin")
    change(instance.database, lambda unit: members.remove(unit, "member-viewer"))
    user = stored.row(instance.database, User, "user-admin")
    change(instance.database, lambda unit: removal.remove_user(unit, _User(user)))
    unknown = fetch(instance, f"/calendar/{'x' * 43}.ics")
    for path in (replaced, ended, left, removed, "/calendar/short.ics"):
        answer = fetch(instance, path)
        assert answer.status_code == unknown.status_code == 404
        assert text_of(answer).partition("Request")[0] == text_of(unknown).partition("Request")[0]
    there = {row["user_id"] for row in stored.rows(instance.database, CalendarAddress)}
    assert ("user-viewer" in there, "user-editor" in there, "user-admin" in there) == (True, False, False)
    own = {"entity_type": "CalendarAddress", "user_id": "user-editor"}
    done = [one["action"] for one in stored.rows(instance.database, AuditEvent, **own)]
    assert done == ["remove", "create", "remove", "create", "remove"], "the first is that of the world"


class _User:
    def __init__(self, row: dict[str, Any]) -> None:
        self.__dict__.update(row)


@on_both
def test_the_secret_is_shown_once_and_only_its_digest_is_stored(instance: Served) -> None:
    path = make(instance)
    secret = path.removeprefix("/calendar/").removesuffix(".ics")
    everything = str(stored.everything(instance.database))
    assert digest_of(secret) in everything
    assert secret not in everything
    assert digest_of(secret) not in str(stored.events(instance.database))
    fetch(instance, path)
    assert instance.client.portal is not None
    instance.client.portal.call(instance.app.services.means[CalendarUse].store)
    known = instance.client.get(OWN, headers=admin(instance, "editor")).json()
    assert known.keys() == {"createdAt", "lastFetchedAt", "organizationId"}
    assert known["lastFetchedAt"] >= known["createdAt"]


def test_no_log_and_no_problem_has_the_secret(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with served(database_url, log_level="info") as service:
        path = make(service)
        secret = path.removeprefix("/calendar/").removesuffix(".ics")
        for sent in (path, path.replace("/calendar", "/%63alendar"), f"{path}/more/", f"/calendar/{secret}x"):
            answer = fetch(service, sent)
            assert secret not in str(answer.headers) + (answer.text if answer.status_code != 200 else "")
        assert fetch(service, path, "PUT").status_code == 405
        metrics = service.client.get("/metrics").text
    logged = capsys.readouterr().err
    assert secret not in logged + metrics
    fetched = [one for line in logged.splitlines() if (one := json.loads(line)).get("path", "").startswith("/calendar")]
    assert [(one["path"], one["status"]) for one in fetched] == [
        *([("/calendar/-/", 200)] * 2),
        *([("/calendar/-/", 404)] * 2),
        ("/calendar/-/", 405),
    ]


def test_guesses_are_limited_by_address_and_good_addresses_are_not(database_url: str) -> None:
    with served(database_url, bad_token_limit=3) as service:
        path = make(service)
        guesses = [fetch(service, f"/calendar/{number:043}.ics").status_code for number in range(5)]
        assert guesses == [404, 404, 404, 429, 429]
        assert fetch(service, path).status_code == 200


def test_only_a_person_has_one(instance: Served) -> None:
    narrowed = instance.client.post(
        "/me/tokens/", json={"name": "n", "scope": "admin", "organizationId": ALPHA}, headers=admin(instance)
    ).json()["token"]
    for method in ("POST", "DELETE"):
        answer = instance.client.request(method, OWN, headers={"Authorization": f"Bearer {narrowed}"})
        refused(answer, 403, "forbidden")


@on_both
def test_a_person_makes_and_ends_it_on_the_account_page(instance: Served, browser: Browser, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    page = browser.post(PATH, organization="")
    (url,) = [word for word in text_of(page).split() if word.startswith("http://localhost:8000/calendar/")]
    path = urlsplit(url).path
    assert events(fetch(instance, path)) is not None
    again = browser.get("/account/")
    assert url not in again.text
    assert "Your calendar has what is due for you in all your organizations." in text_of(again)
    assert browser.post(PATH, organization=BETA).status_code == 404
    answer = browser.post(PATH, step="remove")
    assert (answer.status_code, answer.headers["location"]) == (303, "/account/?done=calendar#calendar")
    assert is_refused(browser.post(PATH, headers={"Sec-Fetch-Site": "cross-site"}, organization=""))
    assert fetch(instance, path).status_code == 404
