"""Values that have a scale, and opaque ids that name something, on the pages of records."""

from __future__ import annotations

import pytest

from normata.records.base import Restorable
from normata.records.kinds import Asset, EntitlementReview, Policy, Task, Vendor
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.app.records.recording import Sheet, made, page_of, stored
from tests.console.browser import is_refused, text_of
from tests.databases import on_both_shared


@pytest.mark.parametrize(
    ("typed", "number"), [("7", 7), ("-2.50", -2.5), (".5", 0.5), ("1e3", 1000), ("2,5", None), ("1e999", None)]
)
def test_numbers(typed: str, number: float | None, shared: People) -> None:
    record = made(shared, Asset)
    answer = Sheet(shared["editor"].get(page_of(Asset, record, "edit")), "/edit/").send(
        shared["editor"], integrityRating=typed
    )
    assert answer.status_code == (400 if number is None else 303)
    assert stored(shared, Asset, record)["integrityRating"] == number


def test_what_was_loaded_out_of_its_scale_stays_when_a_form_changes_other_fields(shared: People) -> None:
    loaded = {"inherentImpact": 7, "website": "javascript:alert(1)"}
    shared.instance.load({"vendors": [{"id": "v-7", "organizationId": "org-alpha", "name": "Loaded", **loaded}]})
    sheet = Sheet(shared["editor"].get(page_of(Vendor, "v-7", "edit")), "/edit/")
    assert sheet.send(shared["editor"], name="Renamed").status_code == 303
    vendor = stored(shared, Vendor, "v-7")
    assert ({name: vendor[name] for name in loaded}, vendor["name"]) == (loaded, "Renamed")
    refused = sheet.send(shared["editor"], inherentImpact="6", website="javascript:alert(2)")
    assert is_refused(refused, status=400)
    assert "must be at most 5" in text_of(refused)
    assert "must be an address of the web" in text_of(refused)
    assert 'href="javascript' not in shared["editor"].get(page_of(Vendor, "v-7")).text


@pytest.mark.parametrize(
    ("kind", "field", "named", "link"),
    [
        (EntitlementReview, "employeeId", "member-viewer", f"{ALPHA}settings/members/member-viewer/"),
        (Policy, "categoryId", "record-categories-live-org-alpha", f"{ALPHA}records/record-categories/"),
        (Task, "riskId", "risks-live-org-alpha", f"{ALPHA}records/risks/"),
        (Task, "deviceId", "assets-live-org-alpha", f"{ALPHA}records/assets/"),  # a record of any kind
    ],
)
@on_both_shared
def test_an_opaque_id_is_named_and_linked_where_it_names_something(
    kind: type[Restorable], field: str, named: str, link: str, shared: People
) -> None:
    record = made(shared, kind, **{field: named})
    page = Parsed(shared["viewer"].get(page_of(kind, record)))
    assert any(one.startswith(link) for one in page.links)
    assert named not in page.text.partition(record)[0]  # its name stands there instead
    of_another_kind = () if field == "deviceId" else ("labels-live-org-alpha",)
    for other in ("hr-4711", "member-foreigner", "risks-live-org-beta", "sun.A.1", *of_another_kind):
        unknown = made(shared, kind, **{field: other})  # whatever it is: it is opaque
        page = Parsed(shared["viewer"].get(page_of(kind, unknown)))
        assert other in page.text
        assert not any(other in one for one in page.links if not one.startswith(page_of(kind)))


def test_an_opaque_id_that_may_name_a_row_is_chosen_by_its_name_and_others_are_not_asked_for(shared: People) -> None:
    task = made(shared, Task, riskId="elsewhere-7", deviceId="mdm-12")
    editor = shared["editor"]
    page = editor.get(page_of(Task, task) + "edit/")
    assert '<option value="elsewhere-7" selected>elsewhere-7</option>' in page.text
    assert '<option value="risks-live-org-alpha">' in page.text
    form = Parsed(page).form("edit/")
    named = {value for _, name, value in Parsed(page).attributes if name == "name"}
    assert {"riskId", "evidenceId"} <= named
    assert not {"deviceId", "trainingId", "vendorReviewId", "assetReviewId", "processId"} & named
    assert send(editor, form, riskId="risks-live-org-alpha").status_code == 303
    said = editor.get(page_of(Task, task))
    assert f"{ALPHA}records/risks/risks-live-org-alpha/" in Parsed(said).links
    assert "mdm-12" in said.text  # of what has no field in the form the value stays
    assert page_of(Task, task) in Parsed(editor.get(f"{ALPHA}records/risks/risks-live-org-alpha/")).links
