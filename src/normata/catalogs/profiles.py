"""Resolving profiles: which controls they select, of a catalog that is stored or imported with them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

from normata.catalogs.baselines import baseline_rows
from normata.catalogs.sources import source_rows
from normata.core.changes.source import Fault, FaultyInput, Row

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Choice:
    """Controls that a profile includes or excludes: by their ids in the catalog, or by patterns of ids."""

    place: str
    ids: tuple[str, ...]
    patterns: tuple[str, ...]
    with_children: bool


@dataclass(frozen=True, slots=True)
class ProfileImport:
    """The selection of a profile from one source; ``names`` are those of the source: uuid, title or file."""

    place: str
    names: tuple[str, ...]
    includes_all: bool
    included: tuple[Choice, ...]
    excluded: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A published selection of controls. ``source`` has the columns of its document; empty if that is not kept."""

    file: str
    place: str
    id: str
    title: str
    identifier: str
    version: str
    description: str | None
    imports: tuple[ProfileImport, ...]
    source: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CatalogFramework:
    """A framework that a profile may select from. Its controls have the ids ``<framework>:<id in the catalog>``."""

    id: str
    name: str
    identifier: str
    file: str = ""

    def is_called(self, name: str) -> bool:
        """Whether one of the names of a source may be that of this framework."""
        return name.casefold() in {self.id.casefold(), self.name.casefold(), self.identifier.casefold()} or (
            bool(self.file) and _stem(name) == _stem(self.file)
        )


@dataclass(frozen=True, slots=True)
class CatalogControl:
    """A control that a profile may select."""

    id: str
    parent_id: str | None
    is_requirement: bool


class StoredFrameworks(Protocol):
    """What the database has."""

    def catalog_frameworks(self) -> Sequence[CatalogFramework]:
        """The centralized frameworks."""

    def controls(self, ids: Collection[str]) -> Collection[str]:
        """The ids among these that are stored controls."""

    def controls_of(self, framework_id: str) -> Sequence[CatalogControl]:
        """All controls of a framework."""

    def selection(self, names: Sequence[str]) -> tuple[str, Collection[str]] | None:
        """The framework and the controls of the only baseline with one of these ids or names, or null."""


def baselines_of(
    profiles: Sequence[Profile],
    rows: Sequence[Row],
    stored: StoredFrameworks,
    left_out: Counter[str],
    *,
    skip_unknown: bool,
    option: str,
    missing: str = "Import it first, or together with this file",
) -> list[Row]:
    """The rows of the profiles' baselines, of a catalog among ``rows`` or of a stored one, and of their documents.

    Raises FaultyInput if a catalog or controls of it are missing; with ``skip_unknown``, missing controls are counted
    in ``left_out`` instead. ``option`` is the sender's name of that option, and ``missing`` says what to do where a
    catalog is missing.
    """
    if not profiles:
        return []
    resolver = _Resolver(profiles, rows, stored, left_out, skip_unknown=skip_unknown, option=option, missing=missing)
    found = [row for profile in profiles for row in resolver.rows(profile)]
    if resolver.faults:
        raise FaultyInput(resolver.faults)
    return found


@dataclass(slots=True)
class _Selected:
    """Controls of one framework, by their ids."""

    framework_id: str
    controls: list[str] = field(default_factory=list)


