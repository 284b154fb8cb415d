"""Conditional requests and content codings of the lists: what a client has already, or can unpack, decides."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from normata.core.http.operation import ListOperation
from tests import world
from tests.cells import each
from tests.client import TestClient
from tests.core.http.crowd import crowd
from tests.core.http.samples import families, operations
from tests.listing import LISTS
from tests.served import Served, served
from tests.world import ALPHA

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "identity": lambda body: body,
    "gzip": gzip.decompress,
    "zstd": zstd.decompress,
}
SMALL = {"page": "100"}  # a page without items, less than is worth packing

all_lists = families(lambda operation: operation in LISTS)
all_codings = each("coding", UNPACK)


class Answer(NamedTuple):
    """An answer as it travelled: the body still packed."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def tag(self) -> str:
        """Its entity tag."""
        return self.headers["etag"]

    @property
    def coding(self) -> str:
        """The content coding of its body."""
        return self.headers.get("content-encoding", "identity")

    @property
    def value(self) -> Any:
        """What the body says."""
        return json.loads(UNPACK[self.coding](self.body))


def ask(client: TestClient, path: str, headers: dict[str, str], *, method: str = "GET", **params: str) -> Answer:
    """A list, of alpha unless said otherwise; nothing is accepted but what ``headers`` say."""
    wanted = {"organizationId": ALPHA} | params
    with client.stream(method, path, params=wanted, headers={"Accept-Encoding": "identity"} | headers) as response:
        body = b"".join(response.iter_raw())
    return Answer(response.status_code, dict(response.headers), body)


Ask = Callable[..., Answer]


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Served]:
    """A world that no test changes, with enough of everything to be worth packing."""
    with served(shared_url) as service:
        service.load(crowd(12))
        yield service


@pytest.fixture(scope="module")
def asking(shared: Served) -> Ask:
    """Asks for a list as alpha's editor, in a world that no test changes: ``asking(operation, {header: value})``."""
    bearer = shared.bearer("editor", scope="read")

    def one(operation: ListOperation, headers: dict[str, str] | None = None, **params: str) -> Answer:
        return ask(shared.client, operation.path, bearer | (headers or {}), **params)

    return one


# --- Entity tags


@all_lists
@all_codings
def test_a_tag_is_strong_and_names_what_was_sent(operation: ListOperation, coding: str, asking: Ask) -> None:
    first, again = (asking(operation, {"Accept-Encoding": coding}) for _ in range(2))
    assert first.coding == coding
    assert re.fullmatch(r'"[!#-~]+"', first.tag)
    assert (again.tag, again.body) == (first.tag, first.body)


@all_lists
def test_no_two_representations_share_a_tag(operation: ListOperation, asking: Ask) -> None:
    """Other codings and other contents have other tags; the same content under another query may share one."""
    answers = [
        asking(operation, {"Accept-Encoding": coding}, limit=limit) for coding in UNPACK for limit in ("20", "21", "22")
    ]
    bodies = {answer.body for answer in answers}
    assert len({answer.tag for answer in answers}) == len(bodies) == len(answers)
    assert asking(operation).tag == asking(operation, limit="100", page="1").tag


@all_lists
def test_the_tag_of_the_same_data_is_the_same_in_every_process(operation: ListOperation, shared: Served) -> None:
    bearer = shared.bearer("editor")
    with served(shared.url) as other:
        for coding in UNPACK:
            headers = bearer | {"Accept-Encoding": coding}
            first = ask(shared.client, operation.path, headers)
            assert ask(other.client, operation.path, headers).tag == first.tag
            held = ask(other.client, operation.path, headers | {"If-None-Match": first.tag})
            assert (held.status, held.body) == (304, b"")


CHANGES: dict[str, dict[str, list[dict[str, Any]]]] = {
    "/controls/": {"controlCoverages": [{"id": "say-sun.A.2", "coverageStatus": "FULL"}]},
    "/frameworks/": {"frameworks": [{"id": "fw-star", "name": "Star", "updatedAt": world.EARLIER}]},
    "/notifications/": {"notifications": [{"id": "note-03", "readAt": None}]},
}


@operations(lambda operation: operation.path in CHANGES)
@pytest.mark.parametrize("coding", UNPACK)
def test_what_has_changed_is_sent_under_a_new_tag(operation: ListOperation, coding: str, service: Served) -> None:
    headers = service.bearer("editor") | {"Accept-Encoding": coding}
    before = ask(service.client, operation.path, headers)
    service.load(CHANGES[operation.path])
    after = ask(service.client, operation.path, headers | {"If-None-Match": before.tag})
    assert after.status == 200
    assert after.tag != before.tag
    assert after.value != before.value
    both = headers | {"If-None-Match": f"{before.tag}, {after.tag}"}
    assert ask(service.client, operation.path, both).status == 304


# --- If-None-Match


HELD = ("{tag}", "W/{tag}", "*", '"other", {tag}', '"other",W/{tag},"more"', " {tag} ")


