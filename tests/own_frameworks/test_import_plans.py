"""An import is compared with what is stored while others write, and with nothing that has changed since."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from httpx2 import Response
from sqlalchemy import insert

from normata.catalogs import uploads
from normata.core.changes import validity
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.frameworks.model import Control, MappingDocument
from normata.wiring import changes_of
from tests import stored
from tests.databases import on_both
from tests.served import Headers, Served, served
from tests.world import ALPHA, BETA, EARLIER


def send(instance: Served, headers: Headers, table: str, *, more: str = "") -> Response:
    path = f"/imports/?organizationId={ALPHA}&name=Docks{more}"
    return instance.client.post(path, content=table, headers=headers | {"Content-Type": "text/csv"})


def result(answer: Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@on_both
@pytest.mark.parametrize("more", ["", "&dryRun=true"], ids=["import", "dry run"])
def test_others_write_while_an_import_is_compared(
    database_url: str, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    compare = validity.make_valid
    begun, go_on = Event(), Event()

    def held_open(*args: Any, **kwargs: Any) -> None:
        begun.set()
        assert go_on.wait(30)
        compare(*args, **kwargs)

    with served(database_url, database_timeout=2.0) as instance:
        admin, other = instance.bearer("admin"), instance.bearer("owner")
        monkeypatch.setattr(uploads, "make_valid", held_open)
        with ThreadPoolExecutor(1) as elsewhere:
            importing = elsewhere.submit(send, instance, admin, "identifier,name\n1,Berths\n", more=more)
            try:
                assert begun.wait(30)
                body = {"organizationId": ALPHA, "name": "Meanwhile"}
                assert instance.client.post("/labels/", json=body, headers=other).status_code == 201
            finally:
                go_on.set()
            assert importing.result(30).status_code == 200


def between(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> list[int]:
    """Have a change made once, after an import is planned and before it writes; how often it is planned."""
    planned: list[int] = []
    plan = uploads.plan

    def interrupted(*args: Any, **kwargs: Any) -> uploads.Plan:
        found = plan(*args, **kwargs)
        planned.append(len(planned))
        if len(planned) == 1:
            # On a thread of its own, so that neither the event loop nor this transaction is in its way.
            with ThreadPoolExecutor(1) as elsewhere:
                elsewhere.submit(change).result(30)
        return found

    monkeypatch.setattr(uploads, "plan", interrupted)
    return planned


@on_both
def test_what_has_changed_since_is_compared_again(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody gives a control the very name that it has in the table: then there is nothing left to change."""
    with served(database_url) as instance:
        admin = instance.bearer("admin")
        (framework,) = result(send(instance, admin, "identifier,name\n1,Berths\n2,Cranes\n"))["frameworkIds"]
        rows = stored.rows(instance.database, Control, framework_id=framework)
        (control,) = (row["id"] for row in rows if row["identifier"] == "1")

        def rename() -> None:
            path = f"/controls/{control}/?organizationId={ALPHA}"
            assert instance.client.patch(path, json={"name": "Moorings"}, headers=admin).status_code == 200

        planned = between(monkeypatch, rename)
        found = result(send(instance, admin, "identifier,name\n1,Moorings\n2,Cranes\n"))
        assert found["controls"] == {"new": 0, "changed": 0, "unchanged": 2}
        assert len(planned) == 2


@on_both
def test_a_document_of_mappings_that_has_changed_is_compared_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has imported a newer version of it, without a change of its matches."""
    with served(database_url) as instance:

        def import_newer() -> None:
            values = {"id": "document", "organization_id": ALPHA, "document": "docks", "name": "Docks"}
            values |= {"version": "2", "created_at": EARLIER, "updated_at": EARLIER}

            def work(unit: UnitOfWork) -> None:
                unit.rows(insert(MappingDocument).values(values))
                unit.publish(Change("import", MappingDocument, ALPHA, "document", values))

            changes_of(instance.database).make_now(work)

        planned = between(monkeypatch, import_newer)
        assert send(instance, instance.bearer("admin"), "identifier,name\n1,Berths\n").status_code == 200
        assert len(planned) == 2


@on_both
def test_what_others_change_elsewhere_is_no_reason_to_compare_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(database_url) as instance:
        admin, other = instance.bearer("admin"), instance.bearer("editor")

        def write() -> None:
            for body in ({"organizationId": ALPHA, "name": "Meanwhile"}, {"organizationId": BETA, "name": "Elsewhere"}):
                instance.client.post("/labels/", json=body, headers=other)

        planned = between(monkeypatch, write)
        assert send(instance, admin, "identifier,name\n1,Berths\n").status_code == 200
        assert len(planned) == 1


@on_both
@pytest.mark.parametrize("is_adopted", [True, False], ids=["adopted", "not adopted"])
def test_a_dry_run_shows_what_the_import_does(database_url: str, is_adopted: bool) -> None:
    """Whether it has to write the rows for that or not."""
    first, second = "identifier,name\n1,Berths\n", "identifier,name\n1,Moorings\n2,Cranes\n"
    with served(database_url) as instance:
        admin = instance.bearer("admin")
        for number, table in enumerate((first, second)):
            preview = result(send(instance, admin, table, more="&dryRun=true"))
            before = {row["id"] for row in stored.events(instance.database)}
            made = result(send(instance, admin, table))
            assert preview["answer"] == made
            events = [row for row in stored.events(instance.database) if row["id"] not in before]
            shown = [(one["action"], one["id"]) for one in preview["changes"]]
            assert shown
            assert {(row["action"], row["entity_id"]) for row in events} <= set(shown)
            assert ("count", None) in shown
            if is_adopted and not number:
                (framework,) = made["frameworkIds"]
                path = f"/frameworks/{framework}/adoption/"
                answer = instance.client.put(f"{path}?organizationId={ALPHA}", headers=admin)
                assert answer.status_code in (200, 201), answer.text
