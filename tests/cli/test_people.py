"""`normata user`, `member` and `organization`: people and organizations on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from normata.cli.remote import transport
from normata.core.db.database import Database
from normata.identity.model import Membership, Operator, User
from normata.records.base import Restorable
from tests import stored
from tests.cli.commands import SERVER, Run, failed
from tests.databases import on_sqlite, open_url
from tests.identity.inviting import accept
from tests.identity.smtp_server import mail_server
from tests.world import ALPHA, BETA

pytestmark = on_sqlite


@pytest.fixture(autouse=True)
def _database(database_url: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Commands use the test world."""
    del folder  # it has emptied the environment first
    monkeypatch.setenv("NORMATA_DATABASE_URL", database_url)


@pytest.fixture(params=["database", "server"])
def anywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, make_token: Callable[..., str]) -> None:
    """Commands for members use the test world, or a server on it as an owner."""
    if request.param == "server":
        monkeypatch.setattr(transport, "TRANSPORT", request.getfixturevalue("client")._transport)
        monkeypatch.setenv("NORMATA_SERVER", SERVER)
        monkeypatch.setenv("NORMATA_TOKEN", make_token("owner", scope="admin"))


def table(text: str) -> dict[str, dict[str, str]]:
    """A table that a command has printed, by its first column."""
    head, *lines = (line.split("\t") for line in text.splitlines())
    return {line[0]: dict(zip(head, line, strict=True)) for line in lines}


def test_users_are_listed(normata: Run) -> None:
    users = table(normata("user", "list").out)
    assert users["user-editor"] == {
        "id": "user-editor",
        "email": "editor@alpha.example",
        "name": "Editor",
        "organizations": "1",
        "operator_since": "-",
        "removed_at": "-",
    }
    assert users["user-nobody"]["organizations"] == "0"
    assert users["user-operator"]["operator_since"] != "-"
    assert users[f"robot-{ALPHA}"]["email"] == "-"


def test_a_user_becomes_an_operator_and_none_again(normata: Run, database: Database) -> None:
    assert normata("user", "operator", "Editor@alpha.example").out == "Editor@alpha.example: an operator\n"
    assert normata("user", "operator", "user-editor").out == "user-editor: an operator already\n"
    assert {row["user_id"] for row in stored_operators(database)} == {"user-editor", "user-operator"}
    assert normata("user", "operator", "user-editor", "--off").out == "user-editor: no operator\n"
    assert [row["user_id"] for row in stored_operators(database)] == ["user-operator"]
    assert "service account" in failed(normata("user", "operator", f"robot-{ALPHA}"))


def stored_operators(database: Database) -> list[dict[str, object]]:
    """Who runs the instance."""
    return stored.everything(database)[str(Operator.__tablename__)]


def test_a_user_is_removed_everywhere(normata: Run, database: Database) -> None:
    stored.load(
        database, {"memberships": [{"id": "guest", "organizationId": BETA, "userId": "user-editor", "role": "admin"}]}
    )
    token = normata("token", "create", "--user", "editor@alpha.example").out.strip()
    assert token
    done = normata("user", "remove", "editor@alpha.example")
    assert done.out.startswith("editor@alpha.example: removed; ended: 2 members, ")
    assert all(row["removed_at"] for row in stored.rows(database, Membership, user_id="user-editor"))
    assert stored.row(database, User, "user-editor")["removed_at"] is not None
    assert normata("user", "remove", "user-editor").code == 0  # again is harmless
    failed(normata("user", "link", "user-editor"))
    assert "last owner of alpha" in failed(normata("user", "remove", "owner@alpha.example"))


@pytest.mark.usefixtures("anywhere")
def test_members_are_listed_changed_and_removed(normata: Run, database: Database) -> None:
    role = ("member", "role", "viewer@alpha.example")
    until = normata(*role, "auditor", "--until", "2126-03-01", "--organization", "alpha").out
    assert until == "viewer@alpha.example: auditor, until 2126-03-01T00:00:00.000Z\n"
    ending = normata(*role, "owner", "--organization", "alpha")
    assert (ending.code, "must be null for an owner" in ending.err) == (1, True)
    assert "--until takes" in failed(normata(*role, "viewer", "--until", "soon", "--organization", "alpha"), code=2)
    assert normata(*role, "owner", "--until", "never", "--organization", "alpha").out == "viewer@alpha.example: owner\n"
    burdened = normata("member", "role", "user-editor", "auditor", "--organization", "alpha")
    assert "hand these over first" in failed(burdened)
    assert table(normata("member", "list", "--organization", ALPHA).out)["member-viewer"]["role"] == "owner"
    done = normata("member", "remove", "user-editor", "--organization", "alpha")
    kinds = sum(1 for kind in Restorable.kinds if kind.responsible or kind.path == "auditItems")
    assert done.out.splitlines()[0] == "user-editor: removed"
    assert done.out.count("1 ") == kinds
    done = normata("member", "handover", "user-editor", "--to", "member-viewer", "--organization", "alpha")
    assert len(done.out.splitlines()) == kinds
    assert "tasks: 1 handed over to member-viewer" in done.out
    again = normata("member", "handover", "user-editor", "--to", "member-viewer", "--organization", "alpha")
    assert again.out == "user-editor is responsible for nothing\n"
    assert table(normata("member", "list", "--organization", ALPHA).out)["member-editor"]["removed_at"] != "-"
    assert stored.row(database, Membership, "member-editor")["removed_at"] is not None


