"""Retiring matches that the imported version of a document of mappings does not have any more.

They stay stored but do not count. Importing a version that has them brings them back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BindParameter, and_, bindparam, literal, select

from normata.catalogs.matches import match_id
from normata.core.changes.source import Row
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.frameworks.model import Control, ControlMatch


@dataclass(frozen=True, slots=True)
class RetiredMatch:
    """A match that is retired, with the document that no longer has it, and its version."""

    id: str
    source: str
    target: str
    level: str
    document: str
    version: str | None


@dataclass(slots=True)
class Retirement:
    """The retirements of an import: the rows to write, the retired matches, and the number of matches that return."""

    rows: list[Row] = field(default_factory=list)
    matches: list[RetiredMatch] = field(default_factory=list)
    returned: int = 0


@dataclass(frozen=True, slots=True)
class Names:
    """How ids of an import are derived: ``published`` returns the publisher's id of a control, null if it is unknown.

    ``own`` returns the stored id for a publisher's id.
    """

    published: Callable[[str], str | None] = lambda control: control
    own: Callable[[str], str] = lambda published: published


def retire(
    transaction: Transaction,
    rows: Sequence[Row],
    moment: str,
    organization_id: str | None = None,
    names: Names = Names(),
) -> Retirement:
    """The retirements of an import: for each document of mappings, the matches that it gave before and not now.

    Older matches without a document belong to the document from which their id is derived.
    """
    found = Retirement()
    documents = {row.values["id"]: row for row in rows if row.array == "mappingDocuments"}
    if not documents:
        return found
    matches = [row for row in rows if row.array == "controlMatches"]
    imported = {row.values["id"] for row in matches}
    for one in _of_documents(transaction, list(documents)):
        if one.id in imported:
            found.returned += one.retired_at is not None
        elif one.retired_at is None:
            _retire(found, documents[one.mapping_document_id], one, moment)
    if transaction.row(_ANY_UNASSIGNED, {"organization": organization_id}) is not None:
        for document, ends in _ends(documents, matches).items():
            row = documents[document]
            for one in _unassigned(transaction, ends, organization_id):
                if one.id not in imported and one.id == _recomputed(row.values["document"], one, names):
                    _retire(found, row, one, moment)
    return found


def _retire(found: Retirement, document: Row, one: Any, moment: str) -> None:
    values = {"id": one.id, "retiredAt": moment, "mappingDocumentId": document.values["id"]}
    found.rows.append(Row("controlMatches", document.file, document.place, values))
    found.matches.append(
        RetiredMatch(
            one.id,
            one.source_control_id,
            one.target_control_id,
            one.match_level,
            document.values["document"],
            document.values["version"],
        )
    )


def _recomputed(document: str, one: Any, names: Names) -> str | None:
    source, target = names.published(one.source_control_id), names.published(one.target_control_id)
    return None if source is None or target is None else names.own(match_id(document, source, target))


def _ends(documents: Collection[str], matches: Sequence[Row]) -> Mapping[str, Collection[str]]:
    """The controls that each document names."""
    ends: defaultdict[str, set[str]] = defaultdict(set)
    for row in matches:
        ends[row.values["mappingDocumentId"]].update((row.values["sourceControlId"], row.values["targetControlId"]))
    return {document: ends[document] for document in documents}


def _of_documents(transaction: Transaction, documents: Sequence[str]) -> Iterator[Any]:
    for batch in batches(documents):
        yield from transaction.rows(_OF_DOCUMENTS, {"documents": batch})


def _unassigned(transaction: Transaction, ends: Collection[str], organization_id: str | None) -> Iterator[Any]:
    """The matches without a document between controls of the frameworks that have these controls."""
    frameworks = {
        framework for batch in batches(sorted(ends)) for framework in transaction.scalars(_FRAMEWORKS, {"ids": batch})
    }
    key = {"organization": organization_id, "frameworks": sorted(frameworks)}
    if frameworks:
        yield from transaction.rows(_UNASSIGNED, key)


_CONTROL, _MATCH = sql_table(Control), sql_table(ControlMatch)
_ORGANIZATION: BindParameter[str | None] = bindparam("organization", type_=_MATCH.c.organization_id.type)
_SHOWN = (
    _MATCH.c.id,
    _MATCH.c.source_control_id,
    _MATCH.c.target_control_id,
    _MATCH.c.match_level,
    _MATCH.c.mapping_document_id,
    _MATCH.c.retired_at,
)
_OF_DOCUMENTS = (
    select(*_SHOWN)
    .where(_MATCH.c.mapping_document_id.in_(bindparam("documents", expanding=True)))
    .order_by(_MATCH.c.mapping_document_id, _MATCH.c.id)
)
_is_unassigned = and_(
    _MATCH.c.mapping_document_id.is_(None),
    _MATCH.c.retired_at.is_(None),
    _MATCH.c.organization_id.is_not_distinct_from(_ORGANIZATION),
)
_ANY_UNASSIGNED = select(literal(1)).select_from(_MATCH).where(_is_unassigned).limit(1)
_FRAMEWORKS = select(_CONTROL.c.framework_id).where(_CONTROL.c.id.in_(bindparam("ids", expanding=True))).distinct()
_of_frameworks = select(_CONTROL.c.id).where(_CONTROL.c.framework_id.in_(bindparam("frameworks", expanding=True)))
_UNASSIGNED = (
    select(*_SHOWN)
    .where(
        _is_unassigned, _MATCH.c.source_control_id.in_(_of_frameworks), _MATCH.c.target_control_id.in_(_of_frameworks)
    )
    .order_by(_MATCH.c.id)
)
