"""What `/mcp` refuses, and how: as HTTP does before the protocol begins, and as the protocol says from there on."""

from __future__ import annotations

from importlib import util
from typing import Any

import pytest

from normata.mcp.endpoint import BODY_LIMIT
from normata.mcp.server import TOOLS
from tests.databases import on_sqlite
from tests.mcp.raw import RawClient
from tests.served import Served, refused, served
from tests.world import ALPHA

pytestmark = on_sqlite  # nothing here reaches the database but the look-up of the token

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
def client(service: Served) -> RawClient:
    """A client of an editor."""
    return RawClient(service.client, service.bearer("editor", scope="write"))


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT", "OPTIONS"])
def test_only_post_is_answered(client: RawClient, method: str) -> None:
    headers = client.headers | {"Accept": "text/event-stream"}
    response = client.client.request(method, "/mcp", headers=headers)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Content_Type": "text/plain"}, 415, "unsupported_media_type"),
        ({"Content_Type": "application/jsonp"}, 415, "unsupported_media_type"),
        ({"Accept": "text/html"}, 406, "not_acceptable"),
        ({"Origin": "https://evil.example"}, 403, "forbidden"),
        ({"Origin": "null"}, 403, "forbidden"),
        ({"Authorization": ""}, 401, "unauthenticated"),
        ({"Authorization": "Basic b3duZXI6b3duZXI="}, 401, "unauthenticated"),
        ({"Authorization": "", "Cookie": "session=whatever"}, 401, "unauthenticated"),
    ],
)
def test_http_refuses_it(client: RawClient, headers: dict[str, str], status: int, code: str) -> None:
    refused(client.post(PING, **headers), status, code)


def test_our_own_origin_may_send(client: RawClient) -> None:
    assert client.post(PING, Origin="http://localhost:8000").json()["result"] == {}


def test_hosts_that_are_not_allowed(database_url: str) -> None:
    with served(database_url, allowed_hosts="normata.example") as service:
        client = RawClient(service.client, service.bearer("editor"))
        refused(client.post(PING, Host="evil.example"), 400, "validation")
        assert client.post(PING, Host="normata.example").status_code == 200


def test_a_body_that_is_too_large(client: RawClient) -> None:
    refused(client.post(b" " * (BODY_LIMIT + 1)), 413, "too_large")


@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25", "2026-07-28", "1999-01-01", "nonsense"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":12}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
        b'{"jsonrpc":"2.0","id":1,"method":"no/such/method"}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/list"}',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}',
    ],
    ids=range(18),
)
def test_what_is_no_request_is_an_error_or_nothing(client: RawClient, body: bytes, version: str) -> None:
    response = client.post(body, MCP_Protocol_Version=version)
    assert 200 <= response.status_code < 500
    if response.content:
        answer = response.json()
        assert "error" in answer, answer
        assert "Traceback" not in response.text


def test_an_unknown_tool(client: RawClient) -> None:
    call = {"name": "drop_everything", "arguments": {}}
    answer = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).json()
    assert answer["error"]["code"] == -32602
    assert "search" in answer["error"]["message"]


def test_a_session_that_does_not_exist_does_not_matter(client: RawClient) -> None:
    response = client.post(PING, Mcp_Session_Id="made-up")
    assert (response.status_code, response.json()["result"]) == (200, {})
    assert "mcp-session-id" not in response.headers
    assert response.headers["cache-control"] == "private, no-store"


def test_the_tools_say_what_they_take_and_do(client: RawClient) -> None:
    listed: dict[str, dict[str, Any]] = {one["name"]: one for one in client.request("tools/list")["tools"]}
    assert len(listed) == len(TOOLS) <= 12
    for name, one in listed.items():
        schema = one["inputSchema"]
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert all("description" in value for value in schema["properties"].values()), name
        assert all(value.get("default", "") is not None for value in schema["properties"].values()), name
        assert one["outputSchema"]["type"] == "object"
        assert ("confirmation" in schema["properties"]) is not one["annotations"]["readOnlyHint"]
        assert one["annotations"]["openWorldHint"] is False
        assert len(one["description"]) > 40
    reads = {name for name, one in listed.items() if one["annotations"]["readOnlyHint"]}
    assert reads == {"search", "read", "explain_coverage", "gaps", "due", "events_since"}
    destroys = {name for name, one in listed.items() if one["annotations"]["destructiveHint"]}
    assert destroys == {"assess", "change", "archive"}


def test_without_the_extra(client: RawClient, monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    find = util.find_spec
    monkeypatch.setattr("normata.mcp.endpoint.find_spec", lambda name: None if name == "mcp" else find(name))
    with served(database_url, page_cache_mib=1) as service:
        other = RawClient(service.client, client.headers)
        assert "normata[mcp]" in refused(other.post(PING), 404, "not_found")["detail"]
        refused(other.post(PING, Authorization=""), 401, "unauthenticated")


def test_messages_and_operations_count_against_the_rate_limit(database_url: str) -> None:
    with served(database_url, rate_limit=3) as service:
        client = RawClient(service.client, service.bearer("viewer"))
        assert client.call("due", organizationId=ALPHA).code == (200, "")
        limited = client.call("due", organizationId=ALPHA)
        assert limited.code == (429, "too_many_requests")
        assert "Try again after" in limited.text
        refused(client.post(PING), 429, "too_many_requests")
