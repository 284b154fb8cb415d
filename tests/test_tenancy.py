"""What you cannot see does not exist: no answer tells an outsider whether something is there, or anything about it.

The calls are made from the application's own OpenAPI document, so that an operation added tomorrow is tested, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from normata.app import create_app
from normata.database import Database
from normata.identity import tokens
from normata.identity.model import AccessToken
from normata.records.base import Restorable
from normata.settings import Settings
from tests import stored, world
from tests.world import ALPHA, BETA, record_id

Bearer = Callable[..., dict[str, str]]
Headers = dict[str, str]


@dataclass(frozen=True)
class Outsider:
    """Somebody to whom an organization is closed: who, with what token, and which organization."""

    user: str
    target: str = ALPHA
    scope: str = "write"

    def headers(self, bearer: Bearer, database: Database) -> Headers:
        """The Authorization header that they send."""
        match self.scope:
            case "none":
                return {}
            case "made up":
                return {"Authorization": f"Bearer {tokens.generate()}"}
            case "malformed":
                return {"Authorization": "Bearer nrm_x"}
            case "expired":
                return bearer(self.user, lifetime=timedelta(0))
            case "revoked":
                headers = bearer(self.user)
                token_id = stored.rows(database, AccessToken)[-1]["id"]
                database.write_now(lambda connection: tokens.revoke(connection, token_id))
                return headers
        return bearer(self.user, scope=self.scope)


OUTSIDERS = {
    "the owner of another organization": Outsider("foreigner"),
    "the same, with a read-only token": Outsider("foreigner", scope="read"),
    "a member of nothing": Outsider("nobody"),
    "a viewer of another organization": Outsider("viewer", target=BETA),
    "an editor of another organization": Outsider("editor", target=BETA),
    "a member whose token has expired": Outsider("owner", scope="expired"),
    "a member whose token is revoked": Outsider("owner", scope="revoked"),
    "a stranger with a made-up token": Outsider("", scope="made up"),
    "a stranger with a malformed token": Outsider("", scope="malformed"),
    "a stranger without a token": Outsider("", scope="none"),
}


@dataclass(frozen=True)
class Call:
    """One request, and the same for something that does not exist, which is as long to write."""

    operation: str
    method: str
    path: str
    query: dict[str, str]
    body: dict[str, str] | None = None

    def send(self, client: TestClient, headers: Headers) -> httpx2.Response:
        return client.request(
            self.method,
            self.path,
            params=self.query,
            json=self.body,
            headers=headers | {"X-Request-Id": "the-same"},
        )


def nonexistent(identifier: str) -> str:
    """An identifier of nothing, as long as the other."""
    return "zz" + identifier[2:]


def calls(target: str) -> Iterator[tuple[Call, Call]]:
    """Every operation on something of the organization ``target``, and the same on nothing."""
    settings = Settings(database_url="sqlite:///never-opened.db", log_level="error")
    for template, operations in create_app(settings).openapi()["paths"].items():
        for method, operation in operations.items():
            yield from _calls(template, method, operation, target)


def _calls(template: str, method: str, operation: dict[str, Any], target: str) -> Iterator[tuple[Call, Call]]:
    name = operation["operationId"]
    places = {parameter["name"]: parameter["in"] for parameter in operation.get("parameters", [])}
    if "organizationId" in places:
        assert "{" not in template
        extras: list[dict[str, str]] = [{}, {"limit": "5"}, {"page": "1000000"}, {"limit": "1"}]
        extras += [{key: "A"} for key in places if key in ("search", "frameworks")]
        extras += [{"adoptedOnly": "true"}] if "adoptedOnly" in places else []
        for extra in extras:
            yield tuple(  # type: ignore[misc]
                Call(name, method, template, {"organizationId": organization} | extra)
                for organization in (target, nonexistent(target))
            )
        return
    assert re.fullmatch(r"/[A-Za-z-]+/\{id\}/restore/", template), f"{template} needs a call of its own here"
    (kind,) = (kind for kind in Restorable.kinds if template == f"/{kind.path}/{{id}}/restore/")
    states = ["archived", "live"] + (["taken", "namesake"] if "slug" in kind.sql().c else [])
    bodies: list[dict[str, str] | None] = [None]
    if "requestBody" in operation:
        bodies += [{}, {"organizationId": target}, {"organizationId": ALPHA}, {"organizationId": BETA}]
    for state in states:
        there = record_id(kind, state, target)
        for body in bodies:
            yield tuple(  # type: ignore[misc]
                Call(name, method, template.replace("{id}", row_id), {}, body) for row_id in (there, nonexistent(there))
            )


def visible(response: httpx2.Response) -> tuple[int, dict[str, str], dict[str, Any]]:
    """All that an answer tells, but for what the request itself had in it."""
    body: dict[str, Any] = response.json()
    body.pop("instance")
    headers = {name: value for name, value in response.headers.items() if name != "date"}
    return response.status_code, headers, body


def secrets_of(organization: str) -> set[str]:
    """Every id, name and slug that is this organization's own and nobody else's."""
    own: set[str] = set()
    others: set[str] = set()
    bundle = world.bundle()
    frameworks = {row["id"] for row in bundle["frameworks"] if row.get("organizationId") == organization}
    members = {row["userId"] for row in bundle["memberships"] if row["organizationId"] == organization}
    for array, rows in bundle.items():
        for row in rows:
            mine = (
                organization in (row.get("organizationId"), row["id"])
                or row.get("frameworkId") in frameworks
                or (array == "users" and row["id"] in members)
            )
            keys = ("id", "name", "title", "acronym", "slug", "identifier", "email", "coverageGap")
            (own if mine else others).update(row[key] for key in keys if row.get(key) is not None)
    return own - others


def named(secrets: set[str], told: str) -> list[str]:
    """Those of the secrets that occur, as words of their own."""
    return [secret for secret in secrets if re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", told)]


@pytest.mark.parametrize("who", OUTSIDERS)
def test_an_outsider_cannot_tell_what_exists(
    client: TestClient, bearer: Bearer, database: Database, subtests: pytest.Subtests, who: str
) -> None:
    """Status, headers and body are the same for what is there and for what is not; nothing is named or changed."""
    outsider = OUTSIDERS[who]
    headers = outsider.headers(bearer, database)
    secrets = secrets_of(outsider.target)
    before = stored.everything(database)
    operations = set()
    for there, nowhere in calls(outsider.target):
        operations.add(there.operation)
        with subtests.test(there.operation, call=there):
            answer = there.send(client, headers)
            assert answer.status_code in (400, 401, 403, 404)
            assert visible(answer) == visible(nowhere.send(client, headers))
            status, answer_headers, body = visible(answer)
            told = f"{answer_headers} {body}"
            assert named(secrets, told) == []
            if status == 403:
                assert outsider.scope == "read"
    assert len(operations) == 19
    assert stored.everything(database) == before


@pytest.mark.parametrize(("user", "home", "away"), [("foreigner", BETA, ALPHA), ("owner", ALPHA, BETA)])
def test_at_home_nothing_is_seen_of_others(client: TestClient, bearer: Bearer, user: str, home: str, away: str) -> None:
    """Lists and restores of the caller's own organization name nothing that is another's."""
    secrets, headers = secrets_of(away), bearer(user)
    assert len(secrets) > 50
    answered = set()
    for call, _ in calls(home):
        response = call.send(client, headers)
        if response.status_code == 200:
            answered.add(call.operation)
        body = response.json()
        if response.status_code != 200:
            body.pop("instance")
        assert named(secrets, f"{response.headers} {body}") == []
    assert len(answered) == 19


def test_the_secrets_that_are_looked_for_are_there() -> None:
    """Each organization's own things are among them, and what both may see is not."""
    alpha, beta = secrets_of(ALPHA), secrets_of(BETA)
    assert {ALPHA, "fw-own", "own.A.1", "Two sites are missing.", "note-00", "tasks-live-org-alpha"} <= alpha
    assert {BETA, "fw-foreign", "foreign.A.1", "note-foreign", "tasks-live-org-beta"} <= beta
    assert not {"fw-sun", "sun.A.1", "Sun Standard", "tasks-live"} & (alpha | beta)
    assert named(beta, "{'id': 'fw-foreign', 'slug': 'tasks-live'}") == ["fw-foreign"]


