"""What those who run the service look at: whether it lives, whether it can serve, its figures, and outages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from normata.app import create_app
from normata.records.kinds import Label
from normata.settings import Settings
from tests import stored
from tests.databases import path_of
from tests.listing import LISTS
from tests.served import Served, refused
from tests.world import ALPHA, record_id

both = pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)

QUERY = {"organizationId": ALPHA}
LABEL = f"/labels/{record_id(Label, 'archived')}/restore/"
PATHS = [operation.path for operation in LISTS]


def test_the_root_leads_to_the_documentation(shared: Served) -> None:
    response = shared.client.get("/", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, "/docs/")
    assert shared.client.get("/").status_code == 200


def test_livez(shared: Served) -> None:
    response = shared.client.get("/livez")
    assert (response.status_code, response.json()) == (200, {"status": "alive"})


def test_readyz(shared: Served) -> None:
    response = shared.client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ready"})


@both
@pytest.mark.parametrize("change", ["DELETE FROM alembic_version", "DROP TABLE alembic_version"])
def test_not_ready_while_the_schema_is_another(change: str, service: Served) -> None:
    service.sql(change)
    response = service.client.get("/readyz")
    refused(response, 503, "unavailable")
    assert int(response.headers["retry-after"]) > 0
    assert service.client.get("/livez").status_code == 200


@both
def test_ready_while_the_schema_is_that_of_a_newer_version(service: Served) -> None:
    """During an upgrade the old processes go on serving: migrations keep what the version before needs."""
    service.sql("UPDATE alembic_version SET version_num = 'newer'")
    assert service.client.get("/readyz").status_code == 200


def test_outage_and_recovery(service: Served) -> None:
    """While the file of the database is away every operation says so, and does nothing; when it is back all works."""
    client, headers = service.client, service.bearer("editor")
    file = path_of(service.database)
    away = Path(f"{file}.away")

    def statuses() -> list[int]:
        return [
            client.get("/livez").status_code,
            client.get("/readyz").status_code,
            *(client.get(path, params=QUERY, headers=headers).status_code for path in PATHS),
            client.post(LABEL, headers=headers).status_code,
        ]

    assert client.get(PATHS[0], params=QUERY, headers=headers).status_code == 200
    file.rename(away)
    for _ in range(5):  # more requests than there are connections
        assert set(statuses()[1:]) == {503}
    assert not file.exists()
    away.rename(file)
    assert set(statuses()) == {200}
    assert stored.row(service.database, Label, record_id(Label, "archived"))["archived_at"] is None


def test_starting_without_a_database(service: Served) -> None:
    """The service starts all the same, is alive, not ready, and serves as soon as the database is there."""
    headers = service.bearer("viewer")
    file = path_of(service.database)
    away = Path(f"{file}.away")
    service.database.close()
    file.rename(away)
    with TestClient(create_app(Settings(database_url=service.url, log_level="error"))) as client:
        assert [client.get(path).status_code for path in ("/livez", "/readyz")] == [200, 503]
        assert client.get(PATHS[0], params=QUERY, headers=headers).status_code == 503
        assert not file.exists()
        away.rename(file)
        assert client.get("/readyz").status_code == 200
        assert client.get(PATHS[0], params=QUERY, headers=headers).status_code == 200


def counted(client: TestClient) -> dict[tuple[str, ...], float]:
    """How many requests there were by method, route and status."""
    pattern = (
        r"^http_server_request_duration_seconds_count\{"
        r'http_request_method="(.*)",http_response_status_code="(.*)",http_route="(.*)"\} (\S+)$'
    )
    lines = re.findall(pattern, client.get("/metrics").text, re.MULTILINE)
    return {(method, route, status): float(value) for method, status, route, value in lines}


def test_metrics(service: Served) -> None:
    """Requests by method, route and status; an address with the slash and without it is one route."""
    client, headers = service.client, service.bearer("editor")
    for address in ("/controls/", "/controls", "/controls/?limit=1"):
        client.get(address, params=None if "?" in address else QUERY, headers=headers)
    client.get("/controls/")
    client.post(LABEL, headers=headers)
    client.post("/labels/secret/restore", headers=headers)
    for number in range(3):
        client.get(f"/nothing/{number}")
    client.request("BREW", "/controls/")
    client.request("BREW2", "/nothing/")
    assert counted(client) == {
        ("GET", "/controls", "200"): 2,
        ("GET", "/controls", "400"): 1,
        ("GET", "/controls", "401"): 1,
        ("POST", "/labels/{id}/restore", "200"): 1,
        ("POST", "/labels/{id}/restore", "404"): 1,
        ("GET", "other", "404"): 3,
        ("_OTHER", "/controls", "405"): 1,
        ("_OTHER", "other", "404"): 1,
    }


def test_metrics_are_in_prometheus_text_format(service: Served) -> None:
    client, headers = service.client, service.bearer("viewer")
    for _ in range(3):
        client.get("/controls/", params=QUERY, headers=headers)
    client.get("/nothing/")
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    lines = response.text.splitlines()
    assert "# TYPE http_server_request_duration_seconds histogram" in lines
    assert "http_server_active_requests 1.0" in lines, "this one"
    assert 'normata_kept_pages_total{kept="yes"} 2.0' in lines
    assert 'normata_kept_pages_total{kept="no"} 1.0' in lines
    assert 'normata_problems_total{code="not_found"} 1.0' in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)
    assert any(line.startswith("normata_build_info{") for line in lines)
