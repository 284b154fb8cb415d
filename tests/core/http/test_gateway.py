"""What holds for every request: addresses, request ids, lines of the log, and how faults are kept in."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from normata.records.kinds import Label
from tests import world
from tests.databases import on_both
from tests.served import Served, refused, served
from tests.world import ALPHA, record_id

QUERY = {"organizationId": ALPHA}
SERVICE = ("/livez/", "/readyz/", "/metrics/", "/openapi.json/", "/docs/")


# --- Addresses


@pytest.mark.parametrize(
    "path",
    [
        *("/nothing", "/nothing/", "/controls/x/y/", "/controls//", "/Controls/", "/controls.json"),
        *("/v1/controls/", "/label/x/restore/", "/findings/x/restore/", "/restore/", "/labels/x/restored/"),
        *("/labels/x/restore/y/", "/labels//restore/", "/.env", "/controls/../nothing/", "/favicon.ico"),
        *(
            "/controls%2f",
            "/controls%2F",
            "/controls/x%2Fcoverage/y/",
            "/%2Fcontrols/",
            "/controls%252F",
            "/controls%00/",
        ),
        *("/labels/a/b/restore/", "/labels%2Fx%2Frestore/"),
    ],
)
@pytest.mark.parametrize("user", [None, "editor"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_unknown_addresses(path: str, user: str | None, method: str, shared: Served) -> None:
    """They are a problem like any other, with a token and without one."""
    headers = shared.bearer(user) if user else {}
    response = shared.client.request(method, path, headers=headers, follow_redirects=False)
    assert refused(response, 404, "not_found")["instance"] == response.request.url.raw_path.decode()


@pytest.mark.parametrize(
    "path", ["/controls/", "/controls", "/%63ontrols/", "/control%73", "/%63%6F%6e%74%72%6f%6c%73"]
)
def test_spellings_of_one_address(path: str, shared: Served) -> None:
    """A character that needs no encoding may be encoded all the same (RFC 3986, section 6.2.2.2)."""
    headers = shared.bearer("viewer")
    plain = shared.client.get("/controls/", params=QUERY, headers=headers)
    answer = shared.client.get(path, params=QUERY, headers=headers, follow_redirects=False)
    assert (answer.status_code, answer.content) == (200, plain.content)


@pytest.mark.long
@pytest.mark.parametrize("path", SERVICE)
def test_service_addresses_need_no_token(path: str, shared: Served) -> None:
    for address in (path, path.rstrip("/")):
        head, get = (shared.client.request(method, address, follow_redirects=False) for method in ("HEAD", "GET"))
        assert (head.status_code, head.content, get.status_code) == (200, b"", 200)
        assert head.headers["content-type"] == get.headers["content-type"]


@pytest.mark.parametrize("path", SERVICE)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"])
def test_service_addresses_are_to_be_looked_at_only(path: str, method: str, shared: Served) -> None:
    for address in (path, path.rstrip("/")):
        response = shared.client.request(method, address, follow_redirects=False)
        refused(response, 405, "method_not_allowed")
        assert set(re.split(r", *", response.headers["allow"])) == {"GET", "HEAD"}


# --- Request ids


def test_each_request_is_given_an_id(shared: Served) -> None:
    ids = [shared.client.get("/livez").headers["x-request-id"] for _ in range(20)]
    assert len(set(ids)) == 20
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", one) for one in ids)


@pytest.mark.parametrize("path", [*SERVICE, "/nothing/"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_every_answer_has_the_id_once(path: str, method: str, shared: Served) -> None:
    response = shared.client.request(method, path, headers={"X-Request-Id": "chain-1"})
    assert response.headers.get_list("x-request-id") == ["chain-1"]


@pytest.mark.parametrize("sent", ["a", "abc-DEF_0.9", "x" * 64, "0193a3e7-c1d0-7c0e-8a52-b1f40193a3e7"])
def test_a_harmless_id_is_kept(sent: str, shared: Served) -> None:
    response = shared.client.get("/nothing", headers={"X-Request-Id": sent})
    assert response.headers["x-request-id"] == response.json()["requestId"] == sent


@pytest.mark.parametrize(
    "sent",
    ["", " ", "x" * 65, "a b", "a\tb", "a\nb", "a\r\nSet-Cookie: x", 'a"b', "<script>", "a,b", "a;b", "\xe9", "\x00"],
    ids=repr,
)
def test_a_harmful_id_is_replaced(sent: str, shared: Served) -> None:
    response = shared.client.get("/nothing", headers=[(b"X-Request-Id", sent.encode("latin-1"))])
    assert response.headers["x-request-id"] == response.json()["requestId"] != sent
    assert re.fullmatch(r"[0-9a-f-]{36}", response.headers["x-request-id"])
    assert "set-cookie" not in response.headers


# --- The log


def logged(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The lines of the log about requests."""
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    return [line for line in lines if line["event"] == "request"]


