"""What those who run the service look at: whether it lives, whether it can serve, and outages."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from normata.app import create_app
from normata.records.kinds import Label
from normata.settings import Settings
from tests import stored
from tests.client import TestClient
from tests.databases import on_both, path_of
from tests.listing import LISTS
from tests.served import Served, refused
from tests.world import ALPHA, record_id

QUERY = {"organizationId": ALPHA}
LABEL = f"/labels/{record_id(Label, 'archived')}/restore/"
PATHS = [operation.path for operation in LISTS]


def test_the_root_leads_to_the_console(shared: Served) -> None:
    response = shared.client.get("/", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, "/app/")
    assert shared.client.get("/").status_code == 200


def test_livez(shared: Served) -> None:
    response = shared.client.get("/livez")
    assert (response.status_code, response.json()) == (200, {"status": "alive"})


def test_readyz(shared: Served) -> None:
    response = shared.client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ready"})


@on_both
@pytest.mark.parametrize("change", ["DELETE FROM alembic_version", "DROP TABLE alembic_version"])
def test_not_ready_while_the_schema_is_another(change: str, service: Served) -> None:
    service.sql(change)
    response = service.client.get("/readyz")
    refused(response, 503, "unavailable")
    assert int(response.headers["retry-after"]) > 0
    assert service.client.get("/livez").status_code == 200


@on_both
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


def test_not_ready_while_nothing_can_be_written(service: Served) -> None:
    """As on a full disk, or one that can only be read: reads go on."""
    client, headers = service.client, service.bearer("editor")
    assert client.get("/livez").status_code == 200
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        answers = [client.get("/readyz"), client.get("/readyz"), client.post(LABEL, headers=headers)]
        read = client.get(PATHS[0], params=QUERY, headers=headers)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [answer.status_code for answer in answers] == [503] * 3
    assert read.status_code == 200
    assert client.get("/readyz").status_code == 200
    assert client.post(LABEL, headers=headers).status_code == 200


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
