"""What a mail about notifications says: their texts, with links to what they are about."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from normata.core.schema.text import plain
from normata.events.keys import Signer
from normata.identity.mail import Mail
from normata.notifications import unsubscribing
from normata.notifications.texts import sentence

SHOWN = 100  # notifications in one message; the rest are counted
_LONGEST_SUBJECT = 200  # characters
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)

# The path of the page of a row, by the slug of the organization and the class and id of the row; null if it has none.
PageOf = Callable[[str, str | None, str | None], str | None]


class _Line(NamedTuple):
    title: str
    body: str
    url: str


def mail_of(notifications: Sequence[Any], message: str, *, public_url: str, page_of: PageOf, signer: Signer) -> Mail:
    """The mail about some notifications of one user from one organization, at least one. Raises KeyUnusable."""
    first = notifications[0]
    inbox = f"{public_url}/app/{quote(first.organization_slug, safe='')}/inbox/"
    lines = [_line(one, public_url, page_of, inbox) for one in notifications[:SHOWN]]
    organization = plain(first.organization_name)
    count = len(notifications)
    subject = lines[0].title if count == 1 else f"{count} notifications from {organization}"
    unsubscribe = unsubscribing.link(signer, public_url, first.user_id)
    values = {
        "subject": subject,
        "notifications": lines,
        "more": count - len(lines),
        "inbox": inbox,
        "organization": organization,
        "instance": urlsplit(public_url).hostname,
        "account": f"{public_url}/account/#mail",
        "unsubscribe": unsubscribe,
    }
    return Mail(
        first.email,
        subject if len(subject) <= _LONGEST_SUBJECT else f"{subject[: _LONGEST_SUBJECT - 1]}…",
        _templates().get_template("mail.txt").render(values),
        _templates().get_template("mail.html").render(values),
        message_id=f"notifications.{message}",
        unsubscribe=unsubscribe,
    )


def _line(notification: Any, public_url: str, page_of: PageOf, inbox: str) -> _Line:
    """A notification in words. One without texts of ours shows its type and the name of its row."""
    payload = notification.payload
    params = {name: _in_words(value, notification.time_zone) for name, value in (payload.get("params") or {}).items()}
    about = plain(payload.get("entityLabel") or payload.get("entityMeta") or "")
    words = plain(notification.type).replace(".", " ").replace("_", " ").capitalize()
    title = sentence(payload.get("titleKey"), params) or (f"{words}: {about}" if about else words)
    path = page_of(notification.organization_slug, payload.get("entityType"), payload.get("entityId"))
    return _Line(title, sentence(payload.get("bodyKey"), params) or "", inbox if path is None else public_url + path)


def _in_words(value: Any, time_zone: str | None) -> str:
    """A value of a text, on one line; a time in the user's zone."""
    shown = plain(str(value))
    try:
        if _DAY.fullmatch(shown):
            return f"{date.fromisoformat(shown):%d %b %Y}"
        if _TIME.fullmatch(shown):
            return f"{datetime.fromisoformat(shown).astimezone(ZoneInfo(time_zone or 'UTC')):%d %b %Y, %H:%M %Z}"
    except (ValueError, OverflowError, ZoneInfoNotFoundError):
        pass  # it is only text, or a zone that the system no longer knows
    return shown


@cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
