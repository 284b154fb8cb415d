"""What one organization does with its own frameworks holds up no other one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import ModuleType
from typing import Any

import pytest

from normata.catalogs import uploads
from normata.own_frameworks import controls, frameworks
from tests.coverage.assessing import Stating, done
from tests.served import Served, served
from tests.world import ALPHA, BETA


@pytest.fixture
def pair(postgres_url: str) -> Iterator[tuple[Served, Served]]:
    """The application twice over one PostgreSQL; SQLite has one writer at a time anyway."""
    with served(postgres_url) as first, served(postgres_url, database_timeout=1.0) as second:
        yield first, second


IN_ALPHA = f"organizationId={ALPHA}"
TABLE = "identifier,name\n1,Berths\n"
CSV = {"Content-Type": "text/csv"}


@pytest.mark.parametrize(
    ("module", "name", "method", "path", "asked"),
    [
        (uploads, "take", "POST", f"/imports/?{IN_ALPHA}&name=Docks", {"content": TABLE, "headers": CSV}),
        (uploads, "take", "POST", f"/imports/?{IN_ALPHA}&name=Docks&dryRun=true", {"content": TABLE, "headers": CSV}),
        (
            controls,
            "create",
            "POST",
            f"/frameworks/fw-own/controls/?{IN_ALPHA}",
            {"json": {"controls": [{"identifier": "B", "name": "Berths"}]}},
        ),
        (controls, "change", "PATCH", f"/controls/own.A.1/?{IN_ALPHA}", {"json": {"name": "Berths"}}),
        (frameworks, "create", "POST", "/frameworks/", {"json": {"organizationId": ALPHA, "name": "Docks"}}),
        (frameworks, "change", "PATCH", f"/frameworks/fw-own/?{IN_ALPHA}", {"json": {"name": "Docks"}}),
    ],
    ids=["import", "dry run", "new controls", "control", "new framework", "framework"],
)
def test_another_organization_states_coverage_meanwhile(
    pair: tuple[Served, Served],
    *,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    name: str,
    method: str,
    path: str,
    asked: dict[str, Any],
) -> None:
    first, second = pair
    held, go_on = Event(), Event()
    work = getattr(module, name)

    def held_open(*args: Any, **kwargs: Any) -> Any:
        found = work(*args, **kwargs)
        held.set()
        assert go_on.wait(30)
        return found

    monkeypatch.setattr(module, name, held_open)
    beta = Stating(second.client, second.bearer("foreigner"), BETA)
    headers = first.bearer("admin") | asked.get("headers", {})
    with ThreadPoolExecutor(1) as elsewhere:
        asking = elsewhere.submit(first.client.request, method, path, **asked | {"headers": headers})
        try:
            assert held.wait(30)
            done(beta.put("star.A.1", coverageStatus="FULL"))
            assert not asking.done()
        finally:
            go_on.set()
        answer = asking.result(30)
    assert answer.is_success, answer.text[:500]
    assert beta.said("star.A.1")["coverageStatus"] == "FULL"
