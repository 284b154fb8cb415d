"""An organization has one import at a time, dry runs included; the others are refused, and may come again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest
from httpx2 import Response

from normata.catalogs import uploads
from tests.databases import on_both
from tests.served import Headers, Served, refused, served
from tests.world import ALPHA

TABLE = "identifier,name\n1,Berths\n"


def send(instance: Served, headers: Headers, organization: str, *, more: str = "") -> Response:
    path = f"/imports/?organizationId={organization}&name=Docks{more}"
    return instance.client.post(path, content=TABLE, headers=headers | {"Content-Type": "text/csv"})


@contextmanager
def in_progress(instance: Served, monkeypatch: pytest.MonkeyPatch, more: str) -> Iterator[Headers]:
    """An import of Alpha that lasts as long as the block, and then succeeds; who sends it."""
    begun, go_on = Event(), Event()
    headers = instance.bearer("admin")
    work = uploads.take

    def held_open(*args: Any, **kwargs: Any) -> Any:
        found = work(*args, **kwargs)
        begun.set()
        assert go_on.wait(30)
        return found

    monkeypatch.setattr(uploads, "take", held_open)
    with ThreadPoolExecutor(1) as elsewhere:
        importing = elsewhere.submit(send, instance, headers, ALPHA, more=more)
        try:
            assert begun.wait(30)
            monkeypatch.setattr(uploads, "take", work)
            yield headers
        finally:
            go_on.set()
        assert importing.result(30).status_code == 200


@on_both
@pytest.mark.parametrize("first", ["", "&dryRun=true"], ids=["import", "dry run"])
def test_others_of_the_organization_are_refused_meanwhile(
    database_url: str, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    with served(database_url) as instance:
        with in_progress(instance, monkeypatch, first) as headers:
            for organization in (ALPHA, "alpha"):
                for more in ("", "&dryRun=true"):
                    answer = send(instance, headers, organization, more=more)
                    refused(answer, 409, "import_in_progress")
                    assert answer.headers["retry-after"] == "1"
        assert send(instance, headers, ALPHA).status_code == 200


def test_another_process_refuses_as_well(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(postgres_url) as one, served(postgres_url, database_timeout=1.0) as other:
        with in_progress(one, monkeypatch, "") as headers:
            answer = send(other, headers, ALPHA)
            refused(answer, 409, "import_in_progress")
        assert send(other, headers, ALPHA).status_code == 200
