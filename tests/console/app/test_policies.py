"""A policy on its page: the steps that each member can take, the page of its draft, and that of its versions."""

from __future__ import annotations

import re

import pytest
from httpx2 import Response

from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed, send
from tests.console.browser import is_refused, text_of
from tests.world import ALPHA as ALPHA_ID

REVIEWED = f"policies-reviewed-{ALPHA_ID}"  # its approver is the owner
STEPS = ("submit", "withdraw", "approve", "reject", "publish", "review", "retire")


def _offered(people: People, user: str, policy: str) -> set[str]:
    """The steps that the page of a policy offers to a member."""
    page = people[user].get(f"{ALPHA}records/policies/{policy}/")
    assert page.status_code == 200, page.text
    return {step for step in STEPS if f'name="step" value="{step}"' in page.text}


def _post(people: People, user: str, path: str, **fields: str) -> Response:
    """The answer to a form of the console."""
    return people[user].client.post(path, data=fields, headers={"Sec-Fetch-Site": "same-origin"})


def _step(people: People, user: str, policy: str, step: str, **fields: str) -> str:
    """What the page says once a member has taken a step that it offers."""
    assert step in _offered(people, user, policy)
    made = _post(people, user, f"{ALPHA}policies/{policy}/steps/", step=step, **fields)
    assert made.status_code == 303, made.text
    return text_of(people[user].get(made.headers["location"]))


def _form(people: People, user: str, path: str) -> Form:
    """The form of a page that leads back to it."""
    return next(form for form in Parsed(people[user].get(path)).forms if form.action == path)


def test_from_review_to_the_next_version(people: People) -> None:
    assert _offered(people, "viewer", REVIEWED) == set()
    assert _offered(people, "editor", REVIEWED) == {"withdraw"}
    assert _offered(people, "owner", REVIEWED) == {"withdraw", "approve", "reject"}
    approval = {"step": "approve", "version": "1"}
    assert is_refused(_post(people, "admin", f"{ALPHA}policies/{REVIEWED}/steps/", **approval))
    assert is_refused(_post(people, "viewer", f"{ALPHA}policies/{REVIEWED}/steps/", step="withdraw"))
    stale = _post(people, "owner", f"{ALPHA}policies/{REVIEWED}/steps/", **approval | {"version": "2"})
    assert stale.status_code == 409
    assert "You have approved the policy." in _step(people, "owner", REVIEWED, "approve", version="1")
    assert "Published." in _step(people, "editor", REVIEWED, "publish")
    draft = f"{ALPHA}policies/{REVIEWED}/draft/"
    assert is_refused(people["viewer"].get(draft))
    assert _form(people, "editor", draft).fields["content"] == "Lock the door."
    typed = {"content": "Lock the **door**.\r\n\r\nKeep the key.", "as.content": "text"}
    previewed = _post(people, "editor", draft, step="preview", **typed)
    assert "<strong>door</strong>" in previewed.text
    assert people["editor"].get(draft).text.count("Keep the key.") == 0
    assert _post(people, "editor", draft, step="save", **typed).status_code == 303
    assert _offered(people, "editor", REVIEWED) == {"submit", "retire"}
    wrong = _post(people, "editor", draft, step="save", content="{", **{"as.content": "json"})
    assert (wrong.status_code, "{" in wrong.text) == (400, True)
    assert "Submitted." in _step(people, "editor", REVIEWED, "submit")
    reviewed = people["owner"].get(f"{ALPHA}records/policies/{REVIEWED}/")
    assert '<ins class="written"><p>Keep the key.</p>' in reviewed.text
    assert "Approve version 2" in text_of(reviewed)
    assert "approved it Status:" in text_of(reviewed)
    assert len(re.findall('class="btn main', reviewed.text)) == 1
    assert "Rejected." in _step(people, "owner", REVIEWED, "reject", version="2", reason="Say who.")
    assert "Say who." in text_of(people["editor"].get(draft))
    _step(people, "editor", REVIEWED, "submit")
    _step(people, "owner", REVIEWED, "approve", version="3")
    _step(people, "editor", REVIEWED, "publish")
    versions = people["viewer"].get(f"{ALPHA}policies/{REVIEWED}/versions/")
    assert "<ins>Keep the key." in versions.text
    assert "Imported, not approved here" in text_of(versions)
    assert "Retired." in _step(people, "editor", REVIEWED, "retire")


