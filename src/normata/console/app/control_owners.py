"""Who is responsible for controls: the owners of assessments, by name, to choose and to filter by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import names_of
from normata.console.app.records.references import Called, Choice, choice_of
from normata.console.app.records.references import names_of as names_of_rows
from normata.core.http.roles import AUDITOR

ME = "me"  # in an address, the reader: so a view of one's own controls can be shared


async def with_own_id(page_request: OrganizationRequest, owners: Sequence[str]) -> list[str]:
    """The members to filter by, with the reader's own membership instead of :data:`ME`."""
    if ME not in owners:
        return [*owners]
    own = await page_request.ask_one(ApiQuery("getOrganization", id=page_request.membership.organization_id))
    return [own["memberId"] if one == ME else one for one in owners]


async def owner_names(page_request: OrganizationRequest, ids: Sequence[str | None]) -> Mapping[str, str]:
    """The names of owners of assessments, by the ids of their memberships."""
    named = await names_of_rows(page_request, (("memberships", one) for one in ids))
    return {row_id: one.words for (_, row_id), one in named.items()}


async def owner_choice_of(page_request: OrganizationRequest, owners: Sequence[tuple[str, str]], find: str) -> Choice:
    """Whom one can filter by: those on the page, or those that were searched for."""
    if find:
        return await choice_of(page_request, "people", find)
    return Choice([Called(value, name, (), "") for value, name in owners], 0, "", "people", may_search=True)


async def people_for(page_request: OrganizationRequest, members: Mapping[str, Any], owner_id: str | None) -> Choice:
    """Who can be chosen as owner: members who are people and no auditors, and the present owner, whoever it is."""
    people = [
        Called(one["id"], one["name"], (), "")
        for one in members["items"]
        if one["id"] == owner_id or not (one["removedAt"] or one["isServiceAccount"] or one["role"] == AUDITOR)
    ]
    if owner_id is not None and all(one.id != owner_id for one in people):  # beyond the first page of members
        people += (await names_of_rows(page_request, [("memberships", owner_id)])).values()
    return Choice(people, members["total"], "", "people")


async def names_on_page(
    page_request: OrganizationRequest,
    members: Mapping[str, Any],
    owner_id: str | None,
    events: Sequence[Mapping[str, Any]],
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The names of members and of users, by their ids: also of those whom the first page of members does not have."""
    owners, users = {one["id"]: one["name"] for one in members["items"]}, dict(names_of(members))
    missing = [] if owner_id is None or owner_id in owners else [("memberships", owner_id)]
    missing += [("users", one["userId"]) for one in events if one["userId"] and one["userId"] not in users]
    for (kind, row_id), one in (await names_of_rows(page_request, missing)).items():
        (users if kind == "users" else owners)[row_id] = one.words
    return owners, users
