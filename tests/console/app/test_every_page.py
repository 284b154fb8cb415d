"""What holds for every page of an organization."""

from __future__ import annotations

import re
from itertools import product
from urllib.parse import quote

import pytest

from normata.console import texts
from normata.console.app.routes import PAGES
from normata.console.app.sections import PLACES
from normata.core.http.roles import role_suffices
from normata.operations import OPERATIONS
from tests import stored
from tests.cells import all_cells
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, FRAME, LEAST, OWN, POSTED, READ, Parsed, address_of, is_file, path_of
from tests.console.browser import Browser, is_refused, text_of
from tests.databases import on_both_shared
from tests.test_structure import SOURCE
from tests.world import ALPHA as ALPHA_ID
from tests.world import ROLES

# What people write, and what must never be anything but text.
HOSTILE = "<img src=x onerror=alert(1)>'\"&amp;{{ 7*7 }}=1+1\u202egnissim\u202c\U0001f4a5"
LONG = "W" * 400

# The fields of forms that change something, and what their buttons are for.
CHANGING = {
    "coverageStatus": "FULL",
    "selected": "moon.A.5",
    "control": "moon.A.5",
    "kind": "controls",
    "id": "moon.A.5",
    "text": "Changed",
    "name": "N",
    "state": "search=moon",
    "email": "pat@auditor.example",
    "role": "viewer",
    "token": "token-viewer",
}
ASKS_NOTHING = {"import/{kind}/"}  # it shows a form alone
SAME = {"Sec-Fetch-Site": "same-origin"}
STEPS = ("remove", "rename", "role", "hand_over", "invite", "withdraw", "change", "make_token", "revoke_token", "end")


@pytest.mark.parametrize("page", READ)
@on_both_shared
def test_it_answers(page: str, readers: People) -> None:
    for user in ("viewer", "auditor", "owner"):
        answer = readers[user].get(address_of(page))
        if not role_suffices(user, LEAST[page]):
            assert is_refused(answer)
            assert f"takes the role {LEAST[page]}" in text_of(answer)
            continue
        assert answer.status_code == 200, answer.text[:300]
        assert answer.headers["cache-control"] == "no-store"
        if not is_file(page):
            parsed = Parsed(answer)
            assert "main" in parsed.tags
            assert "Alpha" in parsed.text
            assert {name for _, name, _ in parsed.attributes}.isdisjoint({"style", "onclick", "onload"})


@pytest.mark.parametrize("page", READ)
def test_who_has_not_signed_in_is_sent_to_do_so_and_comes_back(page: str, readers: People) -> None:
    answer = Browser(readers.instance).get(path_of(page) + "?page=1")
    wanted = quote(path_of(page) + "?page=1", safe="")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/sign-in/?return_to={wanted}")


@pytest.mark.parametrize("page", READ)
def test_another_organization_is_not_there(page: str, readers: People) -> None:
    theirs = readers["foreigner"].get(path_of(page))
    nobody = readers["foreigner"].get(path_of(page, "no-such"))
    assert is_refused(theirs, status=404)
    assert is_refused(nobody, status=404)
    own = readers["foreigner"].get("/app/beta/controls/moon.A.1/")  # a control that beta has not adopted
    assert is_refused(own, status=404)


@pytest.mark.parametrize("page", [page for page in READ if not is_file(page)])
def test_a_reader_sees_no_form_that_changes_anything(page: str, readers: People) -> None:
    """Neither a viewer nor an auditor, on the pages that they may see."""
    for user in ("viewer", "auditor"):
        if role_suffices(user, LEAST[page]):
            parsed = Parsed(readers[user].get(path_of(page)))
            assert {form.action for form in parsed.forms if form.method == "post"} - OWN.get(page, set()) == FRAME


@on_both_shared
def test_a_reader_changes_nothing(readers: People) -> None:
    browsers = {user: readers[user] for user in ("viewer", "auditor")}
    before = stored.everything(readers.instance.database)
    with all_cells() as at:
        for (user, browser), page, step in product(browsers.items(), POSTED, ("do", *STEPS)):
            if page == "inbox/" or (user, page) in {("viewer", "views/"), ("viewer", "comments/")}:
                continue  # these are their own
            with at((user, page, step)):
                answer = browser.client.post(path_of(page), data={**CHANGING, "step": step}, headers=SAME)
                assert answer.status_code in ((403,) if step == "do" else (400, 403, 404))
                assert is_refused(answer, status=answer.status_code)
    assert stored.everything(readers.instance.database) == before


