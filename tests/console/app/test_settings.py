"""Settings: the organization and its members."""

from __future__ import annotations

import re

import pytest

from normata.identity.model import AccessToken, Membership, Organization
from normata.records.kinds import Task
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed, send
from tests.console.browser import is_refused, text_of
from tests.world import ALPHA as ALPHA_ID

SETTINGS = f"{ALPHA}settings/"
MEMBERS = f"{SETTINGS}members/"


def _form(people: People, user: str, path: str, field: str) -> Form:
    """The form of a page that has a field."""
    return next(form for form in Parsed(people[user].get(path)).forms if field in form.fields)


def _steps(page: str) -> set[str]:
    """What the buttons of a page are for."""
    return set(re.findall(r'<button[^>]* name="step" value="([^"]*)"', page))


def _role(people: People, member: str) -> str:
    return str(stored.row(people.instance.database, Membership, member)["role"])


# --- The organization


def test_an_admin_renames_the_organization(people: People) -> None:
    form = _form(people, "admin", SETTINGS, "name")
    answer = send(people["admin"], form, step="change", name="  Alpha & Söhne ", mail="DAILY")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{SETTINGS}?done=organization_changed")
    said = text_of(people["viewer"].get(SETTINGS))
    assert "Alpha & Söhne" in said
    row = stored.row(people.instance.database, Organization, ALPHA_ID)
    assert (row["name"], row["slug"]) == ("Alpha & Söhne", "alpha")


def test_a_name_that_nobody_can_read_is_refused_at_its_field(people: People) -> None:
    for name in (" ", "Al\u202epha", "x" * 501):
        answer = people["admin"].post(SETTINGS, step="change", name=name)
        assert is_refused(answer, status=400)
        assert 'id="fault-name"' in answer.text
    assert stored.row(people.instance.database, Organization, ALPHA_ID)["name"] == "Alpha"


@pytest.mark.parametrize("days", ["9" * 5_000, "9" * 18, "-1", "soon"])
def test_a_number_of_days_that_is_none_is_refused(days: str, people: People) -> None:
    answer = people["admin"].post(SETTINGS, step="change", name="Beta", keepReplacedFilesDays=days)
    assert is_refused(answer, status=400)
    assert stored.row(people.instance.database, Organization, ALPHA_ID)["name"] == "Alpha"


def test_an_owner_who_types_the_slug_removes_the_organization(people: People) -> None:
    owner = people["owner"]
    for typed in ("", "Alpha", "alpha/"):
        answer = owner.post(SETTINGS, step="remove", slug=typed)
        assert is_refused(answer, status=400)
        assert "What you typed is not alpha, so nothing was removed." in text_of(answer)
    assert owner.get(SETTINGS).status_code == 200
    answer = owner.post(SETTINGS, step="remove", slug="alpha")
    assert (answer.status_code, answer.headers["location"]) == (303, "/app/")
    assert is_refused(owner.get(SETTINGS), status=404)
    assert is_refused(people["viewer"].get(ALPHA), status=404)
    assert stored.row(people.instance.database, Organization, ALPHA_ID)["removed_at"] is not None


@pytest.mark.parametrize(
    ("user", "steps"),
    [("viewer", set()), ("editor", set()), ("admin", {"change"}), ("owner", {"change", "remove"})],
)
def test_everybody_sees_what_they_may_do_with_the_organization(user: str, steps: set[str], readers: People) -> None:
    page = readers[user].get(SETTINGS)
    assert _steps(page.text) == steps
    assert ("Invitations" in text_of(page)) == (user in ("admin", "owner"))
    for step in {"change", "remove"} - steps:
        assert is_refused(readers[user].post(SETTINGS, step=step, name="X", slug="alpha"), status=403)


# --- Members


def test_members_are_listed_with_their_roles(readers: People) -> None:
    said = text_of(readers["viewer"].get(MEMBERS))
    assert "Members 6 " in said
    assert re.search(
        r"Admin admin@alpha.example Admin Auditor auditor@alpha.example Auditor Editor editor@alpha.example Editor",
        said,
    )
    assert "Robot org-alpha Editor Service account" in said
    assert "Viewer viewer@alpha.example Viewer You" in said
    assert "No removed members." in text_of(readers["viewer"].get(f"{MEMBERS}?removed=only"))
    assert is_refused(readers["viewer"].get(f"{MEMBERS}?removed=some"), status=400)


@pytest.mark.parametrize(
    ("user", "member", "steps"),
    [
        ("viewer", "member-editor", set()),
        ("viewer", "member-viewer", {"remove"}),
        ("editor", "member-viewer", set()),
        ("editor", "member-editor", {"hand_over", "remove"}),
        ("admin", "member-editor", {"role", "hand_over", "remove"}),
        ("admin", "member-owner", {"hand_over"}),
        ("owner", "member-admin", {"role", "remove"}),
        ("owner", "member-owner", {"role", "hand_over", "remove"}),
    ],
)
def test_everybody_sees_what_they_may_do_with_a_member(
    user: str, member: str, steps: set[str], readers: People
) -> None:
    page = readers[user].get(f"{MEMBERS}{member}/")
    assert _steps(page.text) == steps
    for step in {"role", "hand_over"} - steps:
        if user == "viewer":
            assert is_refused(readers[user].post(f"{MEMBERS}{member}/", step=step, role="owner"), status=403)


