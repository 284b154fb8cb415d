"""The commands for people: ``user`` for the instance, ``member`` for an organization."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from normata.cli import calls
from normata.cli.backend import every_item
from normata.cli.connection import ServerOption, connected
from normata.cli.invitations import print_invitation
from normata.cli.shared import (
    DatabaseOption,
    Group,
    changed,
    echo,
    fail,
    opened,
    print_table,
    require_address,
    settings_with,
)

if TYPE_CHECKING:
    from normata.core.changes.unit_of_work import UnitOfWork
    from normata.core.db.transaction import Transaction
    from normata.core.http.roles import Role
    from normata.identity.members.removal import RemovedCounts

user = typer.Typer(cls=Group, help="List, invite and remove the users of the instance.", no_args_is_help=True)
member = typer.Typer(
    cls=Group, help="List, invite, change and remove the members of an organization.", no_args_is_help=True
)

UserArgument = Annotated[str, typer.Argument(metavar="USER", help="The user, by address or id.")]
EmailArgument = Annotated[str, typer.Argument(metavar="ADDRESS", help="The email address.")]
OrganizationOption = Annotated[
    str | None,
    typer.Option(
        metavar="ORG",
        help="The organization, by id or slug. Not needed if there is only one.",
        show_default=False,
    ),
]
_NEVER = "never"
UntilOption = Annotated[
    str | None,
    typer.Option(
        metavar="MOMENT",
        help="When the membership ends: a day (its first moment, in UTC) or a moment, RFC 3339. For a member also"
        f" `{_NEVER}`.",
        show_default=False,
    ),
]
_COLUMNS = {  # of the list of members, each with its name on the wire
    **{name: name for name in ("id", "email", "name", "role")},
    "removed_at": "removedAt",
    "expires_at": "expiresAt",
}
RoleOption = Annotated[str, typer.Option(metavar="viewer|auditor|editor|admin|owner", help="The role.")]


# --- Users


@user.command("list")
def list_users(database: DatabaseOption = None) -> None:
    """List all users, one per line, with tabs between the columns. Operators have a time in `operator_since`."""
    from normata.identity.users import listing

    with opened(database, create=False) as source:
        rows = source.read_now(listing)
    print_table(("id", "email", "name", "organizations", "operator_since", "removed_at"), rows)


@user.command("remove")
def remove_user(user: UserArgument, database: DatabaseOption = None) -> None:
    """End all memberships, tokens and sessions of a user immediately. What they created stays, with their name."""
    from normata.identity.members.removal import remove_user as remove

    left: RemovedCounts = changed(database, lambda unit: remove(unit, _user(unit, user)))
    counts = ", ".join(f"{count} {what}" for what, count in left._asdict().items())
    echo(f"{user}: removed; ended: {counts}")


@user.command("operator")
def make_operator(
    user: UserArgument,
    off: Annotated[bool, typer.Option("--off", help="Make them an operator no longer.")] = False,
    database: DatabaseOption = None,
) -> None:
    """Make a user an operator: they may create organizations, but this shows them no organization's data."""
    from normata.identity.operators import set_operator

    def work(unit: UnitOfWork) -> bool:
        found = _user(unit, user)
        if found.removed_at is not None and not off:
            fail(f"{user} was removed; invite them again first")
        if found.organization_id is not None:
            fail(f"{user} is a service account, and only a person can be an operator")
        return set_operator(unit, found.id, is_operator=not off)

    was = "" if changed(database, work) else " already"
    echo(f"{user}: {'no operator' if off else 'an operator'}{was}")


@user.command("link")
def make_link(user: UserArgument, database: DatabaseOption = None) -> None:
    """Print a link that signs a user in: valid once, for 15 minutes. Anybody who has it can sign in as that user."""
    from normata.identity.sign_in import links as sign_in_links

    def work(unit: UnitOfWork) -> str:
        found = _user(unit, user)
        if found.removed_at is not None or found.organization_id is not None:
            fail(f"nobody can sign in as {user}")
        return sign_in_links.create(unit, found.id)

    echo(sign_in_links.link(settings_with().public_url, changed(database, work)))


# --- Members


