"""Facts about published frameworks that no catalog format can express.

A control is *decomposed* if its publisher says that its children together are all of it: they are counted in its place.
That is declared here, or by a column of a table, and never guessed from the form of a text. A control is *mandatory* if
its publisher says that it cannot be excluded in a claim of conformity. A framework with a *table of applicability* has
its statement of applicability about this table alone.

Each entry states facts about the standard. ``docs/decisions/0111-requirements-of-published-frameworks.md`` says how all
frameworks of the libraries of CISO Assistant were judged in which a requirement has requirements below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from normata.core.changes.source import Row

_NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class Known:
    """A framework by its ids in catalogs, and its special controls, by their full identifiers.

    ``decomposed`` applies only to controls with children. ``applicability`` is the prefix of the identifiers in the
    table of applicability.
    """

    ids: tuple[str, ...]
    because: str
    decomposed: re.Pattern[str] = _NOTHING
    mandatory: re.Pattern[str] = _NOTHING
    applicability: str | None = None


# Clauses 4 to 10 of the management system standards, with their subclauses.
_CLAUSES_4_TO_10 = re.compile(r"(?:[4-9]|10)(?:\.[0-9]+)*")
_ANNEX_A = "A."

KNOWN: Sequence[Known] = (
    Known(
        ids=("urn:intuitem:risk:framework:iso27001-2013", "urn:intuitem:risk:framework:iso27001-2022"),
        because="ISO/IEC 27001, clause 1: no requirement of the clauses 4 to 10 may be excluded; 6.1.3 d: the statement"
        " of applicability is about the controls of Annex A.",
        mandatory=_CLAUSES_4_TO_10,
        applicability=_ANNEX_A,
    ),
    Known(
        ids=("urn:intuitem:risk:framework:iso42001-2023",),
        because="ISO/IEC 42001, 6.1.3 f: the statement of applicability is about the controls of Annex A.",
        applicability=_ANNEX_A,
    ),
    Known(
        ids=("urn:intuitem:risk:framework:pcidss-4_0",),
        because="PCI DSS 4.0.1: requirements with testing procedures have three numbers or more (3.5.1); those of two"
        " (3.5) are headings over them.",
        decomposed=re.compile(r"(?:A?[0-9]+)\.[0-9]+"),
    ),
    Known(
        ids=("urn:intuitem:risk:framework:iso22301-2019",),
        because="ISO 22301: 4.2 is the heading over 4.2.1 and 4.2.2 and has no text of its own.",
        decomposed=re.compile(r"4\.2"),
    ),
    Known(
        ids=("urn:bassou:risk:framework:qualification_services_cloud_iiv",),
        because="3.7 is a chapter, as 3.1 to 3.6 are; its requirements are 3.7.1 and what follows.",
        decomposed=re.compile(r"3\.7"),
    ),
    Known(
        ids=("urn:intuitem:risk:framework:pqc-migration-roadmap",),
        because="The roadmap has four categories, each of which consists of its activities.",
        decomposed=re.compile(r"-[a-z-]+"),
    ),
)
_BY_ID = {one: known for known in KNOWN for one in known.ids}


def known_framework(framework_id: str) -> Known | None:
    """The declared facts of a framework, by the publisher's id; null if there are none."""
    return _BY_ID.get(framework_id)


def declared(rows: Iterable[Row]) -> list[Row]:
    """The rows of a catalog, with the declared facts of their frameworks."""
    rows = list(rows)
    if not any(row.array == "frameworks" and row.values["id"] in _BY_ID for row in rows):
        return rows
    parents = {row.values["parentId"] for row in rows if row.array == "controls"}
    return [_declared(row, parents) for row in rows]


def _declared(row: Row, parents: set[str | None]) -> Row:
    key = _FRAMEWORK_OF.get(row.array)
    known = None if key is None else _BY_ID.get(row.values[key])
    if known is None:
        return row
    if row.array == "frameworks":
        return replace(row, values={**row.values, "applicabilityPrefix": known.applicability})
    identifier, is_parent = row.values["identifier"], row.values["id"] in parents
    is_requirement = row.values["type"] == "CONTROL"
    values = {}
    if known.decomposed is not _NOTHING:
        values["isDecomposed"] = is_requirement and is_parent and known.decomposed.fullmatch(identifier) is not None
    if known.mandatory is not _NOTHING:
        values["isMandatory"] = is_requirement and known.mandatory.fullmatch(identifier) is not None
    return replace(row, values={**row.values, **values})


_FRAMEWORK_OF = {"frameworks": "id", "controls": "frameworkId"}