@pytest.mark.parametrize("page", POSTED)
def test_a_forged_form_changes_nothing(page: str, people: People) -> None:
    browser = people["owner"]
    before = stored.everything(people.instance.database)
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {}):
        answer = browser.post(path_of(page), headers=headers, selected="moon.A.5", coverageStatus="FULL", step="do")
        assert is_refused(answer)
    assert stored.everything(people.instance.database) == before


@pytest.mark.parametrize("page", READ)
def test_what_people_wrote_is_text(page: str, people: People) -> None:
    people.instance.load(
        {
            "organizations": [{"id": ALPHA_ID, "name": HOSTILE, "slug": "alpha"}],
            "frameworks": [
                {"id": "fw-moon", "identifier": HOSTILE, "name": HOSTILE, "slug": "sun-10", "version": HOSTILE}
            ],
            "controls": [
                {"id": f"moon.A.{number}", "frameworkId": "fw-moon", "parentId": "moon.A"}
                | {
                    "identifier": f"{number} {HOSTILE}",
                    "name": HOSTILE + LONG,
                    "purpose": HOSTILE,
                    "slug": f"m{number}",
                }
                | {"description": HOSTILE * 2}
                for number in (1, 2)
            ],
            "controlCoverages": [
                {"id": "say-hostile", "organizationId": ALPHA_ID, "controlId": "moon.A.1", "coverageStatus": "PARTIAL"}
                | {"coverageGap": HOSTILE, "justification": HOSTILE}
            ],
            "tasks": [
                {"id": HOSTILE, "organizationId": ALPHA_ID, "title": HOSTILE, "controlCoverageId": "say-hostile"}
                | {"deadline": "2026-01-01", "assigneeMemberId": "member-owner"}
            ],
            "auditItems": [{"id": "f", "organizationId": ALPHA_ID, "name": HOSTILE, "controlId": "moon.A.1"}],
            "users": [{"id": f"user-{key}", "email": f"{key}@alpha.example", "name": HOSTILE} for key in ROLES]
            + [{"id": "robot-org-alpha", "organizationId": ALPHA_ID, "name": HOSTILE}],
            "assets": [{"id": "p", "organizationId": ALPHA_ID, "name": HOSTILE, "ownerId": "member-editor"}],
            "notifications": [
                {
                    "id": "n",
                    "organizationId": ALPHA_ID,
                    "userId": "user-owner",
                    "createdAt": "2026-11-20",
                    "type": HOSTILE,
                }
                | {"payload": {"titleKey": "notifications.task.assigned.title", "params": {"label": HOSTILE}}},
                {
                    "id": "m",
                    "organizationId": ALPHA_ID,
                    "userId": "user-owner",
                    "createdAt": "2026-11-20",
                    "type": HOSTILE,
                }
                | {
                    "payload": {
                        "titleKey": HOSTILE,
                        "bodyKey": HOSTILE,
                        "entityLabel": HOSTILE,
                        "url": "javascript:alert(1)",
                    }
                },
            ],
        }
    )
    answer = people["owner"].get(address_of(page))
    assert answer.status_code == 200
    if is_file(page):
        return  # a file is no page; tests/frameworks/reports looks at formulas
    parsed = Parsed(answer)
    assert "img" not in parsed.tags
    assert not [name for _, name, _ in parsed.attributes if name.startswith("on")]
    assert HOSTILE in parsed.text
    assert not [link for link in parsed.links if link.lower().startswith("javascript")]


def test_an_unknown_page_is_a_page(readers: People) -> None:
    assert is_refused(readers["viewer"].get(f"{ALPHA}nothing/at/all/"), status=404)
    assert is_refused(readers["viewer"].get(f"{ALPHA}controls/no-such/"), status=404)
    assert is_refused(readers["viewer"].get(f"{ALPHA}controls/a%2Fb%00/"), status=404)


def test_a_wrong_address_says_what_is_wrong(readers: People) -> None:
    answer = readers["viewer"].get(f"{ALPHA}controls/?page=0&coverageStatus=SOME")
    assert is_refused(answer, status=400)
    assert "page must be at least 1" in text_of(answer)
    assert "coverageStatus must be one of" in text_of(answer)


def test_the_way_in(readers: People) -> None:
    answer = readers["viewer"].get("/app/")
    assert (answer.status_code, answer.headers["location"]) == (303, ALPHA)
    assert "not a member" in text_of(readers["nobody"].get("/app/"))


