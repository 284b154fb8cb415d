"""The shape of errors: one for all, whatever went wrong, with the headers that belong to the case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from httpx2 import Response
from sqlalchemy import text
from starlette.testclient import TestClient

from normata.app import create_app
from normata.database import Database
from normata.errors import ApiError, Problem
from normata.records.kinds import IntegrationCheck, Label
from normata.settings import Settings
from tests import world

MEMBERS = {"type", "title", "status", "code", "detail", "instance", "requestId", "errors"}
FAULT_MEMBERS = {"in", "name", "code", "message", "allowed"}
LABEL = "/labels/{}/restore/"
CHECK = f"/integration-checks/{world.record_id(IntegrationCheck, 'archived')}/restore/"
JSON = {"Content-Type": "application/json"}


@dataclass
class Bench:
    """What a case needs to go wrong."""

    client: TestClient
    bearer: Callable[..., dict[str, str]]
    database: Database
    database_url: str

    def get(
        self, path: str = "/controls/", user: str = "viewer", headers: dict[str, str] | None = None, **params: str
    ) -> Response:
        """The answer to a GET for alpha."""
        return self.client.get(
            path, params={"organizationId": world.ALPHA} | params, headers=self.bearer(user) | (headers or {})
        )

    def post(
        self,
        path: str,
        *,
        user: str = "editor",
        scope: str = "write",
        content: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Response:
        """The answer to a POST."""
        return self.client.post(
            path, content=content, headers=self.bearer(user, scope=scope) | (headers if headers is not None else JSON)
        )

    def restore(self, state: str, **kwargs: str) -> Response:
        """The answer to the restore of a label."""
        return self.post(LABEL.format(world.record_id(Label, state)), **kwargs)  # type: ignore[arg-type]

    def limited(self) -> Response:
        """The answer to the second of two requests of a token that may send one a minute."""
        with TestClient(
            create_app(Settings(database_url=self.database_url, log_level="error", rate_limit=1))
        ) as client:
            headers = self.bearer("viewer")
            client.get("/frameworks/", headers=headers)
            return client.get("/frameworks/", headers=headers)

    def broken(self) -> Response:
        """The answer where a stored value is one that cannot be."""
        headers = self.bearer("viewer")
        self.database.write_now(lambda connection: connection.execute(text("UPDATE effective_coverage SET status = 7")))
        return self.client.get("/controls/", params={"organizationId": world.ALPHA}, headers=headers)

    def gone(self) -> Response:
        """The answer where the schema is not the one that the service needs."""
        self.database.write_now(lambda connection: connection.execute(text("DELETE FROM alembic_version")))
        return self.client.get("/readyz/")


CASES: dict[str, tuple[int, str, Callable[[Bench], Response]]] = {
    "query": (400, "validation", lambda bench: bench.get(limit="4", page="x", sortColumn="x")),
    "body": (400, "validation", lambda bench: bench.post(CHECK, content='{"organizationId": 7}')),
    "no JSON": (400, "validation", lambda bench: bench.post(CHECK, content="{")),
    "no token": (401, "unauthenticated", lambda bench: bench.client.get("/controls/")),
    "bad token": (401, "unauthenticated", lambda bench: bench.get(headers={"Authorization": "Bearer x"})),
    "role": (403, "forbidden", lambda bench: bench.restore("archived", user="viewer")),
    "scope": (403, "forbidden", lambda bench: bench.restore("archived", scope="read")),
    "path": (404, "not_found", lambda bench: bench.client.get("/nothing/here/")),
    "organization": (404, "not_found", lambda bench: bench.get(organizationId="org-nowhere")),
    "record": (404, "not_found", lambda bench: bench.restore("unknown")),
    "method": (405, "method_not_allowed", lambda bench: bench.client.put("/controls/")),
    "accept": (406, "not_acceptable", lambda bench: bench.get(headers={"Accept": "text/html"})),
    "live": (409, "not_archived", lambda bench: bench.restore("live")),
    "slug": (409, "slug_taken", lambda bench: bench.restore("taken")),
    "size": (413, "too_large", lambda bench: bench.post(CHECK, content=" " * 100_000)),
    "type": (
        415,
        "unsupported_media_type",
        lambda bench: bench.post(CHECK, content="{}", headers={"Content-Type": "text/plain"}),
    ),
    "rate": (429, "too_many_requests", Bench.limited),
    "fault": (500, "internal", Bench.broken),
    "database": (503, "unavailable", Bench.gone),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    """The name of a case."""
    return str(request.param)


@pytest.fixture
def response(
    case: str,
    client: TestClient,
    bearer: Callable[..., dict[str, str]],
    database: Database,
    database_url: str,
) -> Response:
    """The answer in that case."""
    return CASES[case][2](Bench(client, bearer, database, database_url))


def test_shape(case: str, response: Response) -> None:
    """Status, exactly the members of RFC 9457 with ours, and a code that is stable."""
    status, code, _ = CASES[case]
    body = response.json()
    assert response.status_code == status
    assert body.keys() == MEMBERS | ({"conflictingId"} if code == "slug_taken" else set())
    assert (body["status"], body["code"]) == (status, code)
    assert body["type"] == f"https://normata.dev/problems/{code.replace('_', '-')}"
    assert body["instance"] == response.request.url.path
    assert all(type(body[name]) is str and body[name] for name in MEMBERS - {"status", "errors"})
    Problem.model_validate_json(response.content, strict=True)


def test_faults_are_listed_where_a_request_is_not_valid(case: str, response: Response) -> None:
    """And there only; each with exactly its five members."""
    faults = response.json()["errors"]
    assert bool(faults) == (CASES[case][0] == 400)
    for fault in faults:
        assert fault.keys() == FAULT_MEMBERS
        assert fault["in"] == ("query" if case == "query" else "body")
        assert all(type(fault[name]) is str for name in FAULT_MEMBERS - {"allowed"})
        assert fault["allowed"] is None or all(type(value) is str for value in fault["allowed"])
        assert fault["message"] in response.json()["detail"]


def test_headers(case: str, response: Response) -> None:
    """JSON, the request's id, nothing for shared caches, and what the status asks for, there only."""
    status = CASES[case][0]
    headers = response.headers
    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"] == response.json()["requestId"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "private" in headers["cache-control"]
    assert ("www-authenticate" in headers) == (status == 401 or case == "scope")
    assert ("allow" in headers) == (status == 405)
    assert ("retry-after" in headers) == (status in (429, 503))
    if "retry-after" in headers:
        assert int(headers["retry-after"]) > 0


