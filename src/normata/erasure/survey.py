"""The rows of all tables that name a person: what an erasure will change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import Select, String, bindparam, select

from normata.catalogs.documents import Document
from normata.core.db.transaction import Transaction
from normata.core.documents.files import Unreadable
from normata.core.schema.table import Table, sql_table, tables
from normata.erasure.columns import called, ids_of, keys_of, own_tables, texts_of
from normata.erasure.person import ErasureRequest, Person
from normata.errors import CommandError
from normata.files.model import File
from normata.files.searching import FileContents
from normata.identity.model import User
from normata.soa_versions.erasing import versions_with
from normata.soa_versions.model import SoaVersion

_CLEARED = "user_id"  # the column with the user whose name another column contains
_ACCOUNT_OF = "organization_id"  # set for service accounts, whose names others have chosen


@dataclass(frozen=True, slots=True)
class Place:
    """A row that names the person: the values of its key, and the columns that do.

    There are no columns if the row is the person's own and is deleted.
    """

    table: type[Table]
    key: tuple[Any, ...]
    columns: tuple[str, ...] = ()

    @property
    def location(self) -> tuple[str, str, str]:
        """The table, the key and the columns, for people."""
        return called(self.table), " ".join(map(str, self.key)), " ".join(self.columns)


@dataclass(slots=True)
class Survey:
    """The ``places`` that name a person, and the rows that are their ``own``.

    ``ids`` are rows whose own id names them, which cannot be changed. ``documents`` are rows with files that name them
    and that law demands to keep (GDPR, article 17(3) b): they stay unless the request says otherwise. ``uploads`` are
    further files that the person has uploaded: they do not name them. ``unsearched`` are files with contents that
    cannot be searched, with their media type instead of columns. ``ambiguous`` counts the texts with a word that may be
    the person's name or an ordinary word.
    """

    places: list[Place] = field(default_factory=list)
    own: list[Place] = field(default_factory=list)
    ids: list[Place] = field(default_factory=list)
    documents: list[Place] = field(default_factory=list)
    uploads: list[Place] = field(default_factory=list)
    unsearched: list[Place] = field(default_factory=list)
    ambiguous: int = 0


def survey(transaction: Transaction, person: Person, contents: FileContents) -> Survey:
    """Search every text of every table and file, and find the rows that are the person's own."""
    found = Survey()
    if person.user_id is not None:
        for table, column in own_tables():
            keys = transaction.rows(_select_own(table, column), {"user": person.user_id})
            found.own += [Place(table, tuple(key)) for key in keys]
        if person.scan.without(person.user_id) != person.user_id:
            found.ids.append(Place(User, (person.user_id,), ("id",)))
    for table in tables():
        if texts_of(table):
            _look_through(transaction, table, person, found)
    _look_through_documents(transaction, person, contents, found)
    return found


def _look_through_documents(transaction: Transaction, person: Person, contents: FileContents, found: Survey) -> None:
    def is_named_in(text: str) -> bool:
        return _is_named_in(person, text)

    for version_id in versions_with(transaction, is_named_in):
        found.documents.append(Place(SoaVersion, (version_id,), ("files",)))
    for one in contents.search(transaction, is_named_in):
        named = tuple(part for part, is_in in (("name", one.in_name), ("content", one.in_content)) if is_in)
        if named:
            found.documents.append(Place(File, (one.id,), named))
        elif person.user_id is not None and one.user_id == person.user_id:
            found.uploads.append(Place(File, (one.id,), ("uploaded",)))
        if one.in_content is None:
            found.unsearched.append(Place(File, (one.id,), (one.media_type,)))


class NoSuchFile(CommandError):
    """There is no uploaded file with this id, or its bytes were erased already."""


def require_files(transaction: Transaction, erasure_request: ErasureRequest) -> None:
    """Raise NoSuchFile for ids that are those of no file that has its bytes."""
    for file_id in erasure_request.also_files:
        if transaction.row(_FILE, {"file": file_id}) is None:
            raise NoSuchFile(f"--also-file {file_id}: there is no uploaded file with this id and its bytes")


