"""The sixteen restores: what they answer, whom they refuse, and what they leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from sqlalchemy import Connection, text
from starlette.testclient import TestClient

from normata.database import Database, format_timestamp
from normata.identity import tokens
from normata.identity.model import AccessToken, AuditEvent
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.records.kinds import IntegrationCheck, Label, Policy, RiskReview, Task
from tests import stored, world
from tests.records.shapes import KINDS, SHAPES, WITH_SLUG, full_record
from tests.world import ALPHA, BETA, EARLIER, record_id

Bearer = Callable[..., dict[str, str]]
Row = dict[str, Any]


def address(kind: type[Restorable], row_id: str) -> str:
    return f"/{kind.path}/{quote(row_id, safe='')}/restore/"


def refused(response: httpx2.Response, status: int, code: str) -> Row:
    """The problem of a response that must be a refusal of this status and code."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    problem: Row = response.json()
    assert problem["status"] == status
    assert problem["code"] == code
    assert problem["requestId"] == response.headers["x-request-id"]
    return problem


# --- It works


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_without_optional_values_has_every_field(
    client: TestClient, bearer: Bearer, kind: type[Restorable]
) -> None:
    """Every field of the interface is there and no other; null exactly where it may be."""
    response = client.post(address(kind, record_id(kind, "archived")), headers=bearer("editor"))
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    if kind is IntegrationCheck:
        assert response.content == b"null"
        return
    shape, body = SHAPES[kind.path], response.json()
    assert body.keys() == shape.fields.keys()
    given = {"id", "organizationId", "slug", "shortId", "createdAt", "updatedAt", kind.title_column()}
    for name, value in body.items():
        if name not in given and shape.nullable(name):
            assert value is None, name
        else:
            assert_type(shape.fields[name], name, value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_with_every_value_comes_back_whole(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    """All fields but ``archivedAt`` and ``updatedAt`` are as they were given, on the wire and in the table."""
    given = full_record(kind, "full")
    stored.load(database, {kind.path: [given]})
    before, headers = stored.row(database, kind, "full"), bearer("editor")
    start = format_timestamp(datetime.now(UTC))
    response = client.post(address(kind, "full"), headers=headers)
    end = format_timestamp(datetime.now(UTC))
    assert response.status_code == 200, response.text

    after = stored.row(database, kind, "full")
    changed = {"archived_at": None}
    if kind is not RiskReview:
        assert start <= after["updated_at"] <= end
        assert after["updated_at"] > before["updated_at"]
        changed["updated_at"] = after["updated_at"]
    assert after == before | changed

    if kind is IntegrationCheck:
        assert response.content == b"null"
        return
    expected = given | {"archivedAt": None}
    if kind is not RiskReview:
        expected["updatedAt"] = after["updated_at"]
    assert exactly(response.text) == exactly(json.dumps(expected))
    for name, value in response.json().items():
        if name != "archivedAt":
            assert_type(SHAPES[kind.path].fields[name], name, value)


def exactly(document: str) -> Any:
    """The members of a JSON document, each so that 3 is not 3.0 and the order of what is in it counts."""
    first: Row = json.loads(document, parse_int=str, parse_float=str)
    return {name: json.dumps(value) for name, value in first.items()}


def assert_type(sort: str, name: str, value: object) -> None:
    """The value has the type that the shape says of the field."""
    match sort:
        case "time":
            assert isinstance(value, str), name
            assert datetime.fromisoformat(value).tzinfo is not None
            assert len(value) == len(EARLIER), name
            assert value.endswith("Z"), name
        case "integer":
            assert type(value) is int, name
        case "number":
            assert type(value) in (int, float), name
        case "boolean":
            assert type(value) is bool, name
        case "enum":
            assert isinstance(value, str), name
            assert value == value.upper() != "", name
        case "string":
            assert isinstance(value, str), name
        case _:
            assert sort == "any"


@pytest.mark.parametrize("kind", KINDS)
def test_owner_admin_and_editor_may_restore(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    for role in ("owner", "admin", "editor"):
        archive_another(database, kind, f"for-{role}")
        response = client.post(address(kind, f"for-{role}"), headers=bearer(role))
        assert response.status_code == 200, (role, response.text)
        assert stored.row(database, kind, f"for-{role}")["archived_at"] is None


def archive_another(database: Database, kind: type[Restorable], row_id: str, **values: object) -> None:
    """Load one more archived record of alpha."""
    stored.load(database, {kind.path: [archived(kind, row_id) | values]})


def archived(kind: type[Restorable], row_id: str) -> Row:
    """The least that a bundle says of an archived record of alpha."""
    return {"id": row_id, "organizationId": ALPHA, kind.title_column(): row_id, "archivedAt": world.ARCHIVED}


@pytest.mark.parametrize("kind", KINDS)
def test_the_address_without_its_last_slash_works_too(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    """The same handler answers, without a redirect."""
    response = client.post(
        address(kind, record_id(kind, "archived")).rstrip("/"), headers=bearer("editor"), follow_redirects=False
    )
    assert response.status_code == 200, response.text
    assert stored.row(database, kind, record_id(kind, "archived"))["archived_at"] is None


@pytest.mark.parametrize("kind", KINDS)
def test_twice_is_a_conflict_that_changes_nothing(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    headers = bearer("editor")
    assert client.post(address(kind, record_id(kind, "archived")), headers=headers).status_code == 200
    before = stored.everything(database)
    refused(client.post(address(kind, record_id(kind, "archived")), headers=headers), 409, "not_archived")
    assert stored.everything(database) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_leaves_everything_else_alone(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    """Kinds may use the same id: only the one of the address is restored, and no other row of any table changes."""
    stored.load(database, {other.path: [archived(other, "twin")] for other in Restorable.kinds})
    headers = bearer("editor")
    before = stored.everything(database)
    assert client.post(address(kind, "twin"), headers=headers).status_code == 200
    after = stored.everything(database)
    assert {name for name in after if after[name] != before[name]} == {kind.__tablename__, "audit_event"}
    assert len(after["audit_event"]) == len(before["audit_event"]) + 1
    table = str(kind.__tablename__)
    assert without(after[table], "twin") == without(before[table], "twin")


def without(rows: list[Row], row_id: str) -> list[Row]:
    return [row for row in rows if row["id"] != row_id]


@pytest.mark.parametrize("kind", KINDS)
def test_of_eight_at_once_one_succeeds(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    """Exactly one restores; the others are told that the record is not archived; one audit event is written."""
    headers, together = bearer("editor"), Barrier(8)

    def call(_: int) -> httpx2.Response:
        together.wait(timeout=30)
        return client.post(address(kind, record_id(kind, "archived")), headers=headers)

    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(call, range(8)))
    losers = [response for response in responses if response.status_code != 200]
    assert len(losers) == 7
    for loser in losers:
        refused(loser, 409, "not_archived")
    assert stored.row(database, kind, record_id(kind, "archived"))["archived_at"] is None
    assert len(stored.rows(database, AuditEvent, entity_id=record_id(kind, "archived"))) == 1


# --- It is refused


@dataclass(frozen=True)
class Refusal:
    """Who asks for what, and the answer."""

    state: str
    status: int
    code: str
    user: str = "editor"
    scope: str = "write"
    organization: str = ALPHA
    challenge: str | None = None


INVALID = 'error="invalid_token"'
REFUSALS = {
    "live": Refusal("live", 409, "not_archived"),
    "unknown": Refusal("unknown", 404, "not_found"),
    "of another kind": Refusal("another kind's", 404, "not_found"),
    "foreign": Refusal("archived", 404, "not_found", organization=BETA),
    "foreign and live": Refusal("live", 404, "not_found", organization=BETA),
    "by a foreigner": Refusal("archived", 404, "not_found", user="foreigner"),
    "by nobody's member": Refusal("archived", 404, "not_found", user="nobody"),
    "by a viewer": Refusal("archived", 403, "forbidden", user="viewer"),
    "live, by a viewer": Refusal("live", 403, "forbidden", user="viewer"),
    "unknown, by a viewer": Refusal("unknown", 404, "not_found", user="viewer"),
    "with a read-only token": Refusal(
        "archived", 403, "forbidden", scope="read", user="owner", challenge='error="insufficient_scope", scope="write"'
    ),
    "with an expired token": Refusal("archived", 401, "unauthenticated", scope="expired", challenge=INVALID),
    "with a revoked token": Refusal("archived", 401, "unauthenticated", scope="revoked", challenge=INVALID),
    "with a made-up token": Refusal("archived", 401, "unauthenticated", scope="made up", challenge=INVALID),
    "anonymously": Refusal("archived", 401, "unauthenticated", scope="none", challenge="Bearer"),
}


def requested_id(kind: type[Restorable], refusal: Refusal) -> str:
    if refusal.state == "another kind's":
        position = Restorable.kinds.index(kind)
        return record_id(Restorable.kinds[position - 1], "archived")
    return record_id(kind, refusal.state, refusal.organization)


def credentials(refusal: Refusal, bearer: Bearer, database: Database) -> dict[str, str]:
    match refusal.scope:
        case "none":
            return {}
        case "made up":
            return {"Authorization": f"Bearer {tokens.generate()}"}
        case "expired":
            return bearer(refusal.user, lifetime=timedelta(0))
        case "revoked":
            headers = bearer(refusal.user)
            token = stored.rows(database, AccessToken)[-1]["id"]  # ids made later sort later
            database.write_now(lambda connection: tokens.revoke(connection, token))
            return headers
        case scope:
            return bearer(refusal.user, scope=scope)


def written(database: Database, kind: type[Restorable]) -> list[stored.Rows]:
    """All that a restore of the kind can write."""
    return [stored.rows(database, table) for table in (kind, AuditEvent, Notification)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_changes_nothing(
    client: TestClient, bearer: Bearer, database: Database, subtests: pytest.Subtests, kind: type[Restorable]
) -> None:
    for case, refusal in REFUSALS.items():
        with subtests.test(case):
            headers = credentials(refusal, bearer, database)
            before = written(database, kind)
            response = client.post(address(kind, requested_id(kind, refusal)), headers=headers)
            refused(response, refusal.status, refusal.code)
            assert_challenge(response, refusal)
            assert written(database, kind) == before


def assert_challenge(response: httpx2.Response, refusal: Refusal) -> None:
    """The response asks for credentials as RFC 6750 has it, or does not."""
    challenge = response.headers.get("www-authenticate", "")
    if refusal.challenge is None:
        assert challenge == ""
    else:
        assert challenge.startswith("Bearer ")
        assert refusal.challenge in challenge
        assert ("error" in challenge) == (refusal.scope != "none")


@pytest.mark.parametrize("kind", WITH_SLUG)
def test_a_taken_slug_is_a_conflict_that_names_its_holder(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    """It is named to those who might have restored the record, and to nobody else."""
    answers = {
        "editor": (409, "slug_taken", record_id(kind, "namesake")),
        "viewer": (403, "forbidden", None),
        "foreigner": (404, "not_found", None),
    }
    headers = {user: bearer(user) for user in answers}
    before = stored.everything(database)
    for user, (status, code, holder) in answers.items():
        response = client.post(address(kind, record_id(kind, "taken")), headers=headers[user])
        assert refused(response, status, code).get("conflictingId") == holder
    assert stored.everything(database) == before


@pytest.mark.parametrize("kind", WITH_SLUG)
def test_a_slug_is_free_again_once_its_holder_is_archived(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    stored.load(database, {kind.path: [{"id": record_id(kind, "namesake"), "archivedAt": world.ARCHIVED}]})
    headers = bearer("editor")
    assert client.post(address(kind, record_id(kind, "taken")), headers=headers).status_code == 200
    problem = refused(client.post(address(kind, record_id(kind, "namesake")), headers=headers), 409, "slug_taken")
    assert problem["conflictingId"] == record_id(kind, "taken")


def test_the_same_slug_elsewhere_is_no_conflict(client: TestClient, bearer: Bearer, database: Database) -> None:
    """Slugs are unique among live records of one kind and organization; other kinds and organizations do not count."""
    archive_another(database, Label, "wanderer", slug="elsewhere")
    stored.load(
        database,
        {
            "labels": [{"id": "beta-label", "organizationId": BETA, "name": "x", "slug": "elsewhere"}],
            "variables": [{"id": "alpha-variable", "organizationId": ALPHA, "name": "x", "slug": "elsewhere"}],
        },
    )
    assert client.post(address(Label, "wanderer"), headers=bearer("editor")).status_code == 200


def test_a_role_counts_in_its_own_organization_only(client: TestClient, bearer: Bearer, database: Database) -> None:
    """An owner of one organization who is a viewer of the other restores in the first and not in the second."""
    stored.load(
        database,
        {"memberships": [{"id": "guest", "organizationId": ALPHA, "userId": "user-foreigner", "role": "viewer"}]},
    )
    headers = bearer("foreigner")
    refused(client.post(address(Label, record_id(Label, "archived")), headers=headers), 403, "forbidden")
    assert client.post(address(Label, record_id(Label, "archived", BETA)), headers=headers).status_code == 200


def test_a_role_is_looked_up_at_every_request(client: TestClient, bearer: Bearer, database: Database) -> None:
    """A member who has become a viewer, or has left, is refused from the next request on, whatever their token."""
    headers = bearer("editor")
    archive_another(database, Label, "second")
    assert client.post(address(Label, record_id(Label, "archived")), headers=headers).status_code == 200
    stored.load(database, {"memberships": [{"id": "member-editor", "role": "viewer"}]})
    refused(client.post(address(Label, "second"), headers=headers), 403, "forbidden")
    database.write_now(lambda connection: connection.execute(text("DELETE FROM membership WHERE id = 'member-editor'")))
    refused(client.post(address(Label, "second"), headers=headers), 404, "not_found")


# --- Bodies

GOOD_BODIES: dict[str, dict[str, Any]] = {
    "absent": {},
    "empty, with a content type": {"content": b"", "headers": {"Content-Type": "application/json"}},
    "empty, with another content type": {"content": b"", "headers": {"Content-Type": "text/plain"}},
    "{}": {"json": {}},
    "the right organization": {"json": {"organizationId": ALPHA}},
    "null for the organization": {"json": {"organizationId": None}},
    "a content type with a charset": {"content": b"{}", "headers": {"Content-Type": "Application/JSON; charset=utf-8"}},
}


@pytest.mark.parametrize("case", GOOD_BODIES)
def test_an_integration_check_takes_a_body_or_none(
    client: TestClient, bearer: Bearer, database: Database, case: str
) -> None:
    response = send_check(client, bearer("editor"), GOOD_BODIES[case])
    assert response.status_code == 200, response.text
    assert response.content == b"null"
    assert stored.row(database, IntegrationCheck, record_id(IntegrationCheck, "archived"))["archived_at"] is None


def send_check(client: TestClient, headers: dict[str, str], sent: dict[str, Any]) -> httpx2.Response:
    return client.post(
        address(IntegrationCheck, record_id(IntegrationCheck, "archived")),
        **sent | {"headers": headers | sent.get("headers", {})},
    )


JSON = {"Content-Type": "application/json"}
BAD_BODIES: dict[str, tuple[dict[str, Any], int, str, str | None]] = {
    # what is sent, status, code, and the field that the fault names
    "another organization that exists": ({"json": {"organizationId": BETA}}, 404, "not_found", None),
    "another organization that does not": ({"json": {"organizationId": "org-gamma"}}, 404, "not_found", None),
    "a number for the organization": ({"json": {"organizationId": 7}}, 400, "validation", "organizationId"),
    "a list for the organization": ({"json": {"organizationId": [ALPHA]}}, 400, "validation", "organizationId"),
    "an empty organization": ({"json": {"organizationId": ""}}, 400, "validation", "organizationId"),
    "an organization that is too long": ({"json": {"organizationId": "x" * 129}}, 400, "validation", "organizationId"),
    "a list": ({"json": [{"organizationId": ALPHA}]}, 400, "validation", ""),
    "a string": ({"json": ALPHA}, 400, "validation", ""),
    "null": ({"json": None, "content": b"null", "headers": JSON}, 400, "validation", ""),
    "not JSON": ({"content": b"{organizationId: 1}", "headers": JSON}, 400, "validation", ""),
    "half of JSON": ({"content": b'{"organizationId": "org', "headers": JSON}, 400, "validation", ""),
    "no text": ({"content": b'{"organizationId": "\xff"}', "headers": JSON}, 400, "validation", ""),
    "spaces": ({"content": b"  ", "headers": JSON}, 400, "validation", ""),
    "depth": ({"content": b"[" * 10_000, "headers": JSON}, 400, "validation", ""),
    "a form": ({"data": {"organizationId": ALPHA}}, 415, "unsupported_media_type", None),
    "no content type": ({"content": b"{}"}, 415, "unsupported_media_type", None),
    "plain text": ({"content": b"{}", "headers": {"Content-Type": "text/plain"}}, 415, "unsupported_media_type", None),
    "something like JSON": (
        {"content": b"{}", "headers": {"Content-Type": "application/jsonx"}},
        415,
        "unsupported_media_type",
        None,
    ),
}


def test_an_integration_check_refuses_other_bodies(
    client: TestClient, bearer: Bearer, database: Database, subtests: pytest.Subtests
) -> None:
    headers = bearer("editor")
    before = stored.everything(database)
    for case, (sent, status, code, field) in BAD_BODIES.items():
        with subtests.test(case):
            problem = refused(send_check(client, headers, sent), status, code)
            faults = [(fault["in"], fault["name"]) for fault in problem["errors"]]
            assert faults == ([] if field is None else [("body", field)])
            assert all(fault["message"] and fault["code"] for fault in problem["errors"])
            assert stored.everything(database) == before


def test_a_body_is_judged_only_for_callers_who_may_write(client: TestClient, bearer: Bearer) -> None:
    """Nobody without a good token learns what is wrong with a body."""
    sent = {"content": b"nonsense", "headers": JSON}
    refused(send_check(client, {}, sent), 401, "unauthenticated")
    refused(send_check(client, bearer("editor", scope="read"), sent), 403, "forbidden")


@pytest.mark.parametrize("kind", [param for param in KINDS if param.values[0] is not IntegrationCheck])
def test_other_restores_ignore_a_body(client: TestClient, bearer: Bearer, kind: type[Restorable]) -> None:
    """They take none: whatever comes along, even another organization, is not looked at."""
    for content, content_type in ((b'{"organizationId": "org-beta"}', "application/json"), (b"\xff{", "text/plain")):
        response = client.post(
            address(kind, record_id(kind, "archived")),
            headers=bearer("editor") | {"Content-Type": content_type},
            content=content,
        )
        assert response.status_code == (200 if content_type == "application/json" else 409), response.text


# --- Ids

# Starlette's test client decodes twice; ids that look encoded are tested over a real server (test_serving.py).
ODD_IDS = [
    "a/b",
    "/",
    "/leading and trailing/",
    "a//b",
    "a/restore",
    "a/restore/",
    "restore",
    "restore/restore",
    "urn:x:label:1",
    "größe ☃ 😀",
    "a b",
    " ",
    "+",
    ".",
    "..",
    "../tasks/x",
    "%",
    "?q=1&r#f",
    "';--\"\\",
    "$ref~0~1",
    "\u202e\u00a0\ufeff",
    "e\u0301",
    "x" * 128,
    "😀" * 128,
]


def test_any_id_that_can_be_loaded_can_be_restored(
    client: TestClient, bearer: Bearer, database: Database, subtests: pytest.Subtests
) -> None:
    """Percent-encoded, every id reaches its own record and no other."""
    headers = bearer("editor")
    stored.load(database, {"labels": [archived(Label, row_id) for row_id in ODD_IDS]})
    for row_id in ODD_IDS:
        with subtests.test(row_id):
            before = stored.rows(database, Label)
            encoded = "".join(f"%{byte:02X}" for byte in row_id.encode())  # dots too, which clients would resolve
            response = client.post(f"/labels/{encoded}/restore/", headers=headers)
            assert response.status_code == 200, response.text
            assert response.json()["id"] == row_id
            restored = stored.row(database, Label, row_id)
            assert restored["archived_at"] is None
            assert stored.rows(database, Label) == [restored if row["id"] == row_id else row for row in before]


NO_IDS = ["", "%00", "a%00b", "%0A", "%FF", "%ED%A0%80", "%C3", "%zz", "x" * 129, "x" * 5_000, "%F0%9F%98%80" * 200]


def test_any_other_id_is_not_found(client: TestClient, bearer: Bearer, subtests: pytest.Subtests) -> None:
    """What no record can be called is answered like any record that is not there."""
    headers = bearer("editor")
    for encoded in NO_IDS:
        with subtests.test(encoded[:12]):
            refused(client.post(f"/labels/{encoded}/restore/", headers=headers), 404, "not_found")


def test_an_id_is_compared_exactly(client: TestClient, bearer: Bearer, database: Database) -> None:
    """Neither case, nor spaces around it, nor another Unicode form of it will do."""
    archive_another(database, Label, "Größe-A")
    headers = bearer("editor")
    for almost in ("größe-a", "GRÖSSE-A", "Gro\u0308ße-A", " Größe-A", "Größe-A ", "Größe-%"):
        refused(client.post(address(Label, almost), headers=headers), 404, "not_found")
    assert client.post(address(Label, "Größe-A"), headers=headers).status_code == 200


# --- The audit event


@pytest.mark.parametrize("kind", KINDS)
def test_an_audit_event_tells_who_restored_what(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable]
) -> None:
    headers = bearer("editor") | {"X-Request-Id": "chain-of-services.7"}
    (token,) = stored.rows(database, AccessToken)
    assert client.post(address(kind, record_id(kind, "archived")), headers=headers).status_code == 200
    (event,) = stored.rows(database, AuditEvent)
    record = stored.row(database, kind, record_id(kind, "archived"))
    if kind is not RiskReview:
        assert event["at"] == record["updated_at"]
    assert event == {
        "id": event["id"],
        "organization_id": ALPHA,
        "at": event["at"],
        "action": "restore",
        "entity_type": SHAPES[kind.path].component,
        "entity_id": record["id"],
        "user_id": "user-editor",
        "token_id": token["id"],
        "request_id": "chain-of-services.7",
    }


@pytest.mark.parametrize("lost", ["notification", "audit_event"])
@pytest.mark.parametrize("kind", [Policy, Task, RiskReview], ids=lambda kind: str(kind.path))
def test_a_failure_half_way_leaves_nothing(
    client: TestClient, bearer: Bearer, database: Database, kind: type[Restorable], lost: str
) -> None:
    """Record, audit event and notification are one transaction: where one of them cannot be written, none is."""
    assert kind.answerable is not None
    stored.load(
        database,
        {kind.path: [{"id": record_id(kind, "archived"), f"{camel(kind.answerable)}": "member-admin"}]},
    )
    headers = bearer("editor")
    before = stored.everything(database)
    database.write_now(lambda connection: connection.execute(text(f"ALTER TABLE {lost} RENAME TO gone")))
    response = client.post(address(kind, record_id(kind, "archived")), headers=headers)
    assert response.status_code in (500, 503)
    assert lost not in response.text
    database.write_now(lambda connection: connection.execute(text(f"ALTER TABLE gone RENAME TO {lost}")))
    assert stored.everything(database) == before
    assert client.post(address(kind, record_id(kind, "archived")), headers=headers).status_code == 200
    after = stored.everything(database)
    assert len(after["audit_event"]) == len(before["audit_event"]) + 1
    assert len(after["notification"]) == len(before["notification"]) + 1


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def test_a_fault_of_the_database_is_not_taken_for_a_taken_slug(
    client: TestClient, bearer: Bearer, database: Database
) -> None:
    """Only a live namesake is a conflict; another broken constraint is a fault of the service."""
    headers = bearer("editor")
    row_id = record_id(Label, "archived")

    def tie(connection: Connection) -> None:
        connection.execute(
            text("CREATE UNIQUE INDEX uq_extra ON label (organization_id, name) WHERE archived_at IS NULL")
        )
        connection.execute(text("UPDATE label SET name = 'label live' WHERE id = :id"), {"id": row_id})

    database.write_now(tie)
    refused(client.post(address(Label, row_id), headers=headers), 500, "internal")
    assert stored.row(database, Label, row_id)["archived_at"] is not None
