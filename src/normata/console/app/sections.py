"""The sidebar: groups of places, in order. Places that the person may not see are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from normata.console.filters import kind_words
from normata.console.texts import text
from normata.core.http.roles import Role
from normata.records.archive.queries import KINDS


class Place(NamedTuple):
    """A part of the console; its path is within the organization. ``letter`` is the key that goes there after ``g``."""

    key: str
    path: str
    icon: str
    role: Role = "viewer"
    letter: str = ""

    @property
    def is_kind(self) -> bool:
        """Whether it is the list of a kind of records; its key is then the kind's path."""
        return self.key in KINDS

    @property
    def label(self) -> str:
        """What people call it."""
        return kind_words(self.key) if self.is_kind else text(f"app.section.{self.key}")

    @property
    def one(self) -> str:
        """What people call one record of the kind."""
        return KINDS[self.key].words().capitalize()


class Group(NamedTuple):
    """Places that belong together; a group without a key has no heading."""

    key: str
    places: tuple[Place, ...]
    is_folded: bool = False

    @property
    def keys(self) -> frozenset[str]:
        """The keys of its places."""
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
            _kind("risk-reviews", "risks"),
        ),
    ),
    Group(
        "registers",
        (
            _kind("policies", "policies", "p"),
            _kind("assets", "assets"),
            _kind("vendors", "vendors", "v"),
            _kind("incidents", "incidents"),
            _kind("integration-checks", "checks"),
            _kind("records", "evidence"),
        ),
    ),
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
            Place("events", "events/", "events", "admin", letter="e"),
        ),
    ),
)
PLACES: tuple[Place, ...] = tuple(place for group in GROUPS for place in group.places)
QUICK: tuple[Place, ...] = tuple(place for place in PLACES if place.key in ("home", "controls", "due"))  # on a phone
NEW: tuple[Place, ...] = tuple(  # what people make most
    place for place in PLACES if place.key in ("tasks", "auditItems", "policies", "assets", "vendors", "incidents")
)


def groups_for(may: Callable[[Role], bool]) -> list[Group]:
    """The groups with the places that somebody may see."""
    return [group._replace(places=tuple(place for place in group.places if may(place.role))) for group in GROUPS]