class _Resolver:
    """Resolves the profiles of one import, each once; ``faults`` has their faults."""

    def __init__(
        self,
        profiles: Sequence[Profile],
        rows: Sequence[Row],
        stored: StoredFrameworks,
        left_out: Counter[str],
        *,
        skip_unknown: bool,
        option: str,
        missing: str,
    ) -> None:
        self.faults: list[Fault] = []
        self._profiles = profiles
        self._stored = stored
        self._left_out = left_out
        self._skip_unknown, self._option, self._missing = skip_unknown, option, missing
        self._imported = _imported_controls(rows)
        imported = [
            CatalogFramework(row.values["id"], row.values["name"], row.values["identifier"], row.file)
            for row in rows
            if row.array == "frameworks"
        ]
        ids = {one.id for one in imported}
        self._frameworks = [*imported, *(one for one in stored.catalog_frameworks() if one.id not in ids)]
        self._resolved: dict[str, _Selected | None] = {}
        self._open: set[str] = set()  # profiles being resolved, to detect circles

    def rows(self, profile: Profile) -> Iterator[Row]:
        """The rows of a profile's baseline; none if it has a fault."""
        selected = self._resolve(profile)
        if selected is None:
            return
        framework = next(one for one in self._frameworks if one.id == selected.framework_id)
        values = {
            "id": profile.id,
            "frameworkId": selected.framework_id,
            "identifier": _without_name_of(framework, profile),
            "name": profile.title,
            "version": profile.version,
            "description": profile.description,
            "position": 0,  # a profile is imported alone; baselines of a framework are listed by size
        }
        origin = {"id": "uuid", "frameworkId": "imports", "identifier": "metadata", "name": "metadata"}
        yield from baseline_rows(profile.file, profile.place, values, selected.controls, origin)
        yield from source_rows(profile.file, profile.place, profile.source, selected.framework_id, profile.id)

    def _resolve(self, profile: Profile) -> _Selected | None:
        if profile.id in self._open:
            reason = "leads round in a circle: it imports a profile that imports it"
            self.faults.append(Fault(profile.file, profile.place + "/imports", reason))
            return None
        if profile.id not in self._resolved:
            self._open.add(profile.id)
            self._resolved[profile.id] = self._together(profile)
            self._open.remove(profile.id)
        return self._resolved[profile.id]

    def _together(self, profile: Profile) -> _Selected | None:
        parts = [self._part(profile, one) for one in profile.imports]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        if len({part.framework_id for part in known}) > 1:
            reason = "selects controls of several catalogs: a baseline is of one framework"
            self.faults.append(Fault(profile.file, profile.place + "/imports", reason))
            return None
        controls = dict.fromkeys(control for part in known for control in part.controls)
        return _Selected(known[0].framework_id, list(controls))

    def _part(self, profile: Profile, one: ProfileImport) -> _Selected | None:
        """The selection of one import; null if its source or controls of it are missing."""
        source = self._source(profile, one)
        if source is None:
            return None
        framework_id, within = source
        controls = self._controls(framework_id)
        every = [name for name in controls if within is None or name in within]
        names = {name.removeprefix(f"{framework_id}:").lower(): name for name in every}
        below = _children(controls)
        unknown: list[str] = []
        chosen = {name for name in every if one.includes_all and controls[name].is_requirement}
        for choice in one.included:
            chosen |= _chosen(choice, names, below, unknown)
        for choice in one.excluded:
            chosen -= _chosen(choice, names, below, unknown)
        if unknown and not self._skip_unknown:
            shown = ", ".join(unknown[:_SHOWN]) + (f" and {len(unknown) - _SHOWN:,} more" if unknown[_SHOWN:] else "")
            reason = f"names controls that {framework_id} does not have: {shown}"
            reason += f". Import a version that has them, or use {self._option}"
            self.faults.append(Fault(profile.file, one.place, reason))
            return None
        self._left_out["controls that the catalog does not have"] += len(unknown)
        return _Selected(framework_id, [name for name in every if name in chosen and controls[name].is_requirement])

    def _source(self, profile: Profile, one: ProfileImport) -> tuple[str, Collection[str] | None] | None:
        """The framework of an import's source, and which of its controls can be selected; null for all of them."""
        for other in self._profiles:
            if other is not profile and any(_is_profile(other, name) for name in one.names):
                selected = self._resolve(other)
                return None if selected is None else (selected.framework_id, set(selected.controls))
        called = [framework for framework in self._frameworks if any(map(framework.is_called, one.names))]
        if len(called) != 1:
            stored = self._stored.selection(one.names)
            if stored is not None:
                return stored
            called = self._with_controls(one, called or self._frameworks)
        if len(called) == 1:
            return called[0].id, None
        self.faults.append(Fault(profile.file, one.place, _no_source(one, called, self._missing)))
        return None

    def _with_controls(self, one: ProfileImport, frameworks: Sequence[CatalogFramework]) -> list[CatalogFramework]:
        """The frameworks among these with most of the controls that an import names."""
        named = {name for choice in one.included for name in choice.ids}
        if not named:
            return []
        probes = {f"{framework.id}:{name}": framework.id for framework in frameworks for name in named}
        found = Counter(probes[name] for name in probes if name in self._imported_ids)
        found.update(probes[name] for name in self._stored.controls(sorted(probes.keys() - self._imported_ids)))
        most = max(found.values(), default=0)
        return [framework for framework in frameworks if most and found[framework.id] == most]

    @property
    def _imported_ids(self) -> set[str]:
        return {name for controls in self._imported.values() for name in controls}

    def _controls(self, framework_id: str) -> Mapping[str, CatalogControl]:
        if framework_id not in self._imported:
            self._imported[framework_id] = {one.id: one for one in self._stored.controls_of(framework_id)}
        return self._imported[framework_id]


