"""Settings in a real browser: inviting somebody, removing somebody, uploading a framework."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import Open

PLACE = "/app/harbourlight-robotics/"
_CSV = b"identifier,name,parent\n1,Berths,\n1.1,Berths are locked,1\n"


def test_somebody_is_invited_comes_and_is_removed(open_page: Open) -> None:
    """By an admin whose browser runs no script; with one, the link of an invitation can be copied, too."""
    page, scripted = open_page(java_script_enabled=False), open_page()
    for one, name in ((scripted, "lee"), (page, "kim")):
        one.get_by_role("navigation", name="Main").get_by_role("link", name="Organization").click()
        one.get_by_role("link", name="Invitations").click()
        one.get_by_role("textbox", name="Email address").fill(f"{name}@harbourlight.example")
        one.get_by_role("combobox", name="Role").select_option("Viewer")
        one.get_by_role("button", name="Invite", exact=True).click()
        link = one.locator("code.secret").inner_text()
        assert one.get_by_role("button", name="Copy").first.is_visible() == (one is scripted)

    browser = page.context.browser
    assert browser is not None
    context = browser.new_context()
    guest = context.new_page()
    guest.goto(page.url.partition("/app/")[0] + link[link.index("/sign-in/") :])
    guest.get_by_role("textbox", name="Name").fill("Kim Berg")
    guest.locator("main button").click()
    guest.goto(page.url.partition("/app/")[0] + PLACE)
    expect(guest.get_by_role("heading", level=1)).to_have_text("Harbourlight Robotics")

    page.get_by_role("link", name="Members").click()
    page.get_by_role("link", name="Kim Berg").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_role("button", name="Remove Kim Berg").click()
    expect(page.get_by_role("status")).to_have_text(re.compile("The member was removed."))

    guest.reload()
    assert "/sign-in/" in guest.url
    context.close()


def test_what_came_is_read(open_page: Open) -> None:
    page = open_page()
    badge = page.get_by_role("navigation", name="Main").get_by_role("link", name="Inbox")
    before = int(re.sub(r"\D", "", badge.inner_text()))
    badge.click()
    page.get_by_role("button", name=re.compile("^Mark as read")).first.click()
    expect(badge).to_have_text(re.compile(f"{before - 1} unread"))
    page.get_by_role("button", name="Mark all as read").click()
    expect(badge).to_have_text("Inbox")


def test_a_framework_is_uploaded_and_the_file_is_chosen_once(open_page: Open) -> None:
    """Without script; test_uploads.py does it with one, too."""
    page = open_page(java_script_enabled=False)
    page.goto(f"{PLACE}frameworks/")
    page.get_by_role("link", name="Upload your own framework").click()
    file = page.get_by_label("File", exact=True)
    file.set_input_files({"name": "docks.csv", "mimeType": "text/csv", "buffer": _CSV})
    page.get_by_role("textbox", name="Name of the framework").or_(page.get_by_label("Name of the framework")).fill(
        "Docks"
    )
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("row", name="Controls")).to_have_text(re.compile(r"2\s*0\s*0"))
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("The file was imported.")
    expect(page.get_by_role("heading", level=1)).to_have_text("Docks")
    page.get_by_role("button", name="Adopt Docks").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Version").fill("2")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("The framework was changed.")
