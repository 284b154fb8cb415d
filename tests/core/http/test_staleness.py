"""No answer is old: whatever one process has changed and acknowledged, the next answer of every other one shows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx2
import pytest

from normata.adoption.adoption import adopt
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.identity.model import AccessToken
from normata.identity.tokens import tokens
from tests import stored, world
from tests.databases import change, on_both
from tests.listing import LISTS
from tests.served import removal_of, run_sql, served
from tests.server import PLAIN, serving
from tests.world import ALPHA, ARCHIVED

CHANGES = 250
RECORDS = 200
LEVELS = ("NONE", "PARTIAL", "FULL")


@dataclass
class Reader:
    """A client of one process, on one connection, that asks for nothing that it has: as a browser does."""

    client: httpx2.Client
    held: dict[tuple[str, ...], tuple[str, Any]] = field(default_factory=dict)
    unchanged: int = 0  # answers that were 304

    def get(self, path: str, token: str, **params: str) -> tuple[int, Any]:
        """Status and body of an answer; where it is 304, of the page that is held."""
        headers = {"Authorization": f"Bearer {token}"}
        key = (path, token, *params.values())
        if key in self.held:
            headers["If-None-Match"] = self.held[key][0]
        response = self.client.get(path, params={"organizationId": ALPHA} | params, headers=headers)
        if response.status_code == 304:
            self.unchanged += 1
            return 200, self.held[key][1]
        if response.status_code == 200:
            self.held[key] = (response.headers["etag"], response.json())
        return response.status_code, response.json()

    def items(self, path: str, token: str, **params: str) -> dict[str, Any]:
        """The items of a page by their ids."""
        status, body = self.get(path, token, **params)
        assert status == 200, body
        return {item["id"]: item for item in body["items"]}


class Changes:
    """The test world as it is changed, at random, each time with a look at what the reader is answered next."""

    def __init__(self, database: Database, writer: httpx2.Client, reader: Reader, seed: int) -> None:
        self._database = database
        self._writer = writer
        self._reader = reader
        self._chance = random.Random(seed)  # noqa: S311 - to be the same in each run is the point
        self._numbers = count()
        self.made = 0
        self._archived = [f"policy-{number}" for number in range(RECORDS)]
        self._load(
            {
                "policies": [
                    {"id": name, "organizationId": ALPHA, "title": name, "approverId": "member-editor"}
                    | {"archivedAt": ARCHIVED}
                    for name in self._archived
                ]
            }
        )
        self._token = self._new_token("editor")
        self._owners_token = self._new_token("owner")

    def make_one(self) -> None:
        """Make a change, or one and another that takes it back."""
        kinds = (self._state, self._state_again, self._rename, self._adopt, self._leave, self._revoke, self._restore)
        (act,) = self._chance.choices(kinds, (35, 5, 15, 5, 5, 5, 30))
        act()

    def _state(self) -> None:
        """Alpha states how far it covers a control."""
        control, level = f"sun.A.{self._chance.randint(1, 12)}", self._chance.choice(LEVELS)
        statement = {"coverageStatus": level, "coverageGap": f"gap {next(self._numbers)}"}
        self._load(
            {"controlCoverages": [{"id": f"say-{control}", "organizationId": ALPHA, "controlId": control} | statement]}
        )
        assert self._controls("fw-sun")[control]["coverage"] == statement

    def _state_again(self) -> None:
        """What changes nothing makes no page anew."""
        self._state()
        before = self._controls("fw-sun"), self._reader.unchanged
        self._load({"controlCoverages": [{"id": "say-sun.A.1", "organizationId": ALPHA, "controlId": "sun.A.1"}]})
        assert (self._controls("fw-sun"), self._reader.unchanged - 1) == before

    def _rename(self) -> None:
        """A framework, which may be everybody's, is called something else."""
        framework, name = self._chance.choice(("fw-sun", "fw-moon", "fw-star")), f"Name {next(self._numbers)}"
        self._load({"frameworks": [{"id": framework, "name": name}]})
        frameworks = self._reader.items("/frameworks/", self._token, includeUserDefined="false")
        assert frameworks[framework]["name"] == name
        assert {item["framework"]["name"] for item in self._controls(framework).values()} <= {name}

    def _adopt(self) -> None:
        """Alpha makes a framework of its own, and adopts it."""
        new = f"new-{next(self._numbers)}"
        framework = {"id": new, "name": new, "organizationId": ALPHA}
        self._load({"frameworks": [framework], "controls": [{"id": f"{new}.1", "frameworkId": new, "name": new}]})
        assert not self._reader.items("/frameworks/", self._token, search=new)[new]["isAdopted"]
        assert self._controls(new) == {}
        assert self._changed(lambda unit: adopt(unit, ALPHA, [new])) == {new: True}
        assert self._reader.items("/frameworks/", self._token, search=new)[new]["isAdopted"]
        assert list(self._controls(new)) == [f"{new}.1"]

    def _leave(self) -> None:
        """A viewer is a member no more, and then is one again."""
        token, path = self._new_token("viewer"), self._chance.choice(LISTS).path
        assert self._reader.get(path, token)[0] == 200
        run_sql(self._database, *removal_of("member-viewer"))
        self.made += 1
        assert self._reader.get(path, token)[0] == 404
        self._load({"memberships": [{"id": "member-viewer", "organizationId": ALPHA, "userId": "user-viewer"}]})
        assert self._reader.get(path, token)[0] == 200

    def _revoke(self) -> None:
        """A token is made, and ended."""
        token, path = self._new_token(self._chance.choice(("viewer", "editor"))), self._chance.choice(LISTS).path
        assert self._reader.get(path, token)[0] == 200
        (row,) = stored.rows(self._database, AccessToken, digest=tokens.digest(token))
        assert self._changed(lambda unit: tokens.revoke(unit, row["id"]))
        assert self._reader.get(path, token)[0] == 401

    def _restore(self) -> None:
        """Through the other process a record comes back, and who answers for it is told."""
        record = self._archived.pop()
        headers = {"Authorization": f"Bearer {self._owners_token}"}
        answer = self._writer.post(f"/policies/{record}/restore/", headers=headers)
        assert answer.status_code == 200, answer.text
        self.made += 1
        notes = self._reader.items("/notifications/", self._token)
        assert record in {note["payload"]["entityId"] for note in notes.values()}

    def _controls(self, framework: str) -> dict[str, Any]:
        return self._reader.items("/controls/", self._token, frameworks=framework)

    def _load(self, document: dict[str, list[dict[str, Any]]]) -> None:
        world.load(self._database, document)
        self.made += 1

    def _new_token(self, user: str) -> str:
        token: str = self._changed(
            lambda unit: tokens.create(unit, email=world.USERS[user], scope="write", lifetime=None)
        )
        return token

    def _changed(self, work: Callable[[UnitOfWork], Any]) -> Any:
        result = change(self._database, work)
        self.made += 1
        return result


@pytest.fixture
def clients(database_url: str) -> Iterator[tuple[httpx2.Client, httpx2.Client]]:
    """One client of the application in this process, and one of a server over the same database."""
    with (
        served(database_url) as here,
        serving(database_url) as elsewhere,
        httpx2.Client(base_url=elsewhere, timeout=60, verify=PLAIN) as reader,
    ):
        yield here.client, reader


@pytest.mark.long
@on_both
def test_each_of_many_changes_is_in_the_next_answer_of_another_process(
    database: Database, clients: tuple[httpx2.Client, httpx2.Client]
) -> None:
    writer, client = clients
    reader = Reader(client)
    changes = Changes(database, writer, reader, seed=20261120)
    while changes.made < CHANGES:
        changes.make_one()
    assert reader.unchanged > 10, "tags that are still good have been asked with, too"
