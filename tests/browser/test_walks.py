"""What people do in the console, in a real browser."""

from __future__ import annotations

import io
import re
import unicodedata

import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE

CONTROLS = f"{PLACE}controls/"
ISO = f"{PLACE}frameworks/iso-27001-2022/"


def test_the_worst_gap_is_closed_from_another_framework(open_page: Open) -> None:
    page = open_page()
    page.locator("section").filter(has_text="ISO/IEC 27001:2022").get_by_role("link", name="gaps").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Gaps 52")
    worst = page.locator("table").last.locator("tbody tr").first
    expect(worst).to_contain_text("A.5.13")
    expect(worst).to_contain_text("None")
    worst.get_by_role("link", name="HRL-04.5").click()

    page.get_by_role("radio", name="Full").check()
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_role("status")).to_have_text(re.compile("Saved"))
    page.get_by_role("region", name="Why it is covered").get_by_role("link", name="A.5.13").click()
    expect(page.locator(".head .meta")).to_have_text(re.compile(r"Result: full\s+Covered by mapping"))


@pytest.mark.parametrize("with_script", [True, False])
def test_the_biggest_wins_are_assessed_where_they_are_listed(open_page: Open, with_script: bool) -> None:
    page = open_page(java_script_enabled=with_script, path=f"{ISO}gaps/")
    wins = page.get_by_role("region", name="Biggest wins")
    names = [one.inner_text() for one in wins.locator("tbody .id").all()]
    gaps = page.locator("h1 .count")
    before = gaps.inner_text()
    wins.get_by_role("button", name=f"Assess as full: {names[0]}").click()
    expect(page.get_by_role("status")).to_have_text(re.compile("Saved"))
    expect(wins.get_by_role("link", name=names[0])).to_have_count(0)
    expect(wins).to_be_in_viewport()
    expect(gaps).not_to_have_text(before)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_have_text(re.compile("Undone"))
    expect(gaps).to_have_text(before)

    boxes = wins.get_by_role("checkbox", name=re.compile("-|\\."))
    if with_script:  # from the first to the third
        boxes.nth(0).click()
        boxes.nth(2).click(modifiers=["Shift"])
        expect(page.locator("[data-selected]")).to_have_attribute("data-selected", "3")
    else:
        for number in range(3):
            boxes.nth(number).check()
    page.locator("#many").get_by_role("button", name="Assess as full").click()
    expect(page.get_by_role("status")).to_have_text(re.compile("Saved for all selected"))
    for name in names[:3]:
        expect(wins.get_by_role("link", name=name)).to_have_count(0)
    assert "selected=" not in page.url


@pytest.mark.parametrize("with_script", [True, False])
def test_coverage_is_stated_in_the_row(open_page: Open, with_script: bool) -> None:
    page = open_page(java_script_enabled=with_script)
    page.goto(f"{CONTROLS}?frameworks=iso-27001-2022&effectiveCoverageStatus=NONE&sortColumn=name")
    row = page.get_by_role("row").filter(has_text="Access to source code")
    row.get_by_role("link", name="Assess A.8.4").click()
    form = page.get_by_role("complementary")
    form.get_by_role("radio", name="Partial").check()
    form.get_by_role("textbox", name="What is missing").fill("Two <b>repositories</b> are open.")
    form.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_role("status")).to_have_text(re.compile("Saved"))
    assert page.url.startswith(page.url.partition("/app/")[0] + CONTROLS + "?")
    assert "sortColumn=name" in page.url
    expect(page.get_by_role("row").filter(has_text="Access to source code")).to_have_count(0)
    page.goto(f"{CONTROLS}?search=source+code&effectiveCoverageStatus=PARTIAL")
    expect(page.get_by_role("cell", name="Two <b>repositories</b> are open.")).to_be_visible()


def test_the_form_beside_the_list_has_what_is_stated_in_the_row(look: Open) -> None:
    page = look(path=f"{CONTROLS}?hasGap=true")
    row = page.get_by_role("row").nth(1)
    gap = row.locator(".clip").inner_text()
    row.get_by_role("link", name="Assess").press("Enter")
    form = page.get_by_role("complementary")
    expect(form.get_by_role("textbox", name="What is missing")).to_have_value(
        re.compile(re.escape(gap.removesuffix("...")))
    )
    expect(form.get_by_role("radio", name="Partial")).to_be_checked()
    page.keyboard.press("3")
    expect(form.get_by_role("radio", name="Full")).to_be_checked()
    form.get_by_role("link", name="Close").click()
    expect(form).to_have_count(0)


def test_the_selection_survives_an_edit(open_page: Open) -> None:
    page = open_page()
    page.goto(f"{CONTROLS}?frameworks=iso-27001-2022")
    for control in ("A.5.1", "A.5.2"):
        page.get_by_role("checkbox", name=control, exact=True).check()
    page.get_by_role("link", name="Assess A.5.3", exact=True).click()
    page.get_by_role("complementary").get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status")).to_be_visible()
    for control in ("A.5.1", "A.5.2"):
        expect(page.get_by_role("checkbox", name=control, exact=True)).to_be_checked()
    expect(page.locator("[data-selected]")).to_have_attribute("data-selected", "2")


