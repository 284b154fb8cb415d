"""Which fields of a kind matter first, and where on its pages each of them stands.

A rule finds them by the declaration of a kind. Where people would choose otherwise, the kind is listed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from normata.console.app.records.kinds import Kind
from normata.records.fields import Field, fields_of

_MOST_FIRST = 5
# The fields that a form shows first, of kinds for which the rule finds others than people would.
_FIRST: Mapping[str, tuple[str, ...]] = {
    "auditItems": ("name", "type", "status", "deadline", "findings"),
    "audits": ("name", "type", "frameworkId", "started", "notes"),
    "incidents": ("name", "severity", "status", "ownerId", "description"),
    "records": ("title", "status", "assigneeMemberId", "dueDate", "content"),
    "vendors": ("name", "status", "category", "ownerId", "description"),
}
_LONG = ("prose", "document")
_CHOSEN = ("token", "flag", "reference", "moment")
# What the program fills in, or only other systems know.
_SELDOM = frozenset({"slug", "order", "categoryOrder"})


class FormLayout(NamedTuple):
    """The fields of a form: those that matter first, written and chosen ones apart, then the rest, then the seldom."""

    written: Sequence[Field]
    chosen: Sequence[Field]
    rest: Sequence[Field]
    seldom: Sequence[Field]


def form_layout(kind: Kind, named: Iterable[str] = ()) -> FormLayout:
    """Where each field of a form stands. Those that an address has ``named`` stand with the first, to be seen."""
    fields = [field for field in fields_of(kind) if field.is_writable]
    first = {field.name for field in first_of(kind)} | {
        field.name for field in fields if field.name in set(named) and not is_seldom(field)
    }
    shown = [field for field in fields if field.name in first]
    return FormLayout(
        written=sorted((field for field in shown if field.sort not in _CHOSEN), key=lambda field: not field.is_title),
        chosen=[field for sort in _CHOSEN for field in shown if field.sort == sort],
        rest=[field for field in by_sort(fields) if field.name not in first and not is_seldom(field)],
        seldom=[field for field in fields if field.name not in first and is_seldom(field)],
    )


@cache
def first_of(kind: Kind) -> tuple[Field, ...]:
    """The fields that matter first, at most five."""
    fields = [field for field in fields_of(kind) if field.is_writable and not is_seldom(field)]
    if kind.path in _FIRST:
        return tuple(field for field in fields if field.name in _FIRST[kind.path])
    ranked = sorted(fields, key=_rank)[:_MOST_FIRST]
    return tuple(field for field in fields if field in ranked)


def _rank(field: Field) -> int:
    """What a record is called, where it stands, whose it is, when it is due, and its text; then the others."""
    order = (
        field.is_title,
        field.name == "status",
        field.is_responsible,
        field.ends is not None,
        field.sort in _LONG,
        field.sort == "token",
        field.sort == "reference",
        field.sort == "text",
    )
    return order.index(True) if True in order else len(order)


def by_sort(fields: Iterable[Field]) -> list[Field]:
    """What it is, whose and what about, when; then what was written, long texts last."""
    order = ("token", "flag", "reference", "moment", "text", "number", "foreign", "count", "prose", "document")
    return sorted(fields, key=lambda field: order.index(field.sort))


def is_seldom(field: Field) -> bool:
    """Whether few people ever look at it: what the program makes itself, and ids in other systems."""
    return field.name in _SELDOM or (field.sort == "foreign" and not field.target)
