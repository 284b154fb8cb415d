"""Requests that no provider should send: each gets an answer in the form of SCIM, and none is a failure."""

from __future__ import annotations

from itertools import product
from typing import Any

from tests.cells import all_cells
from tests.databases import on_both
from tests.scim.dialogue import GROUP, PATCH_OP, USER, send
from tests.served import Headers, Served

_VALUES: tuple[Any, ...] = ("\ud800", None, 10**40, [[]], [{"value": "x"}])
_PATHS = (
    *("userName", "active", "externalId", "id", "meta", "schemas", "groups", "password", "nothing", "members", "name"),
    *("name.nothing", "emails.value", 'emails[type eq "work"]', "emails[0]", "emails[", "[]", "a.b.c.d", "userName\0"),
    *('emails[type eq "work" and primary eq true].value', f"{USER}:userName", "urn:x:y:name", "\ud800", "x" * 5_000),
    'members[value eq "x"]',
)
_NUMBERS = ("-1", "0", "x", "", "9007199254740992", "9" * 20, "9" * 400, "1.5", "NaN", "%00", "%ED%A0%80")
_FILTERS = (
    *("", "%00", 'userName+eq+"%ED%A0%80"', 'userName+eq+"\\ud800"', "id+eq+null", "id+eq+1e400", "active+eq+null"),
    *('emails[emails[value+eq+"x"]]', 'userName[value+eq+"x"]', 'emails[value+eq+"x"+and+primary+eq+true]'),
    *('members[value+eq+"x"]', 'groups[value+eq+"x"]'),
)
_QUERIES = (
    *(f"{name}={value}" for name in ("startIndex", "count") for value in _NUMBERS),
    *(f"filter={one}" for one in _FILTERS),
    *(
        "attributes=%00",
        "attributes=" + "x," * 3_000,
        "excludedAttributes=id,schemas,meta",
        "sortBy=nothing&sortOrder=up",
    ),
)


def test_patches_of_all_sorts(service: Served, provider: Headers) -> None:
    with all_cells() as at:
        for number, (path, value) in enumerate(product(_PATHS, _VALUES)):
            op = ("add", "replace", "remove")[number % 3]
            place = ("/Users/member-viewer", "/Groups/group-org-alpha")[number % 2]
            with at((place, op, path[:50], value)):
                body = {"schemas": [PATCH_OP], "Operations": [{"op": op, "path": path, "value": value}]}
                answer = send(service, provider, "PATCH", place, body)
                assert answer.status_code in (200, 204, 400), answer.text[:300]


def test_resources_of_all_sorts(service: Served, provider: Headers) -> None:
    names = ("userName", "displayName", "externalId", "active", "name", "emails", "members", "id", "meta", "schemas")
    with all_cells() as at:
        for path, schema in (("/Users", USER), ("/Groups", GROUP)):
            for name in names:
                for value in _VALUES:
                    with at((path, name, value)):
                        body = {"schemas": [schema], "userName": "u@alpha.example", "displayName": "D"} | {name: value}
                        answer = send(service, provider, "POST", path, body)
                        assert answer.status_code in (201, 400, 409), answer.text[:300]


@on_both
def test_queries_of_all_sorts(service: Served, provider: Headers) -> None:
    with all_cells() as at:
        for path in ("/Users", "/Groups", ""):
            for query in _QUERIES:
                with at((path, query[:80])):
                    answer = service.client.get(f"/scim/v2{path}?{query}", headers=provider)
                    assert answer.status_code in (200, 400, 404, 501), answer.text[:300]
                    assert answer.headers["content-type"] == "application/scim+json"
