"""Saved views in the console: in the sidebar, as tabs of their lists, and on their own pages."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed, send
from tests.console.browser import is_refused, text_of
from tests.databases import on_both
from tests.world import ALPHA as ALPHA_ID

TASKS, VIEWS = f"{ALPHA}records/tasks/", f"{ALPHA}views/"


def saving(parsed: Parsed) -> Form:
    """The form of a list that saves its state."""
    return next(form for form in parsed.forms if form.action == VIEWS)


@on_both
def test_a_list_is_saved_opened_changed_shared_and_removed(people: People) -> None:
    browser = people["editor"]
    bare = Parsed(browser.get(TASKS))
    assert not [form for form in bare.forms if form.action == VIEWS]  # there is nothing to save
    state = "status=TODO&search=Gr%C3%B6%C3%9Fe&sortColumn=title&columns=priority&columns=deadline&group=status"
    saved = send(browser, saving(Parsed(browser.get(f"{TASKS}?{state}&page=1"))), name="Big <tasks>")
    opened = urlsplit(saved.headers["location"])
    pairs = parse_qs(opened.query)
    (view,) = pairs.pop("view")
    assert pairs.pop("done") == ["view_saved"]
    assert (opened.path, pairs) == (TASKS, parse_qs(state))

    # It is marked in the sidebar and among the tabs of its list, and kept by what changes the list.
    page = browser.get(f"{TASKS}?{opened.query}")
    parsed = Parsed(page)
    here = f"{TASKS}?{opened.query}".replace("&done=view_saved", "")
    assert page.text.count('aria-current="page" title="Big &lt;tasks&gt;"') == 1
    assert page.text.count('aria-current="page">Big &lt;tasks&gt;') == 1
    assert here in parsed.links
    assert not [form for form in parsed.forms if form.action.startswith(VIEWS)]  # it is as it was saved
    assert f"{VIEWS}{view}/" in parsed.links
    search = next(form for form in parsed.forms if form.id == "" and "search" in form.fields)
    assert search.fields["view"] == view

    # Another order is saved to the same view, or as another one.
    changed = Parsed(browser.get(here.replace("sortColumn=title", "sortColumn=deadline")))
    assert saving(changed).fields["kind"] == "tasks"
    answer = send(browser, changed.form(f"/{view}/"), step="state")
    assert "done=view_saved" in answer.headers["location"]
    assert stored_view(people, view)["query"] == parse_qs(state) | {"sortColumn": ["deadline"]}

    # Renamed and shared on its page; a viewer sees it then, and nothing to change it with.
    assert view not in people["viewer"].get(ALPHA).text
    form = next(one for one in Parsed(browser.get(f"{VIEWS}{view}/")).forms if "hasShared" in one.fields)
    assert send(browser, form, name=" ", isShared="true").status_code == 400
    assert send(browser, form, name="For everybody", isShared="true").headers["location"] == f"{VIEWS}?done=view_saved"
    for address in (ALPHA, VIEWS):
        theirs = people["viewer"].get(address)
        assert "For everybody" in text_of(theirs)
        assert f"{VIEWS}{view}/" not in Parsed(theirs).links
    assert not [one for one in Parsed(people["viewer"].get(f"{VIEWS}{view}/")).forms if one.action.startswith(VIEWS)]
    assert is_refused(people["viewer"].post(f"{VIEWS}{view}/", step="remove"))

    removed = send(browser, Form(f"{VIEWS}{view}/", "post"), step="remove")
    assert removed.headers["location"] == f"{VIEWS}?done=view_removed"
    assert view not in browser.get(ALPHA).text


def test_a_viewer_saves_views_of_their_own(people: People) -> None:
    browser = people["viewer"]
    form = saving(Parsed(browser.get(f"{ALPHA}controls/?effectiveCoverageStatus=NONE&sortColumn=name")))
    refused = send(browser, form, name="")
    assert refused.status_code == 400
    assert saving(Parsed(refused)).fields["state"] == form.fields["state"]
    assert is_refused(send(browser, form, name="For all", isShared="true"), status=403)
    location = send(browser, form, name="Nothing there").headers["location"]
    assert location.startswith(f"{ALPHA}controls/?effectiveCoverageStatus=NONE&sortColumn=name&view=")
    assert "Nothing there" in text_of(browser.get(ALPHA))
    assert "Nothing there" not in text_of(people["owner"].get(VIEWS))


def stored_view(people: People, view: str) -> dict[str, object]:
    """A view as the interface has it."""
    query = {"organizationId": ALPHA_ID}
    found: dict[str, object] = people.instance.client.get(
        f"/views/{view}/", params=query, headers=people.instance.bearer("editor")
    ).json()
    return found
