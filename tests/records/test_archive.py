"""Archiving a record: the same for every kind, in every state, for everybody."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from httpx2 import Response

from normata.core.schema.wire import wire_names
from normata.records.archiving import ArchiveEntry
from normata.records.base import Restorable
from tests import mostly_sqlite, stored
from tests.cells import all_cells
from tests.databases import on_both, on_both_shared
from tests.records.restoring import restore
from tests.records.shapes import KINDS
from tests.served import Headers, Served, refused
from tests.world import ALPHA, BETA, record_id

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

both = pytest.mark.parametrize("kind", KINDS)


def archive(service: Served, kind: type[Restorable], row_id: str, headers: Headers, **sent: Any) -> Response:
    """The answer to the archiving of a record."""
    return service.client.post(f"/{kind.path}/{row_id}/archive/", headers=headers, **sent)


def entries(service: Served, kind: type[Restorable], row_id: str) -> list[dict[str, Any]]:
    """What is noted of the archiving of a record."""
    return [
        entry
        for entry in stored.everything(service.database)[str(ArchiveEntry.__tablename__)]
        if (entry["kind"], entry["record_id"]) == (kind.path, row_id)
    ]


def add_live(service: Served, kind: type[Restorable], row_id: str, **values: Any) -> None:
    """Load one more live record of alpha."""
    service.load({kind.path: [{"id": row_id, "organizationId": ALPHA, kind.title_column(): row_id} | values]})


@both
@on_both_shared
def test_only_the_archived_state_changes(kind: type[Restorable], shared: Served) -> None:
    """The row, the answer, the event and the entry agree on when it was."""
    row_id = f"{kind.path}-to-archive"
    add_live(shared, kind, row_id)
    before = stored.row(shared.database, kind, row_id)
    response = archive(shared, kind, row_id, shared.bearer("editor"), json={"reason": "Größe <b> 50%"})
    assert response.status_code == 200, response.text
    after = stored.row(shared.database, kind, row_id)
    moment = after["archived_at"]
    assert moment is not None
    changed = {name for name in after if after[name] != before[name]}
    assert changed - {"updated_at"} == {"archived_at"}
    assert "updated_at" not in after or after["updated_at"] == moment
    assert response.json() == {name: after[column] for column, name in wire_names(kind).items()}
    [entry] = entries(shared, kind, row_id)
    assert entry.pop("archive_id")
    assert entry == {
        "organization_id": ALPHA,
        "kind": kind.path,
        "record_id": row_id,
        "archived_at": moment,
        "user_id": "user-editor",
        "user_name": "Editor",
        "reason": "Größe <b> 50%",
    }
    [event] = stored.events(shared.database, entity_id=row_id)
    assert (event["action"], event["entity_type"], event["organization_id"]) == ("archive", kind.__name__, ALPHA)


@both
def test_again_after_a_restore_it_is_noted_anew(kind: type[Restorable], shared: Served) -> None:
    row_id, headers = f"{kind.path}-back-and-forth", shared.bearer("editor")
    add_live(shared, kind, row_id)
    assert archive(shared, kind, row_id, headers, json={"reason": "first"}).status_code == 200
    [first] = entries(shared, kind, row_id)
    assert restore(shared, kind, row_id, headers).status_code == 200
    assert entries(shared, kind, row_id) == [first]
    assert archive(shared, kind, row_id, headers).status_code == 200
    [second] = entries(shared, kind, row_id)
    assert second["reason"] is None
    assert second["archive_id"] != first["archive_id"]
    assert second["archived_at"] >= first["archived_at"]


@both
def test_whom_it_is_refused(kind: type[Restorable], shared: Served) -> None:
    """And nothing is changed then."""
    live, archived, foreign = record_id(kind, "live"), record_id(kind, "archived"), record_id(kind, "live", BETA)
    other = next(one for one in Restorable.kinds if one is not kind)
    cases = {
        "archived": (archived, "editor", 409, "archived"),
        "unknown": ("nothing", "editor", 404, "not_found"),
        "of another kind": (record_id(other, "live"), "editor", 404, "not_found"),
        "foreign": (foreign, "owner", 404, "not_found"),
        "to a foreigner": (live, "foreigner", 404, "not_found"),
        "too small a role": (live, "viewer", 403, "forbidden"),
    }
    headers = {name: shared.bearer(user) for name, (_, user, _, _) in cases.items()}
    before = stored.everything(shared.database)
    with all_cells() as at:
        for name, (row_id, _, status, code) in cases.items():
            with at(name):
                refused(archive(shared, kind, row_id, headers[name]), status, code)
    refused(archive(shared, kind, live, {}), 401, "unauthenticated")
    assert stored.everything(shared.database) == before


@pytest.mark.parametrize("kind", KINDS[:1])
@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"reason": "x" * 1_001}, "reason"),
        ({"reason": 7}, "reason"),
        ({"reason": "a\0b"}, "reason"),
        ({"why": "x"}, "why"),
    ],
)
def test_refused_reasons(kind: type[Restorable], body: dict[str, Any], name: str, shared: Served) -> None:
    response = archive(shared, kind, record_id(kind, "live"), shared.bearer("editor"), json=body)
    assert [fault["name"] for fault in refused(response, 400, "validation")["errors"]] == [name]


@pytest.mark.parametrize("kind", KINDS[:1])
@pytest.mark.parametrize("body", [{}, {"reason": None}, {"reason": ""}, {"reason": "é" * 1_000}])
def test_reasons(kind: type[Restorable], body: dict[str, Any], service: Served) -> None:
    row_id = record_id(kind, "live")
    assert archive(service, kind, row_id, service.bearer("editor"), json=body).status_code == 200
    assert [entry["reason"] for entry in entries(service, kind, row_id)] == [body.get("reason")]


@both
def test_if_match(kind: type[Restorable], shared: Served) -> None:
    """A tag that holds lets it through, another one does not; and so for the restore."""
    row_id, headers = f"{kind.path}-if-match", shared.bearer("editor")
    add_live(shared, kind, row_id)
    before = stored.everything(shared.database)
    refused(archive(shared, kind, row_id, headers | {"If-Match": '"other"'}), 412, "precondition_failed")
    assert stored.everything(shared.database) == before
    done = archive(shared, kind, row_id, headers | {"If-Match": "*"})
    assert done.status_code == 200
    tag = done.headers["etag"]
    before = stored.everything(shared.database)
    refused(restore(shared, kind, row_id, headers | {"If-Match": '"other"'}), 412, "precondition_failed")
    assert stored.everything(shared.database) == before
    back = restore(shared, kind, row_id, headers | {"If-Match": tag})
    assert back.status_code == 200
    assert ("etag" in back.headers) != kind.answers_null
    refused(archive(shared, kind, row_id, headers | {"If-Match": tag}), 412, "precondition_failed")
    refused(archive(shared, kind, record_id(kind, "archived"), headers | {"If-Match": '"other"'}), 409, "archived")
    refused(restore(shared, kind, row_id, headers | {"If-Match": '"other"'}), 409, "not_archived")


@pytest.mark.parametrize("kind", KINDS[:1])
@on_both
def test_of_many_at_once_one_succeeds(kind: type[Restorable], service: Served) -> None:

    headers = service.bearer("editor")
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: archive(service, kind, record_id(kind, "live"), headers).status_code, range(8))
        )
    assert sorted(answers) == [200, *[409] * 7]
    assert len(stored.events(service.database, action="archive")) == 1


@pytest.mark.parametrize("kind", KINDS[:1])
@on_both
def test_nothing_is_archived_before_it_was_created(kind: type[Restorable], service: Served) -> None:
    """Where the clock has been set back."""
    later = "9000-01-01T00:00:00.000Z"
    add_live(service, kind, "later", createdAt=later, updatedAt=later)
    answer = archive(service, kind, "later", service.bearer("editor")).json()
    assert (answer["archivedAt"], answer["updatedAt"]) == (later, later)
    assert [entry["archived_at"] for entry in entries(service, kind, "later")] == [later]
