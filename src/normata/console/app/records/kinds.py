"""The kind that a page is about, and its words, which follow from its declaration."""

from __future__ import annotations

import re
from typing import NamedTuple

from normata.console.app.organization_request import OrganizationRequest
from normata.console.texts import has_text, text
from normata.errors import NotFound
from normata.records.archive.queries import KINDS
from normata.records.base import Restorable
from normata.records.fields import Field, fields_of
from normata.records.read_operations import list_id

Kind = type[Restorable]


class KindNames(NamedTuple):
    """The path of a kind, and its names in singular and plural, for templates."""

    path: str
    one: str
    several: str


def kind_of(page_request: OrganizationRequest) -> Kind:
    """The kind that the address names. Raises NotFound."""
    kind = KINDS.get(page_request.param("kind"))
    if kind is None:
        raise NotFound
    return kind


def kind_names(kind: Kind) -> KindNames:
    """The names of a kind, for templates."""
    return KindNames(kind.path, kind.words(), kind.plural())


def label(field: Field | str) -> str:
    """The label of a field: from the texts, or else from its name (``dueDate`` becomes ``Due date``)."""
    name = field if isinstance(field, str) else field.name
    key = f"record.field.{name}"
    if has_text(key):
        return text(key)
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower().split()
    for passed in ("is",) if words[0] == "is" else ():
        words.remove(passed)
    while len(words) > 1 and words[-1] in ("id", "member", "at"):
        words.pop()
    return " ".join(words).capitalize()


def title_of(kind: Kind) -> Field:
    """The field with the name of a record."""
    return next(field for field in fields_of(kind) if field.is_title)


def listing(kind: Kind) -> str:
    """The id of the operation that lists the records of a kind."""
    return list_id(kind)


def getting(kind: Kind) -> str:
    """The id of the operation that reads a record."""
    return f"get{kind.__name__}"


def making(kind: Kind) -> str:
    """The id of the operation that creates a record."""
    return f"create{kind.__name__}"


def changing(kind: Kind) -> str:
    """The id of the operation that changes a record."""
    return f"change{kind.__name__}"


def remembering(kind: Kind) -> str:
    """The id of the operation that lists a record's history."""
    return f"list{kind.__name__}Events"
