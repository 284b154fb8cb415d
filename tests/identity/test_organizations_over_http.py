"""Organizations over HTTP: those of the caller, and their life; service accounts; and who the caller is."""

from __future__ import annotations

from datetime import datetime

import pytest

from normata.identity.model import Invitation, Membership, Organization, User
from normata.identity.organizations import commands as organization_life
from normata.records.kinds import Task
from tests import stored
from tests.databases import change, on_both
from tests.identity.inviting import accept
from tests.identity.smtp_server import mail_server
from tests.served import Served, refused, served
from tests.world import ALPHA, BETA, record_id

QUERY = {"organizationId": ALPHA}
INVITED = {"organizationId": ALPHA, "email": "Kim@example.org", "role": "editor"}


# --- Who the caller is


def test_me_tells_who_and_where(service: Served) -> None:
    service.load({"memberships": [{"id": "guest", "organizationId": BETA, "userId": "user-viewer", "role": "admin"}]})
    answer = service.client.get("/me/", headers=service.bearer("viewer", scope="read")).json()
    assert answer["id"] == "user-viewer"
    assert (answer["name"], answer["email"]) == ("Viewer", "viewer@alpha.example")
    assert (answer["isOperator"], answer["scope"], answer["organizationId"]) == (False, "read", None)
    assert answer["organizations"] == [
        {
            "id": ALPHA,
            "name": "Alpha",
            "slug": "alpha",
            "memberId": "member-viewer",
            "role": "viewer",
            "expiresAt": None,
        },
        {"id": BETA, "name": "Beta", "slug": "beta", "memberId": "guest", "role": "admin", "expiresAt": None},
    ]
    listed = service.client.get("/organizations/", headers=service.bearer("viewer")).json()
    assert listed == {"items": answer["organizations"], "total": 2, "totalIsExact": True, "page": 1, "limit": 100}


@on_both
def test_a_narrowed_token_sees_one_organization(service: Served) -> None:
    service.load({"memberships": [{"id": "guest", "organizationId": BETA, "userId": "user-viewer"}]})
    headers = service.bearer("viewer", organization=BETA)
    answer = service.client.get("/me/", headers=headers).json()
    assert [one["id"] for one in answer["organizations"]] == [BETA]
    assert answer["organizationId"] == BETA
    assert service.client.get("/organizations/", headers=headers).json()["total"] == 1
    assert service.client.get(f"/organizations/{BETA}/", headers=headers).is_success
    refused(service.client.get(f"/organizations/{ALPHA}/", headers=headers), 404, "not_found")


def test_an_operator_sees_no_organizations_data(service: Served) -> None:
    headers = service.bearer("operator")
    answer = service.client.get("/me/", headers=headers).json()
    assert (answer["isOperator"], answer["organizations"]) == (True, [])
    refused(service.client.get("/tasks/", params=QUERY, headers=headers), 404, "not_found")
    refused(service.client.get(f"/organizations/{ALPHA}/", headers=headers), 404, "not_found")


# --- The life of an organization


@on_both
def test_an_operator_makes_an_organization_and_its_owner_comes(service: Served) -> None:
    body = {"name": "Brightleaf", "ownerEmail": "kim@brightleaf.example"}
    answer = service.client.post("/organizations/", json=body, headers=service.bearer("operator"))
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert (made["name"], made["slug"], made["removedAt"]) == ("Brightleaf", "brightleaf", None)
    assert made["invitation"]["role"] == "owner"
    assert made["invitation"]["mail"] == "off"
    secret = made["invitation"]["link"].removeprefix("http://localhost:8000/sign-in/invitation/?secret=")
    accept(service.url, secret, "Kim")
    (member,) = stored.rows(service.database, Membership, organization_id=made["id"])
    assert member["role"] == "owner"
    # Another of this name gets another slug; one that is asked for and taken is refused.
    again = service.client.post("/organizations/", json=body, headers=service.bearer("operator")).json()
    assert again["slug"] == "brightleaf-2"
    taken = service.client.post("/organizations/", json=body | {"slug": "alpha"}, headers=service.bearer("operator"))
    (fault,) = refused(taken, 400, "validation")["errors"]
    assert fault["name"] == "slug"


