"""Files in a bucket are complete or not there, and what a process leaves that was killed is found and removed."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from typing import Any

import obstore
import pytest

from normata.errors import BadSetting
from normata.files.abandoned_uploads import abort_abandoned, signed
from normata.files.object_store import ObjectStore, endpoint
from normata.files.opening import open_store
from normata.files.store import FileStore, Place, folder_of
from normata.settings import Settings
from tests.files.rows import everything, store_at

LARGE = os.urandom(2**20) * 11  # of several parts
PLACE = Place(folder_of("one"), f"{sha256(LARGE).hexdigest()}-1")


@pytest.fixture
def bucket(bucket_url: str) -> ObjectStore:
    """An empty bucket."""
    store = store_at(bucket_url)
    assert isinstance(store, ObjectStore)
    return store


async def send(store: FileStore, content: bytes) -> None:
    """Upload a file, which is not seen before it is complete."""
    async with store.arrival() as arrival:
        for start in range(0, len(content), 2**20):
            await arrival.write(content[start : start + 2**20])
        assert list(store.stored()) == []
        await arrival.keep(PLACE)


@pytest.mark.parametrize("size", [0, 1, 5 * 2**20, 5 * 2**20 + 1, len(LARGE)])
def test_a_file_is_there_once_it_is_complete(bucket: ObjectStore, size: int) -> None:
    asyncio.run(send(bucket, LARGE[:size]))
    assert everything(bucket) == [PLACE.name]
    (found,) = bucket.stored()
    assert found.place == PLACE
    assert abs(found.changed - time.time()) < 3_600
    with bucket.open(PLACE) as file:
        assert file_digest(file, "sha256").digest() == sha256(LARGE[:size]).digest()

    async def read(start: int, end: int) -> bytes:
        return b"".join([piece async for piece in bucket.pieces(PLACE, start, end)])

    assert asyncio.run(read(size // 3, size)) == LARGE[size // 3 : size]
    with pytest.raises(OSError, match=r"shorter than it was|416"):
        asyncio.run(read(0, size + 1))
    bucket.remove(PLACE)
    bucket.remove(PLACE)
    assert (bucket.has(PLACE), everything(bucket)) == (False, [])
    with pytest.raises(FileNotFoundError):
        bucket.open(PLACE)


def test_a_file_that_is_read_as_a_whole_takes_few_requests(
    bucket: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put(PLACE, io.BytesIO(LARGE))
    asked, get_range = [], obstore.get_range

    def count(*arguments: Any, **named: Any) -> Any:
        asked.append(named)
        return get_range(*arguments, **named)

    monkeypatch.setattr(obstore, "get_range", count)
    with bucket.open(PLACE) as file:
        assert file.read(10) + file.read() == LARGE
    assert len(asked) <= 7


def test_an_upload_that_ends_early_leaves_nothing(bucket: ObjectStore) -> None:
    async def send_some() -> None:
        async with bucket.arrival() as arrival:
            await arrival.write(LARGE)
            assert everything(bucket) == ["an upload in parts"]
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        asyncio.run(send_some())
    assert everything(bucket) == []


def test_what_a_killed_process_leaves_is_removed(bucket: ObjectStore, bucket_url: str) -> None:
    """Whether it was killed while it uploaded, or before it had removed the other name of what was complete."""
    script = f"""\
import asyncio, time
from normata.files.opening import open_store
from normata.files.store import Place
from normata.settings import Settings

async def send():
    store = open_store(Settings(files_url={bucket_url!r}))
    async with store.arrival() as arrival:
        await arrival.keep(Place("folder", "without-a-row"))
    async with store.arrival() as arrival:
        await arrival.write(bytes(12_000_000))
        print("sent", flush=True)
        time.sleep(600)

asyncio.run(send())
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "sent\n"
        process.kill()
    bucket.store.put(".arriving/complete", LARGE)
    assert everything(bucket) == ["complete", "without-a-row", "an upload in parts"]
    # All uploads of the test's server have begun in 2010.
    abort_abandoned(endpoint(), bucket.bucket, bucket.prefix, datetime(2010, 1, 1, tzinfo=UTC).timestamp(), 5)
    abort_abandoned(endpoint(), bucket.bucket, "other", time.time(), 5)
    assert everything(bucket) == ["complete", "without-a-row", "an upload in parts"]
    bucket.remove_unfinished(time.time() - 3_600)
    assert everything(bucket) == ["complete", "without-a-row"]
    bucket.remove_unfinished(time.time() + 3_600)
    assert everything(bucket) == ["without-a-row"]  # which the job compares with the rows, see test_expiry


def test_a_request_is_signed_as_the_example_of_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of AWS, "Signature calculations for the Authorization header", GET Bucket Lifecycle."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    at = datetime(2013, 5, 24, tzinfo=UTC)
    headers = signed("GET", "https://examplebucket.s3.amazonaws.com/", "lifecycle=", "us-east-1", at)
    assert headers["authorization"].endswith(
        "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    )


def test_messages_have_no_key(bucket_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del bucket_url
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "THE-KEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "THE-SECRET")
    store = store_at("s3://no-such-bucket/a")
    with pytest.raises(OSError, match="not found") as caught:
        store.put(PLACE, io.BytesIO())
    assert "THE-" not in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(OSError, match="404"):
        list(store.stored())


def test_files_that_a_bucket_cannot_have_are_refused_at_the_start() -> None:
    with pytest.raises(BadSetting, match="NORMATA_MAX_FILE_BYTES may be at most 5368709120"):
        open_store(Settings(files_url="s3://bucket", max_file_bytes=2**40))
