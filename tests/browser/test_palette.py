"""The palette, and the keys of letters and signs."""

from __future__ import annotations

import re
from contextlib import suppress

from playwright.sync_api import Error, Page, Route, expect

from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE, Demo
from tests.cells import all_cells

CONTROLS = f"{PLACE}controls/"


def _chosen(page: Page) -> str:
    """What the option says that Enter would open."""
    field = page.locator("#palette input")
    return page.locator(f"#{field.get_attribute('aria-activedescendant')}").inner_text()


def test_it_opens_what_was_looked_for(look: Open) -> None:
    page = look(path=f"{PLACE}find/")
    with all_cells() as at:
        for typed, found, heading in (
            ("A.5.13", "A.5.13 Labelling", "A.5.13 Labelling of information"),
            ("iso gaps", "ISO-27001: Gaps", "Gaps"),
            ("cybersecurity framework", "Cybersecurity Framework", "NIST Cybersecurity Framework"),
            ("crossw", "Crosswalk", "Crosswalk"),
            ("new task", "New task", "New task"),
            ("invitations", "Invitations", "Invitations"),
            ("a515", "A.5.15 Access control", "A.5.15 Access control"),
            ("ines alb", "Ines Albrecht", "Ines Albrecht"),
            ("ines", "Ines Albrecht", "Ines Albrecht"),
            ("gaps iso", "ISO-27001: Gaps", "Gaps"),
            ("findings", "Findings", "Findings"),
            ("labelling", "A.5.13 Labelling", "A.5.13 Labelling of information"),
            ("root key renewal", "Plan the renewal of the robot root key", "Plan the renewal of the robot root key"),
        ):
            with at(typed):
                page.goto(f"{PLACE}find/")
                page.keyboard.press("Control+k")
                page.keyboard.type(typed)
                expect(page.get_by_role("option").filter(has_text=found).first).to_be_visible()
                page.keyboard.press("Enter")
                expect(page.get_by_role("heading", level=1)).to_contain_text(heading)


