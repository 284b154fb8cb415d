"""Mappings that name unknown controls: one fault for each framework, or left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from normata.catalogs.matches import matches_of
from normata.core.changes.source import Fault, FaultyInput, Row

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from normata.catalogs.matches import Relation, Side
    from normata.catalogs.reading import Published

_SHOWN = 5


class Stored(Protocol):
    """What the database has."""

    def controls(self, ids: Collection[str]) -> Collection[str]:
        """The ids among these that are stored controls."""

    def frameworks(self, ids: Collection[str]) -> Collection[str]:
        """The ids among these that are stored frameworks."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A mapping that was not imported, with the unknown controls that it names."""

    file: str
    place: str
    source: str
    relationship: str
    target: str
    unknown: tuple[str, ...]


def rows_to_load(
    published: Published, stored: Stored, *, skip_unknown: bool = False, option: str = "--skip-unknown"
) -> tuple[list[Row], list[LeftOut]]:
    """The rows to load, and the mappings that are left out because they name unknown controls.

    Without ``skip_unknown``, unknown controls raise FaultyInput. ``option`` is the sender's name of that option.
    """
    relations, left_out = known_relations(published, stored, skip_unknown=skip_unknown, option=option)
    return [*published.rows, *matches_of(relations)], left_out


def known_relations(
    published: Published, stored: Stored, *, skip_unknown: bool, option: str
) -> tuple[Sequence[Relation], list[LeftOut]]:
    """The mappings between known controls, and the others. Raises FaultyInput for these, unless ``skip_unknown``."""
    unknown = _unknown(published, stored)
    if not unknown:
        return published.relations, []
    if not skip_unknown:
        raise FaultyInput(_faults(published, stored, unknown, option))
    left_out = []
    relations = []
    for relation in published.relations:
        missing = tuple(control for _, control in relation.ends() if control in unknown)
        if missing:
            left_out.append(_left_out(relation, missing))
        else:
            relations.append(relation)
    return relations, left_out


def _left_out(relation: Relation, missing: tuple[str, ...]) -> LeftOut:
    file, place = relation.within.file, relation.place
    return LeftOut(file, place, relation.source, relation.relationship, relation.target, missing)


def _unknown(published: Published, stored: Stored) -> set[str]:
    """The named controls that are neither in the import nor stored."""
    named = {control for relation in published.relations for _, control in relation.ends()}
    named -= {row.values["id"] for row in published.rows if row.array == "controls"}
    return named.difference(stored.controls(sorted(named))) if named else named


# Faults


@dataclass(slots=True)
class _Gap:
    """What is missing of one framework: the first mapping that names it, and all the controls.

    ``is_whole`` is true if no control of the framework is known.
    """

    first: Relation
    side: Side
    controls: dict[str, None] = field(default_factory=dict)
    mappings: int = 0
    files: set[str] = field(default_factory=set)
    is_whole: bool = True


def _faults(published: Published, stored: Stored, unknown: set[str], option: str) -> list[Fault]:
    """One fault for each framework that is missing or lacks controls."""
    gaps = _gaps(published.relations, unknown)
    there = {row.values["id"] for row in published.rows if row.array == "frameworks"}
    there.update(stored.frameworks(sorted(gaps.keys() - {""})))
    return [
        _missing_framework(gap)
        if framework and framework not in there and gap.is_whole
        else _missing_controls(gap, option)
        for framework, gap in gaps.items()
    ]


def _gaps(relations: Sequence[Relation], unknown: set[str]) -> dict[str, _Gap]:
    gaps: dict[str, _Gap] = {}
    partial: set[str] = set()
    for relation in relations:
        lacking: dict[str, _Gap] = {}
        for side, control in relation.ends():
            if control not in unknown:
                partial.add(side.framework)
                continue
            lacking[side.framework] = gap = gaps.setdefault(side.framework, _Gap(relation, side))
            gap.controls[control] = None
        for gap in lacking.values():  # once, if both ends are in the same framework
            gap.mappings += 1
            gap.files.add(relation.within.file)
    for framework in partial & gaps.keys():
        gaps[framework].is_whole = False
    return gaps


def _missing_framework(gap: _Gap) -> Fault:
    need = "needs" if gap.mappings == 1 else "need"
    reason = f"{_mappings(gap)} {need} the framework {gap.side.framework}, which has not been imported"
    return Fault(gap.first.within.file, gap.side.place, f"{reason}. {gap.side.obtain}")


def _missing_controls(gap: _Gap, option: str) -> Fault:
    shown = ", ".join(list(gap.controls)[:_SHOWN])
    more = f" and {len(gap.controls) - _SHOWN:,} more" if len(gap.controls) > _SHOWN else ""
    holder = f"the framework {gap.side.framework} does not have" if gap.side.framework else "no catalog has"
    name = "names" if gap.mappings == 1 else "name"
    reason = f"{_mappings(gap)} {name} controls that {holder}: {shown}{more}"
    return gap.first.fault(gap.side.key, f"{reason}. Import a version that has them, or use {option}")


def _mappings(gap: _Gap) -> str:
    count = "1 mapping" if gap.mappings == 1 else f"{gap.mappings:,} mappings"
    return count if len(gap.files) == 1 else f"{count} in {len(gap.files):,} files"
