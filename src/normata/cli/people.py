"""The commands for users and what they may do: ``token``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from normata.cli.shared import DatabaseOption, Group, changed, echo, fail, opened
from normata.log import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normata.db.transaction import Transaction

tokens = typer.Typer(cls=Group, help="Create, list and revoke the access tokens of users.", no_args_is_help=True)


@tokens.command("create")
def create_token(
    user: Annotated[str, typer.Option(metavar="EMAIL", help="The user that the token acts as.")],
    scope: Annotated[str, typer.Option(metavar="read|write", help="What the token may do.")] = "read",
    expires_in: Annotated[
        str,
        typer.Option(
            metavar="90d|12h|never", help="How long it is valid, in minutes (m), hours (h), days (d) or weeks (w)."
        ),
    ] = "90d",
    database: DatabaseOption = None,
) -> None:
    """Create a token and print it, alone, on standard output. Note it: it is stored nowhere and never shown again."""
    from normata.identity import tokens as life

    if scope not in ("read", "write"):
        fail("--scope must be read or write", code=2)
    lifetime = _lifetime(expires_in)
    try:
        token = changed(database, lambda unit: life.create(unit, email=user, scope=scope, lifetime=lifetime))
    except life.NoSuchUser:
        _fail_without_user(user)
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
    user: Annotated[str | None, typer.Option(metavar="EMAIL", help="Only the tokens of this user.")] = None,
    database: DatabaseOption = None,
) -> None:
    """List tokens, one a line, with tabs between the columns. The tokens themselves are not shown."""
    from normata.identity import tokens as life

    def work(transaction: Transaction) -> Sequence[Any]:
        rows = life.listing(transaction, email=user)
        if user is not None and not rows:
            _require_user(transaction, user)
        return rows

    with opened(database, create=False) as source:
        rows = source.read_now(work)
    columns = ("id", "email", "scope", "created_at", "expires_at", "last_used_at", "revoked_at")
    typer.echo("\t".join(columns))
    for row in rows:
        typer.echo("\t".join(visible(getattr(row, column) or "-") for column in columns))


def _require_user(transaction: Transaction, email: str) -> None:
    from sqlalchemy import select

    from normata.identity.model import User
    from normata.schema.text import fold

    if transaction.scalar(select(User.id).where(User.email_folded == fold(email))) is None:
        _fail_without_user(email)


def _fail_without_user(email: str) -> NoReturn:
    fail(f"there is no user with the email address {email}")


@tokens.command("revoke")
def revoke_token(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `normata token list` shows it.")],
    database: DatabaseOption = None,
) -> None:
    """Revoke a token. From the next request on it is refused."""
    from normata.identity import tokens as life

    if not changed(database, lambda unit: life.revoke(unit, token_id)):
        fail(f"there is no token with the id {token_id}")
    echo(f"{token_id}: revoked")
