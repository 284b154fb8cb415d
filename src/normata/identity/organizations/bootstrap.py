"""Setting up an instance: an organization, and its owner."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.text import slugify
from normata.errors import CommandError
from normata.identity import memberships, users
from normata.identity.members.members import member_of
from normata.identity.model import Organization
from normata.identity.organizations import commands as organization_life
from normata.identity.sign_in import links as sign_in_links


class Bootstrapped(NamedTuple):
    """The slug of the organization, whether it is new, and the secret of a link to sign in with."""

    slug: str
    is_new: bool
    secret: str


def bootstrap(
    unit: UnitOfWork, *, organization: str, email: str, name: str | None = None, slug: str | None = None
) -> Bootstrapped:
    """Create an organization with its owner, and a link that signs the owner in.

    Repeating it only creates another link.

    ``name`` is the person's, by default the address. Raises CommandError if an organization with this slug has another
    owner, or was removed.
    """
    wanted = slug or slugify(organization)
    found = unit.row(_CALLED, {"slug": wanted})
    user = users.named(unit, email)
    if found is None:
        organization_id = new_id()
        organization_life.create(unit, organization_id, organization, wanted)
        user_id = user.id if user is not None else new_id()
        if user is None:
            users.create(unit, user_id, email=email, name=name or email)
        else:
            users.bring_back(unit, user_id)
        memberships.join(unit, organization_id, user_id, "owner")
        return Bootstrapped(wanted, is_new=True, secret=sign_in_links.create(unit, user_id))
    if found.removed_at is not None:
        raise CommandError(
            f"the organization {wanted} was removed; `normata organization restore {wanted}` brings it back"
        )
    member = None if user is None else member_of(unit, found.id, user.id)
    if user is None or member is None or member.removed_at is not None or member.role != "owner":
        raise CommandError(
            f"there is an organization {wanted} already, and {email} does not own it; choose another --slug, or invite"
            f" them with `normata member invite {email} --organization {wanted}`"
        )
    return Bootstrapped(wanted, is_new=False, secret=sign_in_links.create(unit, user.id))


_TABLE = sql_table(Organization)
_CALLED = select(*_TABLE.c).where(_TABLE.c.slug == bindparam("slug"))
