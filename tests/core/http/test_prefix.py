"""The application behind a proxy that serves it under a path of its own."""

from __future__ import annotations

import pytest

from tests import world
from tests.served import Served, refused, served

PAGE = {"organizationId": world.ALPHA}


@pytest.mark.parametrize("path", ["/normata/notifications/", "/notifications/"])
def test_the_prefix_may_be_removed_or_left(path: str, database_url: str) -> None:
    with served(database_url, root_path="/normata") as service:
        answer = service.client.get(path, params=PAGE, headers=service.bearer("editor"))
        assert answer.status_code == 200
        assert {item["payload"]["url"] for item in answer.json()["items"]} == {"/normata/policies/"}
        problem = refused(service.client.get(path), 401, "unauthenticated")
        assert problem["instance"] == "/normata/notifications/"


def test_documentation_has_the_prefix(database_url: str) -> None:
    with served(database_url, root_path="/normata") as service:
        assert service.client.get("/openapi.json").json()["servers"] == [{"url": "/normata/"}]
        page = service.client.get("/docs").text
        assert 'href="/normata/openapi.json"' in page
        assert 'href="/normata/app/"' in page
        assert 'href="/openapi.json"' not in page


@pytest.mark.parametrize(
    ("sent", "trusted", "expected"),
    [
        ("/one", True, "/one/nothing"),
        ("/one/", True, "/one/nothing"),
        ("/one", False, "/nothing"),
        ("one", True, "/nothing"),
        ("/<script>", True, "/nothing"),
        ("/a" * 9, True, "/nothing"),
    ],
)
def test_a_forwarded_prefix_counts_where_it_is_trusted(
    *, sent: str, trusted: bool, expected: str, database_url: str
) -> None:
    with served(database_url, trust_forwarded_prefix=trusted) as service:
        answer = service.client.get("/nothing", headers={"X-Forwarded-Prefix": sent})
        assert refused(answer, 404, "not_found")["instance"] == expected


def test_static_files_are_compressed_and_have_entity_tags(shared: Served) -> None:
    path = "/docs"
    whole = shared.client.get(path, headers={"Accept-Encoding": "identity"})
    packed = shared.client.get(path, headers={"Accept-Encoding": "gzip"})
    assert whole.content == packed.content
    assert int(packed.headers["content-length"]) < len(whole.content) / 2
    assert packed.headers["etag"] != whole.headers["etag"]
    again = shared.client.get(path, headers={"Accept-Encoding": "gzip", "If-None-Match": packed.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("if_match", "status"), [("*", 200), ("{tag}", 200), ('"other", {tag}', 200), ('"other"', 412), ("W/{tag}", 412)]
)
def test_if_match_on_a_list(if_match: str, status: int, shared: Served) -> None:
    headers = shared.bearer("viewer")
    tag = shared.client.get("/controls/", params=PAGE, headers=headers).headers["etag"]
    answer = shared.client.get(
        "/controls/", params=PAGE, headers=headers | {"If-Match": if_match.replace("{tag}", tag)}
    )
    assert answer.status_code == status
    if status == 412:
        refused(answer, 412, "precondition_failed")