@member.command("list")
def list_members(
    organization: OrganizationOption = None, database: DatabaseOption = None, server: ServerOption = None
) -> None:
    """List the members of an organization, one per line, with tabs between the columns."""
    with connected(database, server) as backend:
        owner = backend.organization(organization)
        rows = list(every_item(backend, calls.MEMBERS, organizationId=owner, removed="include"))
    print_table(
        tuple(_COLUMNS), [SimpleNamespace(**{name: row[wire] for name, wire in _COLUMNS.items()}) for row in rows]
    )


@member.command("invite")
@user.command("invite")
def invite(
    email: EmailArgument,
    *,
    role: RoleOption = "viewer",
    until: UntilOption = None,
    organization: OrganizationOption = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Invite somebody to an organization: print the link that makes them a member, and mail it if mail is set up."""
    require_address(email)
    chosen, expires_at = _role(role), until and _end(until)
    with connected(database, server) as backend:
        made = backend.invite(backend.organization(organization), email, chosen, expires_at)
    print_invitation(made)


@member.command("role")
def change_role(
    user: UserArgument,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="viewer, auditor, editor, admin or owner.")],
    *,
    until: UntilOption = None,
    organization: OrganizationOption = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Change the role of a member. The end of the membership stays, unless --until names another."""
    wanted: dict[str, Any] = {"role": _role(role)}
    if until is not None:
        wanted["expiresAt"] = None if until == _NEVER else _end(until)
    with connected(database, server) as backend:
        member_id = backend.member(backend.organization(organization), user)
        row = backend.change(calls.MEMBER_CHANGE, member_id, body=wanted)
    echo(f"{user}: {row['role']}" + (f", until {row['expiresAt']}" if row["expiresAt"] else ""))


@member.command("remove")
def remove_member(
    user: UserArgument,
    organization: OrganizationOption = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Remove a member from an organization immediately, and print what is left to hand over."""
    with connected(database, server) as backend:
        member_id = backend.member(backend.organization(organization), user)
        left = backend.change(calls.MEMBER_REMOVAL, member_id)["responsibilities"]
    echo(f"{user}: removed")
    if left:
        counts = ", ".join(f"{count} {kind}" for kind, count in left.items())
        echo(f"they are responsible for {counts}; `normata member handover {user} --to USER` hands these over")


@member.command("handover")
def hand_over(
    user: UserArgument,
    *,
    to: Annotated[str, typer.Option("--to", metavar="USER", help="The new responsible member, by address or id.")],
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Only this kind, such as tasks; may be repeated.", show_default=False),
    ] = None,
    organization: OrganizationOption = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Make another member responsible for the records of a member. It changes some hundred records at a time."""
    total: dict[str, int] = {}
    with connected(database, server) as backend:
        owner = backend.organization(organization)
        one, other = (backend.member(owner, name) for name in (user, to))
        body = {"toMemberId": other} | ({"kinds": kind} if kind else {})
        while True:
            handed = backend.change(calls.HANDOVER, one, body=body)
            for name, count in handed["records"].items():
                total[name] = total.get(name, 0) + count
            if not handed["more"] or not handed["records"]:
                break
    for name, count in sorted(total.items()):
        echo(f"{name}: {count} handed over to {to}")
    if not total:
        echo(f"{user} is responsible for nothing")


# --- Looking up


def _role(role: str) -> Role:
    from normata.core.http.roles import ROLES

    if role not in ROLES:
        fail(f"the role must be one of {', '.join(ROLES)}", code=2)
    return role


def _end(until: str) -> str:
    """The moment of the option, in wire form; the command fails if it is none."""
    from pydantic import TypeAdapter, ValidationError

    from normata.core.schema.fields import Timestamp

    try:
        return str(TypeAdapter(Timestamp).validate_python(until))
    except ValidationError:
        fail(f"--until takes a day or a moment, such as 2027-03-01 or 2027-03-01T18:00:00Z; this is {until!r}", code=2)


def _user(transaction: Transaction, name: str) -> Any:
    """The user with this address or id; the command fails if there is none."""
    from normata.identity.users import named

    found = named(transaction, name)
    if found is None:
        _fail_without_user(name)
    return found


def _fail_without_user(name: str) -> NoReturn:
    fail(f"there is no user {name}; `normata user list` lists all")