@all_lists
@all_codings
def test_a_page_that_the_client_has_is_not_sent_again(operation: ListOperation, coding: str, asking: Ask) -> None:
    headers = {"Accept-Encoding": coding, "X-Request-Id": "chain-1"}
    full = asking(operation, headers)
    for held in HELD:
        for method in ("GET", "HEAD"):
            answer = asking(operation, headers | {"If-None-Match": held.format(tag=full.tag)}, method=method)
            assert (answer.status, answer.body) == (304, b""), held
            # RFC 9110, section 15.4.5: what would be in the 200, but nothing that describes a body.
            assert answer.headers == {
                name: value
                for name, value in full.headers.items()
                if name not in ("content-type", "content-length", "content-encoding")
            }
            assert answer.headers.keys() >= {"etag", "cache-control", "vary", "x-request-id"}
            assert answer.headers["x-request-id"] == "chain-1"


@all_lists
@each("held", ["", '"other"', 'W/"other"', "other", '"', "{bare}", "'{bare}'", '"*"', '"{bare}', '*, "x"'])
def test_any_other_page_is_sent(operation: ListOperation, held: str, asking: Ask) -> None:
    """What is no entity tag at all counts as none."""
    full = asking(operation)
    answer = asking(operation, {"If-None-Match": held.format(bare=full.tag.strip('"'))})
    assert (answer.status, answer.body, answer.tag) == (200, full.body, full.tag)


@all_lists
def test_the_tag_of_another_coding_is_another(operation: ListOperation, asking: Ask) -> None:
    tags = {coding: asking(operation, {"Accept-Encoding": coding}).tag for coding in UNPACK}
    for coding in UNPACK:
        others = ", ".join(tag for other, tag in tags.items() if other != coding)
        answer = asking(operation, {"Accept-Encoding": coding, "If-None-Match": others})
        assert (answer.status, answer.tag) == (200, tags[coding])


@all_lists
def test_several_headers_are_one_list(operation: ListOperation, shared: Served) -> None:
    headers = shared.bearer("editor")
    tag = ask(shared.client, operation.path, headers).tag
    response = shared.client.get(
        operation.path,
        params={"organizationId": ALPHA},
        headers=[*headers.items(), ("Accept-Encoding", "identity"), ("If-None-Match", '"x"'), ("If-None-Match", tag)],
    )
    assert response.status_code == 304


@all_lists
def test_a_page_in_two_spellings_of_its_address_is_one(operation: ListOperation, shared: Served, asking: Ask) -> None:
    headers = shared.bearer("editor") | {"If-None-Match": asking(operation).tag}
    assert ask(shared.client, operation.path.rstrip("/"), headers).status == 304


REFUSALS: list[tuple[str | None, dict[str, str], dict[str, str], int]] = [
    (None, {}, {}, 401),
    ("viewer", {}, {"Authorization": "Bearer nrm_x"}, 401),
    ("foreigner", {}, {}, 404),
    ("nobody", {}, {}, 404),
    ("editor", {"organizationId": "org-gone"}, {}, 404),
    ("editor", {"limit": "4"}, {}, 400),
    ("editor", {}, {"Accept": "text/html"}, 406),
]


@all_lists
def test_nobody_is_told_of_a_page_that_they_may_not_have(operation: ListOperation, shared: Served) -> None:
    """A page that is kept, and a tag that is right, open no door: the refusal is the same as without them."""
    tag = ask(shared.client, operation.path, shared.bearer("editor")).tag
    for user, query, headers, status in REFUSALS:
        who = shared.bearer(user) if user else {}
        for held in ({}, {"If-None-Match": tag}, {"If-None-Match": "*"}, {"If-Match": tag}, {"If-Match": '"x"'}):
            for method in ("GET", "HEAD"):
                answer = ask(shared.client, operation.path, who | headers | held, method=method, **query)
                assert answer.status == status
                assert "etag" not in answer.headers
                assert method == "HEAD" or answer.value["status"] == status


@all_lists
def test_a_request_too_many_is_refused_whatever_it_holds(operation: ListOperation, database_url: str) -> None:
    with served(database_url, rate_limit=2) as service:
        headers = service.bearer("editor")
        tag = ask(service.client, operation.path, headers).tag
        held = headers | {"If-None-Match": tag}
        statuses = [ask(service.client, operation.path, held).status for _ in range(3)]
    assert statuses == [304, 429, 429]


# --- If-Match


@all_lists
@each("wanted", ["{tag}", "*", '"other", {tag}', " {tag} "])
def test_a_page_that_is_still_the_wanted_one_is_sent(operation: ListOperation, wanted: str, asking: Ask) -> None:
    full = asking(operation)
    answer = asking(operation, {"If-Match": wanted.format(tag=full.tag)})
    assert (answer.status, answer.body) == (200, full.body)


@all_lists
@each("wanted", ["", '"other"', "W/{tag}", '"*"', "other"])
def test_a_page_that_is_another_than_the_wanted_one_is_not_sent(
    operation: ListOperation, wanted: str, asking: Ask
) -> None:
    """A weak tag never matches here (RFC 9110, section 13.1.1); and it comes before If-None-Match (13.2.2)."""
    tag = asking(operation).tag
    for headers in ({}, {"If-None-Match": tag}):
        answer = asking(operation, headers | {"If-Match": wanted.format(tag=tag)})
        assert (answer.status, answer.value["code"]) == (412, "precondition_failed")


