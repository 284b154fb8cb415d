"""Registers as files in the console: exporting what a list shows, and importing a file after its preview."""

from __future__ import annotations

import csv
import io

from httpx2 import Response

from normata.records.kinds import Vendor
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA
from tests.console.browser import Browser, is_refused, text_of

LIST, PAGE, FILE = f"{ALPHA}records/vendors/", f"{ALPHA}import/vendors/", f"{ALPHA}export/vendors/file/"
TABLE = (
    "id,name,status,ownerId\n"
    "vendors-live-org-alpha,<b>Renamed</b>,suspended,viewer@alpha.example\n"
    ",Brand new,,\n"
    ",Wrong,,nobody@alpha.example\n"
)


def _upload(browser: Browser, table: str | None, **fields: str) -> Response:
    name, content = ("", b"") if table is None else ("vendors.csv", table.encode())
    files = {"file": (name, content, "application/octet-stream")}
    return browser.client.post(PAGE, data=fields, files=files, headers={"Sec-Fetch-Site": "same-origin"})


def _hidden(page: Response, name: str) -> str:
    return page.text.partition(f'name="{name}" value="')[2].partition('"')[0]


def test_a_list_is_exported_as_it_is_filtered(readers: People) -> None:
    viewer = readers["viewer"]
    listed = viewer.get(f"{LIST}?archived=include&sortColumn=name&page=1")
    assert f"{FILE}?archived=include&amp;sortColumn=name&amp;format=csv" in listed.text
    file = viewer.get(f"{FILE}?archived=include&sortColumn=name&format=csv&page=2&nonsense=1")
    assert file.headers["content-disposition"].startswith('attachment; filename="vendors-')
    rows = list(csv.DictReader(io.StringIO(file.content.decode("utf-8-sig"), newline="")))
    assert {"vendors-live-org-alpha", "vendors-archived-org-alpha"} <= {row["id"] for row in rows}
    assert viewer.get(f"{FILE}?format=pdf").status_code == 400
    assert "Import a file" not in text_of(listed)
    assert is_refused(viewer.get(PAGE))


def test_a_file_is_imported_after_its_preview(people: People) -> None:
    editor = people["editor"]
    assert "Import a file" in text_of(editor.get(LIST))
    preview = _upload(editor, TABLE, step="preview")
    words = text_of(preview)
    for expected in ("1 record is new", "1 record changes", "1 row is refused", "Brand new", "names nothing here"):
        assert expected in words, expected
    assert "<b>Renamed</b>" not in preview.text
    assert "Suspended" in words
    before = len(stored.rows(people.instance.database, Vendor))
    # The page of the preview carries the file; another file is previewed first.
    kept = {name: _hidden(preview, name) for name in ("previewed", "carried", "carried_name", "key")}
    assert _upload(editor, TABLE + ",More,,\n", step="import", **kept).status_code == 200
    refused = _upload(editor, None, step="import", **kept)
    assert refused.status_code == 400
    assert "names nothing here" in text_of(refused)
    assert len(stored.rows(people.instance.database, Vendor)) == before
    for _ in range(2):  # a second click is the first one again
        done = _upload(editor, None, step="import_others", **kept)
        assert done.headers["location"] == f"{LIST}?done=register_imported"
    assert len(stored.rows(people.instance.database, Vendor)) == before + 1
    (row,) = stored.rows(people.instance.database, Vendor, id="vendors-live-org-alpha")
    assert (row["name"], row["status"], row["owner_id"]) == ("<b>Renamed</b>", "SUSPENDED", "member-viewer")


def test_a_file_of_another_kind_is_refused(people: People) -> None:
    editor = people["editor"]
    assert "did you mean" in text_of(_upload(editor, "nam\nx\n", step="preview"))
    assert _upload(editor, None, step="preview").status_code == 400
