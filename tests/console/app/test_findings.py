"""The button with which somebody verifies a finding, and the settings that steps take somebody else."""

from __future__ import annotations

import pytest

from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.browser import is_refused, text_of
from tests.world import ALPHA as ALPHA_ID

PAGE = f"{ALPHA}records/auditItems/auditItems-namesake-{ALPHA_ID}/"  # it is resolved


def test_an_editor_verifies_a_finding_on_its_page(people: People) -> None:
    assert "/verify/" not in people["viewer"].get(PAGE).text
    form = next(form for form in Parsed(people["editor"].get(PAGE)).forms if form.action.endswith("/verify/"))
    assert is_refused(send(people["viewer"], form))
    made = send(people["editor"], form, note="Ten doors tried.")
    assert (made.status_code, made.headers["location"]) == (303, f"{PAGE}?done=finding_verified")
    page = people["editor"].get(made.headers["location"])
    assert "You have verified the finding." in text_of(page)
    assert "Ten doors tried." in text_of(page)
    assert f"{ALPHA}settings/members/member-editor/" in Parsed(page).links
    assert "/verify/" not in page.text
    refused = send(people["admin"], form)
    assert refused.status_code == 409
    assert "Its state is “Verified”." in text_of(refused)


def test_where_somebody_else_verifies_an_owner_is_not_offered_to(people: People) -> None:
    client, admin = people.instance.client, people.instance.bearer("admin")
    client.patch(f"/organizations/{ALPHA_ID}/", json={"verifiesFindings": True}, headers=admin).raise_for_status()
    assert "/verify/" in people["editor"].get(PAGE).text
    owns = {"relation": "OWNS", "from": {"kind": "memberships", "id": "member-editor"}}
    body = {"organizationId": ALPHA_ID, **owns, "to": {"kind": "auditItems", "id": PAGE.split("/")[-2]}}
    client.post("/links/", json=body, headers=admin).raise_for_status()
    assert "/verify/" not in people["editor"].get(PAGE).text
    assert "/verify/" in people["admin"].get(PAGE).text


@pytest.mark.parametrize("box", ["verifiesFindings", "allowsSelfApproval"])
def test_an_admin_chooses_whether_somebody_else_is_needed(box: str, people: People) -> None:
    settings = f"{ALPHA}settings/"
    form = next(form for form in Parsed(people["admin"].get(settings)).forms if "scope" in form.fields)
    made = send(people["admin"], form, step="change", mail="DAILY", **{box: "true"})
    assert made.status_code == 303, text_of(made)
    again = next(form for form in Parsed(people["admin"].get(settings)).forms if "scope" in form.fields)
    assert {one for one in ("verifiesFindings", "allowsSelfApproval") if again.fields.get(one) == "true"} == {box}
