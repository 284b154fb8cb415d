"""Finding organizations by what people call them."""

from __future__ import annotations

from sqlalchemy import Connection, or_, select

from normata.identity.model import Organization
from normata.refusal import Refusal


class NoSuchOrganization(Refusal):
    """There is no such organization; the message names those that there are."""


def find(connection: Connection, name: str | None) -> str:
    """The id of the organization with this id or slug; of the only one where ``name`` is null.

    Raises NoSuchOrganization.
    """
    if name is not None:
        wanted = select(Organization.id).where(or_(Organization.id == name, Organization.slug == name))
        # An id comes before a slug of the same spelling.
        found = sorted(connection.scalars(wanted), key=lambda organization_id: organization_id != name)
        if found:
            return found[0]
    known = list(connection.scalars(select(Organization.id).order_by(Organization.id).limit(10)))
    if name is None and len(known) == 1:
        return known[0]
    there = f"there is {', '.join(known)}" if known else "there is none yet; load a bundle that has one"
    raise NoSuchOrganization(f"name an organization: {there}" if name is None else f"no organization {name!r}; {there}")
