"""Pages that a process keeps: how many, for which queries, for whom, and that they are what would be made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import Response
from pydantic import ValidationError
from sqlalchemy import delete, update
from starlette.testclient import TestClient

from normata.app import create_app
from normata.database import Database
from normata.identity import tokens
from normata.identity.model import AccessToken, Membership
from normata.pages import KeptPages, Page
from normata.settings import Settings
from tests import stored, world
from tests.databases import open_url
from tests.listing import LISTS
from tests.world import ALPHA, BETA

Add = Callable[[dict[str, list[dict[str, Any]]]], None]
Bearer = Callable[..., dict[str, str]]

KEPT = LISTS[:2]
all_lists = pytest.mark.parametrize("path", LISTS)
kept_lists = pytest.mark.parametrize("path", KEPT)


# --- How many


def page(size: int, revision: str = "now") -> Page:
    """A page that takes so many bytes."""
    made = Page(revision, b"x" * (size - 1_000))
    assert made.size == size
    return made


def kept(pages: KeptPages, *keys: str) -> list[str]:
    return [key for key in keys if pages.find(key, "now") is not None]


def test_a_page_is_found_for_its_revision_only() -> None:
    pages = KeptPages(10_000)
    first = page(2_000, "one")
    pages.keep("key", first)
    assert pages.find("key", "one") is first
    assert pages.find("key", "two") is None
    assert pages.find("key", "") is None
    assert pages.find("other", "one") is None
    second = page(3_000, "two")
    pages.keep("key", second)
    assert pages.find("key", "one") is None
    assert pages.find("key", "two") is second
    assert pages.bytes == 3_000 + len("key")


def test_they_take_no_more_than_the_limit() -> None:
    pages = KeptPages(10_000)
    for number in range(100):
        pages.keep(str(number), page(1_500 + number))
        assert pages.bytes <= 10_000
    assert kept(pages, *map(str, range(100))) == [str(number) for number in range(94, 100)]


def test_the_one_that_nobody_has_asked_for_longest_goes_first() -> None:
    pages = KeptPages(6_000 + len("abc"))
    for key in "abc":
        pages.keep(key, page(2_000))
    assert pages.find("a", "now") is not None
    pages.keep("d", page(2_000))
    assert kept(pages, *"abcd") == ["a", "c", "d"]
    pages.keep("e", page(4_000))
    assert kept(pages, *"abcde") == ["d", "e"]


def test_to_look_for_another_revision_is_no_use_of_a_page() -> None:
    pages = KeptPages(4_000 + len("new" + "third"))
    pages.keep("old", page(2_000))
    pages.keep("new", page(2_000))
    assert pages.find("old", "another") is None
    pages.keep("third", page(2_000))
    assert kept(pages, "old", "new", "third") == ["new", "third"]


def test_a_page_larger_than_the_limit_is_not_kept_and_displaces_nobody_else() -> None:
    pages = KeptPages(5_000 + len("exact"))
    pages.keep("small", page(2_000))
    pages.keep("large", page(5_001))
    assert kept(pages, "small", "large") == ["small"]
    pages.keep("small", page(5_001))
    assert kept(pages, "small") == []
    assert pages.bytes == 0
    pages.keep("exact", page(5_000))
    assert kept(pages, "exact") == ["exact"]


def test_what_a_page_is_packed_into_counts() -> None:
    pages = KeptPages(100_000)
    growing = Page("now", bytes(range(256)) * 100)
    pages.keep("key", growing)
    before = pages.bytes
    for coding in ("zstd", "br", "gzip", "identity"):
        growing.representations[coding] = growing.packed(coding)
        pages.keep("key", growing)
        assert pages.bytes == growing.size + len("key")
    packed = sum(len(growing.representations[coding].body) for coding in ("zstd", "br", "gzip"))
    assert pages.bytes == before + packed


def test_a_page_that_outgrows_the_limit_goes() -> None:
    growing = Page("now", b"x" * 4_000)
    pages = KeptPages(growing.size + len("key"))
    pages.keep("key", growing)
    assert kept(pages, "key") == ["key"]
    growing.representations["gzip"] = growing.packed("gzip")
    pages.keep("key", growing)
    assert kept(pages, "key") == []
    assert pages.bytes == 0


def test_a_limit_of_nothing_keeps_nothing() -> None:
    pages = KeptPages(0)
    pages.keep("key", Page("now", b""))
    assert kept(pages, "key") == []
    assert pages.bytes == 0


@pytest.mark.parametrize("value", ["-1", "x", "1.5", "65537", ""])
def test_refused_values_of_the_setting(value: str) -> None:
    with pytest.raises(ValidationError):
        Settings(page_cache_mib=value)


@kept_lists
@pytest.mark.parametrize(("mebibytes", "keeps"), [(0, False), (1, True)])
def test_the_limit_is_a_setting(path: str, mebibytes: int, keeps: bool, database_url: str, bearer: Bearer) -> None:
    app = create_app(Settings(database_url=database_url, log_level="error", page_cache_mib=mebibytes))
    headers = bearer("viewer")
    with TestClient(app) as client:
        for number in (1, 1, *range(1, 200)):
            query = {"organizationId": ALPHA, "page": number}
            assert client.get(path, params=query, headers=headers).status_code == 200
            assert (app.state.pages.bytes > 0) is keeps
    assert app.state.pages.bytes <= mebibytes * 2**20


def test_notifications_are_not_kept(application: FastAPI, client: TestClient, bearer: Bearer) -> None:
    """Restores add some without a new revision."""
    client.get("/notifications/", params={"organizationId": ALPHA}, headers=bearer("editor"))
    assert application.state.pages.bytes == 0


# --- For which queries

# Each line asks the same in several ways.
ALIKE = {
    "/controls/": [
        ["", "limit=100", "page=1&limit=100", "limit=100&page=1", "page=01", "limit=5&limit=100", "unknown=x"],
        ["search=A.1&limit=7", "limit=7&search=A.1", "limit=7&search=%20A.1%20", "search=A%2E1&limit=7",
         "search=x&search=A.1&limit=7"],
        ["frameworks=own&frameworks=SUN-2", "frameworks[]=own&frameworks[]=SUN-2",
         "frameworks[0]=own&frameworks[1]=SUN-2", "frameworks%5B%5D=own&frameworks%5B%5D=SUN-2",
         "frameworks[]=own&frameworks=SUN-2"],
        ["sortColumn=name&sortDirection=desc", "sortDirection=desc&sortColumn=name"],
    ],
    "/frameworks/": [
        ["", "includeUserDefined=true", "adoptedOnly=false&includeUserDefined=TRUE", "adoptedOnly=False&page=1"],
        ["adoptedOnly=true&search=s", "search=s&adoptedOnly=true", "search=s&adoptedOnly=True&limit=100"],
    ],
}  # fmt: skip


@kept_lists
def test_what_asks_the_same_is_kept_once(path: str, application: FastAPI, client: TestClient, bearer: Bearer) -> None:
    headers = bearer("viewer") | {"Accept-Encoding": "identity"}
    for spellings in ALIKE[path]:
        sizes, answers = set(), set()
        for spelling in spellings:
            for address in (path, path.rstrip("/")):
                answer = client.get(f"{address}?organizationId={ALPHA}&{spelling}", headers=headers)
                assert answer.status_code == 200
                answers.add((answer.headers["etag"], answer.content))
                sizes.add(application.state.pages.bytes)
        assert len(answers) == 1
        assert len(sizes) == 1, f"one page for all of {spellings}"


def queries(path: str) -> Iterator[str]:
    """Many queries of a list."""
    yield ""
    columns = {
        "/controls/": ("identifier", "name", "slug", "type", "framework", "isMandatory", "coverageStatus", "createdAt"),
        "/frameworks/": ("name", "identifier", "slug", "version", "controls", "adoptedAt", "publishedAt"),
    }.get(path, ())
    for column in columns:
        for direction in ("asc", "desc"):
            yield f"sortColumn={column}&sortDirection={direction}&limit=6&page=2"
    for limit in (5, 17, 100):
        for number in (1, 2, 3, 9, 10**6, 10**20):
            yield f"limit={limit}&page={number}"
    if path != "/notifications/":
        for search in ("standard", "ÉTÉ", "50%25", "\\", "a 1", "no such thing", "x" * 200):
            yield f"search={search}"
    if path == "/controls/":
        yield from (
            "frameworks=own",
            "frameworks=own,SUN-2",
            "frameworks[3]=fw-moon&limit=5",
            "frameworks=",
            "frameworks=star",
        )
        yield "&".join(f"frameworks[]=fw-{number:05}" for number in range(500)) + "&frameworks[]=fw-own"
    if path == "/frameworks/":
        yield from ("includeUserDefined=false", "adoptedOnly=true", "includeUserDefined=false&adoptedOnly=true")
    if path == "/notifications/":
        yield from ("unreadOnly=true", "unreadOnly=false")


@all_lists
def test_what_is_kept_is_what_would_be_made_anew(path: str, shared_url: str) -> None:
    """The same to the byte, in whatever coding, from a process that keeps pages and from one that does not."""
    database = open_url(shared_url)
    token = database.write_now(
        lambda connection: tokens.create(connection, email=world.USERS["editor"], scope="read", lifetime=None)
    )
    database.close()
    headers = {"Authorization": f"Bearer {token}"}
    keeping, forgetting = (
        create_app(Settings(database_url=shared_url, log_level="error", page_cache_mib=size)) for size in (32, 0)
    )
    with TestClient(keeping) as keeper, TestClient(forgetting) as forgetter:
        for query in queries(path):
            address = f"{path}?organizationId={ALPHA}&{query}"
            fresh = forgetter.get(address, headers=headers)
            assert fresh.status_code == 200, query
            for coding in ("identity", "zstd", "br", "gzip", "identity"):
                answer = keeper.get(address, headers=headers | {"Accept-Encoding": coding})
                assert (answer.status_code, answer.content) == (200, fresh.content), (query, coding)
    assert forgetting.state.pages.bytes == 0


@kept_lists
def test_a_long_query_is_understood(path: str, client: TestClient, bearer: Bearer) -> None:
    """Such as 40 kB of it, twice: what is too long to be remembered is read anew."""
    headers = bearer("viewer")
    padding = "&".join(f"unknown{number}={'x' * 100}" for number in range(400))
    short, *long = (
        client.get(f"{path}?organizationId={ALPHA}&limit=5{more}", headers=headers)
        for more in ("", f"&{padding}", f"&{padding}")
    )
    assert [answer.status_code for answer in long] == [200, 200]
    assert [answer.content for answer in long] == [short.content] * 2
    assert client.get(f"{path}?organizationId={ALPHA}&limit=4&{padding}", headers=headers).status_code == 400


# --- For whom


Ask = Callable[..., Response]


@pytest.fixture
def ask(client: TestClient) -> Ask:
    """Asks for a list of an organization: ``ask(path, headers, ALPHA)``."""

    def one(path: str, headers: dict[str, str], organization_id: str = ALPHA) -> Response:
        return client.get(path, params={"organizationId": organization_id}, headers=headers)

    return one


@kept_lists
def test_members_of_an_organization_share_what_is_kept(
    path: str, application: FastAPI, ask: Ask, bearer: Bearer
) -> None:
    first = ask(path, bearer("editor"))
    size = application.state.pages.bytes
    assert size > 0
    for role in world.ROLES:
        answer = ask(path, bearer(role, scope="read"))
        assert (answer.content, answer.headers["etag"]) == (first.content, first.headers["etag"])
    assert application.state.pages.bytes == size


@all_lists
def test_organizations_do_not_share_what_is_kept(path: str, ask: Ask, bearer: Bearer, add: Add) -> None:
    """Also for one who is a member of both, and asks for the one and the other in turns."""
    add({"memberships": [{"id": "second", "organizationId": BETA, "userId": "user-editor", "role": "viewer"}]})
    both, foreigner = bearer("editor"), bearer("foreigner")
    alphas = ask(path, both, ALPHA)
    betas = ask(path, both, BETA)
    assert alphas.json() != betas.json()
    for _ in range(2):
        assert ask(path, both, ALPHA).content == alphas.content
        assert ask(path, both, BETA).content == betas.content
        assert path == "/notifications/" or ask(path, foreigner, BETA).content == betas.content
        assert ask(path, foreigner, ALPHA).status_code == 404


@all_lists
def test_nobody_else_is_given_what_is_kept(path: str, ask: Ask, bearer: Bearer, database: Database) -> None:
    """Not who is no member, nor who was one, nor with a token that is not good any more; each from one moment on."""
    assert ask(path, bearer("owner")).status_code == 200
    for stranger in ("foreigner", "nobody"):
        assert ask(path, bearer(stranger)).status_code == 404
    assert ask(path, {}).status_code == 401
    assert ask(path, {"Authorization": f"Bearer {tokens.generate()}"}).status_code == 401

    viewer = bearer("viewer")
    assert ask(path, viewer).status_code == 200
    database.write_now(lambda c: c.execute(delete(Membership).where(Membership.id == "member-viewer")))
    assert ask(path, viewer).status_code == 404

    for user, column, moment in (("editor", "revoked_at", world.EARLIER), ("admin", "expires_at", world.EARLIER)):
        headers = bearer(user, lifetime=timedelta(days=1))
        assert ask(path, headers).status_code == 200
        token_id = next(row["id"] for row in stored.rows(database, AccessToken, user_id=f"user-{user}"))
        database.write_now(
            lambda c, token_id=token_id, column=column, moment=moment: c.execute(  # type: ignore[misc]
                update(AccessToken).where(AccessToken.id == token_id).values({column: moment})
            )
        )
        assert ask(path, headers).status_code == 401
    assert ask(path, bearer("owner")).status_code == 200


def test_notifications_are_each_users_own(ask: Ask, bearer: Bearer) -> None:
    seen = {user: ask("/notifications/", bearer(user)).json() for user in world.ROLES}
    assert {user: body["total"] for user, body in seen.items()} == {"owner": 0, "admin": 0, "editor": 12, "viewer": 1}
    for user in (*world.ROLES, *reversed(world.ROLES)):
        assert ask("/notifications/", bearer(user)).json() == seen[user]