def test_a_selection_makes_no_address_that_is_too_long(look: Open) -> None:
    page = look(path=CONTROLS)
    page.get_by_role("checkbox", name="Select all on this page").check()
    expect(page.locator("[data-selected]")).to_have_attribute("data-selected", "100")
    assert "selected=" in page.url
    page.evaluate("document.querySelectorAll('[name=selected]').forEach((box) => (box.value = 'x'.repeat(255)))")
    page.get_by_role("checkbox", name="Select all on this page").uncheck()
    page.get_by_role("checkbox", name="Select all on this page").check()
    expect(page.locator("[data-selected]")).to_have_attribute("data-selected", "100")
    assert page.url.endswith(CONTROLS)


@pytest.mark.parametrize("with_script", [True, False])
def test_all_selected_are_stated_after_a_preview(open_page: Open, with_script: bool) -> None:
    page = open_page(java_script_enabled=with_script)
    page.goto(f"{CONTROLS}?search=HRL-04")
    for control in ("HRL-04.5", "HRL-04.6"):
        page.get_by_role("checkbox", name=control, exact=True).check()
    page.locator("#many").get_by_role("button", name="Preview as Full").click()
    expect(page.get_by_text("Nothing has been changed yet")).to_be_visible()
    expect(page.get_by_role("row", name="ISO-27001")).to_contain_text("→")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("status")).to_have_text(re.compile("Saved for all selected"))
    assert "search=HRL-04" in page.url
    assert "selected=" not in page.url
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="HRL-04.5"))
    expect(row.locator(".badge.full").first).to_be_visible()


def test_ten_gaps_by_keys(open_page: Open) -> None:
    page = open_page()
    page.goto(f"{ISO}work/")
    expect(page.get_by_text("Gap 1 of 52")).to_be_visible()
    seen = set()
    for number in range(10):
        heading = page.get_by_role("heading", level=1).inner_text()
        assert heading not in seen
        seen.add(heading)
        page.keyboard.press("3" if number % 2 == 0 else "n")
        expect(page.get_by_role("heading", level=1)).not_to_have_text(heading)
    page.goto(f"{ISO}gaps/")
    left = int(page.locator("h1 .count").inner_text())
    assert left <= 47


def test_keys_are_letters_where_one_writes(look: Open) -> None:
    page = look()
    page.goto(f"{ISO}work/")
    address = page.url
    page.get_by_role("textbox", name="What is missing", exact=True).press_sequentially("n 3 sites")
    assert page.url == address


def test_the_statement_of_applicability_is_printed_whole(look: Open) -> None:
    page = look()
    page.goto(f"{ISO}statement-of-applicability/")
    rows = page.get_by_role("table").get_by_role("row")
    expect(rows).to_have_count(94)
    identifiers = page.locator("tbody th").all_inner_texts()
    page.emulate_media(media="print")
    for hidden in page.locator(".top, .foot, .menu, .says").all():  # objections are for those who prepare it
        expect(hidden).to_be_hidden()
    expect(page.locator(".print-only")).to_have_text("Harbourlight Robotics, ISO/IEC 27001:2022")

    sheets = PdfReader(io.BytesIO(page.pdf(format="A4", landscape=True))).pages

    printed = [unicodedata.normalize("NFKC", sheet.extract_text()) for sheet in sheets]  # without ligatures
    found = re.findall(r"\bA\.\d\.\d+(?=[^\d])", " ".join(printed))
    assert set(identifiers) <= set(found)
    assert len(identifiers) == 93
    assert all("Identifier" in sheet for sheet in printed if re.search(r"\bA\.\d\.\d", sheet))  # the head is on each


def test_who_states_a_control_second_is_told_and_loses_nothing(open_page: Open) -> None:
    address = f"{PLACE}controls/iso-27001-2022%3AA.8.4/"
    first, second = open_page("user-ines", address), open_page("user-tomasz", address)
    for page, gap in ((first, "Two repositories are open."), (second, "Nobody has looked\nat the archive.")):
        page.get_by_role("radio", name="Partial").check()
        page.get_by_role("textbox", name="What is missing", exact=True).fill(gap)
    first.get_by_role("button", name="Save").click()
    expect(first.get_by_role("status")).to_have_text(re.compile("Saved"))

    second.get_by_role("button", name="Save").click()

    expect(second.get_by_role("alert")).to_contain_text("Somebody else has changed this in the meantime")
    expect(second.get_by_role("main")).to_contain_text("Two repositories are open.")
    typed = second.get_by_role("textbox", name="What is missing", exact=True)
    expect(typed).to_have_value("Nobody has looked\nat the archive.")
    typed.fill("Two repositories are open, and nobody has looked at the archive.")
    second.get_by_role("button", name="Save").click()
    expect(second.get_by_role("status")).to_have_text(re.compile("Saved"))
    first.reload()
    expect(first.get_by_role("textbox", name="What is missing", exact=True)).to_have_value(
        re.compile("and nobody has looked")
    )
