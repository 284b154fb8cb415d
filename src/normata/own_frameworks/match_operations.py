"""The operations of an organization's own matches."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from normata.core.changes.unit_of_work import delete_of, insert_of, update_of
from normata.core.http.change_endpoint import as_null
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.schema.fields import Text
from normata.core.schema.paging import OrganizationId, OrganizationQuery, Page
from normata.core.schema.wire import Input, Wire, body_model
from normata.coverage.recompute import COVERAGE_WRITES
from normata.frameworks.model import ControlMatch, SetAsideMatch
from normata.own_frameworks import matches
from normata.own_frameworks.match_counts import MatchCounts, count_matches
from normata.own_frameworks.match_list import Match, MatchQuery, list_matches
from normata.own_frameworks.set_aside import set_aside, take_up

_ORGANIZATION = "org-harbourlight"
_ID = "The id of a match that the organization can see."


class MatchCreation(
    body_model(  # type: ignore[misc] # the base class is created from the table
        "_MatchCreation", ControlMatch, matches.WRITABLE, doc="", required=matches.WRITABLE
    )
):
    """One of the organization's own matches."""

    justification: Annotated[Text, Field(min_length=1, description="The justification, for an auditor.")]


class MatchesCreation(Input):
    """The organization's own matches: either all of them are stored or none."""

    organization_id: OrganizationId
    matches: Annotated[
        list[MatchCreation],
        Field(min_length=1, max_length=matches.MAX_AT_ONCE, description="The matches, each in one direction."),
    ]


class MatchPage(Page[Match]):
    """A page of matches."""


class Matches(Wire):
    """The matches of a request, in its order."""

    items: list[Match] = Field(description="The matches, in the order of the request.")


_MATCH_EXAMPLE = {"matchLevel": "PARTIAL", "justification": "Our joiner, mover and leaver process covers both."}
_MATCH: dict[str, Any] = {
    "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "organizationId": _ORGANIZATION,
    "sourceControl": {
        "id": "iso-27001-2022:A.5.11",
        "identifier": "A.5.11",
        "name": "Return of assets",
        "slug": "a-5-11-return-of-assets",
        "framework": {
            "id": "iso-27001-2022",
            "name": "ISO/IEC 27001:2022",
            "identifier": "ISO-27001",
            "identifierColor": "#0B6E4F",
        },
    },
    "targetControl": {
        "id": "nist-csf-2.0:PR.AA-01",
        "identifier": "PR.AA-01",
        "name": "Managed identities and credentials",
        "slug": "pr-aa-01-managed-identities-and-credentials",
        "framework": {
            "id": "nist-csf-2.0",
            "name": "NIST Cybersecurity Framework 2.0",
            "identifier": "NIST-CSF-2.0",
            "identifierColor": "#1D4F91",
        },
    },
    **_MATCH_EXAMPLE,
    "mapping": None,
    "rationale": None,
    "strength": None,
    "retiredAt": None,
    "setAside": None,
}
_DISAGREEMENT = {"justification": "Assets are returned, but their accounts are closed by another process."}


class MatchSettingAside(Input):
    """The justification for setting a match aside."""

    justification: Annotated[Text, Field(min_length=1, description="The justification, for an auditor.")]


OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/matches/",
        operation_id="listMatches",
        tag="Coverage",
        summary="List matches",
        description="""\
The organization's own matches and, with `published=true`, the published matches between frameworks that it can see.
With `control`, only matches from or to that control. Retired matches and those that the organization has set aside are
listed, too, unless `counts` is true.

They are sorted by the identifiers of their sources and then of their targets, in natural order.""",
        query=MatchQuery,
        build=lambda transaction, request: list_matches(transaction, request.query),
        answer=MatchPage,
        answer_description="A page of matches.",
        example={"items": [_MATCH], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ReadOperation(
        path="/match-counts/",
        operation_id="countMatches",
        is_long=True,
        tag="Coverage",
        summary="Count matches between frameworks",
        description="""\
How many matches lead from each adopted framework to each other one: published ones and the organization's own, without
those that are retired or set aside. Pairs without matches are left out.""",
        query=OrganizationQuery,
        build=lambda transaction, request: count_matches(transaction, request.organization_id),
        answer=MatchCounts,
        answer_description="The numbers of matches.",
        example={
            "items": [
                {"sourceFrameworkId": "nist-csf-2.0", "targetFrameworkId": "iso-27001-2022", "matches": 188},
                {"sourceFrameworkId": "iso-27001-2022", "targetFrameworkId": "nist-csf-2.0", "matches": 63},
            ]
        },
    ),
    ChangeOperation(
        http_method="POST",
        path="/matches/",
        operation_id="createMatches",
        is_long=True,
        tag="Coverage",
        summary="Create matches of your own",
        description=f"""\
Creates up to {matches.MAX_AT_ONCE} matches that belong to the organization: either all of them or none. Then every
fault is reported with its place, such as `matches/3/targetControlId`. No other organization sees them, and they do
not affect the coverage of other organizations.

`FULL` means that whoever meets all of the source meets all of the target; `PARTIAL` means that the two overlap. Each
match has one direction, so two equivalent controls need two matches. Published matches between the same controls stay
as they are, and the stronger match counts.""",
        work=lambda unit, request: matches.create(
            unit, request.body.organization_id, [one.model_dump(by_alias=True) for one in request.body.matches]
        ),
        present=lambda found: {"items": found},
        writes=(insert_of(ControlMatch), *COVERAGE_WRITES),
        body=MatchesCreation,
        body_required=True,
        body_limit=2 * 2**20,
        has_rules=True,
        body_example={
            "organizationId": _ORGANIZATION,
            "matches": [
                {
                    "sourceControlId": "iso-27001-2022:A.5.11",
                    "targetControlId": "nist-csf-2.0:PR.AA-01",
                    **_MATCH_EXAMPLE,
                }
            ],
        },
        answer=Matches,
        answer_description="The matches, in the order of the request.",
        example={"items": [_MATCH]},
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/matches/{id}/",
        operation_id="deleteMatch",
        tag="Coverage",
        summary="Remove a match of your own",
        description="""\
Removes a match that belongs to the organization. The effective coverage is updated in the same transaction. The audit
event records who did it. A published match cannot be removed: the response is 403.""",
        about=ControlMatch,
        id_description="The id of the match.",
        query=OrganizationQuery,
        work=lambda unit, request: matches.remove(unit, request.query.organization_id, request.id),
        present=as_null,
        writes=(delete_of(ControlMatch), delete_of(SetAsideMatch), *COVERAGE_WRITES),
        answer=None,
        answer_description="`null`: the match was removed.",
        example=None,
    ),
    ChangeOperation(
        http_method="PUT",
        path="/matches/{id}/set-aside/",
        operation_id="setMatchAside",
        tag="Coverage",
        summary="Set a match aside",
        description="""\
Has a match count no more for the organization, because it judges the two controls differently. It is no source match
any more, no coverage follows from it, and nothing is known by it. It counts for other organizations as before. The
effective coverage is updated in the same transaction. If the match is set aside already, the justification is
replaced.""",
        about=ControlMatch,
        id_description=_ID,
        query=OrganizationQuery,
        work=lambda unit, request: set_aside(
            unit, request.query.organization_id, request.id, request.body.justification
        ),
        present=lambda match: match,
        writes=(
            insert_of(SetAsideMatch),
            update_of(SetAsideMatch, "match_id", "justification", "created_at", "updated_at"),
            *COVERAGE_WRITES,
        ),
        body=MatchSettingAside,
        body_required=True,
        has_rules=True,
        body_example=_DISAGREEMENT,
        answer=Match,
        answer_description="The match, set aside.",
        example=_MATCH | {"setAside": _DISAGREEMENT | {"createdAt": "2026-11-24T10:12:00.000Z"}},
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/matches/{id}/set-aside/",
        operation_id="takeMatchUp",
        tag="Coverage",
        summary="Have a match count again",
        description="""\
Has a match that was set aside count again for the organization. The effective coverage is updated in the same
transaction. If the match is not set aside, nothing changes.""",
        about=ControlMatch,
        id_description=_ID,
        query=OrganizationQuery,
        work=lambda unit, request: take_up(unit, request.query.organization_id, request.id),
        present=lambda match: match,
        writes=(delete_of(SetAsideMatch), *COVERAGE_WRITES),
        answer=Match,
        answer_description="The match, which counts again unless it is retired.",
        example=_MATCH,
    ),
)
