"""What you cannot see does not exist: no answer tells an outsider whether something is there, or anything about it.

The calls are made from the operations, so that one that is added tomorrow is tested, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from httpx2 import Response

from normata.core.http.operation import ChangeOperation, ListOperation, Operation
from normata.core.http.roles import scope_suffices
from normata.identity.model import AccessToken
from normata.identity.sign_in_model import Session
from normata.operations import OPERATIONS
from normata.records.base import Restorable
from tests import stored, world
from tests.core.http.samples import Sample, by_role, harmless_first, sample
from tests.databases import on_both
from tests.listing import LISTS, SEARCHED
from tests.served import Served, removal_of
from tests.world import ALPHA, BETA, record_id

# What is about one's own names nothing of others', unless by an id.
AIMED = [operation for operation in harmless_first(OPERATIONS) if by_role(operation) or "{id}" in operation.path]
EVERY = {operation.operation_id for operation in AIMED}


class Outsider(NamedTuple):
    """Somebody to whom an organization is closed: who, with a token of what scope, and which organization."""

    user: str
    target: str = ALPHA
    scope: str = "admin"


OUTSIDERS = {
    "the owner of another organization": Outsider("foreigner"),
    "the same, with a read-only token": Outsider("foreigner", scope="read"),
    "a member of nothing": Outsider("nobody"),
    "a viewer of another organization": Outsider("viewer", target=BETA),
    "an editor of another organization": Outsider("editor", target=BETA),
}


def nonexistent(identifier: str) -> str:
    """An identifier of nothing, as long as the other."""
    return "zz" + identifier[2:]


class Pair(NamedTuple):
    """A request about something, and the same about nothing."""

    there: Sample
    nowhere: Sample


def calls(target: str, user: str | None = None) -> Iterator[Pair]:
    """Every operation on something of the organization ``target``, for this user, and the same on nothing.

    Those that read come first: a change may take away what they are about. All rows are tried, and all bodies with one.
    """
    for operation in AIMED:
        if "{id}" in operation.path:
            yield from _about_rows(operation, target, user)
        else:
            yield from _about_organizations(operation, target)


def _about_organizations(operation: Operation, target: str) -> Iterator[Pair]:
    there, nowhere = sample(operation, target), sample(operation, nonexistent(target))
    assert there != nowhere, f"{operation.operation_id} needs a call of its own here"
    yield Pair(there, nowhere)
    if isinstance(operation, ListOperation):
        known = operation.query.model_json_schema(by_alias=True)["properties"]
        extras = [{"limit": "5"}, {"page": "1000000"}, {"limit": "1"}]
        extras += [{name: "A"} for name in ("search", "frameworks") if name in known]
        extras += [
            {name: value} for name in known if known[name].get("type") == "boolean" for value in ("true", "false")
        ]
        for extra in extras:
            yield Pair(there.but(query=there.query | extra), nowhere.but(query=nowhere.query | extra))


def _about_rows(operation: Operation, target: str, user: str | None) -> Iterator[Pair]:
    ids = [sample(operation, target, user=user).row_id]
    if operation.about is not None and issubclass(operation.about, Restorable):
        records = world.bundle()[operation.about.path]
        ids = [record["id"] for record in records if record["organizationId"] == target]
    for number, row_id in enumerate(ids):
        there, nowhere = (sample(operation, target, row_id=one) for one in (row_id, nonexistent(row_id)))
        bodies = [there.body]
        if isinstance(operation, ChangeOperation) and operation.body and not operation.body_required and number == 0:
            bodies += [{}, {"organizationId": ALPHA}, {"organizationId": BETA}, None]
        for body in bodies:
            yield Pair(there.but(body=body), nowhere.but(body=body))


def visible(response: Response) -> tuple[int, dict[str, str], dict[str, Any]]:
    """All that an answer tells, but for what the request itself had in it."""
    body: dict[str, Any] = response.json()
    body.pop("instance")
    headers = {name: value for name, value in response.headers.items() if name != "date"}
    return response.status_code, headers, body


def secrets_of(organization: str) -> set[str]:
    """Every id, name and slug that is this organization's own and nobody else's."""
    own = {world.disagreement(organization)}
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
    found = [secret for secret in secrets if secret in told]  # which is quick, and mostly all
    return [secret for secret in found if re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", told)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("database_url", "who"),
    [*(("sqlite", who) for who in OUTSIDERS), *(("postgresql", who) for who in list(OUTSIDERS)[::4])],
    indirect=["database_url"],
)
def test_an_outsider_cannot_tell_what_exists(service: Served, who: str) -> None:
    """Status, headers and body are the same for what is there and for what is not; nothing is named or changed."""
    outsider = OUTSIDERS[who]
    headers = service.bearer(outsider.user, scope=outsider.scope) | {"X-Request-Id": "the-same"}
    secrets = secrets_of(outsider.target)
    before = stored.everything(service.database)
    tried = set()
    for there, nowhere in calls(outsider.target):
        tried.add(there.operation.operation_id)
        status, answer_headers, body = answer = visible(there.send(service.client, headers))
        assert 400 <= status < 500, there.path
        assert (status == 403) == (not scope_suffices(outsider.scope, there.operation.scope)), there.path
        assert answer == visible(nowhere.send(service.client, headers)), there.path
        assert named(secrets, f"{answer_headers} {body}") == [], there.path
    assert tried == EVERY
    assert stored.everything(service.database) == before


def _tried(call: Sample) -> Sample:
    """A change as a dry run, with all its checks and its answer: a step may keep another one from being done."""
    is_change = isinstance(call.operation, ChangeOperation)
    return call.but(query=call.query | {"dryRun": "true"}) if is_change else call


@pytest.mark.long
@pytest.mark.parametrize(
    ("database_url", "user", "home", "away"),
    [("sqlite", "foreigner", BETA, ALPHA), ("sqlite", "owner", ALPHA, BETA), ("postgresql", "owner", ALPHA, BETA)],
    indirect=["database_url"],
)
def test_at_home_nothing_is_seen_of_others(service: Served, user: str, home: str, away: str) -> None:
    """What the caller's own organization is answered names nothing that is another's."""
    secrets, headers = secrets_of(away), service.bearer(user)
    assert len(secrets) > 50
    answered = set()
    for call, _ in calls(home, user):
        response = _tried(call).send(service.client, headers)
        body = response.json()
        if response.is_success:
            answered.add(call.operation.operation_id)
        else:
            body.pop("instance")
        if call.body != {"organizationId": away}:
            assert named(secrets, f"{response.headers} {body}") == []
    assert answered == EVERY


def test_the_secrets_that_are_looked_for_are_there() -> None:
    """Each organization's own things are among them, and what both may see is not."""
    alpha, beta = secrets_of(ALPHA), secrets_of(BETA)
    assert {ALPHA, "fw-own", "own.A.1", "Two sites are missing.", "note-00", "tasks-live-org-alpha"} <= alpha
    assert {BETA, "fw-foreign", "foreign.A.1", "note-unread-foreigner", "tasks-live-org-beta"} <= beta
    assert not {"fw-sun", "sun.A.1", "Sun Standard", "tasks-live"} & (alpha | beta)
    assert named(beta, "{'id': 'fw-foreign', 'slug': 'tasks-live'}") == ["fw-foreign"]