@on_both_shared
def test_what_a_page_shows_the_interface_answers(readers: People) -> None:
    """The addresses in the box of a page are those of operations, and answer the same person."""
    bearer = readers.instance.bearer("owner")
    for page in (one for one in READ if not is_file(one) and one not in ASKS_NOTHING):
        text = Parsed(readers["owner"].get(path_of(page) + "?search=moon")).text
        addresses = re.findall(r"curl -H \"[^\"]*\" 'http://localhost:8000(/[^']*)'", text)
        assert addresses, page
        for address in addresses:
            answer = readers.instance.client.get(address, headers=bearer)
            assert answer.status_code == 200, address


def test_texts_that_are_used_are_there() -> None:
    sources = [path.read_text("utf-8") for path in SOURCE.joinpath("console").rglob("*.html")]
    named = {key for source in sources for key in re.findall(r"\btext\(\s*[\"']([a-zA-Z_.]+)[\"'][,)]", source)}
    assert named
    assert named <= texts.english().keys()


def test_what_is_counted_has_a_text_for_one_of_it() -> None:
    """Both where pages count, and wherever a number stands before a word in the plural."""
    files = [path for path in SOURCE.joinpath("console").rglob("*.*") if path.suffix in (".py", ".html")]
    counted = {key for path in files for key in re.findall(r"\bcounted\(\"([\w.]+)\",", path.read_text("utf-8"))}
    plural = {key for key, words in texts.english().items() if re.search(r"\{(count|number)\} [a-z]+s\b", words)}
    plural -= {"app.due.days", "app.plan.steps_of"}  # of what they offer to choose there is never one
    assert "home.gaps" in counted & plural
    assert {key for key in counted | plural if f"{key}.one" not in texts.english()} == set()
    assert not [key for key, words in texts.english().items() if "(s)" in words or re.search(r"\b1 \w+s\b", words)]


def test_texts_that_are_there_are_used() -> None:
    """By their whole keys, or by how the keys begin where the rest follows from what is shown."""
    files = [path for path in SOURCE.joinpath("console").rglob("*.*") if path.suffix in (".py", ".html")]
    written = "\n".join(path.read_text("utf-8") for path in files)
    beginnings = tuple(re.findall(r"[\"'](\w[\w.]*\.)(?:[\"'] [+~]|\{)", written))
    whole = set(re.findall(r"[\"']([\w.]+)[\"']", written))
    assert not [
        key for key in texts.english() if key.removesuffix(".one") not in whole and not key.startswith(beginnings)
    ]


def test_pages_ask_and_change_by_operations_alone() -> None:
    """One module reaches the database, to ask operations and to make their changes; no page does so by itself."""
    for path in SOURCE.joinpath("console", "app").rglob("*.py"):
        source = path.read_text("utf-8")
        if path.name == "organization_request.py":
            assert not re.search(r"\bsqlalchemy\b|\.write\(|execute|\.rows\(", source)
        else:
            assert not re.search(r"\bsqlalchemy\b|\bservices\b|\bUnitOfWork\b|\bTransaction\b", source), path


def test_the_documentation_names_every_page_and_its_operations() -> None:
    told = SOURCE.parents[1].joinpath("docs", "console.md").read_text("utf-8")
    assert {page.path for page in PAGES} <= set(re.findall(r"`/app/\{organization\}/([^`]*)`", told))
    known = {operation.operation_id for operation in OPERATIONS}
    sources = [path.read_text("utf-8") for path in SOURCE.joinpath("console", "app").rglob("*.py")]
    named = {name for source in sources for name in re.findall(r'"([a-z]+[A-Z][A-Za-z]*)"', source)} & known
    assert named
    assert named == set(re.findall(r"`([a-z]+[A-Z][A-Za-z]*)`", told)) & known


def test_every_place_of_the_sidebar_has_a_key_a_letter_and_a_page_of_its_own() -> None:
    roles = {page.path: page.role for page in PAGES}
    for place in PLACES:
        page = "records/{kind}/" if place.path.startswith("records/") and place.is_kind else place.path
        assert page in roles, f"{place.key}: no page is at {page}"
        assert role_suffices(place.role, roles[page]), f"{place.key}: its page takes the role {roles[page]}"
    for names in ([place.key for place in PLACES], [place.letter for place in PLACES if place.letter]):
        assert {name for name in names if names.count(name) > 1} == set(), "two places have the same"


def test_no_two_pages_are_at_one_address() -> None:
    assert len({page.path for page in PAGES}) == len(PAGES)