def to_remove(found: Survey, erasure_request: ErasureRequest) -> list[Place]:
    """The rows whose files a request removes: those that name the person if it says so, and those that it names."""
    places = [*found.documents] if erasure_request.also_documents else []
    known = {place.key[0] for place in places if place.table is File}
    return places + [Place(File, (one,), ("named",)) for one in sorted({*erasure_request.also_files} - known)]


def _is_named_in(person: Person, text: str) -> bool:
    return person.scan.may_be_in(text) and person.scan.are_in_json(text)


def _look_through(transaction: Transaction, table: type[Table], person: Person, found: Survey) -> None:
    keys, ids, texts, own = keys_of(table), ids_of(table), texts_of(table), _own_columns()
    for row in transaction.stream(_select(table)):
        values = row._asdict()
        if person.user_id is not None and table in own and values[own[table]] == person.user_id:
            continue
        if table is User and values[_ACCOUNT_OF] is None:
            continue  # the row of the person, which is cleared as a whole, or of a namesake
        if not person.scan.may_be_in("\n".join(map(_as_text, row))):
            continue
        key = tuple(values[name] for name in keys)
        columns = tuple(name for name in texts if without(table, values, name, person) != values[name])
        if columns:
            (found.documents if table.is_document(values) else found.places).append(Place(table, key, columns))
        naming = tuple(name for name in ids if person.scan.without(values[name]) != values[name])
        if naming:
            found.ids.append(Place(table, key, naming))
        if person.has_ambiguous_name:
            found.ambiguous += sum(_is_ambiguous(values[name], person) for name in texts if name not in columns)


def without(table: type[Table], row: Mapping[str, Any], name: str, person: Person) -> Any:
    """The value of a column of a row without the person."""
    value = row[name]
    found = None if value is None else _without(table, row, name, person)
    # The replacement may be longer than the name.
    return found[: _length(table, name)] if isinstance(found, str) and found != value else found


def _is_in_source(person: Person, text: str) -> bool:
    """Whether a document in JSON or YAML names the person, in its values or anywhere else, such as a comment."""
    if person.scan.without(text) != text:
        return True
    try:
        values = Document("", "", text.encode()).values
    except Unreadable:  # no version has stored such a document
        return False
    return bool(person.scan.without_document(values) != values)


def _length(table: type[Table], name: str) -> int | None:
    kind = sql_table(table).c[name].type
    return kind.length if isinstance(kind, String) else None


def _without(table: type[Table], row: Mapping[str, Any], name: str, person: Person) -> Any:
    value, use, scan = row[name], texts_of(table)[name], person.scan
    match use:
        case "document":
            return scan.without_document(value)
        case "person" if row.get(_CLEARED) is not None:
            # The name of the same user, whatever it was then. Another id means a namesake.
            return None if row[_CLEARED] == person.user_id else value
        case "person":
            return scan.without_person(value)
        case "slug":
            return scan.without_slug(value)
        case "whole" | "source":
            is_named = scan.are_in_json(value) if use == "whole" else _is_in_source(person, value)
            return sql_table(table).c[name].info.get("erased_to", "") if is_named else value
    return scan.without_email(value) if use == "email" else scan.without(value)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _is_ambiguous(value: Any, person: Person) -> bool:
    return isinstance(value, str) and person.scan.are_ambiguous_in(value)


_FILE = select(File.id).where(File.id == bindparam("file"), File.erased_at.is_(None))


@cache
def _own_columns() -> dict[type[Table], str]:
    return dict(own_tables())


@cache
def _select_own(table: type[Table], column: str) -> Select[Any]:
    columns = sql_table(table).c
    return select(*(columns[name] for name in keys_of(table))).where(columns[column] == bindparam("user"))


@cache
def _select(table: type[Table]) -> Select[Any]:
    columns = sql_table(table).c
    more = (_CLEARED, _own_columns().get(table), _ACCOUNT_OF if table is User else None)
    others = (name for name in more if name is not None and name in columns)
    names = dict.fromkeys((*keys_of(table), *texts_of(table), *table.document_if, *others))
    return select(*(columns[name] for name in names))
