"""Bytes are erased with a person whom they name, and after the time for which replaced files are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from normata.core.db.types import format_timestamp, now
from normata.erasure.person import ErasureRequest, find_person
from normata.erasure.survey import survey
from normata.events.model import AuditEvent
from normata.files.expiry import cleaning
from normata.files.model import File
from normata.files.replaced import REPLACED_FILES
from normata.files.store import FileStore
from tests import stored
from tests.cli.commands import Run
from tests.cli.conftest import normata
from tests.files.rows import contents, fill, in_both_stores
from tests.files.test_expiry import do_due
from tests.served import Served, refused, served
from tests.world import ALPHA, BETA

__all__ = ["normata"]

NAME, ADDRESS = "Vi Viewer", "viewer@alpha.example"


@pytest.fixture
def service(database_url: str, store: FileStore, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The application over a fresh copy of the test world, with its files in a store of their own."""
    fill(store, ALPHA, BETA)
    monkeypatch.setenv("NORMATA_FILES_URL", store_url)
    with served(database_url, files_url=store_url) as opened:
        yield opened


def upload(service: Served, content: bytes, name: str = "a.bin", media_type: str = "", user: str = "editor") -> str:
    """A new file, by its id."""
    headers = service.bearer(user) | ({"Content-Type": media_type} if media_type else {})
    query = {"organizationId": ALPHA, "name": name}
    return str(service.client.post("/files/", params=query, content=content, headers=headers).json()["id"])


def evidence(service: Served, *file_ids: str) -> str:
    """New evidence with these files."""
    body = {"organizationId": ALPHA, "name": "Proof", "fileIds": list(file_ids)}
    made = service.client.post("/evidence/", json=body, headers=service.bearer("editor"))
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def give_up(service: Served, record_id: str) -> None:
    """The evidence has no file any more."""
    path = f"/evidence/{record_id}/"
    assert service.client.patch(path, json={"fileIds": []}, headers=service.bearer("editor")).status_code == 200


def read(service: Served, file_id: str, what: str = "content/") -> Any:
    where = f"/files/{file_id}/{what}"
    return service.client.get(where, params={"organizationId": ALPHA}, headers=service.bearer("admin"))


def known(service: Served, file_id: str) -> dict[str, Any]:
    return next(row for row in stored.rows(service.database, File) if row["id"] == file_id)


# --- With a person


@in_both_stores
def test_files_are_listed_kept_and_removed_with_a_person(
    service: Served, store: FileStore, normata: Run, tmp_path: Path
) -> None:
    service.load({"users": [{"id": "user-viewer", "name": NAME}]})
    named = upload(service, b"Seen by vi  viewer.\n", "minutes.txt", "text/plain")
    titled = upload(service, bytes(range(256)), "vi-viewer.png", "image/png")
    scanned = upload(service, b"%PDF-1.7 Vi Viewer", "scan.pdf", "application/pdf")
    other = upload(service, b"Nobody.\n", "plain.txt", "text/plain")
    evidence(service, named, titled, scanned, other)
    command: tuple[str, ...] = ("user", "erase", ADDRESS, "--database", service.url)
    listed = normata(*command, "--dry-run").out.splitlines()
    assert {line for line in listed if "\tfiles\t" in line and "change" not in line} == {
        f"keep\tfiles\t{named}\tcontent",
        f"keep\tfiles\t{titled}\tname",
        f"unsearched\tfiles\t{titled}\timage/png",
        f"unsearched\tfiles\t{scanned}\tapplication/pdf",
    }
    done = normata(*command, "--yes")
    assert "uploaded files that name them and stay: 2; --also-documents removes" in done.err
    assert "cannot be searched for them: 2 (application/pdf 1, image/png 1)" in done.err
    assert read(service, titled, "").json()["name"] == "[erased].png"
    assert read(service, named).content == b"Seen by vi  viewer.\n"
    command = ("user", "erase", "user-viewer", "--also", NAME, "--database", service.url, "--also-documents")
    assert "there is no uploaded file with this id" in normata(*command, "--yes", "--also-file", "nowhere").err
    before = {name: known(service, name) for name in (named, scanned)}
    done = normata(*command, "--yes", "--also-file", scanned)
    assert done.code == 0, done.err
    assert "files without their bytes: 2" in done.out
    for file_id in (named, scanned):
        refused(read(service, file_id), 410, "files_erased")
        row = known(service, file_id)
        assert read(service, file_id, "").json()["erasedAt"] == row["erased_at"] is not None
        assert row | {"erased_at": None} == before[file_id]
        created, erased = stored.rows(service.database, AuditEvent, entity_id=file_id)
        assert (created["action"], erased["action"]) == ("create", "erase")
        assert row["sha256"] in created["body"], "its event has its hash still"
    assert read(service, other).content == b"Nobody.\n"
    assert len(list(store.stored())) == 4
    # Nothing misses the bytes.
    dump, bytes_ = tmp_path / "alpha.json", tmp_path / "bytes"
    for work in (("check",), ("dump", ALPHA, "--output", dump, "--files", bytes_)):
        done = normata(*work, "--database", service.url)
        assert done.code == 0, done.err + done.out
    assert sha256(b"Nobody.\n").hexdigest() in {one.name for one in bytes_.iterdir()}
    assert before[named]["sha256"] not in {one.name for one in bytes_.iterdir()}
    target = f"sqlite:///{tmp_path / 'copy.db'}"
    loaded = normata("load", dump, "--files", bytes_, "--database", target)
    assert (loaded.code, "not here" in loaded.err) == (0, False)
    again = tmp_path / "again.json"
    assert normata("dump", ALPHA, "--output", again, "--database", target).code == 0
    assert json.loads(again.read_text("utf-8")) == json.loads(dump.read_text("utf-8"))


