"""The one question that every request asks: whose token is this, and where may its user go?

It is asked so often that it has a road of its own, past SQLAlchemy and past transactions: on SQLite a statement that is
prepared once, on PostgreSQL a function that answers for all requests that are waiting, in one round trip.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from normata.database.gathering import Gathering


class Admission(NamedTuple):
    """The owner of a token that has not been revoked, with one of the owner's organizations and its revision.

    Both are null where there is none to tell. Times are the wire's texts.
    """

    user_id: str
    user_name: str
    token_id: str
    scope: str
    last_used_at: str | None
    expires_at: str | None
    organization_id: str | None
    revision: str | None


def question(digest: str, organization: str, *, asked: str = "", number: str = "") -> str:
    """The statement whose rows are admissions, for SQL expressions of a digest and an organization (null: all).

    Where several are asked at once, ``asked`` is the table that they come from and ``number`` tells them apart.
    """
    return (
        f"SELECT {number and number + ','} token.user_id, account.name, token.id, token.scope, token.last_used_at,"  # noqa: S608 - of our own making
        " token.expires_at, membership.organization_id, organization.revision"
        f" FROM {asked and asked + ' JOIN'} access_token AS token {asked and 'ON token.digest = ' + digest}"
        " JOIN user_account AS account ON account.id = token.user_id"
        " LEFT JOIN membership ON membership.user_id = token.user_id"
        f" AND ({organization} IS NULL OR membership.organization_id = {organization})"
        " LEFT JOIN organization ON organization.id = membership.organization_id"
        f" WHERE token.digest = {digest} AND token.revoked_at IS NULL"
        f" ORDER BY {number and number + ','} membership.organization_id"
    )


Ask = Callable[[list[str], list[str | None]], Awaitable[Sequence[tuple[int, Admission]]]]


class Counter:
    """Asks for many at once, see :class:`Gathering`.

    ``ask`` takes digests and organizations, and returns the admissions of all, each with the number of its digest,
    from 1.
    """

    def __init__(self, ask: Ask, patience: float) -> None:
        self._ask = ask
        self._gathering = Gathering(self._ask_for_all, patience)

    async def admit(self, digest: str, organization_id: str | None) -> list[Admission]:
        """The admissions of one token; raises what ``ask`` raises, and Unavailable."""
        return await self._gathering.ask((digest, organization_id))

    async def _ask_for_all(self, asked: Sequence[tuple[str, str | None]]) -> list[list[Admission]]:
        found = await self._ask([digest for digest, _ in asked], [organization_id for _, organization_id in asked])
        admissions: list[list[Admission]] = [[] for _ in asked]
        for number, admission in found:
            admissions[number - 1].append(admission)
        return admissions
