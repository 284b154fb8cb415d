"""The files of evidence in the console: attached, shown with their hashes, downloaded and detached."""

from __future__ import annotations

from hashlib import sha256

from httpx2 import Response

from normata.files.model import File
from normata.records.assurance import Evidence
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import Parsed
from tests.console.browser import is_refused, text_of
from tests.world import record_id

RECORD = record_id(Evidence, "live")
PAGE = f"/app/alpha/records/evidence/{RECORD}/"
OURS = {"Sec-Fetch-Site": "same-origin"}
CONTENT = bytes(range(256)) * 9_000


def attach(people: People, *files: tuple[str, bytes], user: str = "editor", page: str = PAGE) -> Response:
    sent = [("file", (name, content, "application/pdf")) for name, content in files]
    return people[user].client.post(f"{page}files/", files=sent, headers=OURS)


def file_ids(people: People) -> list[str]:
    ids: list[str] = stored.row(people.instance.database, Evidence, RECORD)["file_ids"]
    return ids


def test_files_are_attached_downloaded_and_detached(people: People) -> None:
    done = attach(people, ("report <b>.pdf", CONTENT), ("C:\\folder\\second.pdf", b"2"))
    assert (done.status_code, done.headers["location"]) == (303, f"{PAGE}?done=files_attached#files")
    first, second = file_ids(people)
    page = people["viewer"].get(PAGE)
    assert "report <b>.pdf 2.3 MB" in text_of(page)
    assert "second.pdf 1 B" in text_of(page)
    assert sha256(CONTENT).hexdigest() in page.text
    link = next(one for one in Parsed(page).links if first in one)
    answer = people["viewer"].get(link)
    assert answer.content == CONTENT
    assert answer.headers["content-disposition"].startswith("attachment; ")
    assert people["viewer"].client.get(link, headers={"Range": "bytes=1-2"}).content == CONTENT[1:3]
    # Detached, it is still there for who reads the history.
    left = people["editor"].client.post(f"{PAGE}files/", data={"detach": first}, headers=OURS)
    assert left.headers["location"] == f"{PAGE}?done=file_detached#files"
    assert file_ids(people) == [second]
    assert people["viewer"].get(link).content == CONTENT


def test_what_is_refused_is_said(people: People) -> None:
    nothing = people["editor"].client.post(f"{PAGE}files/", data={"step": "attach"}, headers=OURS)
    assert nothing.status_code == 400
    assert "Choose a file first." in text_of(nothing)
    assert is_refused(attach(people, ("a.pdf", b"1"), user="viewer"))
    assert is_refused(
        attach(people, ("a.pdf", b"1"), page=PAGE.replace("evidence/evidence", "labels/labels")), status=404
    )
    archived = PAGE.replace(RECORD, record_id(Evidence, "archived"))
    refused = attach(people, ("a.pdf", b"1"), page=archived)
    assert (refused.status_code, "read-only" in text_of(refused)) == (409, True)
    many = attach(people, *((f"{number}.pdf", b"1") for number in range(51)))
    assert many.status_code == 400
    assert file_ids(people) == []
    loose = [row for row in stored.rows(people.instance.database, File) if row["attached_at"] is None]
    assert len(loose) == 1  # that of the archived record, which goes after a day


def test_a_kind_without_files_has_no_place_for_them(people: People) -> None:
    page = people["editor"].get(f"/app/alpha/records/labels/labels-live-{'org-alpha'}/")
    assert "Choose files" not in text_of(page)
    assert "upload.js" not in page.text
