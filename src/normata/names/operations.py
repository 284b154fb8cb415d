"""The operations that list the names of rows, and the number of records of each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from normata.core.db.transaction import Transaction
from normata.core.http.operation import ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.naming import Name, NameQuery, Naming, list_names
from normata.core.schema.paging import OrganizationQuery, Page
from normata.frameworks.model import Control
from normata.names.queries import (
    Kinds,
    assessment_names,
    control_names,
    count_kinds,
    framework_names,
    member_names,
    person_names,
    questionnaire_names,
    record_names,
    user_names,
)
from normata.records.archive.queries import KINDS

Listing = Callable[[Transaction, Any], dict[str, Any]]


def _listed(naming: Callable[[], Naming]) -> Listing:
    return lambda transaction, query: list_names(transaction, naming(), query)


def _of_records(path: str) -> Listing:
    return _listed(lambda: record_names(KINDS[path]))


# The lists of names, by kind.
_LISTINGS: Mapping[str, Listing] = {
    **{path: _of_records(path) for path in KINDS},
    "memberships": member_names,
    "people": person_names,
    "users": user_names,
    "frameworks": _listed(framework_names),
    "controls": _listed(control_names),
    "controlCoverages": _listed(assessment_names),
    "questionnaires": _listed(questionnaire_names),
}

if TYPE_CHECKING:
    NamedKind = str
else:  # the names are known at run time only
    NamedKind = Literal[tuple(_LISTINGS)]


class NamesQuery(NameQuery):
    """The query of the list of names."""

    repeated: ClassVar[tuple[str, ...]] = ("id",)

    kind: Annotated[
        NamedKind,
        Field(
            description="The kind to list: a kind of records as in its path, `memberships` (members by the ids in"
            " records), `people` (the same without service accounts and auditors: those to"
            " choose a responsible member from), `users` (members by the ids in events),"
            " `frameworks`, `controls`, `controlCoverages` (assessments), or `questionnaires`."
        ),
    ] = Control.array


class NamePage(Page[Name]):
    """A page of names."""


def _names(transaction: Transaction, request: Request) -> dict[str, Any]:
    return _LISTINGS[request.query.kind](transaction, request.query)


def _kinds(transaction: Transaction, request: Request) -> dict[str, Any]:
    return count_kinds(transaction, request.organization_id)


OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/kinds/",
        operation_id="listKinds",
        tag="Records",
        summary="List the kinds of records",
        description="""\
The kinds of records, each with its path, its name, and the number of its live and archived records.""",
        query=OrganizationQuery,
        build=_kinds,
        answer=Kinds,
        answer_description="The kinds.",
        example={"items": [{"kind": "record-categories", "name": "record categories", "live": 9, "archived": 1}]},
    ),
    ListOperation(
        path="/names/",
        operation_id="listNames",
        tag="Records",
        summary="List names",
        description="""\
The names of records, members, frameworks, controls and assessments: of the requested ids, or of all, to choose from.
Records and frameworks are sorted by name, controls and assessments in catalog order.""",
        query=NamesQuery,
        build=_names,
        answer=NamePage,
        answer_description="A page of names.",
        example={
            "items": [
                {
                    "id": "iso-27001-2022:A.5.11",
                    "label": "Return of assets",
                    "identifier": "A.5.11",
                    "isLive": True,
                    "controlId": None,
                }
            ],
            "total": 1,
            "totalIsExact": True,
            "page": 1,
            "limit": 100,
        },
    ),
)
