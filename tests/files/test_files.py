"""Files: uploaded as they stream in, attached to evidence, and served in whole and in part to whoever may read them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response

from normata.files.folder_store import FolderStore
from normata.files.model import File
from normata.files.store import FileStore, place_of
from tests import stored
from tests.files.rows import everything, in_both_stores
from tests.served import Served, refused, served
from tests.world import ALPHA, BETA

CONTENT = bytes(range(256)) * 9_000  # of several parts
HASH = sha256(CONTENT).hexdigest()


@pytest.fixture
def service(database_url: str, store_url: str) -> Iterator[Served]:
    """The application over a fresh copy of the test world, with files of its own."""
    with served(database_url, files_url=store_url, max_file_bytes=4_000_000, files_quota=9_000_000) as opened:
        yield opened


Ask = Callable[..., Response]


@pytest.fixture
def ask(service: Served) -> Ask:
    """Asks as one of the world's users, with one token."""
    bearers = {user: service.bearer(user) for user in ("owner", "editor", "viewer", "foreigner")}

    def asking(user: str, method: str, path: str, headers: Any = None, **more: Any) -> Response:
        query = {"organizationId": BETA if user == "foreigner" else ALPHA} | more.pop("params", {})
        query = {} if "json" in more else query
        return service.client.request(method, path, params=query, headers=bearers[user] | (headers or {}), **more)

    return asking


def upload(ask: Ask, content: bytes = CONTENT, *, user: str = "editor", name: str = "a.bin", **more: Any) -> Response:
    return ask(user, "POST", "/files/", params={"name": name}, content=content, **more)


def evidence(ask: Ask, *file_ids: str, user: str = "editor") -> Response:
    body = {"organizationId": BETA if user == "foreigner" else ALPHA, "name": "Proof", "fileIds": list(file_ids)}
    return ask(user, "POST", "/evidence/", json=body)


def rows(service: Served) -> list[dict[str, Any]]:
    """The files in the database, but for those of the world."""
    return [row for row in stored.rows(service.database, File) if not row["id"].startswith("file-of-")]


@in_both_stores
def test_a_file_is_uploaded_attached_and_read(service: Served, ask: Ask, store: FileStore) -> None:
    made = upload(ask, name="Prüfung 1.pdf", headers={"Content-Type": "application/pdf"})
    assert made.status_code == 201, made.text
    known = made.json()
    assert known == {
        "id": known["id"],
        "name": "Prüfung 1.pdf",
        "mediaType": "application/pdf",
        "size": len(CONTENT),
        "sha256": HASH,
        "erasedAt": None,
    }
    (name,) = everything(store)
    assert name.startswith(HASH)
    (one,) = store.stored()
    with store.open(one.place) as file:
        assert file.read() == CONTENT
    where = f"/files/{known['id']}/"
    assert made.headers["location"] == where
    # Nobody else sees it until a record has it, and another organization never does.
    assert ask("editor", "GET", where).json() == known
    for user in ("owner", "viewer", "foreigner"):
        for address in (where, f"{where}content/", f"/files/{HASH}/", f"/files/{name}/content/"):
            refused(ask(user, "GET", address), 404, "not_found")
    assert evidence(ask, known["id"], user="foreigner").status_code == 400
    assert evidence(ask, known["id"], user="owner").status_code == 400
    record = evidence(ask, known["id"])
    assert (record.status_code, record.json()["fileIds"]) == (201, [known["id"]])
    answer = ask("viewer", "GET", f"{where}content/")
    assert answer.content == CONTENT
    assert {name: answer.headers[name] for name in ("content-type", "etag", "x-content-type-options")} == {
        "content-type": "application/pdf",
        "etag": f'"{HASH}"',
        "x-content-type-options": "nosniff",
    }
    assert answer.headers["content-security-policy"].startswith("sandbox;")
    assert answer.headers["content-disposition"] == (
        "attachment; filename=\"Pr_fung 1.pdf\"; filename*=UTF-8''Pr%C3%BCfung%201.pdf"
    )
    refused(ask("foreigner", "GET", f"{where}content/"), 404, "not_found")
    # What a record has had stays, and the event of the upload has its hash.
    changed = ask("editor", "PATCH", f"/evidence/{record.json()['id']}/", json={"fileIds": []})
    assert changed.json()["fileIds"] == []
    assert ask("viewer", "GET", f"{where}content/").content == CONTENT
    (event,) = stored.events(service.database, entity_type="File", action="create")
    assert f'"sha256":"{HASH}"' in event["body"]


