"""Choosing the owner of a record whose kind has no field for that: the link is made, and that of the former removed."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.details import show_one
from normata.console.app.records.kinds import kind_of
from normata.console.app.records.linked_owners import owner_field, owners_in, owners_query
from normata.errors import NotFound
from normata.links.model import OWNS
from normata.records.owners import MEMBERS


async def change(page_request: OrganizationRequest) -> Response:
    """Have a member own a record, or nobody, in place of the owner by the ``link`` of the form. Other owners stay.

    The new link gets the note of the former one, and is made before that is removed. Raises NotFound.
    """
    kind, record_id, form = kind_of(page_request), page_request.param("id"), await page_request.fields()
    field = owner_field(kind)
    if field is None:
        raise NotFound
    answer = await page_request.ask_one(owners_query(kind, [record_id]))
    owners = owners_in(kind, answer).get(record_id, ())
    former = next((one for one in owners if one.link_id == form.get("link")), None)
    member, done = form.get(field.name), "record_unchanged"
    if member and all(one.member.id != member for one in owners):
        body = {"from": {"kind": MEMBERS, "id": member}, "to": {"kind": kind.path, "id": record_id}, "relation": OWNS}
        note = {"note": former.note} if former and former.note else {}
        outcome = await page_request.change("createLink", body=body | note)
        if outcome.refusal is not None:
            return await show_one(page_request, outcome.refusal)
        done = "record_saved"
    if former is not None and former.member.id != member:
        await page_request.change("deleteLink", row_id=former.link_id)
        done = "record_saved"
    return page_request.back(form, page_request.path("records", kind.path, record_id), done)
