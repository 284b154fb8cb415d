"""Messages to members, and the type of rules that make messages of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from normata.core.changes.unit_of_work import Actor, Change
from normata.core.db.transaction import Transaction


class Message(NamedTuple):
    """A notification to one member."""

    member_id: str
    type: str
    category: str
    payload: dict[str, Any]


# The messages about a change, found in its own transaction.
Rule = Callable[[Transaction, Change, Actor], Iterable[Message]]


def payload(key: str, params: Mapping[str, Any], url: str, entity: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a notification: the texts of ``key``, their parameters, a link, and the row that it is about.

    ``entity`` has ``type``, ``id``, ``label`` and ``meta``. The texts must be in the file of English texts.
    """
    return {
        "titleKey": f"notifications.{key}.title",
        "bodyKey": f"notifications.{key}.body",
        "params": dict(params),
        "url": url,
        "entityType": entity["type"],
        "entityId": entity["id"],
        "entityLabel": entity["label"],
        "entityMeta": entity["meta"],
    }


def name_of(actor: Actor) -> str:
    """The name of the author of a change in notifications."""
    return actor.user_name or actor.command or "Normata"
