"""`normata init`: from nothing to an organization, its owner, and a link to sign in with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from normata.identity.model import Membership, Organization, User
from normata.identity.sign_in_model import SignInLink
from tests import stored
from tests.cli.commands import Run, failed
from tests.databases import open_url
from tests.postgres import Server
from tests.stored import Rows

pytestmark = pytest.mark.long

WANTED = ("init", "--organization", "Brightleaf GmbH", "--email", "Me@example.org")
LINK = re.compile(r"http://localhost:8000/sign-in/link/\?secret=([A-Za-z0-9_-]{43})")


def rows(url: str) -> tuple[Rows, Rows, Rows]:
    """The organizations, users and memberships of a database."""
    with closing(open_url(url)) as opened:
        organizations, users, members = (stored.rows(opened, table) for table in (Organization, User, Membership))
    return organizations, users, members


@pytest.fixture(params=["sqlite", "postgresql"])
def nowhere(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """The address of a database that is not there, or has no tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{folder / 'new.db'}"
        return
    server: Server = request.getfixturevalue("postgres")
    name = f"normata_{uuid4().hex}"
    yield server.create(name)
    server.drop(name)


def test_it_makes_all_that_there_is_to_begin_with(normata: Run, nowhere: str) -> None:
    done = normata(*WANTED, "--name", "Mara", "--database", nowhere)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("brightleaf-gmbh: created; Me@example.org owns it\n")
    assert LINK.search(done.out)
    assert "normata adopt brightleaf-gmbh FRAMEWORK…" in done.out
    (organization,), (user,), (member,) = rows(nowhere)
    assert (organization["name"], organization["slug"]) == ("Brightleaf GmbH", "brightleaf-gmbh")
    assert (user["email"], user["name"]) == ("Me@example.org", "Mara")
    assert (member["user_id"], member["role"], member["removed_at"]) == (user["id"], "owner", None)
    assert normata("check", "--database", nowhere).code == 0


def test_again_it_makes_nothing_but_another_link(normata: Run, nowhere: str) -> None:
    first = normata(*WANTED, "--database", nowhere)
    before = rows(nowhere)
    second = normata(*WANTED[:-1], "me@EXAMPLE.org", "--database", nowhere)
    assert second.code == 0
    assert second.out.startswith("brightleaf-gmbh: exists already; me@EXAMPLE.org owns it\n")
    assert rows(nowhere) == before
    links = [found[1] for done in (first, second) if (found := LINK.search(done.out))]
    assert len(set(links)) == 2
    with closing(open_url(nowhere)) as opened:
        assert len(stored.rows(opened, SignInLink)) == 2
        assert not any(link in str(stored.everything(opened)) for link in links)


def test_somebody_else_cannot_begin_with_it(normata: Run) -> None:
    assert normata(*WANTED).code == 0
    said = failed(normata(*WANTED[:-1], "you@example.org"))
    assert "there is an organization brightleaf-gmbh already, and you@example.org does not own it" in said
    assert normata("organization", "create", "Two", "--owner", "you@example.org").code == 0
    assert normata(*WANTED[:-1], "you@example.org", "--slug", "other").code == 0


def test_a_removed_organization_is_not_begun_again(normata: Run) -> None:
    normata(*WANTED)
    normata("organization", "remove", "brightleaf-gmbh")
    assert "organization restore" in failed(normata(*WANTED))


def test_links_begin_with_the_public_address(normata: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMATA_PUBLIC_URL", "https://n.example.org/normata/")
    assert "\n  https://n.example.org/normata/sign-in/link/?secret=" in normata(*WANTED).out


@pytest.mark.parametrize(
    ("option", "value"),
    [("--email", "nobody"), ("--email", "a b@example.org"), ("--organization", " "), ("--slug", "a/b"), ("--slug", "")],
)
def test_what_cannot_be_is_refused(normata: Run, folder: Path, option: str, value: str) -> None:
    """And nothing is made."""
    failed(normata(*WANTED, option, value), code=2)
    assert list(folder.iterdir()) == []
