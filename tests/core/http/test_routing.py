"""From operations to the addresses that are served: each path once, an id one segment, percent-encoded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from normata.core.http.operation import ListOperation
from normata.core.http.routing import Directory, resources, routed_path
from normata.operations import OPERATIONS
from normata.records.kinds import Label
from tests.served import Served
from tests.world import ALPHA


@pytest.mark.parametrize(
    ("sent", "routed"),
    [
        ("/controls/", "/controls/"),
        ("/controls", "/controls/"),
        ("/%63ontrols", "/controls/"),
        ("/labels/a%20b/restore/", "/labels/a b/restore/"),
        # An escaped slash separates nothing, and an escaped percent sign stays one, so that the two are told apart.
        ("/labels/a%2Fb/restore/", "/labels/a%2Fb/restore/"),
        ("/labels/a%2fb/restore/", "/labels/a%2Fb/restore/"),
        ("/labels/a%252Fb/restore/", "/labels/a%252Fb/restore/"),
        ("/labels/100%25/restore/", "/labels/100%25/restore/"),
        ("/controls%2F", "/controls%2F/"),
        ("/labels/gr%C3%B6%C3%9Fe/restore/", "/labels/größe/restore/"),
        ("/", "/"),
        ("", "/"),
    ],
)
def test_the_path_that_is_matched(sent: str, routed: str) -> None:
    assert routed_path(sent) == routed


def test_two_operations_of_one_method_and_path_are_a_fault_of_the_program(service: Served) -> None:
    one = OPERATIONS[0]
    other = replace(one, operation_id="another")
    with pytest.raises(ValueError, match=one.path):
        resources([one, other], service.app.services)


def test_a_path_has_all_its_methods_together(service: Served) -> None:
    """A list beside a restore, and a list beside a change of the same path."""
    restore = next(one for one in OPERATIONS if one.operation_id == "restoreLabel")
    listed = next(one for one in OPERATIONS if isinstance(one, ListOperation))
    labels = replace(listed, path="/marks/", operation_id="listMarks")
    created: Any = replace(restore, path="/marks/", operation_id="createMark")
    found = resources([restore, labels, created], service.app.services)
    assert {path: set(resource.endpoints) for path, resource in found.items()} == {
        restore.path: {"POST"},
        "/marks/": {"GET", "HEAD", "POST"},
    }


def test_a_fixed_path_comes_before_one_with_an_id(service: Served) -> None:
    restore = next(one for one in OPERATIONS if one.about is Label)
    paths = ["/labels/{id}/", "/labels/export/", "/labels/{id}/restore/", "/labels/", "/labels/all/restore/"]
    every = [replace(restore, path=path, operation_id=path) for path in paths]
    directory = Directory(resources(every, service.app.services).values())
    found = {path: directory.find(path) for path in (*paths, "/labels/any/", "/labels/any/restore/")}
    assert {path: one and (one[0].path, one[1]) for path, one in found.items()} == {
        "/labels/": ("/labels/", {}),
        "/labels/export/": ("/labels/export/", {}),
        "/labels/all/restore/": ("/labels/all/restore/", {}),
        "/labels/any/": ("/labels/{id}/", {"id": "any"}),
        "/labels/any/restore/": ("/labels/{id}/restore/", {"id": "any"}),
        # Braces are no more than other characters of an id.
        "/labels/{id}/": ("/labels/{id}/", {"id": "{id}"}),
        "/labels/{id}/restore/": ("/labels/{id}/restore/", {"id": "{id}"}),
    }
    for path in ("/", "//", "/label/", "/labels//", "/labels//restore/", "/labels/any/restore/more/", "labels/"):
        assert directory.find(path) is None


@pytest.mark.parametrize(
    ("encoded", "row_id"),
    [
        ("a%2Fb", "a/b"),
        ("a%2fb", "a/b"),
        ("%2F", "/"),
        ("a%252Fb", "a%2Fb"),
        ("%25", "%"),
        ("%252F", "%2F"),
        ("100%25", "100%"),
        ("%6Cabel", "label"),
        ("a+b", "a+b"),
        ("a%2Bb", "a+b"),
        ("a%20b", "a b"),
        ("a%3Fb%23c", "a?b#c"),
        ("restore", "restore"),
        ("%2E%2E", ".."),
    ],
)
def test_an_id_is_one_segment_percent_encoded(encoded: str, row_id: str, service: Served) -> None:
    label = {"id": row_id, "organizationId": ALPHA, "name": "x", "archivedAt": "2026-01-01"}
    service.load({"labels": [label]})
    response = service.client.post(f"/labels/{encoded}/restore/", headers=service.bearer("editor"))
    assert response.status_code == 200, response.text
    assert response.json()["id"] == row_id