def test_every_kind_of_error_is_among_the_cases() -> None:
    assert {(kind.status, kind.code) for kind in ApiError.__subclasses__()} == {
        (status, code) for status, code, _ in CASES.values()
    }


def test_one_title_a_code(
    client: TestClient, bearer: Callable[..., dict[str, str]], database: Database, database_url: str
) -> None:
    """What is not found looks the same whatever it was, but for the address."""
    bench = Bench(client, bearer, database, database_url)
    bodies = [CASES[name][2](bench).json() for name in ("path", "organization", "record")]
    for body in bodies:
        del body["instance"], body["requestId"]
    assert bodies[0] == bodies[1] == bodies[2]


def test_all_faults_of_a_query_at_once(client: TestClient, bearer: Callable[..., dict[str, str]]) -> None:
    """As the design shows them."""
    params = {"limit": "101", "page": "0", "adoptedOnly": "perhaps"}
    response = client.get("/frameworks/", params=params, headers=bearer("viewer"))
    body = response.json()
    assert sorted(body["errors"], key=lambda fault: str(fault["name"])) == [
        {
            "in": "query",
            "name": "adoptedOnly",
            "code": "invalid",
            "message": "must be true or false",
            "allowed": ["true", "false"],
        },
        {"in": "query", "name": "limit", "code": "too_large", "message": "must be at most 100", "allowed": None},
        {"in": "query", "name": "organizationId", "code": "required", "message": "is required", "allowed": None},
        {"in": "query", "name": "page", "code": "too_small", "message": "must be at least 1", "allowed": None},
    ]
    for fault in body["errors"]:
        assert f"{fault['name']} {fault['message']}" in body["detail"].split("; ")


def test_one_fault_reads_as_one_sentence(client: TestClient, bearer: Callable[..., dict[str, str]]) -> None:
    response = client.get("/controls/", params={"organizationId": "x", "limit": "101"}, headers=bearer("viewer"))
    assert response.json()["detail"] == "limit must be at most 100"


def test_the_conflicting_record_is_named(client: TestClient, bearer: Callable[..., dict[str, str]]) -> None:
    address = LABEL.format(world.record_id(Label, "taken"))
    assert client.post(address, headers=bearer("editor")).json()["conflictingId"] == world.record_id(Label, "namesake")


@pytest.mark.parametrize("path", ["/no where/", "/é/", "/a%2Fb/", "/%00/", '/"<script>/', "/%ff/"])
def test_instance_is_a_uri_reference(path: str, client: TestClient) -> None:
    response = client.get(path)
    assert response.status_code == 404
    assert response.json()["instance"].isascii()
    assert not set(response.json()["instance"]) & set(' "<>\\^`{|}\0')
