"""The content of an event: the bytes that are sealed.

They are JSON in UTF-8 without whitespace, the names of each object sorted by their bytes. The event stores these bytes,
so they need not be made again from values.
"""

from __future__ import annotations

import json
import os
from typing import Any

from normata.core.changes.difference import canonical, difference
from normata.core.changes.unit_of_work import Actor, Change

# The event of an erasure. Its counts also have the ids of the erased events of the same log, and a proof that whoever
# erased them had the event key.
ERASE = "erase"
ERASED_EVENTS = "erasedEvents"
SIGNATURE = "signature"

# The event that accepts an older database. Its counts have name, size and root of the last signed checkpoint.
ACCEPT_ROLLBACK = "accept_rollback"
ACCEPTED = "acceptedRollback"

# The columns of events of older versions, in the order in which they are sealed. Never change this.
_OLD = {
    "id": "id",
    "organizationId": "organization_id",
    "at": "at",
    "action": "action",
    "entityType": "entity_type",
    "entityId": "entity_id",
    "userId": "user_id",
    "tokenId": "token_id",
    "requestId": "request_id",
}


def body_of(event_id: str, change: Change, actor: Actor, moment: str) -> str:
    """The body of the event of a change.

    ``before`` and ``after`` have the changed fields in wire form. The salt prevents guessing an erased body by its
    hash.
    """
    before, after = difference(change)
    return canonical(
        {
            "id": event_id,
            "organizationId": change.organization_id,
            "at": moment,
            "action": change.action,
            "kind": change.table.array,
            "recordId": change.row_id,
            "userId": actor.user_id,
            "tokenId": actor.token_id,
            "command": actor.command or None,
            "address": actor.address or None,
            "requestId": actor.request_id or None,
            "before": before,
            "after": after,
            "counts": change.counts,
            "reason": change.reason,
            "salt": os.urandom(16).hex(),
        }
    )


def old_body(event: Any) -> str:
    """The body of an event that was written without one: its columns."""
    return canonical({wire: getattr(event, name) for wire, name in _OLD.items()})


def sealed_text(event: Any) -> str:
    """The sealed text of an event; empty if it was erased."""
    return old_body(event) if event.body is None else str(event.body)


def values_of(text: str) -> Any:
    """The values of a body. Raises ValueError if it is not JSON. Numbers are exact."""
    return json.loads(text)  # orjson turns integers of more than 64 bits into floats
