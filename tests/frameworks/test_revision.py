"""An organization's revision advances with whatever its lists of controls and frameworks may show, and never else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update
from starlette.testclient import TestClient

from normata.bundle import loading
from normata.database import Database
from normata.frameworks.adoption import NoSuchFramework, adopt
from normata.identity import tokens
from normata.identity.model import Organization
from normata.records.base import Restorable
from normata.source import FaultyInput
from tests import world
from tests.world import ALPHA, BETA

Document = dict[str, list[dict[str, Any]]]
Bearer = Callable[..., dict[str, str]]

BOTH = {ALPHA, BETA}


def revisions(database: Database) -> dict[str, str]:
    statement = select(Organization.id, Organization.revision)
    return {row.id: row.revision for row in database.read_now(lambda connection: connection.execute(statement).all())}


def advanced(database: Database, act: Callable[[], object]) -> set[str]:
    """The organizations that have another revision after something was done."""
    before = revisions(database)
    act()
    after = revisions(database)
    return {name for name, revision in after.items() if before.get(name) != revision}


def control(framework: str = "fw-own", **values: Any) -> Document:
    return {"controls": [{"id": "new", "frameworkId": framework, "name": "New"} | values]}


def match(source: str, target: str, match_id: str = "new") -> Document:
    row = {"id": match_id, "sourceControlId": source, "targetControlId": target, "matchLevel": "FULL"}
    return {"controlMatches": [row]}


def coverage(organization_id: str, control_id: str, row_id: str = "new", status: str = "FULL") -> Document:
    row = {"id": row_id, "organizationId": organization_id, "controlId": control_id, "coverageStatus": status}
    return {"controlCoverages": [row]}


# What is loaded → whose lists may be others by that.
LOADS: dict[str, tuple[Document, set[str]]] = {
    "a new framework": ({"frameworks": [{"id": "new", "name": "New"}]}, BOTH),
    "a new framework of one": ({"frameworks": [{"id": "new", "name": "New", "organizationId": ALPHA}]}, {ALPHA}),
    "a new inactive framework": ({"frameworks": [{"id": "new", "name": "New", "isActive": False}]}, BOTH),
    "a changed framework": ({"frameworks": [{"id": "fw-sun", "name": "Sunny"}]}, BOTH),
    "a changed framework of one": ({"frameworks": [{"id": "fw-foreign", "name": "Ours"}]}, {BETA}),
    "a framework that becomes inactive": ({"frameworks": [{"id": "fw-star", "isActive": False}]}, BOTH),
    "a framework that becomes active": ({"frameworks": [{"id": "fw-old", "isActive": True}]}, BOTH),
    "a new control": (control("fw-sun"), BOTH),
    "a new control of one": (control("fw-own"), {ALPHA}),
    "a changed control": ({"controls": [{"id": "star.A.1", "name": "Changed"}]}, BOTH),
    "a changed control of one": ({"controls": [{"id": "own.A.1", "name": "Changed"}]}, {ALPHA}),
    "a control with another parent": ({"controls": [{"id": "foreign.A.1", "parentId": None}]}, {BETA}),
    "a new match": (match("sun.A.5", "moon.A.5"), BOTH),
    "a new match from one's own": (match("own.A.5", "moon.A.5"), {ALPHA}),
    "a new match to one's own": (match("star.A.5", "foreign.A.5"), {BETA}),
    "a changed match": ({"controlMatches": [{"id": "sun.A.3->moon.A.3", "matchLevel": "FULL"}]}, BOTH),
    "a match that comes to be of one": (match("own.A.3", "moon.A.3", "sun.A.3->moon.A.3"), BOTH),
    "a match that is of one no more": (match("star.A.1", "moon.A.1", "own.A.1->moon.A.1"), BOTH),
    "a match that moves from one to the other": (match("foreign.A.1", "moon.A.1", "own.A.1->moon.A.1"), BOTH),
    "a new adoption": (
        {"frameworkAdoptions": [{"id": "new", "organizationId": ALPHA, "frameworkId": "fw-star"}]},
        {ALPHA},
    ),
    "a changed adoption": ({"frameworkAdoptions": [{"id": "adopt-sun", "adoptedAt": world.ARCHIVED}]}, {ALPHA}),
    "an adoption of something else": ({"frameworkAdoptions": [{"id": "adopt-sun", "frameworkId": "fw-star"}]}, {ALPHA}),
    "a new statement": (coverage(ALPHA, "moon.A.9"), {ALPHA}),
    "a new statement of the other": (coverage(BETA, "moon.A.9"), {BETA}),
    "a statement on what is not adopted": (coverage(ALPHA, "star.A.9"), {ALPHA}),
    "a changed statement": (coverage(ALPHA, "sun.A.2", "say-sun.A.2"), {ALPHA}),
    "a statement with another gap": ({"controlCoverages": [{"id": "say-sun.A.2", "coverageGap": "One."}]}, {ALPHA}),
    "a statement on something else": ({"controlCoverages": [{"id": "say-sun.A.2", "controlId": "sun.A.9"}]}, {ALPHA}),
    "statements of both": (
        {"controlCoverages": coverage(ALPHA, "moon.A.9", "one")["controlCoverages"]
         + coverage(BETA, "moon.A.9", "two")["controlCoverages"]},
        BOTH,
    ),
    "nothing": ({}, set()),
    "the same as ever": (world.bundle(), set()),
    "a part of the same": (
        {"controls": [{"id": "sun.A.1"}], "frameworks": [{"id": "fw-sun", "name": "Sun Standard"}]},
        set(),
    ),
    "an organization by another name": ({"organizations": [{"id": ALPHA, "name": "Alpha & Co", "slug": "co"}]}, set()),
    "a user, a membership and a notification": (
        {
            "users": [{"id": "user-viewer", "name": "Called otherwise"}],
            "memberships": [{"id": "member-viewer", "role": "admin"}],
            "notifications": [{"id": "new", "organizationId": ALPHA, "userId": "user-viewer"}],
        },
        set(),
    ),
    "records of all kinds": (
        {kind.path: [{"id": world.record_id(kind, "archived"), "archivedAt": None}] for kind in Restorable.kinds},
        set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LOADS)
def test_a_load_advances_those_whose_lists_may_be_others(database: Database, what: str) -> None:
    document, expected = LOADS[what]
    assert advanced(database, lambda: world.load(database, document)) == expected
    assert advanced(database, lambda: world.load(database, document)) == set(), "the second time it is nothing new"


def test_a_new_organization_has_a_revision_of_its_own(database: Database) -> None:
    before = revisions(database)
    assert all(before.values())
    world.load(database, {"organizations": [{"id": "org-new", "name": "New", "slug": "new"}]})
    after = revisions(database)
    assert after.pop("org-new") not in ("", *before.values())
    assert after == before


def test_an_organization_of_before_there_were_revisions_is_loaded_unchanged(database: Database) -> None:
    """A migration leaves none behind; to load the same again is still to change nothing."""
    database.write_now(lambda connection: connection.execute(update(Organization).values(revision="")))
    before = world.contents(database)
    tallies = world.load(database, world.bundle())
    assert {(tally.inserted, tally.updated) for tally in tallies.values()} == {(0, 0)}
    assert world.contents(database) == before


def test_what_is_imported_is_everybodys(database: Database) -> None:
    """An import is a load that remembers when it was."""
    rows = world.rows({"frameworks": [{"id": "fw-sun", "name": "Sunny"}], "controls": control("fw-sun")["controls"]})

    def import_() -> None:
        database.write_now(lambda connection: loading.load(connection, rows, sync=True))

    assert advanced(database, import_) == BOTH
    assert advanced(database, import_) == set()


def test_who_adopts_advances_and_nobody_else(database: Database) -> None:
    def adopting(*names: str) -> Callable[[], object]:
        return lambda: database.write_now(lambda connection: adopt(connection, ALPHA, names))

    assert advanced(database, adopting("fw-star", "fw-sun")) == {ALPHA}
    assert advanced(database, adopting("fw-star", "fw-sun")) == set(), "adopted already"

    def failing() -> None:
        with pytest.raises(NoSuchFramework):
            adopting("fw-star", "nowhere")()

    assert advanced(database, failing) == set()


def test_what_fails_advances_nothing(database: Database) -> None:
    def failing() -> None:
        with pytest.raises(FaultyInput):
            world.load(database, coverage(ALPHA, "moon.A.9") | {"labels": [{"id": "x"}]})

    def abandoned() -> None:
        def work(connection: Any) -> None:
            loading.load(connection, world.rows(coverage(ALPHA, "moon.A.9")))
            raise RuntimeError

        with pytest.raises(RuntimeError):
            database.write_now(work)

    assert advanced(database, failing) == set()
    assert advanced(database, abandoned) == set()


def test_restores_and_requests_advance_nothing(client: TestClient, bearer: Bearer, database: Database) -> None:
    """All restores of an organization would have to wait for each other at its one row."""

    def use() -> None:
        headers = bearer("editor")
        for kind in Restorable.kinds:
            address = f"/{kind.path}/{world.record_id(kind, 'archived')}/restore/"
            assert client.post(address, headers=headers).status_code == 200
        for path in ("/controls/", "/frameworks/", "/notifications/"):
            assert client.get(path, params={"organizationId": ALPHA}, headers=headers).status_code == 200

    assert advanced(database, use) == set()


def test_tokens_advance_nothing(database: Database) -> None:
    def live() -> None:
        database.write_now(
            lambda connection: tokens.create(connection, email=world.USERS["editor"], scope="read", lifetime=None)
        )
        [row] = database.read_now(tokens.listing)
        database.write_now(lambda connection: tokens.revoke(connection, row["id"]))

    assert advanced(database, live) == set()


def test_no_revision_ever_comes_back(database: Database) -> None:
    """Not even where the data does: a copy from a backup may have gone another way in between."""
    seen = [revisions(database)[ALPHA]]
    for status in ("NONE", "FULL") * 10:
        world.load(database, coverage(ALPHA, "sun.A.2", "say-sun.A.2", status))
        seen.append(revisions(database)[ALPHA])
        world.load(database, {"frameworks": [{"id": "fw-sun", "name": status}]})
        seen.append(revisions(database)[ALPHA])
    assert len(set(seen)) == len(seen) == 41


def test_the_revision_is_nobodys_to_load(database: Database) -> None:
    """It is kept out of bundles, in both directions."""
    before = revisions(database)
    with pytest.raises(FaultyInput):
        world.load(database, {"organizations": [{"id": ALPHA, "revision": before[BETA]}]})
    assert revisions(database) == before
