"""Inclusion proofs of a long log: right for every leaf, whichever checkpoints there are, and from few leaves."""

from __future__ import annotations

from contextlib import closing

import pytest

from normata.core.db.transaction import Transaction
from normata.events import proofs
from normata.events.merkle import Checkpoint, Frontier, leaf_hash, root_by
from normata.events.proofs import NoCheckpoint, checkpoint_at, prove
from normata.events.sealing import Round, UnsoundLog, store
from tests.databases import open_url, tamper

OWNER, SIZE = "org-long", 5_000


def planned(sizes: set[int]) -> Round:
    """A log with checkpoints of these sizes."""
    round_, frontier = Round(), Frontier()
    for number in range(SIZE):
        found = leaf_hash(str(number))
        round_.leaves.append({"organization_id": OWNER, "number": number, "event_id": f"long-{number}", "hash": found})
        frontier.append(found)
        if frontier.size in sizes | {SIZE}:
            values = {"size": frontier.size, "root": frontier.root, "frontier": frontier.text}
            round_.checkpoints.append(values | {"organization_id": OWNER, "at": "2026-03-01T00:00:00.000Z"})
    return round_


@pytest.mark.parametrize("sizes", [set(range(1, SIZE, 37)), {1_000}, set()], ids=["many", "one", "none"])
def test_each_leaf_leads_to_the_root(sizes: set[int], sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "_WORTH_SEARCHING", 128)
    with closing(open_url(sqlite_url)) as database:
        database.write_now(lambda transaction: store(transaction, planned(sizes)))

        def work(transaction: Transaction) -> None:
            checkpoint, _ = checkpoint_at(transaction, OWNER, None)
            assert checkpoint.size == SIZE
            for number in (0, 1, 1_023, 1_024, 2_500, 4_095, 4_096, SIZE - 1):
                leaf = leaf_hash(str(number))
                found = prove(transaction, checkpoint, number, leaf)
                assert root_by(leaf, number, SIZE, found.path) == checkpoint.root
                assert root_by(leaf, number + 1, SIZE, found.path) != checkpoint.root
            with pytest.raises(NoCheckpoint):
                checkpoint_at(transaction, OWNER, SIZE - 1)
            with pytest.raises(UnsoundLog):
                prove(transaction, Checkpoint(OWNER, SIZE, "0" * 64), 7, leaf_hash("7"))

        database.read_now(work)


def test_few_leaves_are_read_where_there_are_checkpoints(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were removed are not missed by a proof that needs none of them."""
    monkeypatch.setattr(proofs, "_WORTH_SEARCHING", 128)
    with closing(open_url(sqlite_url)) as database:
        database.write_now(lambda transaction: store(transaction, planned(set(range(1, SIZE, 37)))))
        checkpoint = database.read_now(lambda transaction: checkpoint_at(transaction, OWNER, None)[0])
        tamper(database, f"DELETE FROM event_leaf WHERE organization_id = '{OWNER}' AND number BETWEEN 2100 AND 3000")
        leaf = leaf_hash("5")
        found = database.read_now(lambda transaction: prove(transaction, checkpoint, 5, leaf))
        assert root_by(leaf, 5, SIZE, found.path) == checkpoint.root