@pytest.mark.parametrize(
    ("path", "filters"),
    [
        ("/controls/", {"frameworks": "{}"}),
        ("/controls/", {"search": "{}"}),
        ("/frameworks/", {"search": "{}"}),
    ],
)
@pytest.mark.parametrize("foreign", ["fw-foreign", "FOREIGN", "foreign.A.1", "foreign control 1", "Beta's own", BETA])
def test_filters_find_nothing_of_others(
    client: TestClient, bearer: Bearer, path: str, filters: dict[str, str], foreign: str
) -> None:
    """To filter by something of another organization is to filter by nothing that there is."""
    headers = bearer("owner") | {"X-Request-Id": "the-same"}
    answers = [
        client.get(
            path,
            params={"organizationId": ALPHA} | {key: value.format(name) for key, value in filters.items()},
            headers=headers,
        )
        for name in (foreign, nonexistent(foreign))
    ]
    assert answers[0].status_code == 200
    assert answers[0].json()["total"] == 0
    assert answers[0].content == answers[1].content


def test_a_member_who_has_left_is_an_outsider_at_once(client: TestClient, bearer: Bearer, database: Database) -> None:
    headers = bearer("viewer") | {"X-Request-Id": "the-same"}
    there, nowhere = next(pair for pair in calls(ALPHA) if pair[0].method == "get")
    assert there.send(client, headers).status_code == 200
    database.write_now(
        lambda connection: connection.exec_driver_sql("DELETE FROM membership WHERE id = 'member-viewer'")
    )
    assert there.send(client, headers).status_code == 404
    assert visible(there.send(client, headers)) == visible(nowhere.send(client, headers))
