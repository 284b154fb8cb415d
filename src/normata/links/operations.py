"""The operations of links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from normata.core.changes.source import pointer
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.change_endpoint import as_null
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import Identifier, ShortText
from normata.core.schema.paging import OrganizationId, OrganizationQuery, Page
from normata.core.schema.wire import Input, Wire
from normata.links.commands import (
    CREATION_WRITES,
    MAX_AT_ONCE,
    REMOVAL_WRITES,
    Outcome,
    Wanted,
    make_links,
    remove_link,
)
from normata.links.model import End, Link
from normata.links.queries import LinkAnswer, LinkQuery, Relation, links_by_id, list_links, one_link
from normata.links.relations import LinkedKind
from normata.records.archive.operations import Mode, Refusal


class LinkPage(Page[LinkAnswer]):
    """A page of links."""


class LinkedThing(Input):
    """A record of any kind, a control, or a member."""

    kind: LinkedKind
    id: Annotated[Identifier, Field(description="The id.")]


def _nothing() -> None:
    """The default of a field that is left out; so OpenAPI shows none."""


class NewLink(Input):
    """A link to make."""

    from_: Annotated[LinkedThing, Field(alias="from", description="What the link leads from.")]
    to: Annotated[LinkedThing, Field(description="What the link leads to.")]
    relation: Relation
    note: Annotated[
        ShortText | None,
        Field(default_factory=_nothing, description="A note on the link; if omitted, that of an existing link stays."),
    ]


class LinkCreation(NewLink):
    """A link to make in an organization."""

    organization_id: OrganizationId


class LinksCreation(Input):
    """Links to make in an organization."""

    organization_id: OrganizationId
    links: Annotated[list[NewLink], Field(min_length=1, max_length=MAX_AT_ONCE, description="The links.")]
    mode: Mode = "all"


class LinkOutcome(Wire):
    """The result for a link."""

    done: bool = Field(description="Whether the link is there now.")
    created: bool = Field(description="Whether it is new.")
    link: LinkAnswer | None = Field(description="The link; null if it was refused.")
    refusal: Refusal | None = Field(description="Why it was refused; null if it was not.")


class LinksResult(Wire):
    """The results for several links."""

    done: int = Field(description="The number of links that are there now.")
    refused: int = Field(description="The number of links that were refused.")
    links: list[LinkOutcome] = Field(description="Each link, in the order of the request.")


class _Made(NamedTuple):
    """A link in wire form, and whether it is new."""

    link: dict[str, Any]
    is_new: bool


def _create(unit: UnitOfWork, request: Request) -> _Made:
    organization_id, [outcome] = make_links(unit, request.body.organization_id, [_wanted(request.body)])
    return _Made(one_link(unit, organization_id, outcome.link_id), outcome.is_new)


def _create_many(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    body: LinksCreation = request.body
    wanted = [_wanted(one, pointer("links", place)) for place, one in enumerate(body.links)]
    organization_id, outcomes = make_links(unit, body.organization_id, wanted, each_for_itself=body.mode == "each")
    there = links_by_id(unit, organization_id, {one.link_id for one in outcomes if not one.faults})
    refused = sum(bool(one.faults) for one in outcomes)
    return {
        "done": len(outcomes) - refused,
        "refused": refused,
        "links": [_outcome(one, there.get(one.link_id)) for one in outcomes],
    }


def _wanted(link: NewLink, place: str = "") -> Wanted:
    start, end = (End(one.kind, one.id) for one in (link.from_, link.to))
    return Wanted(start, end, link.relation, link.note, "note" in link.model_fields_set, place)


def _outcome(outcome: Outcome, link: dict[str, Any] | None) -> dict[str, Any]:
    refusal = None
    if outcome.faults:
        detail = "; ".join(f"{'/'.join(one.place.split('/')[-2:])} {one.reason}" for one in outcome.faults)
        refusal = {"code": "validation", "detail": detail, "conflictingId": None}
    return {"done": link is not None, "created": outcome.is_new and link is not None, "link": link, "refusal": refusal}


def _remove(unit: UnitOfWork, request: Request) -> None:
    remove_link(unit, request.id)


_ID = "The id of a link."
_POLICY = {"kind": "policies", "id": "policy-information-security"}
_CONTROL = {"kind": "controls", "id": "iso-27001-2022:A.5.11"}
_LINK: dict[str, Any] = {
    "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "organizationId": "org-harbourlight",
    "from": _POLICY
    | {"label": "Information Security Policy", "identifier": None, "status": "PUBLISHED", "isLive": True},
    "to": _CONTROL | {"label": "Return of assets", "identifier": "A.5.11", "status": "PARTIAL", "isLive": True},
    "relation": "IMPLEMENTS",
    "note": "Section 6 says what is brought back on the last day.",
    "createdAt": "2026-11-20T09:14:03.120Z",
}
_BODY: dict[str, Any] = {"from": _POLICY, "to": _CONTROL, "relation": "IMPLEMENTS", "note": _LINK["note"]}
_RELATIONS = """\
A link leads from one thing to another in one direction: a member `OWNS` a record; evidence `SUPPORTS` a control; a
policy `IMPLEMENTS` a control; a control `TREATS` a risk; a risk or an incident `AFFECTS` an asset or a vendor; anything
is `IN_SCOPE` of an audit; the newer one `FOLLOWS` the older one. `RELATES` has no direction: its ends are stored in the
order of their kinds and ids. Other relations may be used, and any relation between any kinds. Both ends must exist in
the organization; they may be archived. In `OWNS`, the member must be one, and no auditor."""

_AGAIN = """\
Of the same two things and relation there is one link. To make it again answers it, with the `note` of the request if it
has one"""


def _many(links: Sequence[dict[str, Any]]) -> dict[str, Any]:
    outcomes = [{"done": True, "created": True, "link": link, "refusal": None} for link in links]
    return {"done": len(outcomes), "refused": 0, "links": outcomes}


OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/links/",
        operation_id="listLinks",
        tag="Links",
        summary="List links",
        description="""\
