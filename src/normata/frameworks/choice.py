"""Choosing the framework or the control that somebody has named, among those that there are.

It needs no database: commands choose among rows of the database, and among what a server lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from normata.errors import CommandError

_SHOWN = 10


class NoSuchControl(CommandError):
    """A name does not identify exactly one control of the adopted frameworks; the message says why."""


class NotAdopted(CommandError):
    """A name does not identify exactly one adopted framework; the message lists them."""


class NoSuchFramework(CommandError):
    """A name does not identify exactly one framework that the organization can see; the message says why."""


class NamedFramework(Protocol):
    """A framework, by its names."""

    @property
    def id(self) -> str: ...

    @property
    def slug(self) -> str: ...

    @property
    def identifier(self) -> str: ...


class NamedControl(NamedTuple):
    """A control, by its id, and its framework by its names."""

    id: str
    framework_id: str
    slug: str
    framework: str


def choose_adopted(name: str, adopted: Sequence[NamedFramework]) -> str:
    """The id of the one of the adopted frameworks that ``name`` (an id, slug or identifier) names. Raises NotAdopted.

    An id takes precedence over an equal slug or identifier.
    """
    ids = [one.id for one in adopted if name in (one.id, one.slug, one.identifier)]
    if name in ids:
        return name
    if len(ids) > 1:
        raise NotAdopted(f"{name!r} names {len(ids)} frameworks; name one by its id: {', '.join(ids)}")
    if not ids:
        known = ", ".join(one.identifier for one in adopted)
        there = f"it has adopted {known}" if known else "it has adopted none; `normata adopt` does that"
        raise NotAdopted(f"the organization has not adopted a framework {name!r}; {there}")
    return ids[0]


def choose_visible(name: str, ids: Sequence[str]) -> str:
    """The id of the one of the visible frameworks with this name that is meant. Raises NoSuchFramework.

    An id takes precedence over an equal slug or identifier.
    """
    if name in ids:
        return name
    if not ids:
        raise NoSuchFramework(f"the organization can see no framework {name!r}; `normata check` lists what there is")
    if len(ids) > 1:
        raise NoSuchFramework(f"{name!r} names {len(ids)} frameworks; name one by its id: {', '.join(ids)}")
    return ids[0]


def choose_control(name: str, framework: str | None, controls: Sequence[NamedControl]) -> str:
    """The id of the one of these controls, whose id or identifier is ``name``, that is meant. Raises NoSuchControl.

    ``framework`` (an id, slug or identifier) limits the choice to one framework. An id takes precedence over an equal
    identifier.
    """
    found = [one for one in controls if framework in (None, one.framework_id, one.slug, one.framework)]
    if any(one.id == name for one in found):
        return name
    if len(found) == 1:
        return found[0].id
    if found:
        raise NoSuchControl(f"{name!r} names {len(found)} controls; name one by its id: {_listed(found)}")
    where = "no adopted framework" if framework is None else f"no adopted framework {framework!r}"
    has = f"{where} has a control {name!r}"
    raise NoSuchControl(f"{has}; there is {_listed(controls)}" if controls else has)


def _listed(controls: Sequence[NamedControl]) -> str:
    listed = [f"{one.id} ({one.framework})" for one in controls[:_SHOWN]]
    return ", ".join([*listed, "…"] if len(controls) > _SHOWN else listed)
