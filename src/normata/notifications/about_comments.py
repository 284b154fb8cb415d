"""Notifications about comments, to who follows what they are about, and to who is mentioned.

The responsible member of a record, or the owner of an assessment, follows it, and so do its owners by link, and who has
commented on it. A mention is ``@`` and the name or the address of a member, in any case.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from sqlalchemy import BindParameter, bindparam, func, select

from normata.comments.model import Comment
from normata.core.changes.unit_of_work import Actor, Change
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.frameworks.model import ControlCoverage
from normata.identity.model import Membership, User
from normata.links.model import End
from normata.links.queries import named_ends
from normata.links.relations import CONTROLS, TABLES
from normata.notifications.message import Message, name_of, payload
from normata.records.archive.queries import KINDS
from normata.records.owners import owners_by_links, responsible_column

_MENTION = re.compile(r"(?<![\w.])@(?=\S)")
_LONGEST = 320  # characters after the sign: no name or address is longer


def commented(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify who is newly mentioned in a comment, and of a new one also who follows what it is about."""
    if change.table is not Comment or change.row is None or actor.user_id is None:
        return
    row = change.row
    before = _mentioned(transaction, row, change.before["text"]) if change.before is not None else set()
    mentioned = _mentioned(transaction, row, row["text"]) - before
    followers = _followers(transaction, row) if change.before is None else set()
    about = End(row["about_kind"], row["about_id"])
    end = named_ends(transaction, row["organization_id"], {about})[about]
    for member in sorted(mentioned | followers):
        yield _message(about, end, "mentioned" if member in mentioned else "commented", member, actor)


def _message(about: End, end: Mapping[str, Any], key: str, member: str, actor: Actor) -> Message:
    label = f"{end['identifier']} {end['label']}" if about.kind == CONTROLS else end["label"]
    topic = KINDS[about.kind].topic if about.kind in KINDS else "CONTROLS"
    return Message(
        member,
        f"comment.{key}",
        topic,
        payload(
            f"comment.{key}",
            {"label": label, "writtenBy": name_of(actor)},
            f"/{about.kind}/{quote(about.id, safe='')}/",
            {
                "type": TABLES[about.kind].__name__,
                "id": about.id,
                "label": end["label"],
                "meta": end["identifier"] if about.kind == CONTROLS else None,
            },
        ),
    )


def _mentioned(transaction: Transaction, row: Mapping[str, Any], text: str) -> set[str]:
    """The members whose names or addresses follow the sign of a mention.

    Only a text with a sign reads the members, all of them: names are compared in folded case, which SQLite cannot do.
    """
    if _MENTION.search(text) is None:
        return set()
    members: defaultdict[str, set[str]] = defaultdict(set)
    for member in transaction.rows(_PEOPLE, {"organization": row["organization_id"]}):
        for called in (member.name, member.email):
            members[called.casefold()].add(member.id)
    members.pop("", None)
    return {one for name in mentioned_names(text, members) for one in members[name]}


def mentioned_names(text: str, names: Collection[str]) -> set[str]:
    """Those of the names, in folded case, that follow the sign of a mention, and not only as a part of a longer word.

    Of several that follow one sign only the longest is meant: `@Ann Lee` does not mention Ann.

    A text may have thousands of mentions, and an organization thousands of names. So none is compared with all others:
    what follows a sign is looked up in each length that a name has.
    """
    lengths = sorted({len(name) for name in names}, reverse=True)
    found: set[str] = set()
    for words in {text[sign.end() :][:_LONGEST].casefold() for sign in _MENTION.finditer(text)}:
        for length in lengths:
            if words[:length] in names and not words[length : length + 1].isalnum():
                found.add(words[:length])
                break
    return found


def _followers(transaction: Transaction, row: Mapping[str, Any]) -> set[str]:
    organization_id, kind, row_id = row["organization_id"], row["about_kind"], row["about_id"]
    parameters = {"organization": organization_id, "kind": kind, "id": row_id}
    owners = owners_by_links(transaction, organization_id, [row_id]).get((kind, row_id), ())
    found = {*transaction.scalars(_AUTHORS, parameters), *(owner.member_id for owner in owners)}
    table = ControlCoverage if kind == CONTROLS else KINDS[kind]
    column = responsible_column(table)
    if column is not None:
        columns = sql_table(table).c
        about = columns.control_id if kind == CONTROLS else columns.id
        named = select(columns[column]).where(
            columns.organization_id == _ORGANIZATION, about == bindparam("id"), columns[column].is_not(None)
        )
        found |= {*transaction.scalars(named, parameters)}
    return found


_COMMENT = sql_table(Comment)
_MEMBER, _USER = sql_table(Membership), sql_table(User)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_AUTHORS = (
    select(_COMMENT.c.author_id)
    .where(
        _COMMENT.c.organization_id == _ORGANIZATION,
        _COMMENT.c.about_id == bindparam("id"),
        _COMMENT.c.about_kind == bindparam("kind"),
    )
    .distinct()
)
_PEOPLE = (
    select(_MEMBER.c.id, _USER.c.name, func.coalesce(_USER.c.email, "").label("email"))
    .join(_USER, _USER.c.id == _MEMBER.c.user_id)
    .where(_MEMBER.c.organization_id == _ORGANIZATION, _MEMBER.c.removed_at.is_(None))
)