def test_its_events_are_in_its_own_log(service: Served) -> None:
    body = {"name": "Brightleaf", "ownerEmail": "kim@brightleaf.example"}
    made = service.client.post("/organizations/", json=body, headers=service.bearer("operator")).json()
    events = stored.events(service.database)
    assert {(event["action"], event["entity_type"]) for event in events} == {
        ("create", "Organization"),
        ("create", "Invitation"),
    }
    assert {event["organization_id"] for event in events} == {made["id"]}


AS_IT_WAS = {
    **dict.fromkeys(("removedAt", "scope", "riskLevels", "keepReplacedFilesDays")),
    "staleAssessments": "FLAG",
    "mail": "DAILY",
    "allowsSelfApproval": False,
    "verifiesFindings": False,
}


def test_it_is_renamed(service: Served) -> None:
    path = f"/organizations/{ALPHA}/"
    answer = service.client.patch(path, json={"name": " Alpha & Co "}, headers=service.bearer("admin"))
    assert answer.json() == {"id": ALPHA, "name": "Alpha & Co", "slug": "alpha"} | AS_IT_WAS
    assert service.client.patch(path, json={"name": "Alpha & Co"}, headers=service.bearer("admin")).is_success
    assert len(stored.events(service.database)) == 1


@on_both
def test_it_says_what_its_management_system_is_about(service: Served) -> None:
    """ISO/IEC 27001, 4.3. What is left out stays, and only null removes the scope."""
    path, admin = f"/organizations/{ALPHA}/", service.bearer("admin")
    scope = "Development and hosting of Größe,\nin Gdańsk.\n"
    assert service.client.patch(path, json={"scope": scope}, headers=admin).json()["scope"] == scope.strip()
    assert service.client.patch(path, json={"name": "Alpha & Co", "staleAssessments": None}, headers=admin).is_success
    assert service.client.get(path, headers=service.bearer("viewer")).json()["scope"] == scope.strip()
    assert service.client.patch(path, json={"scope": None}, headers=admin).json()["scope"] is None
    events = service.client.get("/events/", params=QUERY | {"kind": "organizations"}, headers=admin).json()["items"]
    texts = [(event["before"].get("scope"), event["after"].get("scope")) for event in events]
    assert texts == [(scope.strip(), None), (None, None), (None, scope.strip())]


@on_both
def test_it_says_when_its_members_get_mail(service: Served) -> None:
    """Admins choose for those who have not chosen, and the choice is an event."""
    path, admin = f"/organizations/{ALPHA}/", service.bearer("admin")
    refused(service.client.patch(path, json={"mail": "OFF"}, headers=service.bearer("editor")), 403, "forbidden")
    refused(service.client.patch(path, json={"mail": "off"}, headers=admin), 400, "validation")
    assert service.client.patch(path, json={"mail": "OFF"}, headers=admin).json()["mail"] == "OFF"
    assert service.client.get(path, headers=service.bearer("viewer")).json()["mail"] == "OFF"
    (event,) = service.client.get("/events/", params=QUERY | {"kind": "organizations"}, headers=admin).json()["items"]
    assert (event["before"]["mail"], event["after"]["mail"]) == ("DAILY", "OFF")


@on_both
def test_it_is_removed_for_everybody_and_restored_as_it_was(service: Served) -> None:
    """Nothing of it is deleted; who had left before stays away."""
    headers = {user: service.bearer(user) for user in ("owner", "viewer", "editor")}
    assert service.client.delete("/members/member-editor/", headers=headers["owner"]).is_success
    answer = service.client.delete(f"/organizations/{ALPHA}/", headers=headers["owner"])
    assert answer.status_code == 200, answer.text
    datetime.fromisoformat(answer.json()["removedAt"])
    for bearer in headers.values():
        refused(service.client.get("/tasks/", params=QUERY, headers=bearer), 404, "not_found")
    refused(service.client.delete(f"/organizations/{ALPHA}/", headers=headers["owner"]), 404, "not_found")
    assert stored.row(service.database, Task, record_id(Task, "live"))["archived_at"] is None
    assert change(service.database, lambda unit: organization_life.restore(unit, ALPHA)) == 5
    assert stored.row(service.database, Organization, ALPHA)["removed_at"] is None
    for user, status in (("owner", 200), ("viewer", 200), ("editor", 404)):
        assert service.client.get("/tasks/", params=QUERY, headers=headers[user]).status_code == status


# --- Invitations