def _imported_controls(rows: Iterable[Row]) -> dict[str, dict[str, CatalogControl]]:
    found: defaultdict[str, dict[str, CatalogControl]] = defaultdict(dict)
    for row in rows:
        if row.array == "controls":
            values = row.values
            control = CatalogControl(values["id"], values["parentId"], values["type"] == "CONTROL")
            found[values["frameworkId"]][control.id] = control
    return dict(found)


def _children(controls: Mapping[str, CatalogControl]) -> Mapping[str, list[str]]:
    children: defaultdict[str, list[str]] = defaultdict(list)
    for control in controls.values():
        if control.parent_id is not None:
            children[control.parent_id].append(control.id)
    return children


def _chosen(
    choice: Choice, names: Mapping[str, str], children: Mapping[str, Sequence[str]], unknown: list[str]
) -> set[str]:
    """The controls of a choice, by their ids; missing ones are added to ``unknown``."""
    unknown += (name for name in choice.ids if name.lower() not in names)
    found = {names[name.lower()] for name in choice.ids if name.lower() in names}
    for pattern in choice.patterns:
        found |= {control for name, control in names.items() if fnmatchcase(name, pattern.lower())}
    reached = [*found] if choice.with_children else []
    among = set(names.values())
    while reached:
        below = [control for control in children.get(reached.pop(), ()) if control not in found]
        found.update(control for control in below if control in among)
        reached += below
    return found


def _is_profile(profile: Profile, name: str) -> bool:
    return name.casefold() in {profile.id.casefold(), profile.title.casefold()} or _stem(name) == _stem(profile.file)


def _no_source(one: ProfileImport, found: Sequence[CatalogFramework], missing: str) -> str:
    if found:
        named = ", ".join(framework.identifier for framework in found[:_SHOWN])
        return f"may select from {len(found)} catalogs ({named}), and does not name one of them by its title or uuid"
    called = f" ({one.names[0]})" if one.names else ""
    return f"needs a catalog or profile that has not been imported{called}. {missing}"


def _without_name_of(framework: CatalogFramework, profile: Profile) -> str:
    """The name of a profile within its framework: its title without the common beginning of both titles."""
    theirs, words = framework.name.split(), profile.title.split()
    common = 0
    while common < min(len(theirs), len(words)) and theirs[common].strip(":,") == words[common].strip(":,"):
        common += 1
    return " ".join(words[common:]) or profile.identifier


_ENDING = re.compile(r"(?:-min)?\.[a-z]+$", re.IGNORECASE)


def _stem(file: str) -> str:
    """The name of a file without folder, extension and NIST's mark of a minified file."""
    return _ENDING.sub("", re.split(r"[/\\]", file)[-1]).casefold()