FOREIGN = ("fw-foreign", "FOREIGN", "foreign.A.1", "foreign control 1", "Beta's own", BETA)


@on_both
def test_filters_find_nothing_of_others(service: Served) -> None:
    """To filter by something of another organization is to filter by nothing that there is."""
    headers = service.bearer("owner") | {"X-Request-Id": "the-same"}
    for operation in SEARCHED:
        for name in {"search", "frameworks"} & operation.query.model_fields.keys():
            for foreign in FOREIGN:
                there, nowhere = (
                    sample(operation).but(query={"organizationId": ALPHA, name: value}).send(service.client, headers)
                    for value in (foreign, nonexistent(foreign))
                )
                assert (there.status_code, there.json()["total"]) == (200, 0), foreign
                assert there.content == nowhere.content, foreign


@on_both
def test_a_member_who_has_left_is_an_outsider_at_once(service: Served) -> None:
    headers = service.bearer("admin") | {"X-Request-Id": "the-same"}
    for listed in LISTS:
        assert sample(listed).send(service.client, headers).status_code == 200
    service.sql(*removal_of("member-admin"))
    for operation in AIMED:
        if operation.authority == "self" and operation.about in (AccessToken, Session):
            continue  # their own tokens and sessions are theirs, wherever they are members
        answer = sample(operation, user="admin").send(service.client, headers)
        assert answer.status_code == 404, operation.operation_id


@on_both
def test_a_role_counts_in_its_own_organization_only(service: Served) -> None:
    """An owner of one organization who is a viewer of the other may change things in the first only."""
    service.load(
        {"memberships": [{"id": "guest", "organizationId": ALPHA, "userId": "user-foreigner", "role": "viewer"}]}
    )
    headers = service.bearer("foreigner")
    changes = [one for one in AIMED if isinstance(one, ChangeOperation) and by_role(one) and one.role != "viewer"]
    assert changes
    for operation in changes:
        assert sample(operation, ALPHA).send(service.client, headers).status_code == 403, operation.operation_id
        answer = _tried(sample(operation, BETA)).send(service.client, headers)
        assert answer.is_success, f"{operation.operation_id} was answered {answer.status_code}: {answer.text}"


def test_the_world_has_a_record_of_every_kind_in_both_organizations() -> None:
    """Without them, nothing above would be tested."""
    ids = {row["id"] for kind in Restorable.kinds for row in world.bundle()[kind.path]}
    assert {record_id(kind, "archived", at) for kind in Restorable.kinds for at in (ALPHA, BETA)} <= ids
