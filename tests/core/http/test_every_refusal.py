"""Whom and what every operation refuses, and how. An operation that is added tomorrow is tested here, too.

Nothing that is refused changes anything: each test looks at all that is stored, before and after.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.roles import ROLES, SCOPES, scope_suffices
from normata.identity.tokens import tokens
from normata.operations import OPERATIONS
from normata.settings import Settings
from tests import stored
from tests.cells import all_cells
from tests.core.http.samples import (
    JSON,
    Sample,
    about_others,
    all_operations,
    by_role,
    enough,
    families,
    operations,
    sample,
    takes_body,
)
from tests.databases import path_of
from tests.served import Headers, Served, refused, served

BARE = 'Bearer realm="normata"'
INVALID = f'{BARE}, error="invalid_token", error_description="'
LIMIT = Settings.model_fields["max_body_bytes"].default

# A body that is read while it arrives may be anything; tests/files has the limits of these.
with_body = families(lambda operation: takes_body(operation) and operation.body_stream is None)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Tokens:
    """Tokens that were made before anything is looked at: to make one is a change, too."""

    good: dict[tuple[str, str], str]
    no_good: dict[str, list[str]]

    def bearer(self, operation: Operation) -> Headers:
        """The header of the user with the least role that suffices."""
        return {"Authorization": f"Bearer {self.good[enough(operation), operation.scope]}"}


@pytest.fixture(scope="module")
def made(shared: Served) -> Tokens:
    """A token of each role and scope, and of each sort that is no good: the values of the Authorization header."""
    good: dict[tuple[str, str], str] = {
        (user, scope): shared.token(user, scope=scope) for user in (*ROLES, "operator") for scope in SCOPES
    }
    one = good["owner", SCOPES[-1]]
    revoked = shared.token("owner")
    shared.revoke(revoked)
    no_good = {
        "empty": [""],
        "malformed": ["nrm_nonsense"],
        "not ASCII": ["nrm_é"],
        "of another's form": ["x" * 5_000],
        "with a wrong checksum": [one[:-1] + ("1" if one[-1] == "0" else "0")],
        "padded": [f"{one}="],
        "two in one": [f"{one} {one}"],
        "sent twice": [one, one],
        "unknown": [tokens.generate()],
        "expired": [shared.token("owner", lifetime=timedelta(seconds=-1))],
        "revoked": [revoked],
    }
    return Tokens(good, no_good)


@pytest.fixture(scope="module")
def changes(shared: Served, made: Tokens) -> Iterator[stored.Changes]:
    """What changes in the database, after the tokens."""
    del made
    with stored.watched(shared.database) as watched:
        yield watched


@pytest.fixture(autouse=True)
def unchanged(changes: stored.Changes) -> Iterator[None]:
    """Holds what is stored after a test against what was there before."""
    changes.begin()
    yield
    changes.require_none()


def spoilt(operation: Operation) -> Sample:
    """A request that breaks other rules, too: what is wrong with the caller comes first."""
    query = {"limit": "nonsense"} if isinstance(operation, ListOperation) else {}
    return sample(operation).but(query=query, body={"organizationId": 7} if takes_body(operation) else None)


# --- Who asks


@all_operations()
def test_without_a_bearer_token(operation: Operation, shared: Served) -> None:
    """Who sends no credentials, or those of another scheme, is told of no error (RFC 6750, section 3.1)."""
    for headers in ({}, {"Authorization": "Basic dXNlcjpwYXNz"}, {"Authorization": "Token abc"}):
        response = spoilt(operation).send(shared.client, headers | {"Accept": "text/html"})
        assert refused(response, 401, "unauthenticated")["errors"] == []
        assert response.headers["www-authenticate"] == BARE


@families()
def test_with_a_token_that_is_no_good(operation: Operation, shared: Served, made: Tokens) -> None:
    request = spoilt(operation)
    with all_cells() as at:
        for sort, sent in made.no_good.items():
            with at(sort):
                response = shared.client.request(
                    operation.method,
                    request.path,
                    params=request.query,
                    headers=[
                        (b"Accept", b"text/html"),
                        *((b"Authorization", f"Bearer {token}".encode("latin-1")) for token in sent),
                    ],
                )
                assert refused(response, 401, "unauthenticated")["errors"] == []
                assert response.headers["www-authenticate"].startswith(INVALID)


def small_scopes(operation: Operation) -> list[str]:
    """The scopes that do not suffice."""
    return [scope for scope in SCOPES if not scope_suffices(scope, operation.scope)]


@all_operations(small_scopes)
def test_with_a_scope_that_is_too_small(operation: Operation, shared: Served, made: Tokens) -> None:
    """Whatever the role, and before the request is looked at (RFC 6750, section 3.1)."""
    challenge = f'{BARE}, error="insufficient_scope", scope="{operation.scope}"'
    with all_cells() as at:
        for scope in small_scopes(operation):
            headers = {"Authorization": f"Bearer {made.good['owner', scope]}"}
            for request in (sample(operation), spoilt(operation)):
                with at(f"{scope}, {request}"):
                    response = request.send(shared.client, headers)
                    assert scope in refused(response, 403, "forbidden")["detail"]
                    assert response.headers["www-authenticate"] == challenge


def small_roles(operation: Operation) -> list[str]:
    """The roles that do not suffice."""
    return [role for role in ROLES if by_role(operation) and not operation.admits(role)]


# Whom a version names may do it as well, whatever their role: who could be one is told that they are not.
NAMED = dict.fromkeys(("approveSoaVersion", "approvePolicy", "rejectPolicy"), "approver")
NAMED |= dict.fromkeys(("changeComment", "deleteComment"), "who has written")


@all_operations(small_roles)
def test_with_a_role_that_is_too_small(operation: Operation, shared: Served, made: Tokens) -> None:
    with all_cells() as at:
        for role in small_roles(operation):
            with at(role):
                headers = {"Authorization": f"Bearer {made.good[role, operation.scope]}"}
                response = sample(operation).send(shared.client, headers)
                detail = refused(response, 403, "forbidden")["detail"]
                assert operation.role in detail or NAMED.get(operation.operation_id, operation.role) in detail
                assert "www-authenticate" not in response.headers


@operations(lambda operation: operation.authority == "operator")
def test_who_does_not_run_the_instance(operation: Operation, shared: Served, made: Tokens) -> None:
    """Not even an owner may do what takes an operator."""
    for role in ROLES:
        headers = {"Authorization": f"Bearer {made.good[role, operation.scope]}"}
        refused(sample(operation).send(shared.client, headers), 403, "forbidden")


@families(lambda operation: operation.about is not None)
def test_rows_of_other_kinds_are_not_there(operation: Operation, shared: Served, made: Tokens) -> None:
    for request in about_others(operation):
        refused(request.send(shared.client, made.bearer(operation)), 404, "not_found")


# --- How it is asked


@families()
def test_where_nothing_that_there_is_is_accepted(operation: Operation, shared: Served, made: Tokens) -> None:
    """Nor any other format that there is. The problem is JSON all the same."""
    files = operation.files if isinstance(operation, ListOperation) else None
    formats = operation.formats if isinstance(operation, ReadOperation) else None
    others = [media_type for one in (formats, files) if one is not None for media_type in one.media_types]
    refused_all = "".join(f"{media_type};q=0, " for media_type in ("application/json", *others))
    request = sample(operation)
    request = request.but(query={name: value for name, value in request.query.items() if name != "format"})  # it wins
    for accept in ("text/html", f"{refused_all}*/*"):
        response = request.send(shared.client, made.bearer(operation) | {"Accept": accept})
        refused(response, 406, "not_acceptable")


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")


@families()
def test_with_another_method(operation: Operation, shared: Served) -> None:
    """Allow names all that there are at this address; with the slash and without it."""
    allowed = {method for other in OPERATIONS if other.path == operation.path for method in other.methods}
    request = sample(operation)
    for method in METHODS:
        if method in allowed:
            continue
        for path in (request.path, request.path.rstrip("/")):
            response = request.send(shared.client, {}, method=method, path=path)
            assert response.headers["allow"] == ", ".join(sorted(allowed)), method
            assert response.status_code == 405
            if method != "HEAD":
                refused(response, 405, "method_not_allowed")


@with_body
def test_with_a_body_that_is_too_large(operation: ChangeOperation, shared: Served, made: Tokens) -> None:
    """By a little or by much, and whether its length is declared or not."""
    limit = operation.body_limit or LIMIT
    with all_cells() as at:
        for size, is_declared in product((limit + 1, limit + LIMIT * 20), (True, False)):
            with at(f"{size:,} bytes, {is_declared=}"):
                content = b"{" + b" " * (size - 2) + b"}"
                response = shared.client.request(
                    operation.method,
                    sample(operation).path,
                    content=content if is_declared else iter([content]),
                    headers=made.bearer(operation) | JSON,
                )
                assert ("content-length" in response.request.headers) == is_declared
                refused(response, 413, "too_large")


NOT_SAID_TO_BE_JSON = (
    *(None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "json"),
    *("application/merge-patch+json", "text/json", "multipart/form-data; boundary=x", "*/*"),
)


@with_body
def test_with_a_body_that_is_not_said_to_be_json(operation: ChangeOperation, shared: Served, made: Tokens) -> None:
    # A form with a file is refused for what it lacks.
    taken = ("multipart/form-data; boundary=x",) if operation.body_formats else operation.body_types
    with all_cells() as at:
        for media_type in NOT_SAID_TO_BE_JSON:
            if media_type in taken:
                continue
            with at(media_type):
                headers = made.bearer(operation) | ({} if media_type is None else {"Content-Type": media_type})
                response = sample(operation).send(shared.client, headers, content=b"{}")
                refused(response, 415, "unsupported_media_type")


NOT_JSON = {
    "not JSON": b"{organizationId: 1}",
    "half of JSON": b'{"organizationId": "org',
    "no text": b'{"organizationId": "\xff"}',
    "spaces": b"  ",
    "depth": b"[" * 10_000,
    "null": b"null",
    "a list": b"[{}]",
    "a string": b'"org-alpha"',
    "a number": b"7",
}


@with_body
def test_with_a_body_that_is_no_json_object(operation: Operation, shared: Served, made: Tokens) -> None:
    with all_cells() as at:
        for sort, content in NOT_JSON.items():
            with at(sort):
                response = sample(operation).send(shared.client, made.bearer(operation) | JSON, content=content)
                (fault,) = refused(response, 400, "validation")["errors"]
                assert (fault["in"], fault["name"], fault["allowed"]) == ("body", "", None)
                assert fault["message"] in response.json()["detail"]


@all_operations(lambda operation: isinstance(operation, ChangeOperation) and operation.body_required)
def test_without_a_body_that_is_required(operation: Operation, shared: Served, made: Tokens) -> None:
    response = sample(operation).but(body=None).send(shared.client, made.bearer(operation) | JSON)
    refused(response, 400, "validation")


@with_body
def test_nobody_else_is_told_what_is_wrong_with_a_body(operation: Operation, shared: Served) -> None:
    contents: list[tuple[bytes, Headers]] = [(b" " * (LIMIT + 1), JSON), (b"{", JSON), (b"{}", {})]
    for content, headers in contents:
        refused(sample(operation).send(shared.client, headers, content=content), 401, "unauthenticated")


@operations(lambda operation: isinstance(operation, ListOperation))
def test_all_faults_of_a_query_are_told_at_once(operation: Operation, shared: Served, made: Tokens) -> None:
    request = sample(operation).but(query={"limit": "4", "page": "0"})
    problem = refused(request.send(shared.client, made.bearer(operation)), 400, "validation")
    faults = sorted((fault["in"], fault["name"], fault["code"]) for fault in problem["errors"])
    of_organization = [("query", "organizationId", "required")] if by_role(operation) else []
    assert faults == [("query", "limit", "too_small"), *of_organization, ("query", "page", "too_small")]


# --- When it cannot be answered


@pytest.fixture(scope="module")
def limited(shared_url: str) -> Iterator[tuple[Served, dict[str, tuple[Headers, Headers]]]]:
    """The application, where a token may ask once a minute, and the headers of two tokens for each operation."""
    with served(shared_url, rate_limit=1) as opened:
        headers = {one.operation_id: (opened.bearer(enough(one)), opened.bearer(enough(one))) for one in OPERATIONS}
        yield opened, headers


@families()
def test_too_many_requests(operation: Operation, limited: tuple[Served, dict[str, tuple[Headers, Headers]]]) -> None:
    """The limit is each token's own, and counts whatever came of the request before."""
    opened, headers = limited
    first, second = headers[operation.operation_id]
    request = sample(operation)
    query = {name: value for name, value in request.query.items() if name != "format"}  # which wins over Accept
    of_html = request.but(query=query)
    assert of_html.send(opened.client, first | {"Accept": "text/html"}).status_code == 406
    response = request.send(opened.client, first)
    refused(response, 429, "too_many_requests")
    assert 1 <= int(response.headers["retry-after"]) <= 60
    assert of_html.send(opened.client, second | {"Accept": "text/html"}).status_code == 406


@pytest.fixture(scope="module")
def away(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, dict[str, Headers]]]:
    """The application and the headers of its users, after the file of its database has been taken away."""
    path = tmp_path_factory.mktemp("away") / "normata.db"
    shutil.copy(sqlite_template, path)
    with served(f"sqlite:///{path}") as opened:
        headers: dict[str, Headers] = {user: opened.bearer(user) for user in (*ROLES, "operator")}
        opened.database.close()
        path_of(opened.database).rename(path.with_suffix(".away"))
        yield opened, headers
        assert not path.exists(), "an empty database was made in its place"


@families()
def test_without_a_database(operation: Operation, away: tuple[Served, dict[str, Any]]) -> None:
    opened, headers = away
    response = sample(operation).send(opened.client, headers[enough(operation)])
    refused(response, 503, "unavailable")
    assert int(response.headers["retry-after"]) > 0
    assert str(path_of(opened.database)) not in response.text