# --- Codings


@all_lists
@all_codings
def test_a_body_is_the_same_in_every_coding(operation: ListOperation, coding: str, asking: Ask) -> None:
    plain, packed = asking(operation), asking(operation, {"Accept-Encoding": coding})
    assert packed.coding == coding
    assert ("content-encoding" in packed.headers) == (coding != "identity")
    assert UNPACK[coding](packed.body) == plain.body
    assert packed.value["items"]
    assert packed.headers["content-length"] == str(len(packed.body))
    assert packed.headers["content-type"] == "application/json"
    assert coding == "identity" or len(packed.body) < len(plain.body)


@all_lists
@each(
    ("accept", "coding"),
    [
        *(("", "identity"), ("deflate", "identity"), ("gzip, deflate, br, zstd", "zstd"), ("gzip, deflate", "gzip")),
        *(("zstd;q=0.5, gzip;q=0.6", "gzip"), ("*", "zstd"), ("zstd;q=0, *;q=0.5", "gzip"), ("gzip, br", "gzip")),
        *(("br", "identity"), ("identity;q=0, zstd", "zstd")),
        *(("gzip;q=0", "identity"), ("*;q=0", "identity"), ("identity, gzip;q=0.9", "identity")),
        ("nonsense;;q", "identity"),
    ],
)  # fmt: skip
def test_the_client_says_what_it_can_unpack(operation: ListOperation, accept: str, coding: str, asking: Ask) -> None:
    answer = asking(operation, {"Accept-Encoding": accept})
    assert (answer.status, answer.coding) == (200, coding)
    assert answer.value == asking(operation).value


@all_lists
def test_who_names_no_coding_is_sent_the_body_as_it_is(operation: ListOperation, shared: Served, asking: Ask) -> None:
    """A client that says nothing may take anything, but most of those cannot unpack (RFC 9110, section 12.5.3)."""
    with served(shared.url) as other:
        del other.client.headers["accept-encoding"]
        response = other.client.get(operation.path, params={"organizationId": ALPHA}, headers=shared.bearer("editor"))
    assert "content-encoding" not in response.headers
    assert response.headers["etag"] == asking(operation).tag


@all_lists
@all_codings
def test_a_small_body_is_not_packed(operation: ListOperation, coding: str, asking: Ask) -> None:
    answer = asking(operation, {"Accept-Encoding": coding}, **SMALL)
    assert (answer.status, answer.coding) == (200, "identity")
    assert answer.value["items"] == []
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.tag == asking(operation, **SMALL).tag
    assert asking(operation, {"Accept-Encoding": coding, "If-None-Match": answer.tag}, **SMALL).status == 304


@all_lists
@each("query", [{}, SMALL, {"limit": "5"}])
@all_codings
def test_caches_are_told_what_an_answer_depends_on(
    operation: ListOperation, query: dict[str, str], coding: str, asking: Ask
) -> None:
    """Also where the coding is identity: who asks for a packed body must not be given the plain one by a cache."""
    for held in ({}, {"If-None-Match": "*"}):
        answer = asking(operation, {"Accept-Encoding": coding} | held, **query)
        vary = {name.strip().lower() for name in answer.headers["vary"].split(",")}
        negotiated = {"accept"} if operation.files else set()
        assert vary == {"accept-encoding", "authorization"} | negotiated | (
            {"prefer"} if operation.ignores_unknown else set()
        )
        assert answer.headers["cache-control"] == "private, no-cache"


@all_lists
@all_codings
def test_head_tells_what_get_would(operation: ListOperation, coding: str, asking: Ask) -> None:
    headers = {"Accept-Encoding": coding, "X-Request-Id": "chain-2"}
    get, head = (asking(operation, headers, method=method) for method in ("GET", "HEAD"))
    assert (head.status, head.body) == (200, b"")
    assert head.headers == get.headers


@all_lists
def test_a_refusal_is_never_packed(operation: ListOperation, asking: Ask) -> None:
    answer = asking(operation, {"Accept-Encoding": "gzip, br, zstd"}, limit="4")
    assert (answer.status, answer.coding) == (400, "identity")
    assert answer.value["code"] == "validation"


# --- What is the same for everybody


@all_codings
@each("path", ["/openapi.json", "/docs"])
def test_files_are_compressed_and_have_tags_that_work(path: str, coding: str, shared: Served) -> None:
    headers = {"Accept-Encoding": coding}
    plain, packed = (ask(shared.client, path, {"Accept-Encoding": one}) for one in ("identity", coding))
    assert (packed.status, packed.coding) == (200, coding)
    assert UNPACK[coding](packed.body) == plain.body
    assert (packed.tag == plain.tag) == (coding == "identity")
    held = ask(shared.client, path, headers | {"If-None-Match": packed.tag})
    assert (held.status, held.body) == (304, b"")
    assert ask(shared.client, path, headers | {"If-None-Match": '"x"'}).status == 200
