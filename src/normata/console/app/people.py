"""The names of those whom events know by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from normata.console.app.asking import Question

PEOPLE = Question("listMembers", {"removed": "include"})


def names_of(members: Mapping[str, Any] | None) -> Mapping[str, str]:
    """The names of members by the ids of their users; none where they were not asked for."""
    return {} if members is None else {one["userId"]: one["name"] for one in members["items"]}
