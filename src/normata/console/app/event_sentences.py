"""Events as sentences for messages outside of the console, such as those of webhooks to chats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from normata.console.app.row_links import steps_to
from normata.console.filters import action_words, kind_word
from normata.console.texts import has_text, text


def described(event: Mapping[str, Any], organization_slug: str, *, public_url: str) -> tuple[str, str]:
    """An event in a sentence, and the address of its row's page, empty if it has none.

    ``event`` has kind, action, row, the names of user and row (empty if unknown), command, and known values.
    """
    keys = (f"did.{event['action']}.{event['kind']}", f"did.{event['action']}")
    done = next((text(key) for key in keys if has_text(key)), action_words(event["action"]).lower())
    values = {
        "who": event["userName"] or text("feed.service"),
        "did": done,
        "thing": kind_word(event["kind"]),
        "label": event["label"],
    }
    sentence = text("events.sentence.named" if event["label"] else "events.sentence", **values)
    steps = steps_to(event["kind"], event["recordId"], event["values"])
    if steps is None:
        return sentence, ""
    return sentence, "/".join((public_url, "app", *(quote(step, safe="") for step in (organization_slug, *steps)), ""))
