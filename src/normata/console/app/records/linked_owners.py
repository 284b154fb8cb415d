"""The owners of records whose kind has no field for the responsible member: members with links to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from pydantic.alias_generators import to_camel

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.kinds import Kind
from normata.console.app.records.references import Called, Choice, Named, called, choice_of
from normata.links.model import OWNS
from normata.records.fields import Field, fields_of
from normata.records.listing import OWNER
from normata.records.owners import MEMBERS, has_linked_owners

_MOST = "100"  # links, of the records of a page


class LinkedOwner(NamedTuple):
    """A member who owns a record: the id of the link, its note, and the member, whose id is that of the membership."""

    link_id: str
    note: str | None
    member: Called


class Ownership(NamedTuple):
    """The owners of a record, the one who was linked first before the others; and whom the reader can choose."""

    owners: Sequence[LinkedOwner]
    people: Choice | None


@cache
def owner_field(kind: Kind) -> Field | None:
    """The owners as lists have them, a column and a filter; null if the kind has a field of its own."""
    if not has_linked_owners(kind):
        return None
    return Field(
        name=to_camel(OWNER),
        sort="reference",
        known=(),
        default=None,
        target=MEMBERS,
        ends=None,
        is_title=False,
        is_writable=False,
        is_responsible=True,
        is_filter=True,
        may_be_null=True,
        has_time=False,
    )


@cache
def listed_fields(kind: Kind) -> tuple[Field, ...]:
    """The fields that the list of a kind can show or be filtered by: its own, and the owners who have links."""
    owner = owner_field(kind)
    return fields_of(kind) if owner is None else (*fields_of(kind), owner)


def owners_query(kind: Kind, ids: Sequence[str]) -> ApiQuery:
    """The query for the links of those who own records of a kind."""
    return ApiQuery("listLinks", {"kind": kind.path, "id": ids, "relation": OWNS, "limit": _MOST})


def owners_in(kind: Kind, answer: Mapping[str, Any]) -> Mapping[str, Sequence[LinkedOwner]]:
    """The owners by the ids of the records, from an answer with links."""
    found: defaultdict[str, list[LinkedOwner]] = defaultdict(list)
    for link in answer["items"]:
        start, end = link["from"], link["to"]
        if (start["kind"], link["relation"], end["kind"]) == (MEMBERS, OWNS, kind.path):
            found[end["id"]].append(LinkedOwner(link["id"], link["note"], called(MEMBERS, start)))
    return found


async def owners_of_page(
    page_request: OrganizationRequest, kind: Kind, records: Sequence[Mapping[str, Any]]
) -> tuple[Mapping[str, Sequence[str]], Named]:
    """The members who own the records of a page, by the ids of the records, and the names of the members."""
    if not records:
        return {}, {}
    found = owners_in(kind, await page_request.ask_one(owners_query(kind, [one["id"] for one in records])))
    named = {(MEMBERS, owner.member.id): owner.member for owners in found.values() for owner in owners}
    return {row_id: [owner.member.id for owner in owners] for row_id, owners in found.items()}, named


async def ownership_of(
    page_request: OrganizationRequest,
    kind: Kind,
    record: Mapping[str, Any],
    links: Mapping[str, Any],
    *,
    to_choose: bool = False,
) -> Ownership | None:
    """Who owns a record with these ``links``, of which there may be more; null if its kind has a field for that.

    With ``to_choose`` it has the people whom an editor can choose.
    """
    if owner_field(kind) is None:
        return None
    is_whole = links["total"] <= len(links["items"])
    answer = links if is_whole else await page_request.ask_one(owners_query(kind, [record["id"]]))
    may_choose = to_choose and page_request.may("editor") and record["archivedAt"] is None
    people = await choice_of(page_request, "people") if may_choose else None
    return Ownership(owners_in(kind, answer).get(record["id"], ()), people)
