"""A made-up company, for a first look: its frameworks, statements, members and records, as bundles in this folder."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, select

from normata.bundle import loading, reading
from normata.identity import tokens
from normata.identity.model import Organization
from normata.records.base import Restorable
from normata.serving import base_url
from normata.settings import Settings

ORGANIZATION = "org-harbourlight"
USER = "demo@normata.example"
BUNDLES = ("nist-csf-2.0.json", "iso-27001-2022.json", "mapping.json", "organization.json", "records.json")


def paths() -> list[Path]:
    """The bundle files."""
    return [Path(__file__).parent / name for name in BUNDLES]


def record_bundle() -> Path:
    """The bundle file with the records of every kind."""
    return Path(__file__).parent / BUNDLES[-1]


def is_loaded(connection: Connection) -> bool:
    """Whether the demo's organization is there."""
    return connection.scalar(select(Organization.id).where(Organization.id == ORGANIZATION)) is not None


def holds_others(connection: Connection) -> bool:
    """Whether there is an organization that is not the demo's: real data is no place for it."""
    return connection.scalar(select(Organization.id).where(Organization.id != ORGANIZATION).limit(1)) is not None


def fill(connection: Connection, progress: loading.Progress) -> None:
    """Load all bundles."""
    loading.load(connection, reading.read(paths()), progress)


def new_token(connection: Connection) -> str:
    """A token of the demo's user, good for thirty days."""
    return tokens.create(connection, email=USER, scope="write", lifetime=timedelta(days=30))


def invitation(connection: Connection, settings: Settings, token: str) -> Iterator[str]:
    """What a newcomer is shown: the organization, the token, and three requests that work as they are printed."""
    base = base_url(settings)
    curl = f"curl -s -H 'Authorization: Bearer {token}'"
    yield f"Organization: {ORGANIZATION}"
    yield f"Token:        {token}"
    yield ""
    yield "Controls of the adopted frameworks, with their coverage:"
    yield f"{curl} '{base}/controls/?organizationId={ORGANIZATION}&limit=5'"
    yield "Unread notifications:"
    yield f"{curl} '{base}/notifications/?organizationId={ORGANIZATION}&unreadOnly=true&limit=5'"
    archived = _archived(connection)
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


def _archived(connection: Connection) -> tuple[type[Restorable], str] | None:
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
        record_id = connection.scalar(statement.order_by(table.c.id).limit(1))
        if record_id is not None:
            return kind, record_id
    return None
