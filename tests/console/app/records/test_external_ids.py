"""The page of a record shows its ids in other systems, and who may change it removes them there."""

from __future__ import annotations

from normata.records.kinds import Vendor
from tests.console.app.conftest import People
from tests.console.app.pages import Parsed, send
from tests.console.app.records.recording import made, page_of
from tests.console.browser import is_refused, text_of
from tests.world import record_id


def test_an_editor_removes_an_external_id(people: People) -> None:
    editor, viewer = people["editor"], people["viewer"]
    page = page_of(Vendor, record_id(Vendor, "live"))
    place = f"{page}external-ids/"
    seen = viewer.get(page)
    assert "In other systems erp: 4711" in text_of(seen)
    assert place not in seen.text
    assert is_refused(viewer.post(place, remove="external-id-org-alpha"))
    form = Parsed(editor.get(page)).form(place)
    removed = text_of(editor.get(send(editor, form, remove="external-id-org-alpha").headers["location"]))
    assert "External id removed." in removed
    assert "removed an external id of it erp: 4711" in removed
    assert "In other systems" not in removed
    assert editor.post(place, remove="external-id-org-alpha").status_code == 404
    assert "erp: 4711" in text_of(people["owner"].get("/app/alpha/events/"))
    assert "In other systems" not in text_of(viewer.get(page_of(Vendor, made(people, Vendor, name="New"))))
