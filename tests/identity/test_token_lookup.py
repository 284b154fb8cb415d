"""The token lookup: whose token it is and where they are a member, for each token that is asked for and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from normata.core.changes.revisions import ListRevision
from normata.core.db.database import Database
from normata.core.db.opening import open_database
from normata.frameworks.model import Framework
from normata.identity.tokens.lookup import TOKEN_LOOKUP
from normata.identity.tokens.tokens import digest, generate
from normata.settings import Settings
from tests import stored, world
from tests.conftest import MakeToken
from tests.databases import on_both, tamper
from tests.world import ALPHA, BETA

Asked = tuple[str, str | None, str | None]

LIST = min(Framework.shown_in)


def look_up(url: str, *asked: Asked) -> list[Sequence[Any]]:
    """The answers to lookups that the service asks for at the same moment."""

    async def together() -> list[Sequence[Any]]:
        database = open_database(Settings(database_url=url), serving=True)
        try:
            return await asyncio.gather(*(database.look_up(TOKEN_LOOKUP, *one) for one in asked))
        finally:
            await database.aclose()

    return asyncio.run(together())


@on_both
def test_each_token_is_told_of_its_own_users_memberships_only(
    database: Database, database_url: str, make_token: MakeToken
) -> None:
    """Though those of others are asked for at the same time."""
    guest = {"id": "guest", "organizationId": BETA, "userId": "user-editor", "role": "viewer"}
    world.load(database, {"memberships": [guest]})
    editor, foreigner, nobody = (digest(make_token(user)) for user in ("editor", "foreigner", "nobody"))
    asked: list[tuple[str, str | None]] = [
        (editor, None),
        (editor, BETA),
        (foreigner, ALPHA),
        (digest(generate()), ALPHA),
        (nobody, None),
        (foreigner, None),
        ("", None),
        (editor, "org-gone"),
        (editor, None),
    ]
    answers = look_up(database_url, *((token, organization, None) for token, organization in asked))
    assert [[(row.user_id, row.organization_id, row.role) for row in rows] for rows in answers] == [
        [("user-editor", ALPHA, "editor"), ("user-editor", BETA, "viewer")],
        [("user-editor", BETA, "viewer")],
        [("user-foreigner", None, None)],
        [],
        [("user-nobody", None, None)],
        [("user-foreigner", BETA, "owner")],
        [],
        [("user-editor", None, None)],
        [("user-editor", ALPHA, "editor"), ("user-editor", BETA, "viewer")],
    ]


@on_both
def test_it_tells_all_that_a_request_needs_to_know(
    database: Database, database_url: str, make_token: MakeToken
) -> None:
    token = make_token("viewer", scope="read")
    tamper(database, "UPDATE access_token SET last_used_at = '2026-03-04T05:06:07.890Z'")
    (kept,) = stored.tokens(database)
    ((row,),) = look_up(database_url, (digest(token), ALPHA, None))
    assert row._asdict() == {
        "user_id": "user-viewer",
        "user_name": "Viewer",
        "token_id": kept["id"],
        "scope": "read",
        "narrowed_to": None,
        "last_used_at": "2026-03-04T05:06:07.890Z",
        "expires_at": kept["expires_at"],
        "organization_id": ALPHA,
        "role": "viewer",
        "member_until": None,
        "revision": None,
    }


@on_both
def test_the_revision_is_that_of_the_list_and_the_organization(
    database: Database, database_url: str, make_token: MakeToken
) -> None:
    world.load(
        database, {"memberships": [{"id": "guest", "organizationId": BETA, "userId": "user-editor", "role": "viewer"}]}
    )
    token = digest(make_token("editor"))
    kept = stored.everything(database)[str(ListRevision.__tablename__)]
    revisions = {(row["organization_id"], row["list"]): row["revision"] for row in kept}
    alpha, both, unknown, away = look_up(
        database_url, (token, ALPHA, LIST), (token, None, LIST), (token, ALPHA, "nothing"), (token, "org-gone", LIST)
    )
    assert [row.revision for row in alpha] == [revisions[ALPHA, LIST]]
    assert [row.revision for row in both] == [revisions[ALPHA, LIST], revisions[BETA, LIST]]
    assert [row.revision for row in (*unknown, *away)] == [None, None]


@on_both
def test_a_revoked_token_is_told_nothing_and_an_expired_one_when_it_ended(
    database: Database, database_url: str, make_token: MakeToken
) -> None:
    """Also when it is asked for together with another of the same user."""
    revoked, good = digest(make_token("editor")), digest(make_token("editor"))
    expired = digest(make_token("viewer", lifetime=timedelta(days=-1)))
    endless = digest(make_token("owner", lifetime=None))
    tamper(database, f"UPDATE access_token SET revoked_at = '2026-01-01T00:00:00.000Z' WHERE digest = '{revoked}'")
    asked: list[Asked] = [(token, ALPHA, LIST) for token in (revoked, expired, good, endless)]
    first, second, third, fourth = look_up(database_url, *asked)
    assert first == []
    (kept,) = stored.tokens(database, digest=expired)
    assert [row.expires_at for row in second] == [kept["expires_at"]]
    assert [row.user_id for row in third] == ["user-editor"]
    assert [row.expires_at for row in fourth] == [None]


@on_both
def test_a_revocation_is_in_the_next_answer(database: Database, database_url: str, make_token: MakeToken) -> None:
    """Nothing of an answer is kept, by no process."""
    token = digest(make_token("editor"))

    async def ask() -> list[int]:
        serving = open_database(Settings(database_url=database_url), serving=True)
        try:
            before = await serving.look_up(TOKEN_LOOKUP, token, ALPHA, None)
            await asyncio.to_thread(tamper, database, "UPDATE access_token SET revoked_at = '2026-01-01T00:00:00.000Z'")
            after = await serving.look_up(TOKEN_LOOKUP, token, ALPHA, None)
        finally:
            await serving.aclose()
        return [len(before), len(after)]

    assert asyncio.run(ask()) == [1, 0]
