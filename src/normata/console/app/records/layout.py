"""Which fields of a kind come first, and where each field is on its pages.

A rule finds them from the declaration of the kind. Kinds for which it does badly are listed here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from normata.console.app.records.kinds import Kind
from normata.records.fields import Field, fields_of

_MOST_FIRST = 5
# The first fields of the form, for kinds where the rule chooses badly.
_FIRST: Mapping[str, tuple[str, ...]] = {
    "auditItems": ("name", "type", "status", "deadline", "findings"),
    "audits": ("name", "type", "frameworkId", "started", "notes"),
    "incidents": ("name", "severity", "detectedAt", "isPersonalDataBreach", "ownerId"),
    "records": ("title", "status", "assigneeMemberId", "dueDate", "content"),
    "tasks": ("title", "description", "status", "assigneeMemberId", "deadline", "frequency"),
    "vendors": ("name", "status", "category", "ownerId", "description"),
}
_LONG = ("prose", "document")
_CHOSEN = ("token", "flag", "reference", "moment")
# Filled in by the program, or known to other systems only.
_SELDOM = frozenset({"slug", "order", "categoryOrder"})


class FormLayout(NamedTuple):
    """The fields of a form: the first ones, split into typed and chosen ones, then the rest, then the rarely used."""

    written: Sequence[Field]
    chosen: Sequence[Field]
    rest: Sequence[Field]
    seldom: Sequence[Field]


def form_layout(kind: Kind, named: Iterable[str] = (), hidden: Collection[str] = ()) -> FormLayout:
    """The layout of a form. The fields in ``named``, which the address fills in, are among the first, to be seen.

    Those that are ``hidden`` are left out.
    """
    fields = [field for field in fields_of(kind) if field.is_typed and field.name not in hidden]
    first = {field.name for field in first_of(kind)} | {
        field.name for field in fields if field.name in set(named) and not is_seldom(field)
    }
    shown = [field for field in fields if field.name in first]
    return FormLayout(
        written=sorted(
            (field for field in shown if _as_shown(field) not in _CHOSEN), key=lambda field: not field.is_title
        ),
        chosen=[field for sort in _CHOSEN for field in shown if _as_shown(field) == sort],
        rest=[field for field in by_sort(fields) if field.name not in first and not is_seldom(field)],
        seldom=[field for field in fields if field.name not in first and is_seldom(field)],
    )


@cache
def first_of(kind: Kind) -> tuple[Field, ...]:
    """The first fields of the form, at most five."""
    fields = [field for field in fields_of(kind) if field.is_typed and not is_seldom(field)]
    if kind.path in _FIRST:
        return tuple(field for field in fields if field.name in _FIRST[kind.path])
    ranked = sorted(fields, key=_rank)[:_MOST_FIRST]
    return tuple(field for field in fields if field in ranked)


def _rank(field: Field) -> int:
    """Where a field comes: title, status, responsible member, due date, long text, then the others."""
    order = (
        field.is_title,
        field.name == "status",
        field.is_responsible,
        field.ends is not None,
        field.sort in _LONG,
        field.sort == "token",
        bool(field.target),
        field.sort == "text",
    )
    return order.index(True) if True in order else len(order)


def by_sort(fields: Iterable[Field]) -> list[Field]:
    """Fields in reading order: states, references and dates, then typed values, long texts last."""
    order = ("token", "flag", "reference", "moment", "text", "number", "foreign", "count", "files", "prose", "document")
    return sorted(fields, key=lambda field: order.index(_as_shown(field)))


def _as_shown(field: Field) -> str:
    """The sort of a field, where an id that may name a row is shown and chosen as a reference is.

    How often something recurs belongs beside its date.
    """
    if field.name == "frequency":
        return "moment"
    return "reference" if field.target else field.sort


def is_seldom(field: Field) -> bool:
    """Whether few people need the field: the program makes it, or it is an id in another system."""
    return field.name in _SELDOM or field.is_opaque
