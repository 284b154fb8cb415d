"""The commands for users and what they may do: ``token``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, NoReturn

import typer

from normata.cli.shared import DatabaseOption, Group, changed, echo, fail, opened
from normata.core.log import visible

_COLUMNS = (
    *("id", "email", "scope", "created_at", "expires_at", "last_used_at", "revoked_at"),
    *("user_id", "organization", "name"),
)

tokens = typer.Typer(cls=Group, help="Create, list and revoke the access tokens of users.", no_args_is_help=True)


@tokens.command("create")
def create_token(
    *,
    user: Annotated[
        str, typer.Option(metavar="EMAIL|ID", help="The user, or the service account, that the token acts as.")
    ],
    scope: Annotated[
        str,
        typer.Option(
            metavar="read|write|admin|scim",
            help="What the token may do; admin also manages members and tokens, scim is for an identity provider.",
        ),
    ] = "read",
    expires_in: Annotated[
        str,
        typer.Option(
            metavar="90d|12h|never", help="How long it is valid, in minutes (m), hours (h), days (d) or weeks (w)."
        ),
    ] = "90d",
    organization: Annotated[
        str | None,
        typer.Option(
            metavar="ORG",
            help="The only organization that the token reaches, by id or slug. Default: all organizations of the user.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="A name that says what the token is for.")] = None,
    database: DatabaseOption = None,
) -> None:
    """Create a token and print only the token. Save it: it is not stored, and never shown again."""
    from normata.core.http.roles import SCIM, SCOPES
    from normata.errors import Forbidden
    from normata.identity.tokens import tokens as life

    if scope not in (*SCOPES, SCIM):
        fail("--scope must be read, write, admin or scim", code=2)
    if name is not None and (not name.strip() or len(name) > 500 or "\0" in name):
        fail("--name must have 1 to 500 characters", code=2)
    lifetime = _lifetime(expires_in)
    try:
        token = changed(
            database,
            lambda unit: life.create(
                unit,
                email=user,
                scope=scope,
                lifetime=lifetime,
                organization=organization,
                name=name and name.strip(),
            ),
        )
    except life.NoSuchUser:
        _fail_without_user(user)
    except Forbidden as error:
        fail(str(error))
    echo(token)


def _lifetime(text: str) -> timedelta | None:
    if text == "never":
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", text)
    if match is None:
        fail("--expires-in must be a number with m, h, d or w, such as 90d, or never", code=2)
    unit = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}[match[2]]
    lifetime = timedelta(**{unit: int(match[1])})
    if lifetime > timedelta(days=36_500):
        fail("--expires-in must be at most 100 years; never means no end", code=2)
    return lifetime


@tokens.command("list")
def list_tokens(
    user: Annotated[
        str | None, typer.Option(metavar="EMAIL|ID", help="Only the tokens of this user, or service account.")
    ] = None,
    organization: Annotated[
        str | None, typer.Option(metavar="ORG", help="Only tokens that reach this organization, by its id or slug.")
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """List tokens, one per line, with tabs between the columns. The tokens themselves are not shown."""
    from normata.identity.tokens import tokens as life

    try:
        with opened(database, create=False) as source:
            rows = source.read_now(lambda transaction: life.listing(transaction, email=user, organization=organization))
    except life.NoSuchUser as error:
        _fail_without_user(str(error))
    typer.echo("\t".join(_COLUMNS))
    for row in rows:
        typer.echo("\t".join(visible(getattr(row, column) or "-") for column in _COLUMNS))


def _fail_without_user(name: str) -> NoReturn:
    fail(f"there is no user with the email address {name}" if "@" in name else f"there is no user {name}")


@tokens.command("revoke")
def revoke_token(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `normata token list` shows it.")],
    database: DatabaseOption = None,
) -> None:
    """Revoke a token. From the next request on it is refused."""
    from normata.identity.tokens import tokens as life

    if not changed(database, lambda unit: life.revoke(unit, token_id)):
        fail(f"there is no token with the id {token_id}")
    echo(f"{token_id}: revoked")
