"""Auditors, and memberships that end: over HTTP and in the console alike."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from normata.core.changes.job_runner import JobRunner
from normata.core.changes.jobs import Job, JobType
from normata.core.db.opening import open_database
from normata.core.db.types import format_timestamp, now
from normata.events.model import AuditEvent
from normata.identity.members.expiry import EXPIRIES
from normata.identity.model import AccessToken, Invitation, Membership
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS
from normata.notifications.model import Notification
from normata.notifications.reminders import REMINDERS
from normata.settings import Settings
from normata.wiring import changes_of
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed, send
from tests.console.browser import is_refused, text_of
from tests.databases import on_both
from tests.served import Served, refused
from tests.world import ALPHA as ALPHA_ID

OF_ALPHA = {"organizationId": ALPHA_ID}
MEMBER = "/members/member-auditor/"


def do_due(instance: Served, job_type: JobType, moment: str) -> None:
    """Do a job as a process of its own does, with the rights of the service."""

    async def run() -> None:
        database = open_database(Settings(database_url=instance.url), serving=True)
        try:
            clock = partial(str, moment)
            runner = JobRunner(database, changes_of(database), [job_type], NEXT_ORGANIZATIONS, clock=clock)
            await runner.find()
            await runner.do_due()
        finally:
            await database.aclose()

    asyncio.run(run())
    assert stored.rows(instance.database, Job) == []


def form_with(people: People, user: str, path: str, field: str) -> Form:
    return next(form for form in Parsed(people[user].get(path)).forms if field in form.fields)


@on_both
def test_a_membership_ends_between_two_requests(people: People) -> None:
    """Nothing changes in the database in between: the cached lookups of token and session carry the moment."""
    service, browser = people.instance, people["auditor"]
    client, admin = service.client, service.bearer("admin")
    token, narrowed = service.bearer("auditor"), service.bearer("auditor", organization="alpha")
    ends = format_timestamp(datetime.now(UTC) + timedelta(seconds=1.5))
    changed = client.patch(MEMBER, json={"expiresAt": ends}, headers=admin)
    assert (changed.json()["expiresAt"], changed.json()["role"]) == (ends, "auditor")

    def statuses() -> list[int]:
        sent = [client.get("/events/", params=OF_ALPHA, headers=one) for one in (token, narrowed)]
        return [one.status_code for one in (*sent, browser.get(f"{ALPHA}events/"), browser.get(f"{ALPHA}settings/"))]

    (own,) = client.get("/me/", headers=token).json()["organizations"]
    assert (own["role"], own["expiresAt"]) == ("auditor", ends)
    assert statuses() == [200] * 4
    assert ends[:10] in people["admin"].get(f"{ALPHA}settings/members/member-auditor/").text
    while now() <= ends:
        assert statuses() == [200] * 4 or now() >= ends
        time.sleep(0.1)
    assert statuses() == [404] * 4
    # The user is still there, and a member of nothing.
    me = client.get("/me/", headers=narrowed)
    assert (me.status_code, me.json()["organizations"]) == (200, [])
    for path in ("/notifications/read/", "/me/tokens/"):
        body = OF_ALPHA | ({"until": ends} if "read" in path else {"name": "n", "scope": "read"})
        refused(client.post(path, json=body, headers=token), 404, "not_found")
    assert "not a member of any organization" in text_of(browser.get("/app/"))
    refused(client.patch(MEMBER, json={"role": "viewer"}, headers=admin), 409, "member_removed")
    # Then the job draws the consequences: once, told in the log.
    do_due(service, EXPIRIES, now())
    do_due(service, EXPIRIES, now())
    (event,) = stored.rows(service.database, AuditEvent, entity_id="member-auditor", action="expire")
    assert event["organization_id"] == ALPHA_ID
    member = client.get(MEMBER, params=OF_ALPHA, headers=admin).json()
    assert member["removedAt"] >= member["expiresAt"] == ends
    assert client.get("/me/", headers=narrowed).status_code == 401
    assert client.get("/me/", headers=token).status_code == 200
    assert browser.get("/account/").status_code == 200
    # An invitation brings them back, with another end.
    later = format_timestamp(datetime.now(UTC) + timedelta(days=1))
    invited = client.post(
        "/invitations/",
        json=OF_ALPHA | {"email": "auditor@alpha.example", "role": "auditor", "expiresAt": later},
        headers=admin,
    ).json()
    assert invited["membershipExpiresAt"] == later
    secret = invited["link"].rsplit("=", 1)[1]
    assert browser.post("/sign-in/invitation/", secret=secret).status_code == 303
    assert statuses() == [200, 401, 200, 200]
    row = stored.row(service.database, Membership, "member-auditor")
    assert (row["removed_at"], row["expires_at"]) == (None, later)


@on_both
def test_an_auditor_is_responsible_for_nothing(people: People) -> None:
    service = people.instance
    client, admin = service.client, service.bearer("admin")
    faults: list[Any] = []
    for send_it in (
        partial(client.post, "/tasks/", json=OF_ALPHA | {"title": "T", "assigneeMemberId": "member-auditor"}),
        partial(client.patch, "/policies/policies-live-org-alpha/", json={"approverId": "member-auditor"}),
        partial(client.put, "/controls/moon.A.1/coverage/", json=OF_ALPHA | {"ownerId": "member-auditor"}),
        partial(client.post, "/members/member-editor/handover/", json={"toMemberId": "member-auditor"}),
    ):
        [fault] = refused(send_it(headers=admin), 400, "validation")["errors"]
        faults.append(fault["name"])
        assert "auditor" in fault["message"]
    assert faults == ["assigneeMemberId", "approverId", "ownerId", "toMemberId"]
    named = client.get("/names/", params=OF_ALPHA | {"kind": "people"}, headers=admin).json()["items"]
    assert "member-editor" in {one["id"] for one in named}
    assert "member-auditor" not in {one["id"] for one in named}
    # What a load, which takes what a dump has, names them for reminds them of nothing.
    due = {"deadline": "2126-06-15", "organizationId": ALPHA_ID, "title": "T"}
    whose = ("auditor", "viewer")
    service.load({"tasks": [due | {"id": one, "assigneeMemberId": f"member-{one}"} for one in whose]})
    do_due(service, REMINDERS, "2126-06-15T12:00:00.000Z")
    told = stored.rows(service.database, Notification, type="record.due_now")
    assert [row["user_id"] for row in told] == ["user-viewer"]
    # Who is responsible hands over before they become one.
    patch = partial(client.patch, "/members/member-editor/", json={"role": "auditor"}, headers=admin)
    refused(patch(), 409, "has_responsibilities")
    while client.post("/members/member-editor/handover/", json={"toMemberId": "member-owner"}, headers=admin).json()[
        "more"
    ]:
        pass
    assert patch().json()["role"] == "auditor"


def test_an_auditor_saves_no_view_of_a_list(people: People) -> None:
    """Nor is it offered where the state of a list could be saved, or a view of somebody else's changed."""
    for path in (f"{ALPHA}controls/?search=moon", f"{ALPHA}records/tasks/?status=TODO", f"{ALPHA}views/"):
        forms = {user: Parsed(people[user].get(path)).forms for user in ("viewer", "auditor")}
        offered = {user: f"{ALPHA}views/" in {form.action for form in found} for user, found in forms.items()}
        assert offered == {"viewer": not path.endswith("views/"), "auditor": False}