@pytest.mark.usefixtures("anywhere")
def test_the_last_owner_stays(normata: Run) -> None:
    for command in (("remove", "owner@alpha.example"), ("role", "owner@alpha.example", "admin")):
        assert "last owner" in failed(normata("member", *command, "--organization", "alpha"))


def test_who_is_unknown_is_told(normata: Run) -> None:
    assert "there is no user x@y.example" in failed(normata("user", "remove", "x@y.example"))
    said = failed(normata("member", "remove", "owner@beta.example", "--organization", "alpha"))
    assert "owner@beta.example is not a member" in said
    assert "name an organization" in failed(normata("member", "list"))
    failed(normata("member", "role", "user-editor", "king", "--organization", "alpha"), code=2)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("group", ["user", "member"])
def test_somebody_is_invited(normata: Run, database: Database, database_url: str, group: str) -> None:
    """The link is alone on standard output, for a script."""
    done = normata(group, "invite", "kim@example.org", "--role", "admin", "--organization", "alpha")
    assert done.code == 0
    assert done.err == "give this link to kim@example.org: it works once, within seven days\n"
    user_id = accept(database_url, done.out.strip().rpartition("=")[2], "Kim")
    (member,) = stored.rows(database, Membership, user_id=user_id)
    assert (member["organization_id"], member["role"]) == (ALPHA, "admin")
    failed(normata(group, "invite", "kim@example.org", "--organization", "alpha"))
    failed(normata(group, "invite", "no address", "--organization", "alpha"), code=2)


def test_an_invitation_is_mailed(normata: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server() as inbox:
        monkeypatch.setenv("NORMATA_SMTP_URL", inbox.url)
        done = normata("member", "invite", "kim@example.org", "--organization", "alpha")
        assert done.err == "this link was mailed to kim@example.org: it works once, within seven days\n"
        assert done.out.strip() in inbox.messages[0].get_content()
        inbox.refuses = True
        done = normata("member", "invite", "kim@example.org", "--organization", "alpha")
        assert done.code == 0
        assert done.err.startswith("the mail failed (SMTPRecipientsRefused); give this link to kim@example.org: ")
        assert (len(done.err.splitlines()), len(done.out.splitlines())) == (1, 1)


def test_organizations_are_made_renamed_removed_and_restored(normata: Run, database_url: str) -> None:
    done = normata("organization", "create", "Gamma", "--owner", "kim@example.org", "--slug", "g")
    accept(database_url, done.out.strip().rpartition("=")[2], "Kim")
    assert normata("organization", "rename", "g", "Gamma & Co").out == "g: Gamma & Co\n"
    (found,) = (row for row in table(normata("organization", "list").out).values() if row["slug"] == "g")
    assert (found["name"], found["members"], found["removed_at"]) == ("Gamma & Co", "1", "-")
    assert normata("organization", "remove", "g").code == 0
    assert "has not been removed" in failed(normata("organization", "restore", "alpha"))
    assert normata("organization", "restore", "g").out == "g: restored, with 1 member\n"
    assert open_url(database_url).embedded
    taken = normata("organization", "create", "Gamma", "--owner", "kim@example.org", "--slug", "g")
    assert failed(taken) == "the slug g is or was an organization's; choose another --slug"


def test_who_was_removed_does_not_come_back_with_their_organization(normata: Run) -> None:
    """And counts for no owner."""
    assert normata("member", "invite", "owner@beta.example", "--organization", "alpha", "--role", "owner").code == 0
    assert normata("organization", "remove", "alpha").code == 0
    assert normata("user", "remove", "editor@alpha.example").code == 0
    assert normata("member", "remove", "viewer@alpha.example", "--organization", "alpha").code == 0
    assert "was removed" in failed(normata("member", "invite", "kim@example.org", "--organization", "alpha"))
    assert normata("organization", "restore", "alpha").out == "alpha: restored, with 4 members\n"
    members = table(normata("member", "list", "--organization", "alpha").out).values()
    gone = {row["email"] for row in members if row["removed_at"] != "-"}
    assert gone >= {"editor@alpha.example", "viewer@alpha.example"}