def test_it_does_what_the_page_does(look: Open) -> None:
    """The buttons of its head, also of those of a menu there, and what every page has."""
    page = look(path=f"{PLACE}records/policies/policy-information-security/")
    page.keyboard.press("Control+k")
    page.keyboard.type("archi")
    actions = page.get_by_role("group", name="Actions")
    expect(actions.get_by_role("option")).to_have_text(["Archive…"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Archive this policy")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("edit")
    page.keyboard.press("Enter")
    page.wait_for_url("**/policy-information-security/edit/")
    page.keyboard.press("Control+k")
    page.keyboard.type("shortcuts")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.goto(f"{PLACE}frameworks/iso-27001-2022/gaps/")
    page.keyboard.press("Control+k")
    page.keyboard.type("as of")
    expect(page.get_by_role("option").first).to_have_text(re.compile("As of a day"))
    page.keyboard.press("Enter")
    page.get_by_label("Show coverage as of").fill("2026-05-20")
    page.keyboard.press("Enter")
    page.wait_for_url("**/gaps/?asOf=2026-05-20")
    expect(page.get_by_role("status").first).to_contain_text("as it was at the end of 20 May 2026")
    expect(page.get_by_role("button", name="Assess as full")).to_have_count(0)


def test_the_entries_of_a_menu_say_of_which_they_are(look: Open) -> None:
    page = look()
    page.keyboard.press("Control+k")
    page.keyboard.type("A.5.13")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("A.5.13")
    page.keyboard.press("Control+k")
    page.keyboard.type("finding")
    actions = page.get_by_role("group", name="Actions")
    expect(actions.get_by_role("option")).to_have_text(["Add: New finding", "New finding"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/controls/*/add/auditItems/")


def test_it_changes_the_theme_for_every_browser_of_the_person(open_page: Open) -> None:
    page = open_page(path=f"{CONTROLS}?search=access", color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.keyboard.press("Control+k")
    page.keyboard.type("dark mode")
    expect(page.locator("#palette").get_by_role("option").first).to_have_text("Theme: dark")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.wait_for_url(f"**{CONTROLS}?search=access")
    assert page.evaluate(ground) != light
    other = open_page(color_scheme="light", java_script_enabled=False)
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")
    other.get_by_role("button", name="Dana Demo").click()
    other.get_by_role("button", name="System").click()
    expect(other.locator("html:not([data-theme])")).to_be_visible()


def test_one_signs_out_with_it(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("Control+k")
    page.keyboard.type("log out")
    expect(page.get_by_role("option").first).to_have_text("Sign out")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sign-in/")
    page.goto(PLACE)
    assert "/sign-in/" in page.url


def _recent(page: Page) -> list[str]:
    page.keyboard.press("Control+k")
    expect(page.locator("#palette input")).to_be_focused()
    found = page.get_by_role("group", name="Recent").get_by_role("option").all_inner_texts()
    page.keyboard.press("Escape")
    return [one.strip() for one in found]


def test_the_last_things_are_remembered_for_each_person(open_page: Open, demo: Demo, base: str) -> None:
    page = open_page()
    assert _recent(page) == []
    for typed, heading in (("A.5.13", "A.5.13 Labelling"), ("crossw", "Crosswalk")):
        page.keyboard.press("Control+k")
        page.keyboard.type(typed)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
    page.goto(f"{PLACE}records/policies/policy-information-security/")  # however one came there
    expected = ["Information Security Policy Policy", "Crosswalk", "A.5.13 Labelling of information ISO-27001"]
    assert _recent(page) == expected[1:]  # not where one is
    page.goto(f"{PLACE}due/")
    assert _recent(page) == expected
    page.keyboard.press("Control+k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Information Security Policy")
    page.goto(f"{PLACE}records/assets/")
    for link in page.locator("tbody th a").evaluate_all("(links) => links.slice(0, 7).map((link) => link.href)"):
        page.goto(link)
    page.goto(f"{PLACE}due/")
    assert len(_recent(page)) == 6

    other = next(user for user in demo.secrets if user != demo.user)
    page.context.clear_cookies()
    page.context.add_cookies([demo.cookie(other, base)])
    page.goto(f"{PLACE}due/")
    assert _recent(page) == []
    page.get_by_role("button", name="Sign out").or_(page.locator("#person form[data-leaves] button")).dispatch_event(
        "click"
    )
    page.wait_for_url("**/sign-in/")
    assert page.evaluate("Object.keys(localStorage).filter((name) => name.includes('recent'))") == []


def test_a_browser_that_keeps_nothing_has_a_palette(look: Open) -> None:
    page = look()
    page.add_init_script("Storage.prototype.setItem = () => { throw new Error('full'); };")
    page.goto(f"{PLACE}records/policies/policy-information-security/")
    assert _recent(page) == []


def test_records_are_found(look: Open) -> None:
    page = look()
    page.get_by_role("link", name="Find or do anything").click()
    page.keyboard.type("root key renewal")
    group = page.get_by_role("group", name="Records")
    expect(group.get_by_role("option").filter(has_text="Plan the renewal of the robot root key")).to_contain_text(
        "Task"
    )


def test_arrows_choose_and_escape_goes_back_to_where_one_was(look: Open) -> None:
    page = look(path=CONTROLS)
    page.get_by_role("searchbox", name="Search").focus()
    page.keyboard.press("Control+k")
    first = _chosen(page)
    page.keyboard.press("ArrowDown")
    assert _chosen(page) != first
    page.keyboard.press("ArrowUp")
    assert _chosen(page) == first
    page.keyboard.press("ArrowUp")
    assert _chosen(page) == page.get_by_role("option").last.inner_text()
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()


def test_an_answer_that_comes_late_is_not_shown(look: Open) -> None:
    page = look()
    held: list[Route] = []
    page.route("**/find/?search=access", lambda route: held.append(route))  # noqa: PLW0108 - no method of a list can be marked
    page.keyboard.press("Control+k")
    page.keyboard.type("access")
    page.wait_for_timeout(300)
    page.locator("#palette input").fill("A.5.13")
    expect(page.get_by_role("option").filter(has_text="A.5.13")).to_have_count(1)
    [late] = held
    with suppress(Error):  # the browser may have given it up
        late.continue_()
    page.wait_for_timeout(300)
    expect(page.get_by_role("option")).to_have_count(1)


def test_a_failure_is_told(look: Open) -> None:
    page = look()
    page.route("**/find/?search=*", lambda route: route.abort())
    page.keyboard.press("Control+k")
    page.keyboard.type("zzzz")
    expect(page.locator("#palette").get_by_role("status")).to_have_text(re.compile("did not answer"))
    page.unroute("**/find/?search=*")
    page.keyboard.type("z")
    expect(page.locator("#palette").get_by_role("status")).to_have_text(re.compile("No results"))


def test_without_script_a_page_finds_the_same(look: Open) -> None:
    page = look(java_script_enabled=False)
    page.get_by_role("link", name="Find or do anything").click()
    page.get_by_role("searchbox", name="Search").fill("labelling")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="A.5.13 Labelling of information").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A.5.13 Labelling of information")


def test_keys_move_in_a_list_and_open_a_row(look: Open) -> None:
    page = look(path=CONTROLS)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    second = page.locator("tbody tr").nth(1).locator("th a, .id a")
    expect(second).to_be_focused()
    name = second.get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{name}")  # not before: going back meanwhile would interrupt the way there
    page.go_back()
    expect(second).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()
    page.keyboard.type("gj?")
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("gj?")


def test_g_and_a_letter_go_to_a_section(look: Open) -> None:
    page = look(path=f"{PLACE}find/")
    for letter, path in (("c", "controls/"), ("f", "frameworks/"), ("x", "crosswalk/"), ("h", "")):
        page.keyboard.press("g")
        page.keyboard.press(letter)
        page.wait_for_url(re.compile(f"{re.escape(PLACE + path)}$"))


def test_keys_can_be_turned_off_and_on_again(look: Open) -> None:
    page = look(path=CONTROLS)
    page.keyboard.press("?")
    shown = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shown).to_be_visible()
    shown.get_by_role("checkbox").uncheck()
    shown.get_by_role("button", name="Close").click()
    for key in ("j", "g", "c", "/", "?"):
        page.keyboard.press(key)
    expect(shown).to_be_hidden()
    assert page.evaluate("document.activeElement.closest('tr')") is None
    other = page.context.new_page()
    other.goto(CONTROLS)
    other.keyboard.press("?")
    expect(other.locator("#keys")).to_be_hidden()
    page.keyboard.press("Control+k")  # no key of a letter: it has one that is held
    expect(page.locator("#palette input")).to_be_focused()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    shown.get_by_role("checkbox").check()
    page.keyboard.press("Escape")
    other.keyboard.press("j")  # without loading it anew
    expect(other.locator("tbody tr").first.locator("th a, .id a")).to_be_focused()
