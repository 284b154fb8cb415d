"""Records and the archive, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE

RECORDS = f"{PLACE}records/"
POLICIES = f"{RECORDS}policies/"
CRYPTOGRAPHY = f"{POLICIES}policy-cryptography/"
ASSESSMENT = f"{PLACE}records/tasks/task-finish-camera-dpia/"


@pytest.mark.parametrize("with_script", [True, False])
def test_a_policy_is_archived_and_taken_back(open_page: Open, with_script: bool) -> None:
    page = open_page(java_script_enabled=with_script)
    page.goto(CRYPTOGRAPHY)
    page.get_by_role("button", name="Archive…").click()
    form = page.locator("form:popover-open")
    form.get_by_role("textbox", name="Reason").fill("Replaced.")
    form.get_by_role("button", name="Archive").click()

    note = page.locator(".toast")
    expect(note.get_by_role("status")).to_contain_text("Archived: Cryptography and Key Management")
    expect(page.get_by_text("Replaced.").first).to_be_visible()
    expect(page.get_by_role("link", name="Edit")).to_have_count(0)
    note.get_by_role("button", name="Undo").click()

    expect(page.get_by_role("status")).to_contain_text("Restored: Cryptography and Key Management")
    expect(page.get_by_role("link", name="Edit")).to_be_visible()


@pytest.mark.parametrize("with_script", [True, False])
def test_selected_ones_are_archived_and_all_restored_from_the_archive(open_page: Open, with_script: bool) -> None:
    page = open_page(java_script_enabled=with_script)
    page.goto(f"{RECORDS}tasks/?status=TODO")
    if with_script:
        page.get_by_role("checkbox", name="Select all on this page").check()
    else:
        for box in page.locator("tbody .pickbox input").all():
            box.check()
    count = page.locator("tbody input:checked").count()
    assert count > 2
    page.get_by_role("button", name="Archive selected").click()
    expect(page.get_by_role("status")).to_contain_text(f"Archived: {count} records.")
    assert "status=TODO" in page.url

    page.get_by_role("link", name="Archive", exact=True).click()
    page.get_by_role("link", name="Archived with it").first.click()
    page.get_by_role("button", name=f"Restore all ({count})").click()
    expect(page.get_by_role("status")).to_contain_text(f"Restored: {count} records.")


@pytest.mark.parametrize("with_script", [True, False])
def test_two_people_edit_and_the_second_loses_nothing(open_page: Open, with_script: bool) -> None:
    first, second = (open_page(java_script_enabled=with_script) for _ in range(2))
    for page in (first, second):
        page.goto(f"{ASSESSMENT}edit/")
    first.get_by_label("Title", exact=True).fill("Cameras")
    _open(first)
    first.get_by_label("Category", exact=True).fill("privacy")
    first.get_by_role("button", name="Save").click()
    expect(first.get_by_role("status")).to_contain_text("Saved.")

    second.get_by_label("Title", exact=True).fill("Cameras <b>and</b> people")
    second.get_by_label("Description", exact=True).fill("# New\n\nAll of it **anew**.")
    second.get_by_role("button", name="Save").click()

    alert = second.get_by_role("alert")
    expect(alert).to_contain_text("Somebody else has changed this in the meantime")
    expect(alert).to_be_focused()
    expect(second.get_by_text("Current value: Cameras")).to_be_visible()
    expect(second.get_by_label("Category", exact=True)).to_be_visible()
    expect(second.get_by_label("Category", exact=True)).to_have_value("privacy")
    expect(second.get_by_label("Title", exact=True)).to_have_value("Cameras <b>and</b> people")
    second.get_by_role("button", name="Save").click()

    expect(second.get_by_role("heading", level=1)).to_have_text(re.compile("Cameras <b>and</b> people"))
    expect(second.locator(".written strong")).to_have_text("anew")


def test_faults_lead_to_their_fields(open_page: Open) -> None:
    page = open_page()
    page.goto(f"{PLACE}new/vendors/")
    _open(page)
    page.get_by_label("Inherent probability").fill("likely")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_be_focused()
    page.get_by_role("alert").get_by_role("link", name="Inherent probability").click()
    expect(page.get_by_label("Inherent probability")).to_be_focused()
    expect(page.get_by_label("Inherent probability")).to_have_accessible_description(re.compile("must be a number"))


def test_a_status_of_ones_own(open_page: Open) -> None:
    page = open_page()
    page.goto(f"{PLACE}new/incidents/")
    _open(page)
    page.get_by_label("Name").fill("Lost badge")
    own = page.get_by_label("Another value for Status")
    expect(own).to_be_hidden()
    page.get_by_label("Status", exact=True).select_option(label="Another value…")
    own.fill("waiting for police")
    own.press("Enter")
    expect(page.locator(".facts").first).to_contain_text("Waiting for police")


@pytest.mark.parametrize("with_script", [True, False])
def test_a_task_is_done_beside_the_list_and_the_next_one_opens(open_page: Open, with_script: bool) -> None:
    page = open_page(java_script_enabled=with_script)
    page.goto(f"{RECORDS}tasks/?sortColumn=title")
    page.get_by_role("link", name="Look at Compare firmware").click()
    panel = page.get_by_role("complementary")
    where = re.compile(r"(\d+) of (\d+)")
    expect(panel).to_contain_text(where)
    found = where.search(panel.inner_text())
    assert found is not None
    number, total = map(int, found.groups())
    panel.get_by_label("Status", exact=True).select_option("Done")
    panel.get_by_label("Deadline").fill("2026-12-24")
    panel.get_by_role("button", name="Save and next").click()

    expect(page.get_by_role("status")).to_contain_text("Saved.")
    expect(panel).to_contain_text(f"{number + 1} of {total}")
    row = page.get_by_role("row").filter(has_text="Compare firmware")
    expect(row.locator(".badge").first).to_contain_text("Done")
    panel.get_by_role("link", name="Close").click()
    expect(panel).to_have_count(0)


@pytest.mark.parametrize("with_script", [True, False])
def test_tasks_are_assigned_done_and_archived_where_they_are_listed(open_page: Open, with_script: bool) -> None:
    path = f"{RECORDS}tasks/?sortColumn=title&status=IN_PROGRESS"
    page = open_page(java_script_enabled=with_script, path=path)
    rows = page.locator("tbody tr")
    boxes = rows.get_by_role("checkbox")
    if with_script:
        boxes.nth(0).click()
        boxes.nth(2).click(modifiers=["Shift"])
        assignee = page.locator("#many").get_by_role("combobox", name="Assignee")
        assignee.fill("femke")
        expect(page.get_by_role("option", name=re.compile("Femke"))).to_be_visible()
        assignee.press("Enter")
    else:
        for number in range(3):
            boxes.nth(number).check()
        page.locator("#many").get_by_label("Assignee").select_option(label="Femke de Graaf")
    page.get_by_role("button", name="Assign", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("Changed: 2 records.")
    for number in range(3):  # one of them was hers already
        expect(rows.nth(number)).to_contain_text("Femke")
    expect(page.locator("tbody :checked")).to_have_count(0)

    name = rows.first.locator("th a").inner_text()
    rows.first.get_by_role("button", name="Archive").click()
    note = page.locator(".toast")
    expect(note).to_contain_text("Archived: ")
    expect(rows.first).not_to_contain_text(name)
    note.get_by_role("button", name="Undo").click()
    expect(rows.first).to_contain_text(name)

    page.goto(f"{PLACE}due/")
    task = page.get_by_role("button", name=re.compile("^Done: ")).first
    name = (task.get_attribute("aria-label") or "").removeprefix("Done: ")
    task.click()
    expect(note).to_contain_text("Marked as done.")
    expect(page.get_by_role("row", name=name)).to_have_count(0)
    note.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("row", name=name)).to_have_count(1)


def test_what_cannot_be_broken_breaks_no_page(open_page: Open) -> None:
    """10,000 characters without a space: no page is wider than the window."""
    page = open_page(viewport={"width": 390, "height": 800})
    page.goto(f"{PLACE}new/assets/")
    page.get_by_label("Name").fill("W" * 500)
    page.get_by_label("Description").fill("W" * 10_000)
    page.get_by_role("button", name="Save").click()
    for path in (page.url, f"{page.url.split('?')[0]}edit/", f"{RECORDS}assets/"):
        page.goto(path)
        _fits(page)


def _fits(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def _open(page: Page) -> None:
    """Open what few people need."""
    page.locator("summary").filter(has_text="More fields").click()
