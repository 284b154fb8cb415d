"""Frameworks of the organization's own: uploading one after a preview, and changing what it is called."""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from io import BytesIO
from secrets import token_bytes
from typing import Any

import orjson
import pytest
from httpx2 import Response
from openpyxl import Workbook

from normata.catalogs.operations import OPERATIONS
from normata.catalogs.registry import by_media_type
from normata.frameworks.model import Control, Framework
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.browser import Browser, is_refused, text_of

UPLOAD = f"{ALPHA}upload/"
OWN = f"{ALPHA}frameworks/fw-own/edit/"
ENDINGS = ", ".join(ending for media_type in by_media_type() for ending in media_type.endings)
CSV = b"identifier,name,parent,mandatory\n1,Berths,,\n1.1,<b>Berths</b> are locked,1,yes\n"
YAML = b"""\
urn: urn:x:library:docks
name: Dock Rules
version: 1
objects:
  framework:
    urn: urn:x:framework:docks
    ref_id: DOCKS
    name: Dock Rules
    requirement_nodes:
    - {urn: 'urn:x:1', ref_id: '1', name: Berths, assessable: false}
    - {urn: 'urn:x:1.1', parent_urn: 'urn:x:1', ref_id: '1.1', name: Locked, assessable: true}
"""


def _xlsx() -> bytes:
    book, file = Workbook(), BytesIO()
    for row in (["identifier", "name", "parent"], ["1", "Berths", None], ["1.1", "Locked", "1"]):
        book.active.append(row)
    book.save(file)
    return file.getvalue()


def _send(browser: Browser, file: tuple[str, bytes] | None = None, **fields: str) -> Response:
    """The answer to the form with a file; without one, as a browser sends it."""
    name, content = file or ("", b"")
    files = {"file": (name, content, "application/octet-stream")}
    return browser.client.post(UPLOAD, data=fields, files=files, headers={"Sec-Fetch-Site": "same-origin"})


def _kept(page: Response) -> dict[str, Any]:
    """What the form of a page sends without a new file."""
    return next(form for form in Parsed(page).forms if form.action == UPLOAD and "name" in form.fields).fields


def _rows(people: People, table: Any) -> int:
    return len(stored.rows(people.instance.database, table))


@pytest.mark.parametrize(
    ("name", "content", "called"),
    [
        ("docks.csv", CSV, "Docks"),
        ("DOCKS.YML", YAML, ""),
        ("docks.yaml", YAML, ""),
        ("docks.xlsx", _xlsx(), "Docks"),
        ("docks.json", orjson.dumps(next(one for one in OPERATIONS).body_example), ""),  # type: ignore[attr-defined]
    ],
)
def test_a_file_is_previewed_and_imported_without_being_chosen_again(
    name: str, content: bytes, called: str, people: People
) -> None:
    admin = people["admin"]
    before = stored.everything(people.instance.database)
    preview = _send(admin, (name, content), step="preview", name=called)
    assert preview.status_code == 200, preview.text
    said = text_of(preview)
    assert f"Changes that importing {name} would make" in said
    assert "Nothing has been changed yet." in said
    assert "What follows No control would be covered further or less." in said
    assert re.search(r"Frameworks 1 0 0 Controls 2 0 0 Matches 0 0 0", said)
    assert stored.everything(people.instance.database) == before

    answer = _send(admin, **_kept(preview) | {"step": "import"})

    assert answer.status_code == 303, answer.text
    place = answer.headers["location"]
    assert re.fullmatch(rf"{ALPHA}frameworks/[^/]+/adoption/\?done=imported", place)
    page = admin.get(place)
    assert "The file was imported." in text_of(page)
    assert "Adopt " in text_of(page)
    told = text_of(admin.get(f"{ALPHA}events/"))
    assert "Admin imported a file 2 controls added, 1 framework added" in told
    again = _send(admin, (name, content), step="preview", name=called)
    assert re.search(r"Frameworks 0 0 1 Controls 0 0 2", text_of(again))
    assert "Edit" in text_of(admin.get(f"{ALPHA}frameworks/"))
    assert '<option value="Do' in admin.get(UPLOAD).text or '<option value="Harb' in admin.get(UPLOAD).text


