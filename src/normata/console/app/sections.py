"""What the navigation has, in its order."""

from __future__ import annotations

from typing import NamedTuple

from normata.core.http.roles import Role


class Section(NamedTuple):
    """A part of the console: its text is ``app.section.<key>``, its path is within the organization."""

    key: str
    path: str
    role: Role = "viewer"

    @property
    def letter(self) -> str:
        """The key that goes there after ``g``; empty where there is none."""
        return _LETTERS.get(self.key, "")


SECTIONS: tuple[Section, ...] = (
    Section("home", ""),
    Section("controls", "controls/"),
    Section("frameworks", "frameworks/"),
    Section("crosswalk", "crosswalk/"),
    Section("records", "records/"),
    Section("archive", "archive/"),
    Section("due", "due/"),
    Section("inbox", "inbox/"),
    Section("events", "events/", "admin"),
    Section("settings", "settings/"),
)

_LETTERS = {
    "home": "h",
    "controls": "c",
    "frameworks": "f",
    "crosswalk": "x",
    "records": "r",
    "archive": "a",
    "inbox": "i",
    "due": "d",
    "events": "e",
    "settings": "s",
}
