"""A vendor answers a questionnaire on a phone, without an account and without script."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.sync_api import Browser, expect

from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE

_ASSESSMENT = f"{PLACE}records/vendor-assessments/vendor-assessment-lumenaxis-2026/"


def test_a_questionnaire_is_answered_on_a_phone(chromium: Browser, base: str, open_page: Open) -> None:
    office = open_page(path=_ASSESSMENT)
    office.get_by_role("button", name="Link for the vendor…").click()
    office.locator("#linking").get_by_role("button", name="Link for the vendor").click()
    link = urlsplit(office.locator("code.secret").inner_text())
    phone = chromium.new_context(
        base_url=base, java_script_enabled=False, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True
    )
    vendor = phone.new_page()
    vendor.goto(f"{link.path}?{link.query}")
    expect(vendor).to_have_url(f"{base}/vendor/")
    expect(vendor.get_by_role("status")).to_have_text("12 of 30 questions answered.")
    vendor.get_by_role("link", name="Data protection").tap()
    for number in (2, 3):
        vendor.get_by_role("group", name=f"{number}.").get_by_label("Yes").check()
    vendor.get_by_label("Answer", exact=True).fill("In Italy.")
    vendor.get_by_role("button", name="Save and go on").tap()
    expect(vendor).to_have_url(f"{base}/vendor/?part=4")
    expect(vendor.get_by_role("status")).to_have_text("15 of 30 questions answered.")
    vendor.get_by_role("link", name="Submit").tap()
    vendor.get_by_role("button", name="Submit the answers").tap()
    expect(vendor.get_by_role("heading", level=1)).to_have_text("Thank you")
    phone.close()
    office.goto(_ASSESSMENT)
    expect(office.get_by_role("button", name="Review…")).to_be_visible()
