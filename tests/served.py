"""The shipped application over a database, with what tests need to ask it and to change its world."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from httpx2 import Response
from sqlalchemy import text

from normata.app import Service, create_app
from normata.core.db.database import Database
from normata.core.db.opening import open_database
from normata.events.keys import Signer
from normata.identity.model import AccessToken
from normata.identity.tokens import tokens
from normata.wiring import changes_of
from tests import stored, world
from tests.client import TestClient
from tests.databases import settings_for
from tests.listing import Listing
from tests.pooled import to_lend

Headers = dict[str, str]
Problem = dict[str, Any]

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Served:
    """The application, a client of it, and the database past it."""

    url: str
    app: Service
    client: TestClient
    database: Database
    _readers: dict[str, Headers] = field(default_factory=dict)

    def token(
        self,
        user: str,
        *,
        scope: str = "admin",
        lifetime: timedelta | None = HOUR,
        organization: str | None = None,
        name: str | None = None,
    ) -> str:
        """A new token of one of the world's users; narrowed to an organization where one is given."""
        email = world.USERS[user]
        return changes_of(self.database).make_now(
            lambda unit: tokens.create(
                unit, email=email, scope=scope, lifetime=lifetime, organization=organization, name=name
            )
        )

    def revoke(self, token: str) -> None:
        """End a token."""
        digest = tokens.digest(token)
        (row,) = (row for row in stored.rows(self.database, AccessToken) if row["digest"] == digest)
        assert changes_of(self.database).make_now(lambda unit: tokens.revoke(unit, row["id"]))

    def bearer(
        self,
        user: str,
        *,
        scope: str = "admin",
        lifetime: timedelta | None = HOUR,
        organization: str | None = None,
    ) -> Headers:
        """The Authorization header with a new token."""
        token = self.token(user, scope=scope, lifetime=lifetime, organization=organization)
        return {"Authorization": f"Bearer {token}"}

    def listing(self, path: str, user: str = "viewer") -> Listing:
        """A list as a user asks for it, with the same token each time."""
        if user not in self._readers:
            self._readers[user] = self.bearer(user)
        return Listing(self.client, path, self._readers[user])

    def load(self, document: dict[str, list[dict[str, Any]]]) -> None:
        """Load a bundle as ``normata load`` does."""
        stored.load(self.database, document)

    def wait_for_seals(self) -> None:
        """Wait until the newest event has its number: lists of events change by that."""
        end = time.monotonic() + 30
        while self.listing("/events/", "owner").items(limit=5)[0]["number"] is None:
            assert time.monotonic() < end, "events are not sealed"
            time.sleep(0.05)

    def sql(self, *statements: str) -> None:
        """Change the database with plain SQL, past all rules."""
        run_sql(self.database, *statements)


def removal_of(member_id: str) -> tuple[str, str]:
    """The statements that take a member out of the database, with what refers to them."""
    return (
        f"DELETE FROM comment WHERE author_id = '{member_id}'",
        f"DELETE FROM membership WHERE id = '{member_id}'",
    )


def run_sql(database: Database, *statements: str) -> None:
    """Run plain SQL in one transaction."""
    database.alter_now(lambda connection: [connection.execute(text(statement)) for statement in statements])


def _key_of(url: str) -> Path | None:
    """The key of all tests, under a path of this database; null where there is none for all, as in a script of its own.

    Several databases are served at a time, and their logs have the same names. What was signed of one of them, which
    is remembered beside the key, is none of the past of another.
    """
    if "NORMATA_EVENT_KEY" not in os.environ:
        return None
    key = Path(os.environ["NORMATA_EVENT_KEY"])
    own = key.with_name(f"{sha256(url.encode()).hexdigest()}.event-key")
    if not own.exists():
        Signer(key).verifier("")  # which makes it
        shutil.copy(key, own)
    return own


@contextmanager
def served(url: str, **settings: Any) -> Iterator[Served]:
    """The application over the database at ``url``; with more settings than that where they are given.

    All tests have one address, and many send bad tokens from it on purpose, so that has no limit.
    """
    key = _key_of(url)
    chosen: dict[str, Any] = {"log_level": "error", "bad_token_limit": 0} | settings
    if key is not None:
        chosen.setdefault("event_key", str(key))
    whole = settings_for(url, **chosen)
    if not settings and (kept := to_lend(whole)) is not None:
        if key is not None:  # the marks are of what the database had before it was restored
            shutil.rmtree(f"{key}.marks", ignore_errors=True)
        with kept.served(whole) as (app, client):
            yield Served(url, app, client, kept.past)
        return
    app = create_app(whole)
    with closing(open_database(whole)) as database, TestClient(app) as client:
        yield Served(url, app, client, database)


def refused(response: Response, status: int, code: str) -> Problem:
    """The problem of an answer that must be a refusal of this status and code."""
    assert response.status_code == status, response.text[:500]
    assert response.headers["content-type"] == "application/json"
    problem: Problem = response.json()
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["requestId"] == response.headers["x-request-id"]
    return problem