@on_both
def test_somebody_is_invited_and_comes(service: Served) -> None:
    headers = service.bearer("admin")
    answer = service.client.post("/invitations/", json=INVITED, headers=headers)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert answer.headers["location"] == f"/invitations/{made['id']}/"
    assert "etag" not in answer.headers
    assert (made["email"], made["role"], made["createdBy"]) == ("Kim@example.org", "editor", "user-admin")
    told = service.client.get(answer.headers["location"], params=QUERY, headers=headers).json()
    assert told == {name: value for name, value in made.items() if name not in ("link", "mail")}
    secret = made["link"].rpartition("=")[2]
    user_id = accept(service.url, secret, "Kim")
    listed = service.client.get("/members/", params=QUERY, headers=headers).json()["items"]
    (member,) = (item for item in listed if item["userId"] == user_id)
    assert (member["name"], member["role"]) == ("Kim", "editor")
    again = service.client.post("/invitations/", json=INVITED, headers=headers)
    assert refused(again, 409, "already_member")["conflictingId"] == member["id"]
    refused(service.client.delete(answer.headers["location"], headers=headers), 409, "invitation_closed")


def test_an_invitation_is_listed_until_it_is_over(service: Served) -> None:
    headers = service.bearer("admin")

    def listed() -> list[str]:
        items = service.client.get("/invitations/", params=QUERY, headers=headers).json()["items"]
        return [item["id"] for item in items]

    first = service.client.post("/invitations/", json=INVITED, headers=headers).json()
    second = service.client.post("/invitations/", json=INVITED, headers=headers).json()
    assert listed() == [second["id"], f"invitation-{ALPHA}"]
    assert stored.row(service.database, Invitation, first["id"])["revoked_at"] is not None
    for _ in range(2):
        answer = service.client.delete(f"/invitations/{second['id']}/", headers=headers)
        assert answer.json()["revokedAt"] is not None
    assert listed() == [f"invitation-{ALPHA}"]


def test_nobody_invites_to_a_larger_role(service: Served) -> None:
    body = INVITED | {"role": "owner"}
    refused(service.client.post("/invitations/", json=body, headers=service.bearer("admin")), 403, "forbidden")
    assert service.client.post("/invitations/", json=body, headers=service.bearer("owner")).is_success


def test_the_link_is_kept_nowhere(service: Served) -> None:
    """Neither for who sends the request again with its key, nor in events."""
    headers = service.bearer("admin") | {"Idempotency-Key": "a-key"}
    answer = service.client.post("/invitations/", json=INVITED, headers=headers)
    secret = answer.json()["link"].rpartition("=")[2]
    assert secret not in str(stored.everything(service.database))
    refused(service.client.post("/invitations/", json=INVITED, headers=headers), 409, "answer_not_stored")
    assert len(stored.rows(service.database, Invitation, email_folded="kim@example.org")) == 1


def test_the_link_is_mailed_once_it_is_stored(database_url: str) -> None:
    with (
        mail_server() as inbox,
        served(database_url, smtp_url=inbox.url, public_url="https://n.example.org") as service,
    ):
        headers = service.bearer("admin")
        dry = service.client.post("/invitations/", json=INVITED, params={"dryRun": "true"}, headers=headers)
        assert dry.is_success
        refused(
            service.client.post("/invitations/", json=INVITED | {"role": "owner"}, headers=headers), 403, "forbidden"
        )
        assert inbox.messages == []
        made = service.client.post("/invitations/", json=INVITED, headers=headers).json()
        assert made["mail"] == "sent"
        assert made["link"].startswith("https://n.example.org/sign-in/invitation/?secret=")
        (message,) = inbox.messages
        assert inbox.recipients == ["Kim@example.org"]
        assert message["Subject"] == "You are invited to Alpha"
        assert made["link"] in message.get_content()
        assert "Admin invites you" in message.get_content()
        inbox.refuses = True
        other = service.client.post("/invitations/", json=INVITED | {"email": "x@example.org"}, headers=headers).json()
        assert other["mail"] == "failed"
        accept(database_url, other["link"].rpartition("=")[2])