def test_what_they_uploaded_is_listed_and_stays(service: Served, normata: Run) -> None:
    mine = upload(service, b"Of the plant.", user="editor")
    evidence(service, mine)
    command = ("user", "erase", "editor@alpha.example", "--also-documents", "--database", service.url)
    assert f"keep\tfiles\t{mine}\tuploaded" in normata(*command, "--dry-run").out
    assert normata(*command, "--yes").code == 0
    assert read(service, mine).content == b"Of the plant."


@pytest.mark.parametrize(
    ("content", "media_type", "is_found"),
    [
        ("Ask Vi Viewer.".encode("utf-16"), "text/plain", True),
        ("Frage Jörg Größe.".encode("latin-1"), "text/csv", True),
        ("Frage Jörg Größe.".encode("latin-1"), "application/octet-stream", None),
        (b"<td>J&ouml;rg</td><td>Gr&ouml;\xc3\x9fe</td>", "text/html", True),
        (b'{"by": "J\\u00f6rg Gr\\u00f6\\u00dfe"}', "application/json", True),
        (b"viewer@alpha.example,1\n", "application/octet-stream", True),
        (b"reviewer@alpha.example,1\n", "text/csv", False),
        (b"", "text/plain", False),
        (b"Vi Viewer\0", "text/plain", None),
        (b"%PDF-1.4 Vi Viewer", "text/plain", None),
        (b"From: =?utf-8?q?Vi?=\n", "message/rfc822", None),
    ],
)
def test_contents_are_searched_as_text(content: bytes, media_type: str, is_found: bool | None, service: Served) -> None:
    file_id = upload(service, content, "a", media_type)
    evidence(service, file_id)

    def look(transaction: Any) -> Any:
        request = ErasureRequest(ADDRESS, also=(NAME, "Jörg Größe"))
        return survey(transaction, find_person(transaction, request), contents())

    found = service.database.read_now(look)
    assert (file_id in {place.key[0] for place in found.documents}) is bool(is_found)
    assert (file_id in {place.key[0] for place in found.unsearched}) is (is_found is None)


# --- After the time for which replaced files are kept


def set_days(service: Served, days: int | None, user: str = "admin") -> Any:
    body = {"keepReplacedFilesDays": days}
    return service.client.patch(f"/organizations/{ALPHA}/", json=body, headers=service.bearer(user))


def after(days: float) -> str:
    return format_timestamp(datetime.now(UTC) + timedelta(days=days))


def test_replaced_files_end_when_the_organization_says_so(service: Served, store: FileStore) -> None:
    replaced, shared, current, back = (upload(service, name.encode()) for name in ("one", "two", "three", "four"))
    first, second = evidence(service, replaced, shared, back), evidence(service, shared, current)
    headers = service.bearer("editor")
    archived = service.client.post(f"/evidence/{second}/archive/", json={"reason": "Old."}, headers=headers)
    assert archived.status_code == 200
    give_up(service, first)
    third = evidence(service, back)
    do_due(service, REPLACED_FILES, after(10_000))
    assert read(service, replaced).content == b"one", "for ever, unless the organization says otherwise"
    refused(set_days(service, 0), 400, "validation")
    refused(set_days(service, 30, "editor"), 403, "forbidden")
    assert set_days(service, 30).json()["keepReplacedFilesDays"] == 30
    do_due(service, REPLACED_FILES, after(29.9))
    assert read(service, replaced).content == b"one"
    do_due(service, REPLACED_FILES, after(30.1))
    refused(read(service, replaced), 410, "files_erased")
    for file_id in (shared, current, back):
        assert read(service, file_id).status_code == 200, "a record has it"
    assert known(service, shared)["detached_at"] is None, "which is found out once"
    *_, event = stored.rows(service.database, AuditEvent, entity_id=replaced)
    assert (event["action"], json.loads(event["body"])["command"]) == ("erase", "replaced-files")
    do_due(service, cleaning(store), after(31))
    assert len(list(store.stored())) == 5
    # The time begins when the last record gives it up.
    give_up(service, third)
    do_due(service, REPLACED_FILES, after(29.9))
    assert read(service, back).status_code == 200
    assert set_days(service, None).json()["keepReplacedFilesDays"] is None
    do_due(service, REPLACED_FILES, after(10_000))
    assert read(service, back).status_code == 200


def test_what_is_erased_takes_no_room(database_url: str, store_url: str) -> None:
    with served(database_url, files_url=store_url, files_quota=1_000) as service:
        large = upload(service, bytes(900))
        record = evidence(service, large)
        query = {"organizationId": ALPHA, "name": "more"}
        more: dict[str, Any] = {"params": query, "content": bytes(900), "headers": service.bearer("editor")}
        refused(service.client.post("/files/", **more), 409, "quota_exceeded")
        give_up(service, record)
        set_days(service, 1)
        do_due(service, REPLACED_FILES, after(2))
        assert service.client.post("/files/", **more).status_code == 201


def test_nothing_is_due_without_a_replaced_file(service: Served) -> None:
    evidence(service, upload(service, b"one"))
    set_days(service, 1)

    def find(transaction: Any) -> list[str]:
        assert REPLACED_FILES.find is not None
        return [*REPLACED_FILES.find(transaction, [ALPHA, BETA], after(9_000))]

    assert service.database.read_now(find) == []
    assert now() < after(1)
