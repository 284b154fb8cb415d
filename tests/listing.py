"""How tests ask a list for its pages, and what they hold its order against."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from httpx2 import Response

from normata.core.http.operation import ListOperation
from normata.operations import OPERATIONS
from tests import world
from tests.client import TestClient

# The lists of an organization that every member may read, at a path without an id: the same endpoint answers all the
# others.
LISTS = tuple(
    operation
    for operation in OPERATIONS
    if isinstance(operation, ListOperation)
    and operation.role == "viewer"
    and "{" not in operation.path
    and operation.authority == "organization"
    and operation.operation_id != "listCoverageChanges"  # of two moments, between which nothing happens in the world
)
SEARCHED = tuple(operation for operation in LISTS if "search" in operation.query.model_fields)

FULLY_COUNTED = ("/controls/", "/frameworks/", "/notifications/")  # the lists of the interface, whose envelope is fixed

Item = dict[str, Any]

# A timestamp as it leaves: UTC, milliseconds, Z.
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


class Listing:
    """One list, as one user asks for it; of the organization alpha, unless a call says otherwise."""

    def __init__(self, client: TestClient, path: str, headers: dict[str, str]) -> None:
        self.path = path
        self._client = client
        self._headers = headers

    def get(self, headers: Mapping[str, str] | None = None, /, **params: Any) -> Response:
        """The answer to a request, with more ``headers`` if given; a parameter that is None is left out."""
        chosen = {
            name: value for name, value in ({"organizationId": world.ALPHA} | params).items() if value is not None
        }
        return self._client.get(self.path, params=chosen, headers=self._headers | {**(headers or {})})

    def page(self, **params: Any) -> dict[str, Any]:
        """The body of a successful answer."""
        response = self.get(**params)
        assert response.status_code == 200, response.text[:500]
        return cast("dict[str, Any]", response.json())

    def items(self, **params: Any) -> list[Item]:
        """The items of one page."""
        return cast("list[Item]", self.page(**params)["items"])

    def ids(self, **params: Any) -> list[str]:
        """The ids of the items of one page, in order."""
        return [item["id"] for item in self.items(**params)]

    def walk(self, **params: Any) -> list[Item]:
        """The items of all pages, asked for five at a time, with each envelope checked on the way."""
        items: list[Item] = []
        for number in range(1, 100):
            page = self.page(limit=5, page=number, **params)
            total = page["total"]
            exact = {} if self.path in FULLY_COUNTED else {"totalIsExact": True}
            assert page == {"items": page["items"], "total": total, "page": number, "limit": 5} | exact
            assert len(page["items"]) == min(5, max(0, total - 5 * (number - 1)))
            items += page["items"]
            if not page["items"]:
                assert len(items) == total
                return items
        raise AssertionError("the list does not end")

    def follow(self, **params: Any) -> list[Item]:
        """The items of all pages, by the links from each to the next, five at a time."""
        return [item for page in self.pages(**params) for item in page["items"]]

    def pages(self, **params: Any) -> Iterator[dict[str, Any]]:
        """The pages of five items, by the links from each to the next, each asked for when the one before is used."""
        response = self.get(**{"limit": 5} | params)
        for number in range(1, 1_000):
            assert response.status_code == 200, response.text[:500]
            assert response.json()["page"] == number
            yield cast("dict[str, Any]", response.json())
            following = re.search(r'<([^<>]+)>; rel="next"', response.headers["link"])
            if following is None:
                return
            response = self._client.get(following[1], headers=self._headers)
        raise AssertionError("the list does not end")

    def faults(self, **params: Any) -> list[tuple[str, str]]:
        """Name and code of each fault of a refused request, in the order of the names."""
        response = self.get(**params)
        assert response.status_code == 400, response.text[:500]
        body = response.json()
        assert body["code"] == "validation"
        assert all(fault["in"] == "query" and fault["message"] in body["detail"] for fault in body["errors"])
        return sorted((fault["name"], fault["code"]) for fault in body["errors"])


def natural(value: str) -> list[tuple[int, str | int]]:
    """The natural order, put another way than the product puts it: numbers by value, the rest by character."""
    parts = re.findall(r"[0-9]+|[^0-9]", unicodedata.normalize("NFKC", value).casefold())
    return [(1, int(part)) if part[0] in "0123456789" else (0 if part < "0" else 2, part) for part in parts]


def in_order(items: Sequence[Item], key: Callable[[Item], Any], direction: str) -> list[str]:
    """The ids of ``items`` by ``key``, null last in both directions, and as they are where keys are equal."""
    present = sorted((item for item in items if key(item) is not None), key=key, reverse=direction == "desc")
    return [item["id"] for item in (*present, *(item for item in items if key(item) is None))]


def by_id(items: Sequence[Item]) -> list[Item]:
    """The items in the order of their ids."""
    return sorted(items, key=lambda item: cast("str", item["id"]))