TRACE = "0af7651916cd43dd8448eb211c80319c"


def test_a_line_of_the_log_tells_who_asked_for_what(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with served(database_url, log_level="info") as service:
        token = service.token("viewer")
        headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "chain-4"}
        trace = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
        service.client.get("/controls/", params=QUERY, headers=headers | trace)
        service.client.get("/controls/", params=QUERY | {"limit": "4"}, headers=headers)
        service.client.post(f"/labels/{record_id(Label, 'archived')}/restore/", headers=headers)
    good, bad, forbidden = logged(capsys)
    told = ("request_id", "method", "path", "status", "problem", "user")
    assert [good[name] for name in told] == ["chain-4", "GET", "/controls/", 200, None, "user-viewer"]
    assert (good["organization"], good["trace_id"], good["parent_id"]) == (ALPHA, TRACE, "b7ad6b7169203331")
    assert [bad[name] for name in told[3:]] == [400, "validation", "user-viewer"]
    assert [forbidden[name] for name in told[3:]] == [403, "forbidden", "user-viewer"]
    assert "trace_id" not in bad
    assert token not in repr([good, bad, forbidden])


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "00-x-y-01",
        f"ff-{TRACE}-b7ad6b7169203331-01",
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-b7ad6b7169203331-01",
        f"00-{TRACE}-b7ad6b7169203331-01-more",
    ],
)
def test_what_is_no_traceparent_is_not_told(sent: str, database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with served(database_url, log_level="info") as service:
        service.client.get("/livez", headers={"traceparent": sent})
    (line,) = logged(capsys)
    assert "trace_id" not in line


# --- Faults of the service

FAULTS = {
    "a value that cannot be": "UPDATE effective_coverage SET status = 7",
    "a table that is missing": "DROP TABLE effective_coverage",
}


@on_both
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_of_a_fault_leaves(fault: str, database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is a fault, not an outage that passes; the log has the reason under the request's id."""
    with served(database_url) as service:
        service.sql(FAULTS[fault])
        headers = service.bearer("viewer")
        response = service.client.get("/controls/", params=QUERY, headers=headers | {"X-Request-Id": "chain-3"})
        assert response.status_code == 500
        assert service.client.get("/frameworks/", params=QUERY, headers=headers).status_code == 200
    assert response.json() == {
        "type": "https://normata.dev/problems/internal",
        "title": "Internal error",
        "status": 500,
        "code": "internal",
        "detail": response.json()["detail"],
        "instance": "/controls/",
        "requestId": "chain-3",
        "errors": [],
    }
    assert "coverage" not in response.text
    logged = capsys.readouterr().err
    assert "chain-3" in logged
    assert "Traceback" in logged
    assert headers["Authorization"].removeprefix("Bearer ") not in logged


def test_a_fault_of_the_router_is_a_problem_too(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is raised, and wherever, the client is answered."""
    monkeypatch.setattr("normata.core.http.change_endpoint._read_body", _fail)
    headers = service.bearer("editor")
    response = service.client.post(f"/labels/{world.record_id(Label, 'archived')}/restore/", headers=headers)
    refused(response, 500, "internal")
    assert "secret" not in response.text


def _fail(*_: object) -> None:
    raise RuntimeError("a secret")
