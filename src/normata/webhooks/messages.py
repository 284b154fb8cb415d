"""What is sent to a receiver: the body in each format, and the headers of Standard Webhooks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from normata.core.changes.difference import canonical
from normata.events.content import sealed_text, values_of
from normata.events.history import FORMER_ACTIONS
from normata.events.log import as_item
from normata.webhooks.secrets import SecretBox, signatures

TEST = "test"  # the type of a message that is no event
_LONGEST_TEXT = 500  # characters, before they are escaped; Slack takes 3,000 in a block

# An event in a sentence, and the link to its row; an empty link if it has no page.
Describe = Callable[[Mapping[str, Any], str], tuple[str, str]]


class Message(NamedTuple):
    """A message to a receiver: the id is the same on every attempt."""

    id: str
    body: bytes


def is_wanted(webhook: Any, row: Any, arrays: Mapping[str, str]) -> bool:
    """Whether a webhook takes an event. ``arrays`` has the kinds of rows by the classes of their tables."""
    kind, action = _kind(row, arrays), _action(row)
    return (not webhook.kinds or kind in webhook.kinds) and (not webhook.actions or action in webhook.actions)


def message_of(webhook: Any, row: Any, arrays: Mapping[str, str], names: Mapping[str, str], say: Describe) -> Message:
    """The message about an event. ``names`` are those of users and rows by their ids, ``say`` describes an event."""
    if webhook.format == "SLACK":
        return Message(row.event_id, _slack(webhook, row, arrays, names, say))
    kind, action = _kind(row, arrays), _action(row)
    data = {
        "organizationId": row.organization_id,
        "number": row.number,
        "id": row.event_id,
        "kind": kind,
        "action": action,
        "recordId": row.entity_id,
    }
    if webhook.format == "FULL":
        data |= as_item(row)
    event_type = f"{kind}.{action}".replace("-", "_")  # the characters that the standard recommends
    return Message(row.event_id, canonical({"type": event_type, "timestamp": row.at, "data": data}).encode())


def test_message(webhook: Any, message_id: str, moment: str) -> Message:
    """A message that is no event, for trying a webhook."""
    if webhook.format == "SLACK":
        text = "This is a test of a webhook of Normata. No event has happened."
        return Message(message_id, _block(text))
    data = {"organizationId": webhook.organization_id, "webhookId": webhook.id}
    return Message(message_id, canonical({"type": TEST, "timestamp": moment, "data": data}).encode())


def headers_of(message: Message, webhook: Any, box: SecretBox, moment: str) -> dict[str, str]:
    """The headers of a message that is sent at a moment.

    While the secret is changed there are two signatures. Raises SecretUnreadable.
    """
    keys = [box.open(webhook.id, webhook.secret)]
    if webhook.former_secret is not None and webhook.former_until is not None and webhook.former_until > moment:
        keys.append(box.open(webhook.id, webhook.former_secret))
    timestamp = int(datetime.fromisoformat(moment).astimezone(UTC).timestamp())
    return {
        "Content-Type": "application/json",
        "User-Agent": "Normata",
        "webhook-id": message.id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signatures(keys, message.id, timestamp, message.body),
    }


def _kind(row: Any, arrays: Mapping[str, str]) -> str:
    return str(arrays.get(row.entity_type, row.entity_type))


def _action(row: Any) -> str:
    return str(FORMER_ACTIONS.get(row.action, row.action))


def _slack(webhook: Any, row: Any, arrays: Mapping[str, str], names: Mapping[str, str], say: Describe) -> bytes:
    text = sealed_text(row)
    known: Mapping[str, Any] = values_of(text) if text else {}
    event = {
        "kind": _kind(row, arrays),
        "action": _action(row),
        "recordId": row.entity_id,
        "userName": names.get(row.user_id or "", ""),
        "label": names.get(row.entity_id or "", ""),
        "command": known.get("command"),
        "values": {**(known.get("before") or {}), **(known.get("after") or {})},
    }
    sentence, link = say(event, webhook.organization_slug)
    return _block(sentence, link, webhook.organization_name)


def _block(sentence: str, link: str = "", organization: str = "") -> bytes:
    """A message of one block, as Slack's incoming webhooks and those of programs compatible with them take it."""
    text = _escaped(sentence[:_LONGEST_TEXT])
    shown = f"<{link}|{text}>" if link else text
    blocks: list[dict[str, Any]] = [{"type": "section", "text": {"type": "mrkdwn", "text": shown}}]
    if organization:
        context = {"type": "mrkdwn", "text": _escaped(organization)}
        blocks.append({"type": "context", "elements": [context]})
    return json.dumps({"text": text, "blocks": blocks}, ensure_ascii=False).encode()


def _escaped(text: str) -> str:
    """A text without what Slack gives a meaning: the three characters that it names, and those of its markup."""
    plain = " ".join(text.split())
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        plain = plain.replace(character, entity)
    return "".join(f"\u200b{one}" if one in "*_~`|" else one for one in plain)