@on_both
def test_tokens_of_auditors_read(people: People) -> None:
    """Whatever their own token, or the form of the account page; where they are more than that, they have more."""
    service, browser = people.instance, people["auditor"]
    client, own = service.client, service.bearer("auditor")
    for scope, narrowed in (("write", {}), ("admin", OF_ALPHA)):
        answer = client.post("/me/tokens/", json={"name": "n", "scope": scope} | narrowed, headers=own)
        assert "scope read" in refused(answer, 403, "forbidden")["detail"]
        form = {"name": "n", "scope": scope, "days": "30", "organization": narrowed.get("organizationId", "")}
        answer = browser.client.post("/account/tokens/", data=form, headers={"Sec-Fetch-Site": "same-origin"})
        assert (answer.status_code, "nrm_" in answer.text) == (403, False)
    assert client.post("/me/tokens/", json={"name": "n", "scope": "read"} | OF_ALPHA, headers=own).status_code == 201
    page = browser.post("/account/tokens/", name="n", scope="read", days="30", organization=ALPHA_ID)
    assert (page.status_code, "nrm_" in page.text) == (200, True)
    assert '<option value="read"' in page.text
    assert '<option value="write"' not in page.text
    made = stored.rows(service.database, AccessToken)
    assert [row["scope"] for row in made if row["name"] == "n"] == ["read", "read"]
    service.load(
        {"memberships": [{"id": "m", "organizationId": "org-beta", "userId": "user-auditor", "role": "admin"}]}
    )
    wide = client.post("/me/tokens/", json={"name": "n", "scope": "write"}, headers=own)
    assert wide.status_code == 201
    headers = {"Authorization": f"Bearer {wide.json()['token']}"}
    refused(client.post("/labels/", json=OF_ALPHA | {"name": "L"}, headers=headers), 403, "forbidden")
    assert client.post("/labels/", json={"organizationId": "org-beta", "name": "L"}, headers=headers).status_code == 201
    refused(client.post("/me/tokens/", json={"name": "n", "scope": "write"} | OF_ALPHA, headers=own), 403, "forbidden")


def test_an_admin_invites_an_auditor_until_a_day_and_moves_it(people: People) -> None:
    admin, path = people["admin"], f"{ALPHA}settings/invitations/"
    form = form_with(people, "admin", path, "email")
    past = send(admin, form, step="invite", email="pat@auditor.example", role="auditor", ends="2020-01-01")
    assert is_refused(past, status=400)
    assert "must be in the future" in text_of(past)
    page = send(admin, form, step="invite", email="pat@auditor.example", role="auditor", ends="2126-03-01")
    assert "Auditor, until" in text_of(page)
    (invitation,) = stored.rows(people.instance.database, Invitation, email="pat@auditor.example")
    assert invitation["membership_expires_at"] == "2126-03-01T00:00:00.000Z"
    assert 'name="email"' not in people["auditor"].get(path).text
    member = f"{ALPHA}settings/members/member-viewer/"
    service = people.instance
    moment = "2126-04-01T15:00:00.000Z"
    service.client.patch("/members/member-viewer/", json={"expiresAt": moment}, headers=service.bearer("admin"))
    assert "Until" in text_of(people["viewer"].get(f"{ALPHA}settings/members/"))
    # A form that leaves the day as it is leaves the moment.
    for ends, wanted in (("2126-04-01", moment), ("", None), ("2126-05-01", "2126-05-01T00:00:00.000Z")):
        sent = send(admin, form_with(people, "admin", member, "ends"), step="role", role="auditor", ends=ends)
        assert sent.status_code == 303
        assert stored.row(service.database, Membership, "member-viewer")["expires_at"] == wanted
    owner = send(people["owner"], form_with(people, "owner", member, "ends"), step="role", role="owner")
    assert is_refused(owner, status=400)
    assert 'id="fault-ends"' in owner.text