def test_the_form_of_a_policy_has_what_the_member_can_change(readers: People) -> None:
    forms = {
        ("editor", "live"): {"content"},
        ("admin", "live"): {"content", "approverId"},
        ("admin", "reviewed"): set(),
        ("editor", "published"): set(),
        ("admin", "published"): {"approverId"},
    }
    for (user, state), fields in forms.items():
        page = readers[user].get(f"{ALPHA}records/policies/policies-{state}-{ALPHA_ID}/edit/").text
        names = ("content", "approverId", "status", "currentVersion")
        assert {name for name in names if f'name="{name}"' in page} == fields, (user, state)


def test_a_draft_is_discarded(people: People) -> None:
    policy = f"policies-published-{ALPHA_ID}"
    made = _post(people, "editor", f"{ALPHA}policies/{policy}/draft/", step="discard", content="")
    assert made.status_code == 303
    assert "Draft discarded." in text_of(people["editor"].get(made.headers["location"]))
    assert _offered(people, "editor", policy) == {"retire"}


def test_a_member_reads_and_acknowledges_in_two_taps(people: People) -> None:
    """From the notification to the page, and there by the button."""
    policy = f"policies-approved-{ALPHA_ID}"
    page = f"{ALPHA}records/policies/{policy}/"
    button = 'name="step" value="acknowledge"'
    assert button not in people["viewer"].get(page).text
    assert "Published." in _step(people, "editor", policy, "publish")
    assert people["viewer"].get(page).text.count(button) == 2  # above the text, and below it
    stale = _post(people, "viewer", f"{ALPHA}policies/{policy}/steps/", step="acknowledge", version="2")
    assert stale.status_code == 409
    made = _post(people, "viewer", f"{ALPHA}policies/{policy}/steps/", step="acknowledge", version="1")
    done = people["viewer"].get(made.headers["location"])
    assert "You have acknowledged the policy." in text_of(done)
    assert button not in done.text
    assert "25 % 1 of 4 people" in text_of(done)
    listed = f"{ALPHA}policies/{policy}/acknowledgements/"
    assert "Viewer" not in text_of(people["editor"].get(f"{listed}?state=OPEN")).partition("Name")[2]
    assert "Viewer" in text_of(people["editor"].get(f"{listed}?state=DONE")).partition("Name")[2]


