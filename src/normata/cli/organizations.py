"""The commands for organizations: ``init``, which sets up an instance, and ``organization``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from normata.cli.invitations import InvitedByMail, invited
from normata.cli.shared import (
    DatabaseOption,
    Group,
    changed,
    echo,
    fail,
    opened,
    print_table,
    require,
    require_address,
    require_name,
    settings_with,
)

if TYPE_CHECKING:
    from normata.core.changes.unit_of_work import UnitOfWork

app = typer.Typer(cls=Group, help="List, create, rename, remove and restore organizations.", no_args_is_help=True)

OrganizationArgument = Annotated[str, typer.Argument(metavar="ORG", help="The organization, by id or slug.")]
SlugOption = Annotated[
    str | None,
    typer.Option(help="Its name in addresses. Default: derived from the name.", show_default=False),
]


def init(
    organization: Annotated[str, typer.Option(metavar="NAME", help="The name of your organization.")],
    email: Annotated[str, typer.Option(metavar="ADDRESS", help="Your email address. You will own the organization.")],
    name: Annotated[str | None, typer.Option(help="Your own name. Default: the address.", show_default=False)] = None,
    slug: SlugOption = None,
    database: DatabaseOption = None,
) -> None:
    """Create the database if there is none, an organization and its owner, and print a sign-in link.

    Running it again is harmless: it prints another link.
    """
    from normata.identity.organizations.bootstrap import bootstrap
    from normata.identity.sign_in import links as sign_in_links

    require_name(organization)
    if name is not None:
        require_name(name)
    _require_slug(slug)
    require_address(email)
    begun = changed(
        database,
        lambda unit: bootstrap(unit, organization=organization, email=email, name=name, slug=slug),
        create=True,
        begin=True,
    )
    echo(f"{begun.slug}: {'created' if begun.is_new else 'exists already'}; {email} owns it")
    echo("Open this link within 15 minutes to sign in. It works once, and needs a running server:")
    echo("")
    echo(f"  {sign_in_links.link(settings_with().public_url, begun.secret)}")
    echo("")
    key = settings_with(database_url=database).event_key_file
    echo(f"The key that proves your events will be {key}. Set NORMATA_EVENT_KEY to a file that is not in the folder of")
    echo("the data: otherwise, restoring an old folder would also restore the marks that show how far the log was.")
    echo("")
    echo("Next steps:")
    echo("  normata serve")
    echo("  normata import FILE…")
    echo(f"  normata adopt {begun.slug} FRAMEWORK…")
    echo(f"  normata user link {email}    (another link)")


@app.command("list")
def list_organizations(database: DatabaseOption = None) -> None:
    """List all organizations, one per line, with tabs between the columns."""
    from normata.identity.organization_lookup import listing

    with opened(database, create=False) as source:
        rows = source.read_now(listing)
    print_table(("id", "slug", "name", "members", "removed_at"), rows)


@app.command("create")
def create_organization(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name.")],
    owner: Annotated[str, typer.Option(metavar="ADDRESS", help="The address of its owner, who is invited.")],
    slug: SlugOption = None,
    database: DatabaseOption = None,
) -> None:
    """Create an organization, and print the link that makes somebody its owner."""
    from normata.core.changes.source import FaultyInput
    from normata.core.schema.table import new_id
    from normata.identity.invitations import invitations
    from normata.identity.organizations import commands as organization_life

    require_name(name)
    _require_slug(slug)
    require_address(owner)

    def work(unit: UnitOfWork) -> InvitedByMail:
        try:
            row = organization_life.create(unit, new_id(), name, slug)
        except FaultyInput:
            fail(f"the slug {slug} is or was an organization's; choose another --slug")
        return InvitedByMail(invitations.offer(unit, row.id, owner, "owner"), row.name)

    invited(changed(database, work))


@app.command("rename")
def rename_organization(
    organization: OrganizationArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    database: DatabaseOption = None,
) -> None:
    """Rename an organization. The slug stays the same, because addresses contain it."""
    from normata.identity.organization_lookup import find
    from normata.identity.organizations import commands as organization_life

    require_name(name)
    row: Any = changed(
        database, lambda unit: organization_life.change(unit, find(unit, organization), name=name.strip())
    )
    echo(f"{row.slug}: {row.name}")


@app.command("remove")
def remove_organization(organization: OrganizationArgument, database: DatabaseOption = None) -> None:
    """Remove an organization: nobody can see it any more, but no data is deleted."""
    from normata.identity.organization_lookup import find
    from normata.identity.organizations import commands as organization_life

    row: Any = changed(database, lambda unit: organization_life.remove(unit, find(unit, organization)))
    echo(f"{row.slug}: removed; `normata organization restore {row.slug}` brings it back")


@app.command("restore")
def restore_organization(organization: OrganizationArgument, database: DatabaseOption = None) -> None:
    """Restore a removed organization, with its former members."""
    from normata.identity.organization_lookup import find
    from normata.identity.organizations import commands as organization_life

    count = changed(database, lambda unit: organization_life.restore(unit, find(unit, organization)))
    echo(f"{organization}: restored, with {count} member{'s' if count != 1 else ''}")


def _require_slug(slug: str | None) -> None:
    from normata.core.schema.fields import Slug

    if slug is not None:
        require(Slug, slug, "a slug has 1 to 200 characters, without blanks and slashes, and is neither . nor ..")
