"""Values that have a scale, and opaque ids that name something, on the pages of records."""

from __future__ import annotations

import pytest

from normata.records.base import Restorable
from normata.records.kinds import Asset, EntitlementReview, Finding, Policy, Vendor
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed
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
        (Finding, "verifiedById", "member-admin", f"{ALPHA}settings/members/member-admin/"),
        (EntitlementReview, "employeeId", "member-viewer", f"{ALPHA}settings/members/member-viewer/"),
        (Policy, "categoryId", "record-categories-live-org-alpha", f"{ALPHA}records/record-categories/"),
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
    for other in ("hr-4711", "member-foreigner", f"{kind.path}-live-org-alpha"):
        unknown = made(shared, kind, **{field: other})  # whatever it is: it is opaque
        page = Parsed(shared["viewer"].get(page_of(kind, unknown)))
        assert other in page.text
        assert not any(other in one for one in page.links if not one.startswith(page_of(kind)))
