"""The sidebar: groups of places, in order, without those that the person may not see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from normata.console.filters import kind_words
from normata.console.texts import text
from normata.core.http.roles import Role
from normata.records.archive.queries import KINDS


@cache
def _label(key: str) -> str:
    return kind_words(key) if key in KINDS else text(f"app.section.{key}")


class Place(NamedTuple):
    """An entry of the sidebar, with its path below the organization. Typing ``g`` and ``letter`` goes there."""

    key: str
    path: str
    icon: str
    role: Role = "viewer"
    letter: str = ""

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of its path after the organization."""
        return tuple(step for step in self.path.split("/") if step)

    @property
    def is_kind(self) -> bool:
        """Whether it is the list of a kind of records. Its key is then the path of the kind."""
        return self.key in KINDS

    @property
    def label(self) -> str:
        """The label in the sidebar."""
        return _label(self.key)

    @property
    def one(self) -> str:
        """The name of one record of the kind."""
        return KINDS[self.key].words().capitalize()


class Group(NamedTuple):
    """Places that belong together. A group with an empty key has no heading."""

    key: str
    places: tuple[Place, ...]
    is_folded: bool = False

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(place.key for place in self.places)


def _kind(path: str, icon: str, letter: str = "") -> Place:
    return Place(path, f"records/{path}/", icon, letter=letter)


GROUPS: tuple[Group, ...] = (
    Group("", (Place("home", "", "home", letter="h"), Place("inbox", "inbox/", "inbox", letter="i"))),
    Group(
        "coverage",
        (
            Place("controls", "controls/", "controls", letter="c"),
            Place("frameworks", "frameworks/", "frameworks", letter="f"),
            Place("crosswalk", "crosswalk/", "crosswalk", letter="x"),
        ),
    ),
    Group(
        "work",
        (
            Place("due", "due/", "due", letter="d"),
            _kind("tasks", "tasks", "t"),
            _kind("auditItems", "findings"),
            _kind("audits", "audits"),
            _kind("entitlement-reviews", "reviews"),
            _kind("risk-reviews", "reviews"),
        ),
    ),
    Group(
        "registers",
        (
            _kind("risks", "risks", "k"),
            _kind("policies", "policies", "p"),
            _kind("assets", "assets"),
            _kind("vendors", "vendors", "v"),
            _kind("vendor-assessments", "reviews"),
            _kind("incidents", "incidents"),
            _kind("integration-checks", "checks"),
            _kind("evidence", "evidence"),
            _kind("records", "documents"),
        ),
    ),
    Group("views", (Place("views", "views/", "view", letter="w"),)),
    Group(
        "vocabulary",
        (
            _kind("acronyms", "vocabulary"),
            _kind("labels", "vocabulary"),
            _kind("record-categories", "vocabulary"),
            _kind("variables", "vocabulary"),
            _kind("vulnerability-classes", "vocabulary"),
        ),
        is_folded=True,
    ),
    Group(
        "",
        (
            Place("kinds", "records/", "all", letter="r"),
            Place("archive", "archive/", "archive", letter="a"),
            Place("settings", "settings/", "settings", letter="s"),
            Place("events", "events/", "events", "auditor", letter="e"),
        ),
    ),
)
PLACES: tuple[Place, ...] = tuple(place for group in GROUPS for place in group.places)
QUICK: tuple[Place, ...] = tuple(place for place in PLACES if place.key in ("home", "controls", "due"))  # on phones
NEW: tuple[Place, ...] = tuple(  # in the menu for new records
    place for place in PLACES if place.key in ("tasks", "auditItems", "policies", "assets", "vendors", "incidents")
)
ALWAYS: Mapping[str, tuple[Place, ...]] = {"quick_places": QUICK, "new_kinds": NEW}  # as templates know them


def groups_for(may: Callable[[Role], bool]) -> list[Group]:
    """The groups with the places that the person may see."""
    return [group._replace(places=tuple(place for place in group.places if may(place.role))) for group in GROUPS]
