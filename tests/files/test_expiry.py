"""Files that no record has had go after a day, and so do bytes without a row; nothing else does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO

import pytest

from normata.core.changes.job_runner import JobRunner
from normata.core.changes.jobs import JobType
from normata.core.db.opening import open_database
from normata.core.db.types import format_timestamp, now
from normata.events.model import AuditEvent
from normata.files.checking import file_faults
from normata.files.expiry import UNATTACHED_FILES, cleaning
from normata.files.model import File
from normata.files.store import FileStore, Place, folder_of
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS
from normata.settings import Settings
from normata.wiring import changes_of
from tests import stored
from tests.files.rows import FILE_CONTENT, everything, fill, in_both_stores, leave_incomplete, store_at
from tests.served import Served, served
from tests.world import ALPHA, BETA

LATER = format_timestamp(datetime.now(UTC) + timedelta(hours=25))


@pytest.fixture
def service(database_url: str, store: FileStore, store_url: str) -> Iterator[Served]:
    """The application over a fresh copy of the test world, with its files in a store of their own."""
    fill(store, ALPHA, BETA)
    with served(database_url, files_url=store_url) as opened:
        yield opened


def do_due(service: Served, job_type: JobType, moment: str) -> None:
    """Do a job as a process of its own does, with the rights of the service."""

    async def run() -> None:
        database = open_database(Settings(database_url=service.url), serving=True)
        try:
            clock = partial(str, moment)
            runner = JobRunner(database, changes_of(database), [job_type], NEXT_ORGANIZATIONS, clock=clock)
            await runner.find()
            await runner.do_due()
        finally:
            await database.aclose()

    asyncio.run(run())


def upload(service: Served, content: bytes) -> str:
    query = {"organizationId": ALPHA, "name": "a"}
    made = service.client.post("/files/", params=query, content=content, headers=service.bearer("editor"))
    return str(made.json()["id"])


def ids(service: Served) -> set[str]:
    return {row["id"] for row in stored.rows(service.database, File)}


def faults(service: Served, store: FileStore, moment: float | None = None) -> list[str]:
    at = time.time() if moment is None else moment
    return service.database.read_now(lambda transaction: list(file_faults(transaction, store, at)))


@in_both_stores
def test_what_no_record_has_had_goes_after_a_day(service: Served, store: FileStore) -> None:
    attached, loose = upload(service, b"one"), upload(service, b"two")
    body = {"organizationId": ALPHA, "name": "Proof", "fileIds": [attached]}
    record = service.client.post("/evidence/", json=body, headers=service.bearer("editor")).json()
    service.client.patch(f"/evidence/{record['id']}/", json={"fileIds": []}, headers=service.bearer("editor"))
    world = {f"file-of-{ALPHA}", f"file-of-{BETA}"}
    do_due(service, UNATTACHED_FILES, now())
    assert ids(service) == {attached, loose} | world
    do_due(service, UNATTACHED_FILES, LATER)
    assert ids(service) == {attached} | world
    (event,) = stored.rows(service.database, AuditEvent, entity_id=loose, action="expire")
    assert event["organization_id"] == ALPHA
    # Its bytes are found by the next look through the store, and nothing else's.
    assert len(list(store.stored())) == 4
    do_due(service, cleaning(store), LATER)
    assert len(list(store.stored())) == 3
    assert faults(service, store, time.time() + 90_000) == []


@in_both_stores
def test_bytes_without_a_row_are_named_and_go(service: Served, store: FileStore) -> None:
    """As after a process was killed between the two; those of organizations of another database stay."""
    mine, foreign = Place(folder_of(ALPHA), "a" * 64 + "-1"), Place("f" * 32, "b" * 64 + "-1")
    for place in (mine, foreign):
        store.put(place, BytesIO(b"lost"))
    leave_incomplete(store)
    do_due(service, cleaning(store), now())
    assert faults(service, store) == []  # they may be of uploads in progress
    assert store.has(mine)
    assert len(everything(store)) == 5
    assert {fault.split(",")[0] for fault in faults(service, store, time.time() + 4_000)} == {
        f"{store.address} has {place.folder}/{place.name}" for place in (mine, foreign)
    }
    service.sql("DELETE FROM job")
    do_due(service, cleaning(store), LATER)
    assert (store.has(mine), store.has(foreign)) == (False, True)
    assert len(list(store.stored())) == len(everything(store)) == 3


@in_both_stores
def test_what_is_missing_or_changed_is_named(service: Served, store: FileStore) -> None:
    assert faults(service, store) == []
    first, second = store.stored()
    store.remove(first.place)
    store.put(second.place, BytesIO(FILE_CONTENT[:-1] + b"!"))
    found = faults(service, store)
    assert sorted("is missing" in fault for fault in found) == [False, True]
    assert sorted("was changed" in fault for fault in found) == [False, True]
    assert all("file-of-org-" in fault for fault in found)


def test_a_store_that_cannot_be_read_is_one_fault(service: Served, bucket_url: str) -> None:
    del bucket_url
    (fault,) = faults(service, store_at("s3://no-such-bucket/files"))
    assert fault.startswith("s3://no-such-bucket/files cannot be read, so no file was checked (")
