"""Searches find what a brute force over the folded texts finds, whatever was done to the records; on both databases."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from normata.core.db import trigrams
from normata.core.db.sqlite import trigrams as on_sqlite
from normata.core.schema.text import fold, search_text
from normata.core.schema.wire import wire_names
from normata.operations import SECURITY
from normata.records.base import Restorable, text_columns
from normata.records.kinds import Finding, Task
from normata.tables import Table
from tests.databases import with_and_without_trigrams
from tests.records.living import change, make
from tests.served import Served
from tests.world import ALPHA

PARTS = (
    *("Straße", "STRASSE", "\uff26\uff55\uff4c\uff4c\u3000\uff37idth", "İstanbul", "\u0131l\u0131k", "e\u0301te\u0301"),
    *("étude", "สวัสดีชาวโลก", "北京", "数据保护", "🦀🦀🦀 crab", "100%_sure", 'say "hi"', "it's", "a/b\\c", "x AND y"),
    *("NEAR(z)", "star*", "-minus", "\ufb01ligree", "Ⅷ", "encryption", "encryptions", "at rest", "key", "keys"),
    *("ab", "c", "ΣΊΣΥΦΟΣ", "ς", "\u200dzero", "naïve", "{col}:"),
)
QUERIES = (
    *PARTS,
    *("strasse", "ss", "full width", "istanbul", "I", "é", "ê", "สวัส", "ชาว โลก", "京", "数据", "据保护", "🦀"),
    *("🦀🦀🦀🦀", "%", "_", "%_s", '"', '"hi"', "'", "\\", "b\\c", "/", "and", "near(z", "fil", "viii"),
    *("encryption at", "crypt ke", "nothing at all", "xyz", "σίσυφος", "zero", "NAÏVE", "col}", "a b c", "e"),
    *("ions", "onkey", "rest\nkey"),
)
KINDS = (Task, Finding)


def texts(kind: type[Restorable], items: list[dict[str, Any]]) -> dict[str, str]:
    """The folded text of each item, from what a reader sees of it."""
    names = [wire_names(kind)[name] for name in text_columns(kind)]
    return {item["id"]: search_text(*(item[name] for name in names)) for item in items}


def pages(service: Served, path: str, **query: Any) -> list[dict[str, Any]]:
    """All items of a list, in its order."""
    items: list[dict[str, Any]] = []
    for number in range(1, 100):
        page = service.listing(path).page(page=number, limit=100, **query)
        items += page["items"]
        if len(page["items"]) < 100:
            assert page["total"] == len(items)
            return items
    raise AssertionError("the list does not end")


def agree(service: Served, rng: Random, *more: str) -> int:
    """Compare the searches of every list with a brute force; returns how many were compared."""
    everything = {kind: pages(service, f"/{kind.path}/", archived="include") for kind in KINDS}
    folded = {kind: texts(kind, items) for kind, items in everything.items()}
    queries = [*rng.sample(QUERIES, 8), *more]
    for query in queries:
        words = fold(query).split()
        for kind, items in everything.items():
            path = f"/{kind.path}/"
            hits = [one for one in items if all(word in folded[kind][one["id"]] for word in words)]
            live = [one["id"] for one in hits if one["archivedAt"] is None]
            gone = {one["id"] for one in hits if one["archivedAt"] is not None}
            assert [one["id"] for one in pages(service, path, search=query)] == live, query
            assert [one["id"] for one in pages(service, path, search=query, archived="include")] == [
                one["id"] for one in hits
            ], query
            ascending = pages(service, path, search=query, sortColumn="createdAt")
            assert sorted(one["id"] for one in ascending) == sorted(live), query
            assert {one["id"] for one in pages(service, "/archive/", kind=kind.path, search=query)} == gone, query
            assert {one["id"] for one in pages(service, "/names/", kind=kind.path, search=query)} == set(live), query
            found = service.listing("/search/").items(kind=kind.path, search=query, limit=100)
            assert {one["id"] for one in found} <= set(live), query
            assert len(found) == min(100, len(live)), query
    return len(queries)


def second_text(kind: type[Restorable]) -> str:
    """The name of a further field for a text."""
    table = kind.sql().c
    name = next(name for name in text_columns(kind) if table[name].nullable)
    return wire_names(kind)[name]


def text(rng: Random) -> str:
    return " ".join(rng.choices(PARTS, k=rng.randint(1, 4)))


@pytest.fixture(params=["few", "many"])
def limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """With the usual number of texts that count as few, and with hardly any."""
    if request.param == "many":
        monkeypatch.setattr(trigrams, "FEW", 5)
    return request.param


@with_and_without_trigrams
def test_searches_find_what_a_brute_force_finds(service: Served, limit: str) -> None:
    rng, editor = Random(limit), service.bearer("editor")  # noqa: S311 - no secret
    rows = {
        kind.path: [
            {
                "id": f"{kind.path}-{number:03}",
                "organizationId": ALPHA,
                kind.title_column(): text(rng),
                second_text(kind): text(rng) if number % 3 else None,
                "createdAt": f"2026-01-02T00:00:00.{number:03}Z",
                **({"archivedAt": "2026-03-04T00:00:00.000Z"} if number % 4 == 0 else {}),
            }
            for number in range(170)
        ]
        for kind in KINDS
    }
    rows["tasks"][1]["title"] = "Zyxwvut"  # which will be changed
    service.load(rows)
    assert agree(service, rng) > 7
    for kind in KINDS:
        made = make(service, kind, editor, **{kind.title_column(): "\uff31UICK brown Straße"})
        assert made.status_code == 201, made.text
        changed = change(service, kind, f"{kind.path}-001", editor, **{kind.title_column(): "quick 北京 foxes"})
        assert changed.status_code == 200, changed.text
        for number, action in ((2, "archive"), (4, "restore")):
            done = service.client.post(f"/{kind.path}/{kind.path}-{number:03}/{action}/", headers=editor)
            assert done.status_code == 200, done.text
    service.sql("DELETE FROM task WHERE id = 'tasks-003'")
    assert agree(service, rng, "quick", "QUICK foxes", "brown") > 7
    was_indexed = trigrams_of("zyx", service) if service.database.embedded else 1
    service.database.scrub()
    assert agree(service, rng, "quick", "QUICK foxes", "brown") > 7
    assert faults(service) == []
    if service.database.embedded:
        assert (was_indexed, trigrams_of("zyx", service), trigrams_of("str", service) > 9) == (1, 0, True)
        service.sql("INSERT INTO record_trigram (record_trigram) VALUES ('delete-all')")
        assert "whose trigrams are missing or wrong" in faults(service)[0]


@with_and_without_trigrams
def test_former_texts_are_not_taken_for_few(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index still has the numbers of texts that have changed, and those come first."""
    monkeypatch.setattr(trigrams, "FEW", 50)
    rows = [
        {"id": f"x{number}", "organizationId": ALPHA, "title": f"Xanadu {number}", "slug": f"s{number}"}
        for number in range(300)
    ]
    service.load({"tasks": rows})
    for number in range(3):
        assert change(service, Task, f"x{number}", service.bearer("editor"), title="Other").status_code == 200
    assert service.listing("/tasks/").page(search="xanadu")["total"] == 297
    names = service.listing("/names/").page(kind="tasks", search="xanadu", limit=100)
    assert names["total"] == 297


def trigrams_of(part: str, service: Served) -> int:
    """How many texts have a trigram, as SQLite's index has it."""
    return len(
        service.database.read_now(
            lambda transaction: transaction.rows(on_sqlite._ROWIDS, {"trigrams": part, "few": 1_000})
        )
    )


def faults(service: Served) -> list[str]:
    return service.database.read_now(
        lambda transaction: list(service.database.faults(transaction, Table.metadata, SECURITY))
    )
