"""Ids in addresses: one segment, percent-encoded. Every id reaches its own record and no other."""

from __future__ import annotations

from normata.records.kinds import Label
from tests import stored
from tests.cells import all_cells
from tests.records.restoring import add_archived, archived, restore
from tests.served import Served, refused

ODD_IDS = [
    "a/b",
    "/",
    "/leading and trailing/",
    "a//b",
    "a/restore",
    "a/restore/",
    "restore",
    "restore/restore",
    "urn:x:label:1",
    "größe ☃ 😀",
    "a b",
    " ",
    "+",
    ".",
    "..",
    "../tasks/x",
    "%",
    "%2F",
    "a%2Fb",
    "a%252Fb",
    "%25",
    "100%",
    "%zz",
    "?q=1&r#f",
    "';--\"\\",
    "$ref~0~1",
    "{a,b}",
    "\u202e\u00a0\ufeff",
    "e\u0301",
    "x" * 255,
    "😀" * 255,
]


def encoded(row_id: str) -> str:
    """An id with every byte encoded: dots too, which clients would resolve."""
    return "".join(f"%{byte:02X}" for byte in row_id.encode())


def test_any_id_that_can_be_loaded_can_be_restored(shared: Served) -> None:
    headers = shared.bearer("editor")
    shared.load({"labels": [archived(Label, row_id) for row_id in ODD_IDS]})
    with all_cells() as at:
        for row_id in ODD_IDS:
            with at(repr(row_id)):
                before = stored.rows(shared.database, Label)
                response = shared.client.post(f"/labels/{encoded(row_id)}/restore/", headers=headers)
                assert response.status_code == 200, response.text
                assert response.json()["id"] == row_id
                restored = stored.row(shared.database, Label, row_id)
                assert restored["archived_at"] is None
                assert stored.rows(shared.database, Label) == [
                    restored if row["id"] == row_id else row for row in before
                ]


def test_a_slash_that_is_not_encoded_ends_the_segment(shared: Served) -> None:
    """So the address is another one, even where there is a record whose id has a slash."""
    row_id = "one/two"
    add_archived(shared, Label, row_id)
    headers = shared.bearer("editor")
    for path in ("/labels/one/two/restore/", "/labels/one/two/restore", "/labels//one/two/restore/"):
        refused(shared.client.post(path, headers=headers), 404, "not_found")
    assert stored.row(shared.database, Label, row_id)["archived_at"] is not None
    assert shared.client.post("/labels/one%2Ftwo/restore/", headers=headers).status_code == 200


NO_IDS = ["", "%00", "a%00b", "%0A", "%FF", "%ED%A0%80", "%C3", "x" * 256, "x" * 5_000, "%F0%9F%98%80" * 256]


def test_any_other_id_is_not_found(shared: Served) -> None:
    """What no record can be called is answered like any record that is not there."""
    headers = shared.bearer("editor")
    with all_cells() as at:
        for wrong in NO_IDS:
            with at(wrong[:12]):
                refused(shared.client.post(f"/labels/{wrong}/restore/", headers=headers), 404, "not_found")


def test_an_id_is_compared_exactly(shared: Served) -> None:
    """Neither case, nor spaces around it, nor another Unicode form of it will do."""
    add_archived(shared, Label, "Größe-A")
    headers = shared.bearer("editor")
    for almost in ("größe-a", "GRÖSSE-A", "Gro\u0308ße-A", " Größe-A", "Größe-A ", "Größe-%"):
        refused(restore(shared, Label, almost, headers), 404, "not_found")
    assert restore(shared, Label, "Größe-A", headers).status_code == 200
