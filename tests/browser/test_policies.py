"""Policies in a real browser: begun with a template, written beside the preview, and read on paper."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE


@pytest.mark.parametrize("with_script", [True, False])
def test_from_a_template_to_a_text_of_ones_own(open_page: Open, with_script: bool) -> None:
    page = open_page(java_script_enabled=with_script)
    page.goto(f"{PLACE}new/policies/")
    page.get_by_role("link", name="Begin with a template").click()
    page.get_by_role("link", name="Backup and Restoration").click()
    page.get_by_role("textbox", name="Title").fill("Copies of everything")
    page.get_by_role("button", name="Create the policy").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Copies of everything")
    expect(page.locator(".doc")).to_contain_text("This policy says what Harbourlight Robotics backs up")
    expect(page.get_by_role("link", name="A.8.13 Information backup").last).to_be_visible()
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_role("textbox", name="Text").fill("Copy **everything**.")
    if not with_script:
        page.get_by_role("button", name="Preview").click()
    expect(page.locator("[data-preview] strong", has_text="everything")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".doc strong")).to_have_text("everything")


def test_paper_has_the_text_alone(open_page: Open) -> None:
    page = open_page()
    page.goto(f"{PLACE}records/policies/policy-information-security/")
    page.emulate_media(media="print")
    expect(page.locator(".doc")).to_contain_text(re.compile("Version 3 · approved by Dana Demo.*SHA-256 [0-9a-f]{64}"))
    for name in ("History", "Versions", "Way to the version in force", "Comments"):
        expect(page.get_by_role("heading", name=name)).to_be_hidden()
    expect(page.get_by_role("navigation", name="Navigation")).to_be_hidden()