def test_a_table_takes_the_name_of_its_file_and_is_adopted_with_its_import(people: People) -> None:
    admin = people["admin"]
    preview = _send(admin, ("dock-rules_2026.csv", CSV), step="preview")
    form = next(form for form in Parsed(preview).forms if form.fields.get("previewed"))
    assert form.fields["name"] == "Dock rules 2026"
    assert [value for _, value in form.buttons] == ["adopt", "import", "preview"]
    fields: dict[str, Any] = form.fields
    answer = _send(admin, **fields | {"step": "adopt"})
    place = answer.headers["location"]
    assert re.fullmatch(rf"{ALPHA}frameworks/[^/]+/\?done=imported_and_adopted", place), answer.text[:500]
    page = text_of(admin.get(place))
    assert "Dock rules 2026" in page
    assert "the framework was adopted" in page
    again = _send(admin, ("dock-rules_2026.csv", CSV), step="preview")
    assert 'value="adopt"' not in again.text


@pytest.mark.parametrize("other", ["file", "name", "nothing previewed"])
def test_nothing_is_imported_that_was_not_previewed(other: str, people: People) -> None:
    """Somebody chooses another file after the preview, or presses Enter in the name: that is previewed first."""
    admin = people["admin"]
    count = _rows(people, Framework)
    fields = _kept(_send(admin, ("docks.csv", CSV), step="preview", name="Docks")) | {"step": "import"}
    fields.pop("file")
    file = None
    if other == "file":
        file = ("other.csv", b"identifier,name\n7,Another\n")
    elif other == "name":
        fields["name"] = "Piers"
    else:
        del fields["previewed"]
    answer = _send(admin, file, **fields)
    assert answer.status_code == 200
    assert f"Changes that importing {file[0] if file else 'docks.csv'} would make" in text_of(answer)
    assert _rows(people, Framework) == count
    assert _send(admin, **_kept(answer) | {"step": "import"}).status_code == 303
    assert _rows(people, Framework) == count + 1


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (None, "File: is required."),
        (("docks.pdf", b"%PDF"), f"file must have one of these extensions: {ENDINGS}."),
        (("docks", CSV), f"file must have one of these extensions: {ENDINGS}."),
        (("docks.json", b"{"), "file is neither JSON nor YAML"),
        (("docks.csv", b"identifier,parent\n1,7\n1,\n"), "is the identifier of no row"),
    ],
)
def test_what_is_wrong_is_told_by_place_and_nothing_is_stored(
    file: tuple[str, bytes] | None, said: str, people: People
) -> None:
    admin = people["admin"]
    counts = _rows(people, Framework), _rows(people, Control)
    for step in ("preview", "import"):
        answer = _send(admin, file, step=step)
        assert is_refused(answer, status=400)
        assert said in text_of(answer)
    assert counts == (_rows(people, Framework), _rows(people, Control))


def test_faults_of_rows_come_with_their_places_and_the_file_stays(people: People) -> None:
    content = b"identifier,name,parent\n1,A,\n2,B,9\n"
    answer = _send(people["admin"], ("docks.csv", content), step="preview", name="Docks")
    assert is_refused(answer, status=400)
    assert re.search(r"<li>[^<]*(3|rows/1|2)[^<]*9[^<]*</li>", answer.text), answer.text
    assert _kept(answer)["carried_name"] == "docks.csv"
    assert 'value="import"' not in answer.text


def test_mappings_to_unknown_controls_are_left_out_where_one_says_so(people: People) -> None:
    library = YAML.replace(
        b"  framework:\n",
        b"""\
  requirement_mapping_set:
    urn: urn:x:mapping
    source_framework_urn: urn:x:framework:docks
    target_framework_urn: urn:x:framework:docks
    requirement_mappings:
    - {source_requirement_urn: 'urn:x:1.1', target_requirement_urn: 'urn:x:none', relationship: equal}
  framework:
""",
    )
    refused = _send(people["admin"], ("docks.yaml", library), step="preview")
    assert is_refused(refused, status=400)
    answer = _send(people["admin"], **_kept(refused) | {"step": "preview", "skip_unknown": "true"})
    assert answer.status_code == 200
    assert "Skipped mappings: 1" in text_of(answer)
    assert "urn:x:none" in text_of(answer)
    assert "checked" in answer.text


