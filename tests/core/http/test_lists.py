"""The rules that all lists share: the envelope, its faults, and how the caller's token is spelled."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.http.operation import ChangeOperation, ListOperation, Operation
from tests import world
from tests.cells import each
from tests.core.http.samples import all_operations, families, most, operations, sample
from tests.listing import FULLY_COUNTED, LISTS, SEARCHED, Listing
from tests.served import Served, served
from tests.world import ALPHA, BETA

all_lists = families(lambda operation: operation in LISTS)
searched_lists = families(lambda operation: operation in SEARCHED)


@pytest.fixture
def listing(operation: ListOperation, shared: Served) -> Listing:
    """The list, as one who has something in each of them asks for it."""
    return shared.listing(operation.path, "editor")


@all_lists
def test_envelope(listing: Listing) -> None:
    """Exactly four members, and a fifth where not all is counted; a hundred items on the first page, unless said."""
    page = listing.page()
    assert page.keys() - {"totalIsExact"} == {"items", "total", "page", "limit"}
    assert page.get("totalIsExact") is (None if listing.path in FULLY_COUNTED else True)
    assert (page["page"], page["limit"]) == (1, 100)
    assert page["total"] == len(page["items"]) > 0
    assert {type(page[name]) for name in ("total", "page", "limit")} == {int}


@all_lists
def test_a_page_number_longer_than_any_integer(listing: Listing) -> None:
    assert listing.get(page="9" * 5_000).status_code in (200, 400)


# --- Faults

NOT_INTEGERS = ["", "abc", "5.5", "1e1", "1_0", "0x10", "NaN", "Infinity", "true", "\u0665", "5 6", "5,6"]


@all_lists
@each(
    ("name", "value", "code"),
    [
        *(("limit", value, "too_small") for value in ("4", "1", "0", "-1", "-100")),
        *(("limit", value, "too_large") for value in ("101", "1000", str(10**30))),
        *(("page", value, "too_small") for value in ("0", "-1", str(-(10**30)))),
        *((name, value, "invalid") for name in ("limit", "page") for value in NOT_INTEGERS),
        ("organizationId", None, "required"),
        ("organizationId", "", "too_short"),
        ("organizationId", "o" * 256, "too_long"),
        *(("organizationId", f"org{character}alpha", "malformed") for character in "\0\t\n\r\x1f\x7f"),
        ("organizationId", f"{ALPHA}\n", "malformed"),
    ],
)
def test_refused_values(name: str, value: str | None, code: str, listing: Listing) -> None:
    """Outside its bounds a value is refused, never clamped, and the fault names it."""
    assert listing.faults(**{name: value}) == [(name, code)]


@all_lists
def test_all_faults_at_once(operation: ListOperation, listing: Listing) -> None:
    """Of every parameter that the list has."""
    wrong = {
        "limit": "x",
        "page": "-1",
        "organizationId": "",
        "sortColumn": "colour",
        "sortDirection": "up",
        "search": "x" * 201,
    }
    properties: dict[str, Any] = operation.query.model_json_schema(by_alias=True)["properties"]
    sent = {name: value for name, value in wrong.items() if name in properties}
    sent |= {name: "perhaps" for name, schema in properties.items() if schema.get("type") == "boolean"}
    assert [name for name, _ in listing.faults(**sent)] == sorted(sent)


@operations(lambda one: isinstance(one, ListOperation) and "sort_direction" in one.query.model_fields)
@each("direction", ["ASC", "descending", "", "asc,desc"])
def test_unknown_direction(direction: str, listing: Listing) -> None:
    [fault] = listing.get(sortDirection=direction).json()["errors"]
    assert fault == {
        "in": "query",
        "name": "sortDirection",
        "code": "not_allowed",
        "message": "must be one of asc, desc",
        "allowed": ["asc", "desc"],
    }


@searched_lists
@each("search", ["x" * 201, "é" * 201, "x" * 10_000, "a\0b", "\0"])
def test_refused_search(search: str, listing: Listing) -> None:
    [(name, _)] = listing.faults(search=search)
    assert name == "search"


@all_lists
def test_of_a_repeated_parameter_the_last_counts(listing: Listing) -> None:
    """For every purpose: the organization whose membership is checked is the one whose list is sent."""
    assert listing.page(limit=["7", "9"])["limit"] == 9
    assert listing.page(organizationId=[BETA, ALPHA]) == listing.page()
    assert listing.get(organizationId=[ALPHA, BETA]).status_code == 404


# --- Who may ask


@all_lists
@each("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
def test_spellings_of_the_scheme(operation: ListOperation, scheme: str, shared: Served) -> None:
    headers = {"Authorization": f"{scheme} {shared.token('viewer')}"}
    assert sample(operation).send(shared.client, headers).status_code == 200


@all_lists
def test_a_token_without_expiry(operation: ListOperation, shared: Served) -> None:
    assert sample(operation).send(shared.client, shared.bearer("viewer", lifetime=None)).status_code == 200


@all_operations()
def test_revocation_works_at_once(operation: Operation, shared: Served) -> None:
    token = shared.token(most(operation))
    headers = {"Authorization": f"Bearer {token}"}
    request = sample(operation, user=most(operation))
    if isinstance(operation, ChangeOperation):
        request = request.but(query=request.query | {"dryRun": "true"})
    assert request.send(shared.client, headers).is_success
    shared.revoke(token)
    assert request.send(shared.client, headers).status_code == 401


@all_lists
def test_the_limit_counts_every_request_of_a_token(operation: ListOperation, shared_url: str) -> None:
    """Whatever came of it; another token has its own count."""
    with served(shared_url, rate_limit=3) as service:
        request, headers, other = sample(operation), service.bearer("viewer"), service.bearer("viewer")
        queries = [{}, {"organizationId": ""}, {"organizationId": world.BETA}, {}]
        statuses = [
            request.but(query=request.query | query).send(service.client, headers).status_code for query in queries
        ]
        assert statuses == [200, 400, 404, 429]
        assert request.send(service.client, other).status_code == 200
