"""What holds for every request: addresses, request ids, methods, media types, sizes, and how faults are kept in."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import select, text
from starlette.testclient import TestClient

from normata.app import create_app
from normata.database import Database
from normata.http import Gateway
from normata.records.base import Restorable
from normata.records.kinds import IntegrationCheck, Label
from normata.records.routes import Restoring
from normata.settings import Settings
from tests import world
from tests.databases import on_sqlite, path_of
from tests.listing import LISTS

Bearer = Callable[..., dict[str, str]]

ALPHA = {"organizationId": world.ALPHA}
CHECK = f"/integration-checks/{world.record_id(IntegrationCheck, 'archived')}/restore/"
LABEL = f"/labels/{world.record_id(Label, 'archived')}/restore/"
SERVICE = ("/livez/", "/readyz/", "/metrics/")
JSON = {"Content-Type": "application/json"}
LIMIT = Settings.model_fields["max_body_bytes"].default


def is_archived(database: Database, kind: type[Restorable] = IntegrationCheck) -> bool:
    """Whether the world's archived record of a kind still is."""
    columns = kind.sql().c
    query = select(columns.archived_at).where(columns.id == world.record_id(kind, "archived"))
    return database.read_now(lambda connection: connection.scalar(query)) is not None


# --- Addresses


@pytest.mark.parametrize("path", LISTS)
def test_lists_with_and_without_the_slash(path: str, client: TestClient, bearer: Bearer) -> None:
    """One handler, no redirect."""
    headers = bearer("editor")
    answers = [
        client.get(address, params=ALPHA, headers=headers, follow_redirects=False)
        for address in (path, path.rstrip("/"))
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize("kind", Restorable.kinds, ids=lambda kind: kind.path)
def test_restores_without_the_slash(kind: type[Restorable], client: TestClient, bearer: Bearer) -> None:
    address = f"/{kind.path}/{world.record_id(kind, 'archived')}/restore"
    headers = bearer("editor")
    statuses = [
        client.post(address + ending, headers=headers, follow_redirects=False).status_code for ending in ("", "/", "")
    ]
    assert statuses == [200, 409, 409]


@pytest.mark.parametrize("path", [*SERVICE, "/openapi.json"])
def test_service_addresses_need_no_token(path: str, client: TestClient) -> None:
    for address in {path, path.rstrip("/")}:
        assert client.get(address, follow_redirects=False).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/nothing", "/nothing/", "/controls/x/", "/controls//", "/Controls/", "/controls.json", "/v1/controls/"),
        *("/labels/", "/labels/x/", "/labels/restore/", "/label/x/restore/", "/findings/x/restore/", "/restore/"),
        *("/.env", "/controls/../labels/", "/favicon.ico"),
    ],
)
@pytest.mark.parametrize("user", [None, "editor"])
def test_unknown_addresses(path: str, user: str | None, client: TestClient, bearer: Bearer) -> None:
    """They are a problem like any other, with a token and without one."""
    response = client.get(path, headers=bearer(user) if user else {}, follow_redirects=False)
    assert response.status_code == 404
    assert response.json()["code"] == "not_found"
    assert response.headers["content-type"] == "application/json"


# --- Request ids


def test_each_request_is_given_an_id(client: TestClient) -> None:
    ids = [client.get("/livez").headers["x-request-id"] for _ in range(20)]
    assert len(set(ids)) == 20
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", one) for one in ids)