def test_uploads_are_bounded(people: People) -> None:
    admin = people["admin"]
    large = b"identifier,name\n" + b"x" * (16 * 2**20)
    assert is_refused(_send(admin, ("docks.csv", large), step="preview", name="X"), status=413)
    assert is_refused(_send(admin, ("docks.csv", large + b"y" * 2**22), step="preview", name="X"), status=413)
    bomb = b64encode(zlib.compress(b"0" * (17 * 2**20))).decode()
    assert is_refused(_send(admin, step="import", carried=bomb, carried_name="x.csv", name="X"), status=413)
    assert is_refused(_send(admin, step="import", carried="x" * (4 * 2**20), carried_name="x.csv"), status=400)
    for carried in ("%%%", b64encode(b"no zlib").decode()):
        assert is_refused(_send(admin, step="import", carried=carried, carried_name="x.csv", name="X"), status=400)
    plain = admin.client.post(UPLOAD, data={"step": "preview"}, headers={"Sec-Fetch-Site": "same-origin"})
    assert is_refused(plain, status=400)
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "text/csv"}
    assert is_refused(admin.client.post(UPLOAD, content=CSV, headers=headers), status=415)
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "multipart/form-data; boundary=x"}
    assert is_refused(admin.client.post(UPLOAD, content=b"--y\r\n", headers=headers), status=400)


def test_a_file_that_is_too_large_for_a_page_is_chosen_again(people: People) -> None:
    noise = token_bytes(2_400_000).hex()  # half of it is left when it is packed
    rows = "".join(f"{n},n,{noise[n * 20_000 : (n + 1) * 20_000]}\n" for n in range(240))
    content = b"identifier,name,description\n" + rows.encode()
    answer = _send(people["admin"], ("docks.csv", content), step="preview", name="Docks")
    assert answer.status_code == 200
    assert "docks.csv is too large to stay attached: choose it again" in text_of(answer)
    assert "carried" not in _kept(answer)
    assert len(answer.content) < 100_000


def test_a_forged_upload_does_nothing(people: People) -> None:
    admin = people["admin"]
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {}):
        answer = admin.client.post(UPLOAD, files={"file": ("x.csv", CSV)}, data={"step": "import"}, headers=headers)
        assert is_refused(answer)
    assert is_refused(_send(people["editor"], ("x.csv", CSV), step="import", name="X"))
    assert is_refused(_send(people["foreigner"], ("x.csv", CSV), step="import", name="X"), status=404)
    assert not stored.rows(people.instance.database, Framework, name="X")


# --- What it is called


def test_a_framework_is_changed(people: People) -> None:
    admin = people["admin"]
    form = Parsed(admin.get(OWN)).form("/edit/")
    assert (form.fields["name"], form.fields["version"], form.fields["description"]) == ("Alpha's own", "", "")
    answer = send(admin, form, name="Alpha's rules", version="2", description="Line 1\r\nLine 2")
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        f"{ALPHA}frameworks/fw-own/?done=framework_changed",
    )
    row = stored.row(people.instance.database, Framework, "fw-own")
    assert (row["name"], row["version"], row["description"]) == ("Alpha's rules", "2", "Line 1\nLine 2")
    late = send(admin, form, name="Others")
    assert is_refused(late, status=412)
    assert 'value="Others"' in late.text
    assert f"{ALPHA}frameworks/fw-own/edit/" in Parsed(admin.get(f"{ALPHA}frameworks/fw-own/")).links
    assert f"{ALPHA}frameworks/fw-own/edit/" not in Parsed(people["editor"].get(f"{ALPHA}frameworks/fw-own/")).links
    cleared = send(admin, Parsed(admin.get(OWN)).form("/edit/"), version="", description="")
    assert cleared.status_code == 303
    assert stored.row(people.instance.database, Framework, "fw-own")["version"] is None


def test_frameworks_that_are_not_changed(people: People) -> None:
    admin = people["admin"]
    moon = f"{ALPHA}frameworks/fw-moon/edit/"
    for answer in (admin.get(moon), admin.post(moon, name="X")):
        assert is_refused(answer)
    assert "so you cannot change it" in text_of(admin.get(moon))
    nameless = admin.post(OWN, name="", identifier="X")
    assert is_refused(nameless, status=400)
    assert 'id="fault-name"' in nameless.text
    assert is_refused(admin.post(f"{ALPHA}frameworks/fw-foreign/edit/", name="X"), status=404)
    assert is_refused(people["editor"].get(OWN))
    assert is_refused(people["editor"].post(OWN, name="X"))
    assert stored.row(people.instance.database, Framework, "fw-own")["name"] == "Alpha's own"