@pytest.mark.parametrize("roles", [["editor", "admin"], []])
def test_who_is_asked_to_acknowledge_is_chosen(roles: list[str], people: People) -> None:
    policy = f"policies-approved-{ALPHA_ID}"
    page, steps = f"{ALPHA}records/policies/{policy}/", f"{ALPHA}policies/{policy}/steps/"
    form = next(one for one in Parsed(people["editor"].get(page)).forms if "asks" in one.fields)
    assert form.fields["roles"]
    sent = {"step": "publish", "asks": "true", "roles": roles}
    assert people["editor"].client.post(steps, data=sent, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 303
    for user in ("viewer", "editor", "admin"):
        is_asked = 'name="step" value="acknowledge"' in people[user].get(page).text
        assert is_asked == (user in roles), user


def test_a_form_that_nobody_typed_is_refused(people: People) -> None:
    """Numbers that are too long for any version, and JSON with more levels than the API takes."""
    answer = _post(people, "owner", f"{ALPHA}policies/{REVIEWED}/steps/", step="approve", version="9" * 5_000)
    assert answer.status_code == 400
    assert _step(people, "owner", REVIEWED, "approve", version="1")
    path = f"{ALPHA}policies/{REVIEWED}/draft/"
    for content in ("[" * 1_000 + "]" * 1_000, "[" * 300 + "]" * 300, "NaN", "1e999"):
        answer = _post(people, "editor", path, **{"content": content, "as.content": "json", "step": "save"})
        assert answer.status_code == 400, content[:5]
    number = str(2**64)
    stored = _post(people, "editor", path, **{"content": number, "as.content": "json", "step": "save"})
    assert stored.status_code == 303
    assert _form(people, "editor", path).fields["content"] == number


def test_only_admins_are_offered_to_name_an_approver(people: People) -> None:
    """Of many policies, in the panel, and of a new one from a control, as in the form of a policy."""
    selected = f"policies:policies-live-{ALPHA_ID}"
    for user, number in (("editor", 0), ("admin", 1)):
        browser = people[user]
        many = send(browser, Form(f"{ALPHA}change/policies/", "post"), selected=selected, step="choose")
        listed = browser.get(f"{ALPHA}records/policies/?open=policies-live-{ALPHA_ID}")
        added = browser.get(f"{ALPHA}controls/sun.A.1/add/policies/")
        assert 'name="title"' in added.text
        assert 'id="quick"' in listed.text
        quick = listed.text.partition('id="quick"')[2].partition("</form>")[0]
        for text in (many.text, quick, added.text):
            assert text.count('id="field-approverId"') == number
        bulk = browser.get(f"{ALPHA}records/policies/").text
        assert bulk.count('value="assign"') == number


def test_the_text_is_a_document(people: People) -> None:
    """Of each version, with what it changes, as the address says; and the next one is written beside its preview."""
    page, draft = f"{ALPHA}records/policies/{REVIEWED}/", f"{ALPHA}policies/{REVIEWED}/draft/"
    _step(people, "owner", REVIEWED, "approve", version="1")
    _step(people, "editor", REVIEWED, "publish")
    text = "Lock the front door.\n\n- Keep the key."
    assert _post(people, "editor", draft, step="save", content=text, **{"as.content": "text"}).status_code == 303
    in_force = people["viewer"].get(page)
    assert "Lock the door." in in_force.text
    assert "Imported, not approved here" in text_of(in_force)
    assert "front" not in in_force.text
    changed = people["viewer"].get(f"{page}?version=draft&show=changes").text
    assert "Lock the <ins>front </ins>door." in changed
    assert re.search(r'<ins class="written"><ul>\s*<li>Keep the key.</li>', changed)
    assert "Changes since 1" in changed
    assert "<ins>" not in people["viewer"].get(f"{page}?version=draft&show=text").text
    assert f'href="{draft}"' not in changed
    written = people["editor"].get(draft)
    assert "<li>Keep the key.</li>" in written.text.partition("data-preview")[2]
    _step(people, "editor", REVIEWED, "submit")
    to_approve = people["owner"].get(page).text  # who is to approve it sees what it changes
    assert "<ins>front </ins>" in to_approve
    assert len(re.findall('class="btn main', to_approve)) == 1
    for odd in ("9", "x", "9" * 30):
        assert "Lock the door." in people["viewer"].get(f"{page}?version={odd}").text


def test_the_first_text_is_written_in_the_same_editor(people: People) -> None:
    policy = f"policies-live-{ALPHA_ID}"
    draft = f"{ALPHA}policies/{policy}/draft/"
    form = _form(people, "editor", draft)
    sent = {"tag": form.fields["tag"], "as.content": "text", "step": "save"}
    assert _post(people, "editor", draft, content="First.", **sent).status_code == 303
    assert "First." in people["viewer"].get(f"{ALPHA}records/policies/{policy}/").text
    assert _post(people, "editor", draft, content="Late.", **sent).status_code == 412


def test_a_new_policy_begins_with_a_template(people: People) -> None:
    listed = f"{ALPHA}policy-templates/"
    assert f'href="{listed}"' in people["editor"].get(f"{ALPHA}new/policies/").text
    assert is_refused(people["viewer"].get(listed))
    one = f"{listed}backup/"
    assert f'href="{one}"' in people["editor"].get(listed).text
    form = _form(people, "editor", one)
    sent = {"key": str(form.fields["key"]), "step": "create"}
    assert _post(people, "editor", one, title="", **sent).status_code == 400
    made = _post(people, "editor", one, title="Copies", **sent)
    page = people["editor"].get(made.headers["location"])
    assert "Copies" in text_of(page)
    assert "says what Alpha backs up" in text_of(page)


def test_a_version_is_printed(people: People) -> None:
    page = f"{ALPHA}records/policies/policies-published-{ALPHA_ID}/"
    address = f"{ALPHA}policies/policies-published-{ALPHA_ID}/file/?version=1"
    assert f'href="{address}"' in people["viewer"].get(page).text
    printed = people["viewer"].get(f"{address}&format=pdf")
    assert printed.content.startswith(b"%PDF-")
