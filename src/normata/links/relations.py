"""What can be linked, and which relations make sense between which kinds: suggestions, that nothing enforces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field

from normata.core.schema.table import Table
from normata.frameworks.model import Control
from normata.identity.model import Membership
from normata.links.model import OWNS, RELATES
from normata.records.archive.queries import KINDS

CONTROLS, MEMBERS = Control.array, Membership.array
TABLES: Mapping[str, type[Table]] = {CONTROLS: Control, MEMBERS: Membership, **KINDS}

if TYPE_CHECKING:
    LinkedKind = str
else:  # the names are known at run time only
    LinkedKind = Annotated[
        Literal[tuple(TABLES)],
        Field(description="The kind: that of a record as in its path (`tasks`), `controls`, or `memberships`."),
    ]

_ANY = frozenset(TABLES)
_WORK = _ANY - {MEMBERS}


class _Sense(NamedTuple):
    """The kinds that a relation makes sense from and to."""

    sources: frozenset[str]
    targets: frozenset[str]


# The most telling first.
_SENSES: tuple[tuple[str, _Sense], ...] = (
    (OWNS, _Sense(frozenset({MEMBERS}), _WORK)),
    ("IN_SCOPE", _Sense(_WORK, frozenset({"audits"}))),
    ("SUPPORTS", _Sense(frozenset({"evidence", "records", "integration-checks"}), frozenset({CONTROLS}))),
    ("IMPLEMENTS", _Sense(frozenset({"policies", "tasks", "assets"}), frozenset({CONTROLS}))),
    ("TREATS", _Sense(frozenset({CONTROLS, "policies", "tasks"}), frozenset({"risks"}))),
    ("AFFECTS", _Sense(frozenset({"risks", "incidents", "vulnerability-classes"}), frozenset({"assets", "vendors"}))),
    ("AFFECTS", _Sense(frozenset({"auditItems", "incidents"}), frozenset({CONTROLS}))),
)


class Suggestion(NamedTuple):
    """A relation of two things. It is reversed if it leads from the second to the first."""

    relation: str
    is_reversed: bool


def suggestions(kind: str, other: str) -> list[Suggestion]:
    """The relations that make sense between something of a kind and something of another, the most telling first."""
    found = []
    for relation, (sources, targets) in _SENSES:
        if kind in sources and other in targets:
            found.append(Suggestion(relation, is_reversed=False))
        if other in sources and kind in targets:
            found.append(Suggestion(relation, is_reversed=True))
    if kind == other and kind != MEMBERS:
        found += [Suggestion("FOLLOWS", is_reversed=False), Suggestion("FOLLOWS", is_reversed=True)]
    return [*found, Suggestion(RELATES, is_reversed=False)]