def test_a_header_cannot_change_where_links_lead(service: Served) -> None:
    headers = service.bearer("admin") | {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    made = service.client.post("/invitations/", json=INVITED, headers=headers).json()
    assert made["link"].startswith("http://localhost:8000/")


# --- Service accounts


@on_both
def test_a_service_account_lives(service: Served) -> None:
    headers = service.bearer("admin")
    body = {"organizationId": "alpha", "name": "Inventory", "role": "editor"}
    answer = service.client.post("/service-accounts/", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    path = answer.headers["location"]
    assert service.client.get(path, params=QUERY, headers=headers).json() == made
    changed = service.client.patch(path, json={"name": "Stock", "role": "viewer"}, headers=headers).json()
    assert changed == made | {"name": "Stock", "role": "viewer"}
    listed = service.client.get("/service-accounts/", params=QUERY, headers=headers).json()["items"]
    assert changed in listed
    member = service.client.get(f"/members/{made['memberId']}/", params=QUERY, headers=headers).json()
    assert (member["isServiceAccount"], member["email"]) == (True, None)
    for _ in range(2):
        assert service.client.delete(path, headers=headers).is_success
    refused(service.client.get(path, params=QUERY, headers=headers), 404, "not_found")
    assert stored.row(service.database, User, made["id"])["removed_at"] is not None
    refused(service.client.patch(path, json={"name": "x"}, headers=headers), 409, "member_removed")


def test_a_service_account_is_never_an_owner(service: Served) -> None:
    headers = service.bearer("owner")
    refused(
        service.client.patch(f"/members/member-robot-{ALPHA}/", json={"role": "owner"}, headers=headers),
        403,
        "forbidden",
    )
    body = {"organizationId": ALPHA, "name": "Inventory", "role": "owner"}
    refused(service.client.post("/service-accounts/", json=body, headers=headers), 400, "validation")


def test_a_person_is_no_service_account(service: Served) -> None:
    headers = service.bearer("owner")
    refused(service.client.get("/service-accounts/user-editor/", params=QUERY, headers=headers), 404, "not_found")
    for method in ("PATCH", "DELETE"):
        response = service.client.request(
            method,
            "/service-accounts/user-editor/",
            json={"role": "viewer"} if method == "PATCH" else None,
            headers=headers,
        )
        refused(response, 404, "not_found")


@pytest.mark.parametrize("name", ["", "   ", "x" * 501, "\0"])
def test_names_can_be_seen(service: Served, name: str) -> None:
    headers = service.bearer("owner")
    body = {"organizationId": ALPHA, "name": name, "role": "viewer"}
    refused(service.client.post("/service-accounts/", json=body, headers=headers), 400, "validation")
    refused(service.client.patch(f"/organizations/{ALPHA}/", json={"name": name}, headers=headers), 400, "validation")


_HIDDEN = ["Al\u202epha", "Alpha\x85", "\u200eAlpha", "Al\u2028pha", "Al\npha", "\u2069"]


@pytest.mark.parametrize("name", _HIDDEN)
def test_names_and_addresses_hide_nothing(name: str, service: Served) -> None:
    """Neither control characters nor what turns the direction of text round: one could look like somebody else."""
    headers, said = service.bearer("owner"), "control characters or direction marks"
    answers = [
        (service.client.patch(f"/organizations/{ALPHA}/", json={"name": name}, headers=headers), "name"),
        (
            service.client.post("/service-accounts/", json=QUERY | {"name": name, "role": "viewer"}, headers=headers),
            "name",
        ),
        (service.client.post("/invitations/", json=INVITED | {"email": f"{name}@x.example"}, headers=headers), "email"),
    ]
    for answer, field in answers:
        (fault,) = refused(answer, 400, "validation")["errors"]
        assert (fault["name"], fault["code"]) == (field, "malformed")
        assert fault["message"].endswith(said if field == "name" else "such as kim@example.org")


def test_what_is_hidden_in_the_name_of_whoever_comes_is_left_out(service: Served) -> None:
    made = service.client.post("/invitations/", json=INVITED, headers=service.bearer("admin")).json()
    accept(service.url, made["link"].partition("secret=")[2], " K\u202eim\n\tNew\x1b ")
    (user,) = stored.rows(service.database, User, email=INVITED["email"])
    assert user["name"] == "Kim New"


@pytest.mark.parametrize(("slug", "is_taken"), [(".", False), ("..", False), ("...", True), (".a", True), ("a.", True)])
def test_no_slug_means_another_place(slug: str, is_taken: bool, service: Served) -> None:
    body = {"name": "Gamma", "slug": slug, "ownerEmail": "kim@x.example"}
    answer = service.client.post("/organizations/", json=body, headers=service.bearer("operator"))
    assert answer.is_success == is_taken, answer.text
    if not is_taken:
        (fault,) = refused(answer, 400, "validation")["errors"]
        assert fault["message"] == "must have no blanks and no slashes, and be neither . nor .."
