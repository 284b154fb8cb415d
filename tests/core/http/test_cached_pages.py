"""Pages that a process keeps, as clients see them: for which queries and for whom; and none differs from a new one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from httpx2 import Response

from normata.core.http.operation import ListOperation
from normata.core.schema.table import table_named
from normata.identity.tokens import tokens
from tests import world
from tests.core.http.counting import counting
from tests.core.http.samples import enough, families, operations, sample
from tests.listing import LISTS
from tests.served import Headers, Served, removal_of, served
from tests.world import ALPHA, BETA

KEPT = [operation for operation in LISTS if operation.cached]
all_lists = families(lambda operation: operation in LISTS)
kept_lists = operations(lambda operation: operation in KEPT)


def ask(service: Served, operation: ListOperation, headers: Headers, organization_id: str = ALPHA) -> Response:
    """The answer to the plain query of a list."""
    return sample(operation, organization_id).send(service.client, headers)


def bytes_kept(service: Served) -> int:
    """How much the process keeps."""
    return service.app.services.pages.bytes


@kept_lists
@pytest.mark.parametrize(("mebibytes", "keeps"), [(0, False), (1, True)])
def test_the_limit_is_a_setting(operation: ListOperation, mebibytes: int, keeps: bool, database_url: str) -> None:
    with served(database_url, page_cache_mib=mebibytes) as service:
        headers = service.bearer("viewer")
        for number in (1, 1, *range(1, 30)):
            request = sample(operation)
            request = request.but(query=request.query | {"page": str(number)})
            assert request.send(service.client, headers).status_code == 200
            assert (bytes_kept(service) > 0) is keeps
        assert bytes_kept(service) <= mebibytes * 2**20


@families(lambda operation: operation in LISTS and operation not in KEPT)
def test_other_lists_are_not_kept(operation: ListOperation, service: Served) -> None:
    ask(service, operation, service.bearer("editor"))
    assert bytes_kept(service) == 0


@kept_lists
def test_whatever_a_kept_list_shows_advances_its_revision(
    operation: ListOperation, shared: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each table that it reads says that it is shown there; or it follows from tables that do."""
    read: set[str] = set()
    with served(shared.url, page_cache_mib=0) as forgetter:
        headers = forgetter.bearer("viewer")
        for query in queries(operation):
            with counting(forgetter.app.services.database, monkeypatch) as asked:
                address = f"{operation.path}?organizationId={ALPHA}&{query}"
                assert forgetter.client.get(address, headers=headers).status_code == 200
            read |= asked.tables
    tables = {name: table_named(name) for name in read}
    silent = {name for name, table in tables.items() if operation.cached not in table.shown_in}
    assert all(not tables[name].published for name in silent), f"changes of {silent} would not be seen"
    assert len(silent) < len(read)


# --- For which queries

# Each line asks the same in several ways.
ALIKE = {
    "listControls": [
        ["", "limit=100", "page=1&limit=100", "limit=100&page=1", "page=01", "limit=5&limit=100", "unknown=x"],
        ["search=A.1&limit=7", "limit=7&search=A.1", "limit=7&search=%20A.1%20", "search=A%2E1&limit=7",
         "search=x&search=A.1&limit=7"],
        ["frameworks=own&frameworks=SUN-2", "frameworks[]=own&frameworks[]=SUN-2",
         "frameworks[0]=own&frameworks[1]=SUN-2", "frameworks%5B%5D=own&frameworks%5B%5D=SUN-2",
         "frameworks[]=own&frameworks=SUN-2"],
        ["sortColumn=name&sortDirection=desc", "sortDirection=desc&sortColumn=name"],
    ],
    "listFrameworks": [
        ["", "includeUserDefined=true", "adoptedOnly=false&includeUserDefined=TRUE", "adoptedOnly=False&page=1"],
        ["adoptedOnly=true&search=s", "search=s&adoptedOnly=true", "search=s&adoptedOnly=True&limit=100"],
    ],
}  # fmt: skip


@kept_lists
def test_what_asks_the_same_is_kept_once(operation: ListOperation, service: Served) -> None:
    headers = service.bearer("viewer") | {"Accept-Encoding": "identity"}
    for spellings in ALIKE.get(operation.operation_id, [["", "limit=100", "page=1&limit=100", "limit=5&limit=100"]]):
        sizes, answers = set(), set()
        for spelling in spellings:
            for address in (operation.path, operation.path.rstrip("/")):
                answer = service.client.get(f"{address}?organizationId={ALPHA}&{spelling}", headers=headers)
                assert answer.status_code == 200
                answers.add((answer.headers["etag"], answer.content))
                sizes.add(bytes_kept(service))
        assert len(answers) == 1
        assert len(sizes) == 1, f"one page for all of {spellings}"


def queries(operation: ListOperation) -> Iterator[str]:
    """Many queries of a list."""
    properties: dict[str, dict[str, Any]] = operation.query.model_json_schema(by_alias=True)["properties"]
    yield ""
    for name, schema in properties.items():
        choices = [schema, *schema.get("anyOf", ())]
        if any(choice.get("type") == "boolean" for choice in choices):
            yield from (f"{name}=true", f"{name}=false")
        for choice in choices:
            no_page = name == "format" or (name == "kind" and "id" in properties)  # both, or neither
            for value in () if no_page else choice.get("enum", ()):
                ways = ("&sortDirection=asc", "&sortDirection=desc") if "sortDirection" in properties else ("",)
                yield from (f"{name}={value}{way}&limit=6&page=2" for way in ways)
    for limit in (5, 17, 100):
        for number in (1, 2, 3, 9, *((10**6, 10**20) if operation.query.counts_all else ())):
            yield f"limit={limit}&page={number}"
    if "search" in properties:
        for search in ("standard", "ÉTÉ", "50%25", "\\", "a 1", "no such thing", "x" * 200):
            yield f"search={search}"
    if "frameworks" in properties:
        yield from (f"frameworks={chosen}" for chosen in ("own", "own,SUN-2", "", "star"))
        yield "frameworks[3]=fw-moon&limit=5"
        yield "&".join(f"frameworks[]=fw-{number:05}" for number in range(500)) + "&frameworks[]=fw-own"