The links of the organization, newest first; with `kind` and `id` those from and to one record, control or member, or
several of a kind, by relation. Each end has its name, its status, and whether it is live: links of an archived record
stay, and are complete again when it is restored.""",
        query=LinkQuery,
        build=lambda transaction, request: list_links(transaction, request.query),
        answer=LinkPage,
        answer_description="A page of links.",
        example={"items": [_LINK], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ReadOperation(
        path="/links/{id}/",
        operation_id="getLink",
        tag="Links",
        summary="Get a link",
        description="""\
A link, with the name of each end, its status, and whether it is live. A link that was removed is not found.""",
        about=Link,
        id_description=_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: one_link(transaction, request.organization_id, request.id),
        answer=LinkAnswer,
        answer_description="The link.",
        example=_LINK,
    ),
    ChangeOperation(
        http_method="POST",
        path="/links/",
        operation_id="createLink",
        tag="Links",
        summary="Link two things",
        description=f"""\
Links a record of any kind, a control or a member with another one. {_RELATIONS}

{_AGAIN}: the response is 200 instead of 201.""",
        work=_create,
        present=lambda made: made.link,
        found=lambda made: not made.is_new,
        writes=CREATION_WRITES,
        body=LinkCreation,
        body_required=True,
        body_example={"organizationId": "org-harbourlight", **_BODY},
        has_rules=True,
        creates=True,
        answer=LinkAnswer,
        answer_description="The link.",
        example=_LINK,
    ),
    ChangeOperation(
        http_method="POST",
        path="/links/many/",
        operation_id="createLinks",
        tag="Links",
        summary="Make several links",
        description=f"""\
Makes up to {MAX_AT_ONCE} links in one transaction, each as the operation for one link does. With `mode` `all`, the
default, one that cannot be made refuses all, and every fault is reported with its place, such as `links/3/to/id`. With
`each` the response has the result for each link. {_AGAIN}, and `created` is false.""",
        is_long=True,
        work=_create_many,
        present=lambda answer: answer,
        writes=CREATION_WRITES,
        body=LinksCreation,
        body_required=True,
        body_limit=2**20,
        body_example={"organizationId": "org-harbourlight", "links": [_BODY], "mode": "each"},
        has_rules=True,
        answer=LinksResult,
        answer_description="The result for each link.",
        example=_many([_LINK]),
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/links/{id}/",
        operation_id="deleteLink",
        tag="Links",
        summary="Remove a link",
        description="""\
Removes a link. What it led from and to stays as it is, and the history of both has it. To make it again makes another
link.""",
        about=Link,
        id_description=_ID,
        work=_remove,
        present=as_null,
        writes=REMOVAL_WRITES,
        answer=None,
        answer_description="`null`: the link was removed.",
        example=None,
    ),
)