@pytest.mark.parametrize("path", ["/livez/", "/metrics/", "/controls/", "/nothing/", "/openapi.json"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_every_answer_has_the_id_once(path: str, method: str, client: TestClient) -> None:
    response = client.request(method, path, headers={"X-Request-Id": "chain-1"})
    assert response.headers.get_list("x-request-id") == ["chain-1"]


@pytest.mark.parametrize("sent", ["a", "abc-DEF_0.9", "x" * 64, "0193a3e7-c1d0-7c0e-8a52-b1f40193a3e7"])
def test_a_harmless_id_is_kept(sent: str, client: TestClient) -> None:
    response = client.get("/nothing", headers={"X-Request-Id": sent})
    assert response.headers["x-request-id"] == response.json()["requestId"] == sent


@pytest.mark.parametrize(
    "sent",
    ["", " ", "x" * 65, "a b", "a\tb", "a\nb", "a\r\nSet-Cookie: x", 'a"b', "<script>", "a,b", "a;b", "\xe9", "\x00"],
    ids=repr,
)
def test_a_harmful_id_is_replaced(sent: str, client: TestClient) -> None:
    response = client.get("/nothing", headers=[(b"X-Request-Id", sent.encode("latin-1"))])
    assert response.headers["x-request-id"] == response.json()["requestId"] != sent
    assert re.fullmatch(r"[0-9a-f-]{36}", response.headers["x-request-id"])
    assert "set-cookie" not in response.headers


def test_the_id_is_in_the_audit_event(client: TestClient, bearer: Bearer, database: Database) -> None:
    client.post(LABEL, headers=bearer("editor") | {"X-Request-Id": "chain-2"})
    query = text("SELECT request_id FROM audit_event")
    assert database.read_now(lambda connection: list(connection.scalars(query))) == ["chain-2"]


# --- Methods


@pytest.mark.parametrize(
    ("path", "allowed", "methods"),
    [
        *((path, "GET", ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW")) for path in (*LISTS, *SERVICE)),
        *((path, "POST", ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "BREW")) for path in (LABEL, CHECK)),
    ],
)
def test_other_methods_are_refused(
    path: str, allowed: str, methods: tuple[str, ...], client: TestClient, database: Database
) -> None:
    """With the methods that there are in Allow; with the slash and without it."""
    for method in methods:
        for address in (path, path.rstrip("/")):
            response = client.request(method, address, follow_redirects=False)
            assert response.status_code == 405, (method, address)
            named = re.split(r", *", response.headers["allow"])
            assert allowed in named
            assert method not in named
            assert method == "HEAD" or response.json()["code"] == "method_not_allowed"
    assert is_archived(database)


@pytest.mark.parametrize("path", [*LISTS, *SERVICE, "/openapi.json"])
def test_head_is_get_without_the_body(path: str, client: TestClient, bearer: Bearer) -> None:
    """Where there is GET there is HEAD (RFC 9110, section 9.1); monitors use it."""
    headers = bearer("editor")
    head, get = (client.request(method, path, params=ALPHA, headers=headers) for method in ("HEAD", "GET"))
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == get.headers["content-type"]


# --- Media types


@pytest.mark.parametrize(
    "accept",
    [
        *(None, "", "*/*", "application/*", "application/json", "APPLICATION/JSON", "application/json;q=0.1"),
        *("text/html, application/json", "text/html;q=1.0, */*;q=0.1", "application/json; charset=utf-8"),
        *("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json, */*;q=0"),
        *(
            "application/json;q=1, application/*;q=0",
            " , application/json",
            "application/xml , application/json ;q=0.5",
        ),
    ],
    ids=repr,
)
def test_accepted(accept: str | None, client: TestClient, bearer: Bearer) -> None:
    client.headers.pop("accept")
    headers = bearer("editor") | ({} if accept is None else {"Accept": accept})
    response = client.get("/notifications/", params=ALPHA, headers=headers)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "accept",
    [
        *("text/html", "text/*", "application/xml", "application/jsonx", "application/problem+json", "image/*"),
        *("application/json;q=0", "*/*;q=0", "application/*;q=0.0", "application/json;q=0, */*", "*/json"),
        *("application/*;q=0, */*", "text/html, application/xml;q=0.9"),
    ],
)
def test_not_acceptable(accept: str, client: TestClient, bearer: Bearer, database: Database) -> None:
    """The most specific range decides; the problem is JSON all the same, and nothing is done."""
    headers = bearer("editor") | {"Accept": accept}
    for response in (client.get("/controls/", params=ALPHA, headers=headers), client.post(CHECK, headers=headers)):
        assert response.status_code == 406
        assert response.headers["content-type"] == "application/json"
    assert is_archived(database)


def test_several_accept_headers_are_one(client: TestClient, bearer: Bearer) -> None:
    headers = [*bearer("editor").items(), ("Accept", "text/html"), ("Accept", "application/json")]
    assert client.get("/controls/", params=ALPHA, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"]
)
def test_media_types_of_a_body(media_type: str, client: TestClient, bearer: Bearer) -> None:
    headers = bearer("editor") | {"Content-Type": media_type}
    assert client.post(CHECK, content='{"organizationId": "org-alpha"}', headers=headers).status_code == 200


@pytest.mark.parametrize(
    "media_type",
    [
        *(None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "json"),
        *("application/merge-patch+json", "text/json", "multipart/form-data; boundary=x", "*/*"),
    ],
)
def test_unsupported_media_types(
    media_type: str | None, client: TestClient, bearer: Bearer, database: Database
) -> None:
    headers = bearer("editor") | ({} if media_type is None else {"Content-Type": media_type})
    response = client.post(CHECK, content='{"organizationId": "org-alpha"}', headers=headers)
    assert response.status_code == 415
    assert is_archived(database)


def test_without_a_body_its_media_type_is_of_no_interest(client: TestClient, bearer: Bearer) -> None:
    headers = bearer("editor") | {"Content-Type": "text/plain"}
    assert client.post(CHECK, headers=headers).status_code == 200


# --- The size of bodies


def padded(size: int) -> bytes:
    """A good body of ``size`` bytes."""
    return b'{"organizationId": "org-alpha"' + b" " * (size - 31) + b"}"


def in_pieces(
    application: FastAPI, client: TestClient, pieces: list[bytes], headers: dict[str, str]
) -> tuple[int, int]:
    """Send a body in pieces without a declared length: the status, and how many pieces were taken."""
    status, taken = 0, 0

    async def receive() -> dict[str, Any]:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": pieces[taken - 1], "more_body": taken < len(pieces)}

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": CHECK,
        "raw_path": CHECK.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    assert client.portal is not None
    client.portal.call(application, scope, receive, send)
    return status, taken


@pytest.mark.parametrize("size", [31, LIMIT])
def test_bodies_up_to_the_limit(size: int, client: TestClient, bearer: Bearer) -> None:
    content = padded(size)
    assert len(content) == size
    assert client.post(CHECK, content=content, headers=bearer("editor") | JSON).status_code == 200


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("size", [LIMIT + 1, LIMIT * 20])
def test_larger_bodies(declared: bool, size: int, client: TestClient, bearer: Bearer, database: Database) -> None:
    """They are refused, whether the length is declared or not, and nothing is done."""
    content = padded(size)
    response = client.post(CHECK, content=content if declared else iter([content]), headers=bearer("editor") | JSON)
    assert ("content-length" in response.request.headers) == declared
    assert response.status_code == 413
    assert response.json()["code"] == "too_large"
    assert is_archived(database)


def test_a_body_in_pieces(application: FastAPI, client: TestClient, bearer: Bearer) -> None:
    content = padded(LIMIT)
    pieces = [content[start : start + 1_000] for start in range(0, LIMIT, 1_000)]
    assert in_pieces(application, client, pieces, bearer("editor") | JSON) == (200, len(pieces))


def test_of_an_endless_body_no_more_than_the_limit_is_taken(
    application: FastAPI, client: TestClient, bearer: Bearer, database: Database
) -> None:
    pieces = [b" " * 1_000] * 10_000
    assert in_pieces(application, client, pieces, bearer("editor") | JSON) == (413, LIMIT // 1_000 + 1)
    assert is_archived(database)


def test_a_declared_length_is_enough_to_refuse(
    application: FastAPI, client: TestClient, bearer: Bearer, database: Database
) -> None:
    headers = bearer("editor") | JSON | {"Content-Length": "9" * 30}
    status, taken = in_pieces(application, client, [b"{}"] * 3, headers)
    assert status == 413
    assert taken <= 1
    assert is_archived(database)


@pytest.mark.parametrize("limit", [1_024, 2_000])
def test_the_limit_is_a_setting(limit: int, settings: Settings, bearer: Bearer) -> None:
    small = settings.model_copy(update={"max_body_bytes": limit})
    with TestClient(create_app(small)) as client:
        headers = bearer("editor") | JSON
        statuses = [client.post(CHECK, content=padded(limit + more), headers=headers).status_code for more in (1, 0)]
    assert statuses == [413, 200]


def test_who_has_no_token_is_told_nothing_of_the_body(client: TestClient) -> None:
    for content, headers in ((padded(LIMIT + 1), JSON), (b"{", JSON), (b"{}", {"Content-Type": "text/plain"})):
        assert client.post(CHECK, content=content, headers=headers).status_code == 401


# --- Faults of the service

FAULTS = {
    "a value that cannot be": "UPDATE effective_coverage SET status = 7",
    "a table that is missing": "DROP TABLE effective_coverage",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_of_a_fault_leaves(
    fault: str, settings: Settings, bearer: Bearer, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a fault, not an outage that passes; the log has the reason under the request's id."""
    headers = bearer("viewer")
    database.write_now(lambda connection: connection.execute(text(FAULTS[fault])))
    with TestClient(create_app(settings)) as client:  # made here, so that it logs to where this test reads
        response = client.get("/controls/", params=ALPHA, headers=headers | {"X-Request-Id": "chain-3"})
        assert response.status_code == 500
        assert client.get("/frameworks/", params=ALPHA, headers=headers).status_code == 200
    assert response.json() == {
        "type": "https://normata.dev/problems/internal",
        "title": "Internal error",
        "status": 500,
        "code": "internal",
        "detail": "Something went wrong here. The log has the reason under this request id.",
        "instance": "/controls/",
        "requestId": "chain-3",
        "errors": [],
    }
    logged = capsys.readouterr().err
    assert "chain-3" in logged
    assert "Traceback" in logged
    assert headers["Authorization"].removeprefix("Bearer ") not in logged


# --- What those who run the service look at


def test_livez(client: TestClient) -> None:
    response = client.get("/livez")
    assert (response.status_code, response.json()) == (200, {"status": "alive"})


def test_readyz(client: TestClient) -> None:
    response = client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ready"})


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM alembic_version",
        "DROP TABLE alembic_version",
    ],
)
def test_not_ready_while_the_schema_is_another(change: str, client: TestClient, database: Database) -> None:
    database.write_now(lambda connection: connection.execute(text(change)))
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["code"] == "unavailable"
    assert int(response.headers["retry-after"]) > 0
    assert client.get("/livez").status_code == 200


def test_ready_while_the_schema_is_that_of_a_newer_version(client: TestClient, database: Database) -> None:
    """During an upgrade the old processes go on serving: migrations keep what the version before needs."""
    newer = text("UPDATE alembic_version SET version_num = 'newer'")
    database.write_now(lambda connection: connection.execute(newer))
    assert client.get("/readyz").status_code == 200


@on_sqlite
def test_outage_and_recovery(client: TestClient, bearer: Bearer, database: Database) -> None:
    """While the file of the database is away every operation says so, and does nothing; when it is back all works."""
    headers = bearer("editor")
    away = Path(f"{path_of(database)}.away")

    def statuses() -> list[int]:
        return [
            client.get("/livez").status_code,
            client.get("/readyz").status_code,
            *(client.get(path, params=ALPHA, headers=headers).status_code for path in LISTS),
            client.post(LABEL, headers=headers).status_code,
        ]

    assert client.get("/controls/", params=ALPHA, headers=headers).status_code == 200
    path_of(database).rename(away)
    for _ in range(5):  # more requests than there are connections
        assert statuses() == [200, 503, 503, 503, 503, 503]
    assert not path_of(database).exists()
    refused = client.get("/controls/", params=ALPHA, headers=headers)
    assert refused.json()["code"] == "unavailable"
    assert str(path_of(database)) not in refused.text
    assert int(refused.headers["retry-after"]) > 0
    away.rename(path_of(database))
    assert statuses() == [200] * 6
    assert not is_archived(database, Label)


@on_sqlite
def test_starting_without_a_database(settings: Settings, database: Database, bearer: Bearer) -> None:
    """The service starts all the same, is alive, not ready, and serves as soon as the database is there."""
    headers = bearer("viewer")
    away = Path(f"{path_of(database)}.away")
    database.close()
    path_of(database).rename(away)
    with TestClient(create_app(settings)) as client:
        assert [client.get(path).status_code for path in ("/livez", "/readyz")] == [200, 503]
        assert client.get("/controls/", params=ALPHA, headers=headers).status_code == 503
        assert not path_of(database).exists()
        away.rename(path_of(database))
        assert client.get("/readyz").status_code == 200
        assert client.get("/controls/", params=ALPHA, headers=headers).status_code == 200


def counted(client: TestClient) -> dict[str, float]:
    """The counters of requests by their labels."""
    lines = re.findall(r"^normata_requests_total\{(.*)\} (\S+)$", client.get("/metrics").text, re.MULTILINE)
    return {labels: float(value) for labels, value in lines}


def test_metrics(client: TestClient, bearer: Bearer) -> None:
    """Requests by method, route and status; an address with the slash and without it is one route."""
    headers = bearer("editor")
    for address in ("/controls/", "/controls", "/controls/?limit=1"):
        client.get(address, params=None if "?" in address else ALPHA, headers=headers)
    client.get("/controls/")
    client.post(LABEL, headers=headers)
    client.post("/labels/secret/restore", headers=headers)
    for number in range(3):
        client.get(f"/nothing/{number}")
    client.request("BREW", "/controls/")
    client.request("BREW2", "/nothing/")
    assert counted(client) == {
        'method="GET",route="/controls",status="200"': 2,
        'method="GET",route="/controls",status="400"': 1,
        'method="GET",route="/controls",status="401"': 1,
        'method="POST",route="/labels/{id}/restore",status="200"': 1,
        'method="POST",route="/labels/{id}/restore",status="404"': 1,
        'method="GET",route="other",status="404"': 3,
        'method="other",route="/controls",status="405"': 1,
        'method="other",route="other",status="404"': 1,
    }


def test_metrics_are_in_prometheus_text_format(client: TestClient) -> None:
    client.get("/livez")
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    assert "# TYPE normata_requests_total counter" in response.text
    assert "# TYPE normata_request_seconds histogram" in response.text
    assert 'normata_request_seconds_count{method="GET",route="/livez"} 1.0' in response.text


# --- How operations are found


def test_two_operations_with_one_first_segment_are_a_fault_of_the_program(application: FastAPI) -> None:
    """The one that came first would be found for both, and the other never."""
    one, other = Restoring(Label), Restoring(Label)
    metrics = application.state.metrics
    Gateway(application, operations=[one, one], max_body_bytes=1, metrics=metrics)
    with pytest.raises(ValueError, match="/labels/"):
        Gateway(application, operations=[one, other], max_body_bytes=1, metrics=metrics)
