"""Copies an organization's events to a warehouse, here a SQLite file, and proves that the copy is complete.

    NORMATA_SERVER=… NORMATA_TOKEN=… python events_to_warehouse.py events.sqlite

The token is one of an auditor, an admin or an owner, with the scope `read`. Each run goes on where the last one
stopped. What was erased in Normata is erased in the copy, too.
"""

import json
import sqlite3
from argparse import Namespace
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from normata_api import Failed, Organization, Outcome, Row, run

_TABLE = """CREATE TABLE IF NOT EXISTS event (organization_id TEXT, number INTEGER, id TEXT, leaf_hash TEXT, body TEXT,
    PRIMARY KEY (organization_id, number)) WITHOUT ROWID"""
_FOLLOWING = "SELECT coalesce(max(number) + 1, 0) FROM event WHERE organization_id = ?"  # numbers begin at 0
_LEAVES = "SELECT leaf_hash FROM event WHERE organization_id = ? ORDER BY number"


def main(organization: Organization, arguments: Namespace) -> Outcome:
    """Copy what is new."""
    try:
        return _copy(organization, arguments.file)
    except sqlite3.Error as error:
        raise Failed(f"{arguments.file}: {error}") from None


def _copy(organization: Organization, file: Path) -> Outcome:
    with closing(sqlite3.connect(file)) as warehouse:
        warehouse.execute(_TABLE)
        (before,) = warehouse.execute(_FOLLOWING, (organization.id,)).fetchone()
        checkpoint = organization.get("/events/checkpoint/")
        following = before
        while items := _page(organization, following):
            with warehouse:  # all of a page or nothing, so that the next run goes on in the right place
                for item in items:
                    _append(warehouse, organization.id, following, item)
                    following += 1
        leaves = warehouse.execute(_LEAVES, (organization.id,)).fetchmany(checkpoint["size"])
    if len(leaves) < checkpoint["size"] or root([bytes.fromhex(leaf) for (leaf,) in leaves]) != checkpoint["root"]:
        raise Failed(f"the copy is not the log of the checkpoint, which has {checkpoint['size']} events")
    return f"{following - before} new events, {following} in all, {len(leaves)} of them proven", []


def _page(organization: Organization, following: int) -> list[Row]:
    after = {"after": following - 1} if following else {}
    items: list[Row] = organization.get("/events/log/", limit=1000, **after)["items"]
    return items


def _append(warehouse: sqlite3.Connection, organization_id: str, number: int, item: Row) -> None:
    body = item["body"]  # empty if it was erased
    if item["number"] != number:
        raise Failed(f"event {item['number']} came instead of {number}")
    if body and sha256(b"\0" + body.encode()).hexdigest() != item["leafHash"]:
        raise Failed(f"event {number} is not what was sealed")
    row = (organization_id, number, item["id"], item["leafHash"], body)
    warehouse.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)", row)
    event = json.loads(body or '{"action": null}')
    if event["action"] == "erase":
        erased = [(organization_id, event_id) for event_id in (event["counts"] or {}).get("erasedEvents", [])]
        warehouse.executemany("UPDATE event SET body = '' WHERE organization_id = ? AND id = ?", erased)


def root(hashes: list[bytes]) -> str:
    """The root of a Merkle tree (RFC 9162, section 2.1.1) from the hashes of its leaves, in hexadecimal digits."""
    while len(hashes) > 1:
        pairs = zip(hashes[::2], hashes[1::2], strict=False)
        last = hashes[-1:] if len(hashes) % 2 else []
        hashes = [sha256(b"\1" + left + right).digest() for left, right in pairs] + last
    return (hashes[0] if hashes else sha256().digest()).hex()


if __name__ == "__main__":
    run(__doc__, main, reads=True)
