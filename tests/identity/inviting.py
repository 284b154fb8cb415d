"""Inviting people, and accepting for them, as the pages to sign in do it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from normata.core.changes.unit_of_work import Actor, UnitOfWork
from normata.core.db.database import Database
from normata.core.db.opening import open_database
from normata.core.http.roles import Role
from normata.identity.invitations import invitations
from normata.identity.invitations.invitations import ACCEPTING_WRITES, Invited, find_open, reach_of
from normata.settings import Settings
from normata.wiring import changes_of
from tests.databases import change
from tests.world import ALPHA

T = TypeVar("T")


def invite(database: Database, email: str, role: Role = "editor", organization_id: str = ALPHA) -> Invited:
    """A new invitation, as a command makes it."""
    return change(database, lambda unit: invitations.invite(unit, organization_id, email, role))


def as_service(url: str, work: Callable[[Database], Awaitable[T]]) -> T:
    """What ``work`` returns, with a database that has no more rights than the service."""

    async def run() -> T:
        database = open_database(Settings(database_url=url), serving=True)
        try:
            return await work(database)
        finally:
            await database.aclose()

    return asyncio.run(run())


def find(url: str, secret: str) -> Any | None:
    """The open invitation with this secret."""
    return as_service(url, lambda database: find_open(database, secret))


def accept_found(url: str, found: Any, name: str = "") -> str:
    """Accept an invitation that was found, within the rights and the reach that a page has; the id of the user."""

    def work(unit: UnitOfWork) -> str:
        return invitations.accept(unit, found, name)

    async def make(database: Database) -> str:
        reach = reach_of(found)
        actor = Actor(user_id=reach.users[0], user_name=name, request_id="accepting")
        return await changes_of(database).make(work, actor=actor, scope=reach, writes=ACCEPTING_WRITES)

    return as_service(url, make)


def accept(url: str, secret: str, name: str = "") -> str:
    """Accept the invitation with this secret; the id of the user."""
    found = find(url, secret)
    assert found is not None
    return accept_found(url, found, name)
