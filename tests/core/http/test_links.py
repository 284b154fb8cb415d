"""The links from each page of a list to the others (RFC 8288)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from httpx2 import Response

from normata.core.http.operation import ListOperation
from normata.core.http.read_endpoint import LONGEST_LINKED, page_links
from normata.core.schema.paging import MOST_COUNTED
from tests.core.http.crowd import crowd
from tests.core.http.samples import operations
from tests.listing import LISTS
from tests.served import Served, served
from tests.world import ALPHA

all_lists = operations(lambda operation: operation in LISTS)
kept_lists = operations(lambda operation: operation in LISTS and operation.cached)


def links(response: Response) -> dict[str, str]:
    """The addresses by their relations."""
    found = re.findall(r'<([^<>"\s]+)>; rel="(\w+)"(?:, |$)', response.headers["link"])
    assert ", ".join(f'<{address}>; rel="{name}"' for address, name in found) == response.headers["link"]
    return {name: address for address, name in found}


@pytest.fixture(scope="module")
def many(shared_url: str) -> Iterator[Served]:
    """A world that no test changes, with several pages of everything."""
    with served(shared_url, trust_forwarded_prefix=True) as service:
        service.load(crowd(17))
        service.wait_for_seals()
        yield service


@all_lists
def test_they_lead_through_the_whole_list(operation: ListOperation, many: Served) -> None:
    """Forwards by the cursor of each page, and by numbers to the first, the last and the one before."""
    headers = many.bearer("editor")
    everything = many.listing(operation.path, "editor").items(limit=100)
    response = many.client.get(operation.path, params={"organizationId": ALPHA, "limit": "5"}, headers=headers)
    first, last = links(response)["first"], links(response)["last"]
    assert "prev" not in links(response)
    items, number = response.json()["items"], 1
    while "next" in (found := links(response)):
        assert found["first"] == first
        answered, response = response, many.client.get(found["next"], headers=headers)
        items += response.json()["items"]
        number += 1
        assert response.json() | {"items": [], "page": 1} == answered.json() | {"items": [], "page": 1}
        assert response.json()["page"] == number
    assert items == everything
    ended = many.client.get(last, headers=headers)
    assert ended.json() == response.json()
    assert ended.headers["etag"] == response.headers["etag"]
    assert links(ended).keys() == {"first", "prev", "last"}
    before = many.client.get(links(ended)["prev"], headers=headers)
    assert before.json()["page"] == number - 1
    assert many.client.get(links(before)["next"], headers=headers).json() == response.json()
    assert many.client.get(first, headers=headers).json()["items"] == everything[:5]


@all_lists
def test_all_other_parameters_are_kept(operation: ListOperation, many: Served) -> None:
    """As they were sent, also what is repeated or not known; only what no address may have is escaped."""
    unknown = "x=%C3%BC&a[]=1&a[]=2&y=a+b&empty=&z" if operation.ignores_unknown else "lim%69t=7"
    sent = f"{unknown}&page=1&organizationId=org-alpha&limit=8&limit=5&%70age=2"
    response = many.client.get(f"{operation.path}?{sent}", headers=many.bearer("editor"))
    cached = f"{unknown.replace('[]', '%5B%5D')}&organizationId=org-alpha&limit=8&limit=5"
    address, _, cursor = links(response)["next"].rpartition("&cursor=")
    assert address == f"{operation.path}?{cached}"
    assert links(response)["prev"] == f"{address}&page=1"
    continued = many.client.get(links(response)["next"], headers=many.bearer("editor"))
    following = links(continued)["next"]
    assert following.startswith(f"{address}&cursor=")
    assert cursor not in following


@all_lists
def test_past_the_end_the_page_before_is_the_last(operation: ListOperation, many: Served) -> None:
    """Where pages have numbers so far."""
    headers = many.bearer("editor")
    number = "9" * 30 if operation.query.counts_all else str(MOST_COUNTED // 5)
    query = {"organizationId": ALPHA, "limit": "5", "page": number}
    found = links(many.client.get(operation.path, params=query, headers=headers))
    assert found.keys() == {"first", "prev", "last"}
    assert found["prev"] == found["last"]
    assert many.client.get(found["last"], headers=headers).json()["items"]


@all_lists
def test_a_head_has_what_a_get_has(operation: ListOperation, many: Served) -> None:
    headers = many.bearer("editor")
    address = f"{operation.path}?organizationId={ALPHA}&limit=5"
    for _ in range(2):
        got, asked = (many.client.request(method, address, headers=headers) for method in ("GET", "HEAD"))
        assert {name: got.headers[name] for name in ("link", "etag")} == {
            name: asked.headers[name] for name in ("link", "etag")
        }
        unchanged = many.client.get(address, headers=headers | {"If-None-Match": got.headers["etag"]})
        assert (unchanged.status_code, unchanged.headers["link"]) == (304, got.headers["link"])
        address = links(got)["next"]


@kept_lists
def test_a_kept_page_has_the_links_of_each_request(operation: ListOperation, many: Served) -> None:
    """Whatever prefix, path and spelling it comes with; the page itself is shared."""
    headers = many.bearer("viewer")
    bodies = set()
    for prefix in ("", "/one", "/two/three"):
        for path in (operation.path, operation.path.rstrip("/")):
            for query in (f"organizationId={ALPHA}&limit=5", f"limit=7&organizationId={ALPHA}&limit=5"):
                more = {"X-Forwarded-Prefix": prefix} if prefix else {}
                response = many.client.get(f"{path}?{query}", headers=headers | more)
                address, _, cursor = links(response)["next"].rpartition("&cursor=")
                assert address == f"{prefix}{path}?{query}"
                bodies.add((response.content, response.headers["etag"], cursor))
    assert len(bodies) == 1


@all_lists
def test_a_query_too_long_for_a_header_has_none(operation: ListOperation, many: Served) -> None:
    headers = many.bearer("editor")
    start = f"organizationId={ALPHA}&limit="
    for length, linked in ((LONGEST_LINKED, True), (LONGEST_LINKED + 1, False)):
        query = f"{start}{'5':0>{length - len(start)}}"
        response = many.client.get(f"{operation.path}?{query}", headers=headers)
        assert response.status_code == 200
        assert ("link" in response.headers) == linked


@pytest.mark.parametrize(
    ("page", "last", "cursor", "found"),
    [
        (1, 1, None, {"first": "page=1", "last": "page=1"}),
        (2, 1, None, {"first": "page=1", "prev": "page=1", "last": "page=1"}),
        (1, 2, "x", {"first": "page=1", "next": "cursor=x", "last": "page=2"}),
        (2, 2, None, {"first": "page=1", "prev": "page=1", "last": "page=2"}),
        (7, 2, None, {"first": "page=1", "prev": "page=2", "last": "page=2"}),
        (2, 3, "x", {"first": "page=1", "prev": "page=1", "next": "cursor=x", "last": "page=3"}),
        (2, None, "x", {"first": "page=1", "prev": "page=1", "next": "cursor=x"}),
        (None, 3, "x", {"first": "page=1", "next": "cursor=x"}),
        (None, 3, None, {"first": "page=1"}),
    ],
)
def test_which_pages_there_are(page: int | None, last: int | None, cursor: str | None, found: dict[str, str]) -> None:
    expected = ", ".join(f'</p/?{place}>; rel="{name}"' for name, place in found.items())
    assert page_links("/p/", b"cursor=y", page, last, cursor).decode() == expected


def test_nothing_leaves_the_header() -> None:
    """Whatever somebody has sent as an address."""
    value = page_links('/a>"<b\xff/', b'x=>;rel="next",<y\xff&&page', 1, 2, "z").decode("ascii")
    assert value.startswith("</a%3E%22%3Cb%FF/?x=%3E;rel=%22next%22,%3Cy%FF&page=1>; ")
