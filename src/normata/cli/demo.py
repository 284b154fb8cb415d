"""What the demo fills its database with, and what it shows a newcomer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import quote

from sqlalchemy import select

from normata.bundle import loading, reading
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction
from normata.demo.files import ORGANIZATION, paths
from normata.identity.model import Organization, User
from normata.identity.sign_in import links as sign_in_links
from normata.identity.tokens import tokens
from normata.records.base import Restorable

USER = "demo@normata.example"

_ID = Organization.id
_USER = select(User.id).where(User.email == USER)


def is_loaded(transaction: Transaction) -> bool:
    """Whether the demo's organization is there."""
    return transaction.scalar(select(_ID).where(_ID == ORGANIZATION)) is not None


def holds_others(transaction: Transaction) -> bool:
    """Whether there is an organization that is not the demo's: real data must not be mixed with it."""
    return transaction.scalar(select(_ID).where(_ID != ORGANIZATION).limit(1)) is not None


def fill(unit: UnitOfWork, progress: loading.Progress) -> None:
    """Load all bundles."""
    loading.load(unit, reading.read(paths()), progress)


def new_token(unit: UnitOfWork) -> str:
    """A token of the demo's user, valid for thirty days."""
    return tokens.create(unit, email=USER, scope="write", lifetime=timedelta(days=30))


def new_link(unit: UnitOfWork) -> str:
    """The path that signs the demo's user in to the console, once, within 15 minutes."""
    return sign_in_links.link("", sign_in_links.create(unit, str(unit.scalar(_USER))))


def invitation(transaction: Transaction, base: str, token: str) -> Iterator[str]:
    """What a newcomer is shown: the organization, the token, and three requests that work as they are printed.

    ``base`` is where the server can be reached: ``http://127.0.0.1:8000``.
    """
    curl = f"curl -s -H 'Authorization: Bearer {token}'"
    yield f"Organization: {ORGANIZATION}"
    yield f"Token:        {token}"
    yield ""
    yield "Controls of the adopted frameworks, with their coverage:"
    yield f"{curl} '{base}/controls/?organizationId={ORGANIZATION}&limit=5'"
    yield "Unread notifications:"
    yield f"{curl} '{base}/notifications/?organizationId={ORGANIZATION}&unreadOnly=true&limit=5'"
    archived = _archived(transaction)
    if archived is not None:
        kind, record_id = archived
        yield f"Restore an archived {kind.words()}:"
        yield f"{curl} -X POST '{base}/{kind.path}/{quote(record_id, safe='')}/restore/'"
    else:
        yield "Frameworks (every record of the demo has been restored already):"
        yield f"{curl} '{base}/frameworks/?organizationId={ORGANIZATION}'"
    yield ""
    yield f"Documentation: {base}/docs"
    yield "Stop with Ctrl-C."


def _archived(transaction: Transaction) -> tuple[type[Restorable], str] | None:
    """An archived record, of the first kind that has one whose slug is free."""
    for kind in Restorable.kinds:
        table = kind.sql()
        statement = select(table.c.id).where(table.c.organization_id == ORGANIZATION, table.c.archived_at.is_not(None))
        if "slug" in table.c:
            live = table.alias("live")
            taken = select(live.c.id).where(
                live.c.organization_id == table.c.organization_id,
                live.c.slug == table.c.slug,
                live.c.archived_at.is_(None),
            )
            statement = statement.where(~taken.exists())
        record_id = transaction.scalar(statement.order_by(table.c.id).limit(1))
        if record_id is not None:
            return kind, record_id
    return None