@all_lists
def test_what_is_kept_is_what_would_be_made_anew(operation: ListOperation, shared: Served) -> None:
    """The same to the byte, in whatever coding, from a process that keeps pages and from one that does not."""
    headers = shared.bearer("editor")
    with served(shared.url, page_cache_mib=0) as forgetter:
        for query in queries(operation):
            address = f"{operation.path}?organizationId={ALPHA}&{query}"
            fresh = forgetter.client.get(address, headers=headers)
            assert fresh.status_code == 200, query
            for coding in ("identity", "gzip", "identity"):
                answer = shared.client.get(address, headers=headers | {"Accept-Encoding": coding})
                assert (answer.status_code, answer.content) == (200, fresh.content), (query, coding)
        assert bytes_kept(forgetter) == 0


@all_lists
def test_a_long_query_is_understood(operation: ListOperation, shared: Served) -> None:
    """Such as 40 kB of it, twice: what is too long to be remembered is read anew."""
    headers = shared.bearer("viewer")
    padding = "&".join(["limit=5"] * 5_000)
    short, *long = (
        shared.client.get(f"{operation.path}?organizationId={ALPHA}&limit=5{more}", headers=headers)
        for more in ("", f"&{padding}", f"&{padding}")
    )
    assert [answer.status_code for answer in long] == [200, 200]
    assert [answer.content for answer in long] == [short.content] * 2
    wrong = shared.client.get(f"{operation.path}?organizationId={ALPHA}&{padding}&limit=4", headers=headers)
    assert wrong.status_code == 400


# --- For whom


@kept_lists
def test_members_of_an_organization_share_what_is_kept(operation: ListOperation, service: Served) -> None:
    first = ask(service, operation, service.bearer("editor"))
    size = bytes_kept(service)
    assert size > 0
    for role in world.ROLES:
        answer = ask(service, operation, service.bearer(role, scope="read"))
        assert (answer.content, answer.headers["etag"]) == (first.content, first.headers["etag"])
    assert bytes_kept(service) == size


@all_lists
def test_organizations_do_not_share_what_is_kept(operation: ListOperation, service: Served) -> None:
    """Also for one who is a member of both, and asks for the one and the other in turns."""
    service.load({"memberships": [{"id": "second", "organizationId": BETA, "userId": "user-editor"}]})
    both, foreigner = service.bearer("editor"), service.bearer("foreigner")
    alphas, betas = (ask(service, operation, both, organization) for organization in (ALPHA, BETA))
    assert alphas.json() != betas.json()
    for _ in range(2):
        assert ask(service, operation, both, ALPHA).content == alphas.content
        assert ask(service, operation, both, BETA).content == betas.content
        assert operation not in KEPT or ask(service, operation, foreigner, BETA).content == betas.content
        assert ask(service, operation, foreigner, ALPHA).status_code == 404


@all_lists
def test_nobody_else_is_sent_what_is_kept(operation: ListOperation, service: Served) -> None:
    """Neither who is no member, nor who was one, nor with a token that is no good any more; each from one moment on."""

    def status(headers: Headers) -> int:
        return ask(service, operation, headers).status_code

    owner = service.bearer("owner")
    assert status(owner) == 200
    for stranger in ("foreigner", "nobody"):
        assert status(service.bearer(stranger)) == 404
    assert status({}) == 401
    assert status({"Authorization": f"Bearer {tokens.generate()}"}) == 401

    viewer = service.bearer("viewer")
    assert status(viewer) == 200
    service.sql(*removal_of("member-viewer"))
    assert status(viewer) == 404

    revoked = service.token("editor")
    assert status({"Authorization": f"Bearer {revoked}"}) == 200
    service.revoke(revoked)
    assert status({"Authorization": f"Bearer {revoked}"}) == 401

    expired = service.bearer("admin", lifetime=timedelta(days=1))
    assert status(expired) == 200
    service.sql(f"UPDATE access_token SET expires_at = '{world.EARLIER}' WHERE user_id = 'user-admin'")
    assert status(expired) == 401
    assert status(owner) == 200


def test_notifications_are_each_users_own(service: Served) -> None:
    (inbox,) = (operation for operation in LISTS if operation.path == "/notifications/")
    headers = {user: service.bearer(user) for user in world.ROLES}
    seen = {user: ask(service, inbox, headers[user]).json() for user in world.ROLES}
    totals = {user: body["total"] for user, body in seen.items()}
    assert totals == {"owner": 2, "admin": 2, "editor": 12, "auditor": 2, "viewer": 2}
    for user in (*world.ROLES, *reversed(world.ROLES)):
        assert ask(service, inbox, headers[user]).json() == seen[user]


@all_lists
def test_one_who_has_become_a_member_is_sent_it_at_once(operation: ListOperation, service: Served) -> None:
    headers = service.bearer("nobody")
    assert ask(service, operation, service.bearer(enough(operation))).status_code == 200
    assert ask(service, operation, headers).status_code == 404
    service.load({"memberships": [{"id": "late", "organizationId": ALPHA, "userId": "user-nobody", "role": "viewer"}]})
    assert ask(service, operation, headers).status_code == 200
