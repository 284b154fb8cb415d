"""Searching files for a person: their names and, where they are text, their contents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any, NamedTuple

from sqlalchemy import select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.files.model import File
from normata.files.store import FileStore, place_of

LARGEST = 16 * 2**20  # bytes of a content that is searched
_HEAD = 4_096  # bytes that show whether a content is text
_ENCODED = (b"%PDF-", rb"{\rtf")  # beginnings of contents that are ASCII, but do not have their texts as they are
_ENCODED_TYPES = ("message/", "multipart/")
_TEXT_TYPES = re.compile(r"text/|application/(json|xml|[\w.-]+\+(json|xml))")
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
_TAGS = re.compile(r"<[^<>]*>")

IsNamedIn = Callable[[str], bool]


class Found(NamedTuple):
    """A file, with what is known of a person in it. ``in_content`` is null if the content cannot be searched."""

    id: str
    media_type: str
    user_id: str | None
    in_name: bool
    in_content: bool | None


class FileContents:
    """Searches the contents of the files of a store for one person. Each is read once, since none ever changes."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._known: dict[str, bool | None] = {}

    def search(self, transaction: Transaction, is_named_in: IsNamedIn) -> Iterator[Found]:
        """All files with a content, in the order of their ids."""
        for row in transaction.stream(_FILES):
            if row.id not in self._known:
                content = self._text_of(row)
                self._known[row.id] = None if content is None else any(map(is_named_in, _readings(content)))
            yield Found(row.id, row.media_type, row.user_id, is_named_in(row.name), self._known[row.id])

    def _text_of(self, row: Any) -> str | None:
        """A content as text; null if it is none, is too large or cannot be read."""
        if row.size > LARGEST or row.media_type.startswith(_ENCODED_TYPES):
            return None
        try:
            with self._store.open(place_of(row.organization_id, row.id, row.sha256)) as file:
                head = file.read(_HEAD)
                if not head.startswith(tuple(_MARKS)) and (b"\0" in head or head.startswith(_ENCODED)):
                    return None
                return _decoded(head + file.read(), row.media_type)
        except OSError:
            return None


def _decoded(content: bytes, media_type: str) -> str | None:
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace") if _TEXT_TYPES.match(media_type.lower()) else None


def _readings(content: str) -> Iterator[str]:
    """A text as it is, and as a browser shows it if it may be HTML or XML."""
    yield content
    if "&" in content or "<" in content:
        yield unescape(_TAGS.sub(" ", content))


_TABLE = sql_table(File)
_FILES = (
    select(*(_TABLE.c[name] for name in ("id", "organization_id", "user_id", "name", "media_type", "size", "sha256")))
    .where(_TABLE.c.erased_at.is_(None))
    .order_by(_TABLE.c.id)
)