@in_both_stores
@pytest.mark.parametrize(
    ("range_", "status", "part"),
    [
        ("bytes=0-0", 206, (0, 1)),
        ("bytes=100-299999", 206, (100, 300_000)),
        ("bytes=2303999-", 206, (2_303_999, 2_304_000)),
        ("bytes=-5", 206, (2_303_995, 2_304_000)),
        ("bytes=-99999999", 206, (0, 2_304_000)),
        ("bytes=5-99999999", 206, (5, 2_304_000)),
        ("bytes=2304000-", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=5-4", 200, (0, 2_304_000)),
        ("bytes=0-1,5-6", 200, (0, 2_304_000)),
        ("lines=0-1", 200, (0, 2_304_000)),
    ],
)
def test_parts(range_: str, status: int, part: tuple[int, int] | None, service_with_file: tuple[Ask, str]) -> None:
    ask, where = service_with_file
    answer = ask("editor", "GET", where, headers={"Range": range_})
    assert answer.status_code == status
    if part is None:
        assert answer.headers["content-range"] == f"bytes */{len(CONTENT)}"
        return
    start, end = part
    assert answer.content == CONTENT[start:end]
    assert answer.headers["content-length"] == str(end - start)
    if status == 206:
        assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{len(CONTENT)}"


@pytest.fixture
def service_with_file(service: Served, ask: Ask) -> tuple[Ask, str]:
    """Whom to ask, and the address of the content of a file."""
    del service
    return ask, f"/files/{upload(ask).json()['id']}/content/"


def test_conditions_of_a_part(service_with_file: tuple[Ask, str]) -> None:
    ask, where = service_with_file

    def status(method: str = "GET", **headers: str) -> int:
        return ask(
            "editor", method, where, headers={name.replace("_", "-"): value for name, value in headers.items()}
        ).status_code

    part = {"Range": "bytes=0-9"}
    assert status(**part, If_Range=f'"{HASH}"') == 206
    assert status(**part, If_Range='"other"') == status(**part, If_Range=f'W/"{HASH}"') == 200
    assert status(**part, If_Range="Wed, 21 Oct 2026 07:28:00 GMT") == 200
    assert status("HEAD", **part) == 200
    assert status(If_None_Match=f'"{HASH}"') == status(**part, If_None_Match="*") == 304
    assert status(If_Match='"other"') == 412


@in_both_stores
def test_an_empty_file(ask: Ask) -> None:
    made = upload(ask, b"").json()
    assert (made["size"], made["sha256"], made["mediaType"]) == (0, sha256().hexdigest(), "application/octet-stream")
    where = f"/files/{made['id']}/content/"
    assert ask("editor", "GET", where).content == b""
    assert ask("editor", "GET", where, headers={"Range": "bytes=0-"}).status_code == 416


@pytest.mark.parametrize(
    "name", ["../a", "a/b", "a\\b", "..", ".", " ", "a\0", "a\r\nb", "\u202etxt.exe", "x" * 256, ""]
)
def test_names_are_no_paths(name: str, ask: Ask, store: FileStore) -> None:
    assert upload(ask, name=name).status_code == 400
    assert everything(store) == []


def test_a_browser_runs_nothing_of_a_file(ask: Ask) -> None:
    page = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    for media_type in ("text/html", "image/svg+xml", 'text/html"\x01', "x"):
        made = upload(ask, page, headers={"Content-Type": media_type}, name='a"b;%41.svg').json()
        answer = ask("editor", "GET", f"/files/{made['id']}/content/")
        assert answer.headers["content-disposition"].startswith('attachment; filename="a_b;_41.svg"; filename*=')
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert made["mediaType"] == (
            media_type if media_type in ("text/html", "image/svg+xml") else "application/octet-stream"
        )


def test_nothing_is_unpacked(ask: Ask, store: FileStore) -> None:
    """Also where the client says that the body is compressed: a bomb takes as much room as it has bytes."""
    bomb = gzip.compress(bytes(50_000_000))
    made = upload(ask, bomb, headers={"Content-Encoding": "gzip"}).json()
    assert (made["size"], made["sha256"]) == (len(bomb), sha256(bomb).hexdigest())
    answer = ask("editor", "GET", f"/files/{made['id']}/content/", headers={"Accept-Encoding": "gzip"})
    assert (answer.content, answer.headers.get("content-encoding")) == (bomb, None)
    (one,) = store.stored()
    with store.open(one.place) as file:
        assert file.read() == bomb


def test_who_may_not_upload_is_refused_before_the_body(ask: Ask, store: FileStore) -> None:
    """Also if it is too large, so nothing of it was read."""
    large = {"params": {"name": "a", "organizationId": ALPHA}, "content": bytes(4_000_001)}
    refused(ask("viewer", "POST", "/files/", **large), 403, "forbidden")
    refused(ask("foreigner", "POST", "/files/", **large), 404, "not_found")
    refused(ask("editor", "POST", "/files/", **large), 413, "too_large")
    assert everything(store) == []


@in_both_stores
def test_limits(service: Served, ask: Ask, store: FileStore) -> None:
    refused(upload(ask, bytes(4_000_001)), 413, "too_large")

    def parts() -> Iterator[bytes]:
        for _ in range(5):
            yield bytes(1_000_000)

    refused(ask("editor", "POST", "/files/", params={"name": "a"}, content=parts()), 413, "too_large")
    assert [upload(ask, bytes(4_000_000)).status_code for _ in range(3)] == [201, 201, 409]
    assert len(everything(store)) == len(rows(service)) == 2
    refused(upload(ask, iter([bytes(2_000_000)])), 409, "quota_exceeded")  # type: ignore[arg-type]
    assert len(everything(store)) == 2
    assert upload(ask, bytes(4_000_000), user="foreigner").status_code == 201


@in_both_stores
def test_a_dry_run_stores_nothing(service: Served, ask: Ask, store: FileStore) -> None:
    answer = ask("editor", "POST", "/files/", params={"name": "a.bin", "dryRun": "true"}, content=CONTENT).json()
    assert answer["answer"]["sha256"] == HASH
    assert (everything(store), rows(service)) == ([], [])


@in_both_stores
def test_the_same_key_gets_the_same_file(service: Served, ask: Ask, store: FileStore) -> None:
    """And the bytes that were sent again take no room, which no quota would count."""
    key = {"Idempotency-Key": "one"}
    first, second = (upload(ask, headers=key).json() for _ in range(2))
    assert first == second
    assert len(rows(service)) == 1
    refused(upload(ask, CONTENT[1:], headers=key), 422, "key_reused")
    assert [name[:64] for name in everything(store)] == [HASH]
    assert ask("editor", "GET", f"/files/{first['id']}/content/").content == CONTENT


def test_a_store_that_fails_stores_nothing(
    service: Served, ask: Ask, store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("normata.files.folder_store._FolderArrival.keep_now", full)
        assert "The files cannot be stored" in refused(upload(ask), 503, "unavailable")["detail"]
    assert (everything(store), rows(service)) == ([], [])
    made = upload(ask).json()
    (one,) = store.stored()
    store.remove(one.place)
    refused(ask("editor", "GET", f"/files/{made['id']}/content/"), 503, "unavailable")


def test_places_of_two_files_with_the_same_bytes_differ() -> None:
    one, two = place_of(ALPHA, "1", HASH), place_of(ALPHA, "2", HASH)
    assert one.folder == two.folder != place_of(BETA, "1", HASH).folder
    assert one.name != two.name
    assert FolderStore(Path("/nowhere")).has(one) is False


def test_fifty_files_and_no_more(ask: Ask) -> None:
    ids = [upload(ask, b"x").json()["id"] for _ in range(3)]
    assert evidence(ask, *ids, ids[0]).json()["fileIds"] == ids
    refused(evidence(ask, *(f"id-{number}" for number in range(51))), 400, "validation")
    fault = refused(evidence(ask, "unknown"), 400, "validation")["errors"][0]
    assert (fault["name"], fault["message"]) == ("fileIds", "names no file that exists")
