"""The links from each page of a list to the others (RFC 8288)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from httpx2 import Response

from normata.core.http.operation import ListOperation
from normata.core.http.read_endpoint import LONGEST_LINKED, page_links
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
        yield service


@all_lists
def test_they_lead_through_the_whole_list(operation: ListOperation, many: Served) -> None:
    headers = many.bearer("editor")
    everything = many.listing(operation.path, "editor").items(limit=100)
    response = many.client.get(operation.path, params={"organizationId": ALPHA, "limit": "5"}, headers=headers)
    first, last = links(response)["first"], links(response)["last"]
    assert "prev" not in links(response)
    items, back = response.json()["items"], []
    while "next" in (found := links(response)):
        assert (found["first"], found["last"]) == (first, last)
        response = many.client.get(found["next"], headers=headers)
        items += response.json()["items"]
        back.append(links(response)["prev"])
    assert items == everything
    assert many.client.get(last, headers=headers).json() == response.json()
    assert many.client.get(back[0], headers=headers).json()["page"] == 1
    assert many.client.get(first, headers=headers).json()["items"] == everything[:5]


@all_lists
def test_all_other_parameters_are_kept(operation: ListOperation, many: Served) -> None:
    """As they were sent, also what is repeated or not known; only what no address may have is escaped."""
    sent = "x=%C3%BC&page=1&organizationId=org-alpha&a[]=1&a[]=2&limit=5&%70age=2&y=a+b&empty=&z"
    response = many.client.get(f"{operation.path}?{sent}", headers=many.bearer("editor"))
    cached = "x=%C3%BC&organizationId=org-alpha&a%5B%5D=1&a%5B%5D=2&limit=5&y=a+b&empty=&z"
    assert links(response)["next"] == f"{operation.path}?{cached}&page=3"
    assert links(response)["prev"] == f"{operation.path}?{cached}&page=1"


@all_lists
def test_past_the_end_the_page_before_is_the_last(operation: ListOperation, many: Served) -> None:
    headers = many.bearer("editor")
    query = {"organizationId": ALPHA, "limit": "5", "page": "9" * 30}
    found = links(many.client.get(operation.path, params=query, headers=headers))
    assert found.keys() == {"first", "prev", "last"}
    assert found["prev"] == found["last"]
    assert many.client.get(found["last"], headers=headers).json()["items"]


@kept_lists
def test_a_kept_page_has_the_links_of_each_request(operation: ListOperation, many: Served) -> None:
    """Whatever prefix, path and spelling it comes with; the page itself is shared."""
    headers = many.bearer("viewer")
    bodies = set()
    for prefix in ("", "/one", "/two/three"):
        for path in (operation.path, operation.path.rstrip("/")):
            for query in (f"organizationId={ALPHA}&limit=5", f"limit=5&organizationId={ALPHA}&unknown=1"):
                more = {"X-Forwarded-Prefix": prefix} if prefix else {}
                response = many.client.get(f"{path}?{query}", headers=headers | more)
                assert links(response)["next"] == f"{prefix}{path}?{query}&page=2"
                bodies.add((response.content, response.headers["etag"]))
    assert len(bodies) == 1


@all_lists
def test_a_query_too_long_for_a_header_has_none(operation: ListOperation, many: Served) -> None:
    headers = many.bearer("editor")
    start = f"organizationId={ALPHA}&x="
    for length, linked in ((LONGEST_LINKED, True), (LONGEST_LINKED + 1, False)):
        query = start + "x" * (length - len(start))
        response = many.client.get(f"{operation.path}?{query}", headers=headers)
        assert response.status_code == 200
        assert ("link" in response.headers) == linked


@pytest.mark.parametrize(
    ("page", "total", "found"),
    [
        (1, 0, {"first": 1, "last": 1}),
        (2, 0, {"first": 1, "prev": 1, "last": 1}),
        (1, 5, {"first": 1, "last": 1}),
        (1, 6, {"first": 1, "next": 2, "last": 2}),
        (2, 6, {"first": 1, "prev": 1, "last": 2}),
        (3, 6, {"first": 1, "prev": 2, "last": 2}),
        (7, 6, {"first": 1, "prev": 2, "last": 2}),
        (2, 11, {"first": 1, "prev": 1, "next": 3, "last": 3}),
    ],
)
def test_which_pages_there_are(page: int, total: int, found: dict[str, int]) -> None:
    expected = ", ".join(f'</p/?page={number}>; rel="{name}"' for name, number in found.items())
    assert page_links("/p/", b"", page, 5, total).decode() == expected


def test_nothing_leaves_the_header() -> None:
    """Whatever somebody has sent as an address."""
    value = page_links('/a>"<b\xff/', b'x=>;rel="next",<y\xff&&page', 1, 5, 9).decode("ascii")
    assert value.startswith("</a%3E%22%3Cb%FF/?x=%3E;rel=%22next%22,%3Cy%FF&page=1>; ")
