"""Choosing what a record refers to by what one types, changing many records, and saving a view, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE


def test_a_reference_is_found_by_what_one_types_with_keys_alone(open_page: Open) -> None:
    page = open_page()
    page.goto(f"{PLACE}new/auditItems/")
    page.get_by_label("Name").fill("Lamps")
    page.get_by_text("More fields").click()
    control = page.get_by_role("combobox", name="Control", exact=True)
    options = page.get_by_role("listbox", name="Control", exact=True).get_by_role("option")
    control.fill("a515")
    expect(options.first).to_have_text(re.compile(r"^A\.5\.15 "))
    expect(control).to_have_attribute("aria-expanded", "true")
    control.press("ArrowDown")
    control.press("ArrowUp")
    assert control.get_attribute("aria-activedescendant") == options.first.get_attribute("id")
    control.press("Escape")
    expect(control).to_have_value("")
    expect(page.get_by_label("Name")).to_have_value("Lamps")  # Escape has closed the list, and nothing else
    control.fill("access control")
    expect(options.first).to_be_visible()
    control.fill("A.5.15 access")
    expect(options).to_have_count(1)
    control.press("Enter")
    expect(control).to_have_value(re.compile("^A.5.15 Access control"))
    control.fill("nothing is called so")
    expect(page.get_by_text("No results.")).to_be_visible()
    control.press("Tab")
    expect(control).to_have_value(re.compile("^A.5.15 Access control"))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name=re.compile("^A.5.15 Access control"))).to_be_visible()


def test_a_name_that_was_typed_and_not_confirmed_is_not_lost(open_page: Open) -> None:
    """A form is sent when the answer is there, with what it marks."""
    page = open_page()
    page.goto(f"{PLACE}new/tasks/")
    page.get_by_role("textbox", name="Title", exact=True).fill("Lamps")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/find/?*", hold)
    with page.expect_request("**/find/?*"):
        page.get_by_role("combobox", name="Assignee", exact=True).fill("tomasz")
    page.get_by_role("button", name="Save").click()
    assert page.url.endswith("/new/tasks/")
    held[0].continue_()
    expect(page.get_by_role("link", name=re.compile("^Tomasz")).first).to_be_visible()


@pytest.mark.parametrize(("with_script", "width"), [(True, 1280), (True, 390), (False, 390)])
def test_a_view_is_saved_and_many_records_are_changed_in_it_and_undone(
    open_page: Open, with_script: bool, width: int
) -> None:
    page = open_page(java_script_enabled=with_script, viewport={"width": width, "height": 800})
    is_phone = width == 390
    page.goto(f"{PLACE}records/tasks/?status=TODO")
    page.get_by_text("Save view", exact=True).click()
    page.get_by_role("textbox", name="Name").fill("Not begun")
    page.get_by_role("checkbox", name="Share with the organization").check()
    page.get_by_role("button", name="Save", exact=True).click()
    views = page.get_by_role("navigation", name="Views" if is_phone else "Main")  # the sidebar is folded on a phone
    expect(views.get_by_role("link", name="Not begun")).to_have_attribute("aria-current", "page")

    names = [box.get_attribute("aria-label") or "" for box in page.locator("tbody .pickbox input").all()[:2]]
    boxes = [page.get_by_role("checkbox", name=name, exact=True) for name in names]
    if is_phone:
        expect(page.locator("tbody .pickbox").first).to_be_hidden()
        page.get_by_text("Select", exact=True).click()
    for box in boxes:
        if is_phone:
            box.check()
        else:
            page.keyboard.press("j")
            page.keyboard.press("x")
    page.get_by_role("button", name="Change fields…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Change 2 tasks")
    assignee = page.get_by_role("combobox", name="Assignee")
    expect(assignee).to_be_hidden()
    page.get_by_role("checkbox", name="Assignee").check()
    _choose(page, "Assignee", "Femke", with_script=with_script)
    page.get_by_role("checkbox", name="Deadline").check()
    page.get_by_label("Deadline", exact=True).last.fill("2027-03-04")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Change 2 tasks")
    expect(page.locator("tbody tr").first).to_contain_text("Femke")
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth") if with_script else 0
    assert wide <= 0
    page.get_by_role("button", name="Change 2 tasks").click()

    expect(page.get_by_role("status")).to_contain_text("Changed: 2 records.")
    expect(views.get_by_role("link", name="Not begun")).to_have_attribute("aria-current", "page")
    for name in names:
        expect(page.get_by_role("row", name=name)).to_contain_text("Femke")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("Undone.")
    for name in names:
        expect(page.get_by_role("row", name=name)).not_to_contain_text("4 Mar 2027")


@pytest.mark.parametrize("width", [1280, 390])
def test_nobody_is_assigned_and_the_bar_says_why(width: int, open_page: Open) -> None:
    page = open_page(path=f"{PLACE}records/tasks/", viewport={"width": width, "height": 800})
    if width == 390:
        page.get_by_text("Select", exact=True).click()
    page.locator("tbody .pickbox input").first.check()
    bar = page.locator(".bulk")
    bar.get_by_role("button", name="Assign").click()
    note = page.locator(".toast")
    expect(note).to_contain_text("Choose a person first")
    above, below = note.bounding_box(), bar.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]
    note.get_by_role("link", name="Dismiss").click()
    person = bar.get_by_role("combobox")
    person.fill("xyzzy")
    expect(bar.get_by_role("status")).to_contain_text("No results")
    person.press("Tab")
    expect(bar.get_by_role("status")).to_contain_text("xyzzy")
    bar.get_by_role("button", name="Assign").click()
    expect(note).to_contain_text("Choose a person first")


def _choose(page: Page, label: str, words: str, *, with_script: bool) -> None:
    field = page.get_by_role("combobox", name=label)
    if not with_script:
        option = field.locator("option", has_text=words).first
        field.select_option(option.get_attribute("value"))
        return
    field.fill(words)
    page.get_by_role("option", name=re.compile(words)).click()
    expect(field).to_have_value(re.compile(words))
