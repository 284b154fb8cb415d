"""The example that removes members who have left: it never removes owners, itself, or everybody."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from normata.core.schema.table import sql_table
from normata.identity.model import Membership
from tests import world
from tests.databases import on_both
from tests.examples.integrating import Integrations

PROGRAM = "leavers_from_directory.py"
PEOPLE = [{"email": world.USERS[role].upper(), "name": role.title()} for role in world.ROLES]


def without(*roles: str) -> list[dict[str, str]]:
    """An export of the directory in which some are missing."""
    return [person for person in PEOPLE if person["name"].lower() not in roles]


def left(integrations: Integrations) -> set[str]:
    """The ids of the members who were removed."""
    table = sql_table(Membership)
    removed = select(table.c.id).where(table.c.removed_at.is_not(None))
    return set(integrations.database.read_now(lambda transaction: transaction.scalars(removed)))


@on_both
def test_who_has_left_is_removed_once(integrations: Integrations) -> None:
    token = integrations.token()
    people = integrations.table("people.csv", without("viewer"))
    tried = integrations.run(PROGRAM, people, "--dry-run", token=token)
    assert (tried.status, left(integrations)) == (0, set())
    assert tried.said == "dry run: 5 members, 4 people in the directory: 1 removed (viewer@alpha.example)\n"
    done = integrations.run(PROGRAM, people, token=token)
    assert (done.status, done.refused, left(integrations)) == (0, [], {"member-viewer"})
    events = integrations.events()
    again = integrations.run(PROGRAM, people, token=token)
    assert (again.status, again.said) == (0, "4 members, 4 people in the directory: 0 removed\n")
    assert integrations.events() == events


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "no rows"),
        ("email,name\n", "no rows"),
        ("mail\nowner@alpha.example\n", "no column email"),
        ("email,name\nowner@alpha.example,Owner\n,Nobody\n", "row 3: no email"),
        ("email,name\nowner@alpha.example,Owner\neditor@alpha.example\n", "row 3: 1 cells for 2 columns"),
        ("email\nowner@alpha.example\nnobody\n", "nobody is no address"),
        ("email\nsomebody@else.example\n", "5 of 5 members would be removed"),
        ("email\nowner@alpha.example\nadmin@alpha.example\neditor@alpha.example\n", "2 of 5 members would be removed"),
        ("email\n\"owner@alpha.example\n", "unexpected end of data"),
        ("email\n\udcff\n", "codec can't decode"),
    ],
)  # fmt: skip
def test_nobody_is_removed_by_an_export_with_a_fault(unchanged: Integrations, content: str, why: str) -> None:
    people = unchanged.folder / "people.csv"
    people.write_text(content, "utf-8", "surrogateescape")
    done = unchanged.run(PROGRAM, people, token=unchanged.token())
    assert (done.status, done.said) == (1, "")
    assert why in done.refused[0]
    assert left(unchanged) == set()


def test_owners_and_the_user_of_the_token_stay(integrations: Integrations) -> None:
    people = integrations.table("people.csv", without("owner", "admin", "viewer"))
    done = integrations.run(PROGRAM, people, "--at-most", "3", token=integrations.token())
    assert done.status == 1
    assert [line.split()[0] for line in done.refused] == [world.USERS["admin"], world.USERS["owner"]]
    assert left(integrations) == {"member-viewer"}


@pytest.mark.parametrize(
    ("user", "scope", "why"), [("admin", "write", "403 forbidden"), ("editor", "admin", "403 forbidden")]
)
def test_a_refusal_is_said(unchanged: Integrations, user: str, scope: str, why: str) -> None:
    people = unchanged.table("people.csv", without("viewer"))
    done = unchanged.run(PROGRAM, people, token=unchanged.token(user, scope))
    assert (done.status, len(done.refused)) == (1, 1)
    assert why in done.refused[0]
    assert left(unchanged) == set()
