"""The page of events, and what seals them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import select

from normata.console.app.feed import Sentence
from normata.console.filters import moment
from normata.console.texts import english
from normata.core.schema.table import sql_table, tables
from normata.events.keys import read_note
from normata.events.model import EventCheckpoint
from normata.events.sealing import seal_all_now
from normata.records.archive.queries import KINDS
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.browser import is_refused, text_of
from tests.world import ALPHA as ALPHA_ID

EVENTS = f"{ALPHA}events/"


def _make(people: People, path: str, **body: Any) -> Any:
    bearer = people.instance.bearer("editor")
    answer = people.instance.client.post(path, json={"organizationId": ALPHA_ID} | body, headers=bearer)
    assert answer.is_success, answer.text
    return answer.json()


def test_what_was_done_is_told_before_and_after(people: People) -> None:
    task = _make(people, "/tasks/", title="Rotate keys")
    people["editor"].post(
        f"{ALPHA}controls/moon.A.5/coverage/", coverageStatus="PARTIAL", coverageGap="One <b>site</b>."
    )
    people["editor"].post(f"{ALPHA}controls/moon.A.5/coverage/", coverageStatus="FULL")
    page = people["admin"].get(EVENTS)
    said = text_of(page)
    assert re.search(r"Editor assessed A\.5 moon control 5 Our assessment: Partial → Full", said)
    assert re.search(r"What is missing: One <b>site</b>\. Our assessment: Partial", said)  # of the first
    assert "Editor added task Rotate keys" in said
    assert not re.search(r"controlCoverages|PARTIAL|coverageStatus", Parsed(page).text.partition("Details")[0])
    links = Parsed(page).links
    assert f"{ALPHA}records/tasks/{task['id']}/" in links
    assert links.count(f"{ALPHA}controls/moon.A.5/") == 2  # also the second, which does not tell its control
    assert said.count("A.5 moon control 5") == 2


def test_what_is_gone_is_called_by_what_it_was_about(people: People) -> None:
    """A statement that was taken back, and an adoption that has ended: on home as among the events."""
    admin = people["admin"]
    admin.post(f"{ALPHA}controls/moon.A.5/coverage/", coverageStatus="FULL")
    admin.post(f"{ALPHA}controls/moon.A.5/coverage/", step="take_back")
    for step in ("adopt", "leave"):
        assert admin.post(f"{ALPHA}frameworks/fw-star/adoption/", step=step).status_code == 303
    events, home = admin.get(EVENTS), admin.get(ALPHA)
    said, told = text_of(events), text_of(home)
    assert "Admin cleared the assessment of A.5 moon control 5" in said
    assert "Admin cleared the assessment of A.5 moon control 5" in told
    assert "Admin stopped using Étoile Straße" in said
    assert "Admin stopped using Étoile Straße" in told
    for page in (events, home):
        assert f"{ALPHA}controls/moon.A.5/" in Parsed(page).links
        assert f"{ALPHA}frameworks/fw-star/" not in Parsed(page).links, "it is not adopted any more"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("kind=tasks", {"Rotate keys"}),
        ("recordId=moon.A.5", set()),
        ("userId=user-editor&action=create", {"Rotate keys", "A vendor"}),
        ("userId=user-owner", set()),
        ("action=assess", {"A.5 moon control 5"}),
        ("from=2026-01-01&to=2026-01-02", set()),
        ("from=2026-01-01&to=9999-12-31&action=create&kind=vendors", {"A vendor"}),
    ],
)
def test_filters(query: str, found: set[str], people: People) -> None:
    _make(people, "/tasks/", title="Rotate keys")
    _make(people, "/vendors/", name="A vendor")
    people["editor"].post(f"{ALPHA}controls/moon.A.5/coverage/", coverageStatus="FULL")
    page = people["admin"].get(f"{EVENTS}?{query}")
    said = text_of(page)
    assert {name for name in ("Rotate keys", "A vendor", "A.5 moon control 5") if name in said} == found
    assert ("No events match these filters." in page.text) == (not found)


def test_a_day_is_wanted_to_its_end(people: People) -> None:
    _make(people, "/tasks/", title="Rotate keys")
    (event,) = stored.events(people.instance.database, action="create", entity_type="Task")
    day = event["at"][:10]
    assert "Rotate keys" in text_of(people["admin"].get(f"{EVENTS}?from={day}&to={day}"))
    assert "Rotate keys" not in text_of(people["admin"].get(f"{EVENTS}?to=2026-01-01"))
    wrong = people["admin"].get(f"{EVENTS}?from=tomorrow&to=2026-13-01")
    assert is_refused(wrong, status=400)
    assert "from must be a date, such as 2026-11-20" in text_of(wrong)


@pytest.mark.parametrize("user", ["viewer", "editor"])
def test_others_are_told_why_they_see_no_events(user: str, readers: People) -> None:
    page = readers[user].get(EVENTS)
    said = text_of(page)
    assert "Only auditors, admins and owners can see the events" in said
    assert "Download the signed checkpoint" in said
    assert "listEvents" not in page.text
    assert 'class="feed"' not in page.text
    assert f"{ALPHA}events/" not in Parsed(readers[user].get(ALPHA)).links


def test_the_checkpoint_is_told_and_downloaded(people: People) -> None:
    _make(people, "/tasks/", title="Rotate keys")
    seal_all_now(people.instance.database)
    table = sql_table(EventCheckpoint)
    newest = select(*table.c).where(table.c.organization_id == ALPHA_ID).order_by(table.c.size.desc()).limit(1)
    last = people.instance.database.read_now(lambda transaction: transaction.rows(newest))[0]._asdict()
    said = text_of(people["viewer"].get(EVENTS))
    assert f"Sealed events: {last['size']:,}" in said
    assert last["root"] in said
    assert moment(last["at"]).striptags() in said
    answer = people["viewer"].get(f"{EVENTS}checkpoint/file/?format=text")
    assert answer.headers["content-disposition"].startswith("attachment")
    note = read_note(answer.text)
    assert (note.size, note.root) == (last["size"], last["root"])


def test_an_invitation_is_told_with_its_address_while_it_is_open(people: People) -> None:
    admin, place = people["admin"], f"{ALPHA}settings/invitations/"
    field = 'name="email" type="email"[^>]* autofocus'
    assert re.search(field, admin.get(f"{place}?invite=true").text)
    assert not re.search(field, admin.get(place).text)
    made = admin.post(place, step="invite", email="kim@x.example", role="viewer")
    assert made.status_code == 200
    for page in (EVENTS, ALPHA):
        assert "Admin sent the invitation of kim@x.example" in text_of(admin.get(page))
    withdraw = next(form for form in Parsed(made).forms if form.fields.get("invitation"))
    assert send(admin, withdraw, step="withdraw").status_code == 303
    assert "Admin revoked an invitation" in text_of(admin.get(EVENTS))


@pytest.mark.parametrize("kind", sorted(table.array for table in tables() if table.array))
def test_every_kind_has_words_of_its_own(kind: str) -> None:
    assert kind in KINDS or {f"kind.{kind}", f"kind.one.{kind}"} <= english().keys()
    event = {"kind": kind, "action": "create", "userId": None, "at": "2026-01-01T00:00:00.000Z"}
    for count in (1, 2):
        assert not re.search("[a-z][A-Z]|_", Sentence(event, "", count=count).things)
