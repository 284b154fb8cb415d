"""What a cluster holds while it is taken apart, and what must have become of it."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from normata.core.db.opening import open_database
from normata.identity.tokens import tokens
from normata.records.base import Restorable
from normata.settings import Settings
from normata.wiring import changes_of
from tests.failover.load import Answer, Record
from tests.server import SCRIPT

ORGANIZATION = "org-failover"
EDITORS = ("first@failover.example", "second@failover.example")
OWNER = "owner@failover.example"  # who answers for every record
RECORDS_PER_KIND = 200

Query = Callable[[str], list[Any]]  # the rows of a statement on the primary


def all_records() -> Iterator[Record]:
    """Records of every kind, in turn."""
    for number in range(RECORDS_PER_KIND):
        for kind in Restorable.kinds:
            yield Record(kind.__tablename__, kind.path, f"{kind.path}-{number}", kind.responsible is not None)


def _bundle() -> dict[str, list[dict[str, Any]]]:
    """Two editors, a third member who answers for every record, and a framework of a hundred controls."""
    users = [*EDITORS, OWNER]
    document: dict[str, list[dict[str, Any]]] = {
        "organizations": [{"id": ORGANIZATION, "name": "Failover"}],
        "users": [{"id": email.partition("@")[0], "email": email} for email in users],
        "memberships": [
            {
                "id": f"member-{email.partition('@')[0]}",
                "organizationId": ORGANIZATION,
                "userId": email.partition("@")[0],
                "role": "editor",
            }
            for email in users
        ],
        "frameworks": [{"id": "framework", "identifier": "FO", "name": "Failover Standard"}],
        "frameworkAdoptions": [{"id": "adoption", "organizationId": ORGANIZATION, "frameworkId": "framework"}],
        "controls": [
            {"id": f"control-{number}", "frameworkId": "framework", "identifier": f"F.{number}", "name": f"F {number}"}
            for number in range(100)
        ],
    }
    for kind in Restorable.kinds:
        answers = {to_camel(kind.responsible): "member-owner"} if kind.responsible else {}
        document[kind.path] = [
            {
                "id": f"{kind.path}-{number}",
                "organizationId": ORGANIZATION,
                to_camel(kind.title_column()): f"{kind.words()} {number}",
                "archivedAt": "2026-01-02T03:04:05.678Z",
                **answers,
            }
            for number in range(RECORDS_PER_KIND)
        ]
    return document


def fill(url: str) -> None:
    """Set the database up as its owner does; ``url`` is the address for its owner."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as bundle:
        json.dump(_bundle(), bundle)
        bundle.flush()
        for arguments in (["migrate"], ["load", bundle.name]):
            command: list[str | Path] = [SCRIPT, *arguments, "--database", url]
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr


def new_tokens(url: str, emails: Sequence[str]) -> list[str]:
    """A token for each of the users, in their order; ``url`` is the address for the database's owner."""
    database = open_database(Settings(database_url=url))
    try:
        return [
            changes_of(database).make_now(
                partial(tokens.create, email=email, scope="write", lifetime=timedelta(hours=4))
            )
            for email in emails
        ]
    finally:
        database.close()


# --- What must hold afterwards


@dataclass
class Outcome:
    """What became of the records, in numbers."""

    acknowledged: int = 0  # restored, and a client was told so
    arrived: int = 0  # restored by a request that was answered with 503: its commit was on its way when the server went
    untouched: int = 0


def check_records(records: Sequence[Record], restores: Sequence[Answer], query: Query) -> Outcome:
    """Every record is as its answers say, to the very request that restored it. A list of all faults, not the first."""
    answers: dict[Record, list[Answer]] = defaultdict(list)
    for answer in restores:
        assert answer.record is not None
        answers[answer.record].append(answer)
    archived, audited, told = _stored(query)
    outcome, faults = Outcome(), []
    for record in records:
        key = (record.table, record.id)
        by_status: dict[int, list[str]] = defaultdict(list)
        for answer in answers[record]:
            by_status[answer.status].append(answer.request_id)
        restored_by = audited[record.id]
        if by_status[200]:
            # Acknowledged: exactly once, and stored by that very request.
            good = restored_by == by_status[200]
            outcome.acknowledged += 1
        elif restored_by:
            # Nobody was told, but a request whose commit was on its way did it. Nobody else did, then or later.
            good = len(restored_by) == 1 and restored_by[0] in by_status[503]
            outcome.arrived += 1
        else:
            # Nobody was told that it is live, either.
            good = not by_status[409]
            outcome.untouched += 1
        whole = archived[key] != bool(restored_by) and told[record.id] == (1 if restored_by and record.told else 0)
        if not (good and whole):
            faults.append((record, dict(by_status), restored_by, archived[key], told[record.id]))
    assert not faults
    assert sum(map(len, audited.values())) == outcome.acknowledged + outcome.arrived
    return outcome


def _stored(query: Query) -> tuple[dict[tuple[str, str], bool], dict[str, list[str]], Counter[str]]:
    """Which records are archived, by which requests each was restored, and how often somebody was told."""
    tables = " UNION ALL ".join(
        f"SELECT '{kind.__tablename__}' AS name, id, archived_at IS NOT NULL AS archived FROM {kind.__tablename__}"
        for kind in Restorable.kinds
    )
    archived = {(row["name"], row["id"]): row["archived"] for row in query(tables)}
    audited = defaultdict(list)
    for row in query("SELECT entity_id, request_id FROM audit_event WHERE user_id IS NOT NULL"):
        audited[row["entity_id"]].append(row["request_id"])
    notified = query("SELECT payload ->> 'entityId' AS id FROM notification")
    return archived, audited, Counter(row["id"] for row in notified)
