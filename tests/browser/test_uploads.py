"""Uploading frameworks and files of evidence, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE

TABLE = FilePayload(name="dock-rules.csv", mimeType="text/csv", buffer=b"identifier,name\n1,Berths are locked\n")


@pytest.mark.parametrize("with_script", [True, False])
def test_a_file_becomes_an_adopted_framework(open_page: Open, with_script: bool) -> None:
    """With script it is previewed as soon as it is chosen, from any page."""
    page = open_page(java_script_enabled=with_script)
    page.locator(".top").get_by_role("button", name="New").click()
    if with_script:
        with page.expect_file_chooser() as choosing:
            page.get_by_text("Framework from a file…").locator("visible=true").click()
        choosing.value.set_files(TABLE)
    else:
        page.get_by_role("link", name="Framework from a file…").click()
        page.get_by_label("File", exact=True).set_input_files(TABLE)
        page.get_by_role("button", name="Preview").click()
    expect(page.get_by_label("Name of the framework")).to_have_value("Dock rules")
    page.get_by_label("Name of the framework").fill("Rules of the dock")
    page.get_by_role("button", name="Import and adopt").click()  # another name is previewed first
    expect(page.get_by_text("Nothing has been changed yet.")).to_be_visible()
    page.get_by_role("button", name="Import and adopt").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Rules of the dock")
    expect(page.get_by_role("status")).to_contain_text("imported, and the framework was adopted")
    page.goto(f"{PLACE}upload/")
    page.get_by_label("File", exact=True).set_input_files(TABLE)
    if with_script:
        expect(page.get_by_label("Name of the framework")).to_have_value("Dock rules")


PROOF = FilePayload(name="restore-test.txt", mimeType="text/plain", buffer=b"The backup was restored.\n" * 1_000)


@pytest.mark.parametrize("with_script", [True, False])
def test_a_file_is_attached_to_evidence(open_page: Open, with_script: bool) -> None:
    """With script it is sent as soon as it is chosen."""
    page = open_page(path=f"{PLACE}records/evidence/evidence-visit-plant-entrance/", java_script_enabled=with_script)
    page.get_by_label("Choose files, or drop them here").set_input_files(PROOF)
    if not with_script:
        page.get_by_role("button", name="Attach", exact=True).click()
    expect(page.get_by_role("link", name="restore-test.txt")).to_be_visible()
    expect(page.get_by_role("region", name="Files")).to_contain_text("25.0 kB")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="restore-test.txt").click()
    assert downloading.value.suggested_filename == "restore-test.txt"
    page.get_by_role("button", name="Detach: restore-test.txt").click()
    expect(page.get_by_role("region", name="Files")).to_contain_text("No files yet.")


@pytest.mark.parametrize("with_script", [True, False])
def test_a_file_becomes_evidence_of_a_control_in_one_step(open_page: Open, with_script: bool) -> None:
    page = open_page(path=f"{PLACE}controls/iso-27001-2022:A.8.13/", java_script_enabled=with_script)
    page.locator("summary", has_text="Add").first.click()
    page.get_by_role("link", name="Attach evidence").first.click()
    page.get_by_label("Choose files, or drop them here").set_input_files(PROOF)
    page.get_by_role("button", name="Attach new evidence").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("A.8.13")
    expect(page.get_by_role("status").first).to_contain_text("The evidence was created, and supports the control.")
    expect(page.get_by_role("region", name="Links")).to_contain_text("restore-test.txt")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("region", name="Links")).not_to_contain_text("restore-test.txt")


def test_a_refused_file_says_why_and_another_one_is_sent(open_page: Open) -> None:
    """Somebody else has archived the evidence meanwhile, and then restores it."""
    path = f"{PLACE}records/evidence/evidence-visit-plant-entrance/"
    page, other = open_page(path=path), open_page(path=path)
    other.get_by_role("button", name="Archive…").click()
    other.locator("#archiving").get_by_role("button", name="Archive").click()
    expect(other.get_by_role("button", name="Restore")).to_be_visible()
    page.get_by_label("Choose files, or drop them here").set_input_files(PROOF)
    expect(page.get_by_role("alert")).to_contain_text("archived")
    page.get_by_role("button", name="Restore").click()
    page.get_by_label("Choose files, or drop them here").set_input_files(PROOF)
    expect(page.get_by_role("link", name="restore-test.txt")).to_be_visible()