def test_a_role_is_changed(people: People) -> None:
    path = f"{MEMBERS}member-viewer/"
    form = _form(people, "admin", path, "seen")
    options = set(re.findall(r'<option value="([a-z]+)"', people["admin"].get(path).text))
    assert options == {"viewer", "auditor", "editor", "admin"}  # nobody gives what they have not
    answer = send(people["admin"], form, step="role", role="editor")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}?done=role_changed")
    assert _role(people, "member-viewer") == "editor"
    assert 'name="step" value="hand_over"' in people["viewer"].get(f"{MEMBERS}member-editor/").text
    late = send(people["owner"], form, step="role", role="admin")
    assert is_refused(late, status=412)
    assert _role(people, "member-viewer") == "editor"


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        (("admin", "member-viewer", "owner"), 403, "the role concerned is larger than yours"),
        (("admin", "member-owner", "viewer"), 403, "the role concerned is larger than yours"),
        (("owner", "member-owner", "admin"), 409, "The last owner"),
        (("owner", "member-viewer", "king"), 400, "Role: must be one of"),
        (("owner", "member-robot-org-alpha", "owner"), 403, "A service account cannot be an owner."),
        (("owner", "member-foreigner", "viewer"), 404, "Not found"),
        (("editor", "member-viewer", "editor"), 403, "takes the role admin"),
    ],
)
def test_roles_that_are_refused(asked: tuple[str, str, str], status: int, said: str, people: People) -> None:
    user, member, role = asked
    browser = people[user]
    before = stored.rows(people.instance.database, Membership)
    answer = browser.post(f"{MEMBERS}{member}/", step="role", role=role)
    assert is_refused(answer, status=status)
    assert said in text_of(answer)
    assert stored.rows(people.instance.database, Membership) == before


def test_a_member_is_removed_with_what_they_answered_for_and_hands_it_over(people: People) -> None:
    path = f"{MEMBERS}member-editor/"
    editor, admin = people["editor"], people["admin"]
    assert editor.get(ALPHA).status_code == 200
    named = int(re.search(r"Responsible for (\d+)", text_of(admin.get(path)))[1])  # type: ignore[index]
    assert named > 5

    answer = admin.post(path, step="remove")

    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}?done=member_removed")
    assert editor.get(ALPHA).headers["location"].startswith("/sign-in/")
    assert stored.row(people.instance.database, AccessToken, "token-editor")["revoked_at"] is not None
    page = admin.get(answer.headers["location"])
    assert "The member was removed." in text_of(page)
    assert f"Responsible for {named}" in text_of(page)
    assert _steps(page.text) == {"hand_over"}
    assert "Editor editor@alpha.example Editor By SCIM Removed" in text_of(admin.get(f"{MEMBERS}?removed=only"))

    answer = admin.post(path, step="hand_over", to="member-viewer")

    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}?done=handed_over")
    assert "Responsible for 0 Not responsible for any live records." in text_of(admin.get(path))
    assert f"Responsible for {named}" in text_of(admin.get(f"{MEMBERS}member-viewer/"))
    (task,) = stored.rows(people.instance.database, Task, id="tasks-live-org-alpha")
    assert task["assignee_member_id"] == "member-viewer"


def test_a_handover_to_nobody_is_refused_at_its_field(people: People) -> None:
    for to in ("member-foreigner", "member-editor"):
        answer = people["admin"].post(f"{MEMBERS}member-editor/", step="hand_over", to=to)
        assert is_refused(answer, status=400)
        assert 'id="fault-to"' in answer.text
    assert is_refused(people["admin"].post(f"{MEMBERS}member-editor/", step="nothing"), status=400)


@pytest.mark.parametrize("user", ["viewer", "admin"])
def test_everybody_may_leave(user: str, people: People) -> None:
    answer = people[user].post(f"{MEMBERS}member-{user}/", step="remove")
    assert (answer.status_code, answer.headers["location"]) == (303, "/app/")
    assert people[user].get("/app/").headers["location"].startswith("/sign-in/")
    assert stored.row(people.instance.database, Membership, f"member-{user}")["removed_at"] is not None


def test_the_last_owner_stays_and_a_smaller_role_removes_nobody(people: People) -> None:
    assert "The last owner" in text_of(people["owner"].post(f"{MEMBERS}member-owner/", step="remove"))
    for user, member in (("viewer", "member-editor"), ("editor", "member-viewer"), ("admin", "member-owner")):
        assert is_refused(people[user].post(f"{MEMBERS}{member}/", step="remove"), status=403)
    assert is_refused(people["foreigner"].post(f"{MEMBERS}member-viewer/", step="remove"), status=404)
    assert not [row for row in stored.rows(people.instance.database, Membership) if row["removed_at"]]


def test_more_than_a_hundred_members_can_be_chosen(people: People) -> None:
    many = range(130)
    people.instance.load(
        {
            "users": [{"id": f"u{n}", "email": f"u{n}@x.example", "name": f"Zed {n:03}"} for n in many],
            "memberships": [
                {"id": f"m{n}", "organizationId": ALPHA_ID, "userId": f"u{n}", "role": "viewer"} for n in many
            ],
        }
    )
    page = people["admin"].get(f"{MEMBERS}member-editor/")
    assert '<option value="m129">Zed 129</option>' in page.text
    assert "Page 2 of 2" in text_of(people["admin"].get(f"{MEMBERS}?page=2"))
