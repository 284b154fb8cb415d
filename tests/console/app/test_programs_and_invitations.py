"""Settings: inviting people, the tokens of the organization, and its service accounts."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest

from normata.identity.model import AccessToken, Invitation, Membership, User
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed, send
from tests.console.browser import Browser, is_refused, text_of
from tests.databases import on_both
from tests.identity.smtp_server import mail_server
from tests.served import Served, served
from tests.world import ALPHA as ALPHA_ID

INVITATIONS = f"{ALPHA}settings/invitations/"
TOKENS = f"{ALPHA}settings/tokens/"
ACCOUNTS = f"{ALPHA}settings/service-accounts/"
ROBOT = f"{ACCOUNTS}robot-org-alpha/"
_SECRET = re.compile(r'<code class="secret">([^<]*)</code>')


def _form(browser: Browser, path: str, field: str) -> Form:
    """The form of a page that has a field."""
    return next(form for form in Parsed(browser.get(path)).forms if field in form.fields)


def _works(instance: Served, token: str) -> bool:
    """Whether a token is good for the organization."""
    headers = {"Authorization": f"Bearer {token}"}
    return instance.client.get("/tasks/", params={"organizationId": ALPHA_ID}, headers=headers).is_success


# --- Invitations


def test_somebody_is_invited_and_comes_by_the_link_that_is_shown_once(people: People) -> None:
    admin = people["admin"]
    form = _form(admin, INVITATIONS, "email")
    answer = send(admin, form, step="invite", email="kim@alpha.example", role="editor")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert "Email is not configured here. Give this link to kim@alpha.example:" in text_of(answer)
    (link,) = _SECRET.findall(answer.text)
    assert "kim@alpha.example Editor Invited by" not in link
    assert "Invitations 2" in text_of(answer)

    again = send(admin, form, step="invite", email="kim@alpha.example", role="editor")
    assert is_refused(again, status=409)  # the same form: neither is there another invitation, nor the link again
    assert not _SECRET.findall(again.text)
    later = admin.get(INVITATIONS)
    assert not _SECRET.findall(later.text)
    assert "kim@alpha.example Editor Admin" in text_of(later)

    guest = Browser(people.instance)
    secret = link.partition("?secret=")[2]
    assert guest.post("/sign-in/invitation/", secret=secret, name="Kim").status_code == 303
    assert guest.get(ALPHA).status_code == 200
    assert "Kim kim@alpha.example Editor" in text_of(admin.get(f"{ALPHA}settings/members/"))


def test_where_mail_is_set_up_the_page_says_that_it_was_sent(database_url: str) -> None:
    with mail_server() as inbox, served(database_url, smtp_url=inbox.url) as instance:
        admin = People(instance)["admin"]
        for refuses, said in ((False, "was sent to kim@x.example"), (True, "could not be sent")):
            inbox.refuses = refuses
            answer = admin.post(INVITATIONS, step="invite", email="kim@x.example", role="viewer")
            assert said in text_of(answer)
            (link,) = _SECRET.findall(answer.text)
        assert len(inbox.messages) == 1
        assert link not in inbox.messages[0].get_content()  # each time another one


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"email": "", "role": "viewer"}, 400, 'id="fault-email"'),
        ({"email": "no address", "role": "viewer"}, 400, "must be an email address, such as kim@example.org"),
        ({"email": "kim@Ünï.example", "role": "viewer"}, 400, "must have a domain after the @ that can exist"),
        ({"email": "kim@x.example", "role": "king"}, 400, 'id="fault-role"'),
        ({"email": "kim@x.example", "role": "owner"}, 403, "the role concerned is larger than yours"),
        ({"email": "editor@alpha.example", "role": "viewer"}, 409, "Already a member"),
    ],
)
def test_invitations_that_are_refused(asked: dict[str, Any], status: int, said: str, people: People) -> None:
    answer = people["admin"].post(INVITATIONS, step="invite", **asked)
    assert is_refused(answer, status=status)
    assert said in answer.text
    if asked["email"]:
        assert f'value="{asked["email"]}"' in answer.text
    assert len(stored.rows(people.instance.database, Invitation, organization_id=ALPHA_ID)) == 1


def test_several_are_invited_at_once_and_who_cannot_be_remains_in_the_form(people: People) -> None:
    admin = people["admin"]
    form = _form(admin, INVITATIONS, "email")
    asked = "kim@x.example, editor@alpha.example; lee@x.example, nobody,kim@x.example"
    answer = send(admin, form, step="invite", email=asked, role="viewer")
    assert answer.status_code == 409
    assert len(_SECRET.findall(answer.text)) == 2
    said = text_of(answer)
    assert "Give this link to kim@x.example" in said
    assert "editor@alpha.example: " in said
    assert "nobody: must be an email address" in said
    assert 'value="editor@alpha.example, nobody"' in answer.text
    rows = stored.rows(people.instance.database, Invitation, organization_id=ALPHA_ID, role="viewer")
    assert {row["email"] for row in rows} >= {"kim@x.example", "lee@x.example"}
    assert len(rows) == 3
    again = send(admin, form, step="invite", email="kim@x.example", role="viewer")
    assert len(_SECRET.findall(again.text)) == 0  # the same form once more
    many = ", ".join(f"kim{number}@x.example" for number in range(51))
    assert is_refused(send(admin, form, step="invite", email=many, role="viewer"), status=400)


def test_an_invitation_is_withdrawn(people: People) -> None:
    admin = people["admin"]
    made = admin.post(INVITATIONS, step="invite", email="kim@x.example", role="viewer")
    (link,) = _SECRET.findall(made.text)
    form = _form(admin, INVITATIONS, "invitation")
    answer = send(admin, form, step="withdraw")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{INVITATIONS}?done=withdrawn")
    assert is_refused(Browser(people.instance).get(f"/sign-in/invitation/?{link.partition('?')[2]}"))
    foreign = admin.post(INVITATIONS, step="withdraw", invitation="invitation-org-beta")
    assert is_refused(foreign, status=404)
    assert stored.row(people.instance.database, Invitation, "invitation-org-beta")["revoked_at"] is None
    assert is_refused(admin.post(INVITATIONS, step="nothing"), status=400)


def test_where_nobody_is_invited(people: People) -> None:
    people.instance.sql("DELETE FROM invitation")
    assert "There are no open invitations." in text_of(people["owner"].get(INVITATIONS))


# --- Tokens


def test_admins_see_the_tokens_that_reach_the_organization_and_end_its_own(people: People) -> None:
    instance, admin = people.instance, people["admin"]
    narrowed = instance.token("editor", organization=ALPHA_ID, name="Export")
    everywhere = instance.token("viewer", name="Private")
    said = text_of(admin.get(TOKENS))
    assert re.search(r"Export Editor read, write and administer this organization .* Revoke", said)
    assert re.search(r"Viewer read, write and administer all your organizations .* Only its user can revoke it", said)
    assert "Private" not in said
    form = next(
        form
        for form in Parsed(admin.get(TOKENS)).forms
        if stored.rows(instance.database, AccessToken, id=form.fields.get("token", ""), name="Export")
    )
    answer = send(admin, form, step="revoke")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{TOKENS}?done=token_revoked")
    assert (_works(instance, narrowed), _works(instance, everywhere)) == (False, True)
    assert "Export" not in text_of(admin.get(TOKENS))
    assert "Revoked" in text_of(admin.get(f"{TOKENS}?all=true"))


def test_tokens_of_others_stay(people: People) -> None:
    instance = people.instance
    instance.token("viewer", name="Private")
    (private,) = stored.rows(instance.database, AccessToken, name="Private")
    assert is_refused(people["owner"].post(TOKENS, token=private["id"]), status=409)
    assert is_refused(people["owner"].post(TOKENS, token="token-foreigner"), status=404)
    assert is_refused(people["editor"].post(TOKENS, token="token-editor"), status=403)
    revoked = [row["id"] for row in stored.rows(instance.database, AccessToken) if row["revoked_at"]]
    assert revoked == []


# --- Service accounts


def test_a_service_account_lives(people: People) -> None:
    instance, admin = people.instance, people["admin"]
    form = _form(admin, ACCOUNTS, "name")
    made = send(admin, form, name="Inventory", role="editor")
    assert made.status_code == 303
    path = made.headers["location"].partition("?")[0]
    assert send(admin, form, name="Inventory", role="editor").headers["location"].startswith(path)  # once
    assert "It has no token yet, so it cannot do anything." in text_of(admin.get(made.headers["location"]))

    token_form = _form(admin, path, "token_name")
    shown = send(admin, token_form, step="make_token", token_name="Nightly", scope="write", days="30")
    assert shown.status_code == 200
    (token,) = _SECRET.findall(shown.text)
    assert _works(instance, token)
    repeated = send(admin, token_form, step="make_token", token_name="Nightly", scope="write", days="30")
    assert repeated.status_code in (409, 422)
    assert token not in repeated.text + admin.get(path).text
    (row,) = stored.rows(instance.database, AccessToken, name="Nightly")
    assert 29 < _days(row) < 31

    assert admin.post(path, step="change", name="Assets", role="viewer").status_code == 303
    said = text_of(admin.get(path))
    assert "Assets" in said
    assert admin.post(path, step="revoke_token", token=row["id"]).status_code == 303
    assert not _works(instance, token)

    answer = admin.post(path, step="end")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{ACCOUNTS}?done=account_ended")
    assert is_refused(admin.get(path), status=404)
    assert "Service account Removed" in text_of(admin.get(f"{ALPHA}settings/members/?removed=only"))


def _days(row: dict[str, str]) -> float:
    lasts = datetime.fromisoformat(row["expires_at"]) - datetime.fromisoformat(row["created_at"])
    return lasts.total_seconds() / 86_400


def test_service_accounts_that_are_refused(people: People) -> None:
    admin = people["admin"]
    before = (stored.rows(people.instance.database, User), stored.rows(people.instance.database, Membership))
    for name, role in ((" ", "viewer"), ("X\u202e", "viewer"), ("X", "owner")):
        assert is_refused(admin.post(ACCOUNTS, name=name, role=role), status=400)
    assert is_refused(admin.post(ROBOT, step="change", name="", role="viewer"), status=400)
    assert is_refused(admin.post(ROBOT, step="make_token", token_name="", scope="read", days="30"), status=400)
    assert is_refused(admin.post(ROBOT, step="make_token", token_name="X", scope="all", days="30"), status=400)
    assert is_refused(admin.post(ROBOT, step="nothing"), status=400)
    foreign = f"{ACCOUNTS}robot-org-beta/"
    fields: dict[str, Any] = {"name": "X", "role": "viewer", "token_name": "X", "scope": "read", "days": "30"}
    for step in ("change", "make_token", "end"):
        assert is_refused(admin.post(foreign, step=step, **fields), status=404)
        assert is_refused(people["editor"].post(ROBOT, step=step, **fields))
    assert before == (stored.rows(people.instance.database, User), stored.rows(people.instance.database, Membership))


def test_where_there_is_no_service_account(people: People) -> None:
    assert people["admin"].post(ROBOT, step="end").status_code == 303
    assert "There are no service accounts." in text_of(people["admin"].get(ACCOUNTS))


@on_both
def test_an_identity_provider_is_connected_by_one_press(people: People) -> None:
    """Its token is shown once, with the address for it; members whom it maintains are marked."""
    admin = people["admin"]
    form = next(form for form in Parsed(admin.get(ACCOUNTS)).forms if form.fields.get("step") == "connect")
    answer = send(admin, form)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    token, address = _SECRET.findall(answer.text)
    assert address.endswith("/scim/v2")
    headers = {"Authorization": f"Bearer {token}"}
    assert people.instance.client.get("/scim/v2/Users", headers=headers).status_code == 200
    assert not _works(people.instance, token)
    assert "By SCIM" in text_of(admin.get(f"{ALPHA}settings/members/"))
    accounts = len(stored.rows(people.instance.database, User))
    again = send(admin, form)
    assert is_refused(again, status=409)
    assert not _SECRET.findall(again.text)
    assert people.instance.client.get("/scim/v2/Users", headers=headers).status_code == 200
    assert len(stored.rows(people.instance.database, User)) == accounts
