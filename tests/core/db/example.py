"""A schema as small as the tests of the database package allow: tenants, what they own, what is shared, who asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Boolean, Column, Connection, Double, ForeignKey, Index, MetaData, Table, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from normata.core.db.database import Database
from normata.core.db.lookup import Lookup
from normata.core.db.opening import open_database
from normata.core.db.security import Security, Write
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.db.types import Document, UtcTimestamp, text
from normata.settings import Settings

ALPHA, BETA = "org-alpha", "org-beta"
IN_ALPHA, IN_BETA = TenantScope((ALPHA,), (ALPHA,)), TenantScope((BETA,), (BETA,))
NOON = "2026-01-01T12:00:00.000Z"


class Base(DeclarativeBase):
    """The base of the tables that are classes."""


METADATA: MetaData = Base.metadata


def reference(column: str) -> ForeignKey:
    """A reference that is checked at the commit."""
    return ForeignKey(column, deferrable=True, initially="DEFERRED")


class Label(Base):
    """What an organization owns: one column of each type."""

    __tablename__ = "label"
    __table_args__ = (Index("uq_label_slug", "organization_id", "slug", unique=True),)

    id: Mapped[str] = mapped_column(text(128), primary_key=True)
    organization_id: Mapped[str] = mapped_column(text(128), reference("organization.id"))
    slug: Mapped[str] = mapped_column(text(200))
    name: Mapped[str] = mapped_column(text())
    parent_id: Mapped[str | None] = mapped_column(text(128), reference("label.id"))
    order: Mapped[int | None]
    is_open: Mapped[bool | None] = mapped_column(Boolean)
    weight: Mapped[float | None] = mapped_column(Double)
    payload: Mapped[Any | None] = mapped_column(Document())
    archived_at: Mapped[str | None] = mapped_column(UtcTimestamp())


label = Base.metadata.tables["label"]
organization = Table(
    "organization",
    METADATA,
    Column("id", text(128), primary_key=True),
    Column("name", text(), nullable=False),
    Column("slug", text(200), nullable=False, unique=True),
    info={"organization_column": "id"},
)
framework = Table(  # of an organization, or centralized
    "framework",
    METADATA,
    Column("id", text(128), primary_key=True),
    Column("organization_id", text(128), reference("organization.id")),
    Column("name", text(), nullable=False),
)
note = Table(  # what may be deleted
    "note",
    METADATA,
    Column("id", text(128), primary_key=True),
    Column("organization_id", text(128), reference("organization.id"), nullable=False),
)
account = Table(
    "account", METADATA, Column("id", text(128), primary_key=True), Column("name", text()), Column("secret", text())
)
member = Table(
    "member",
    METADATA,
    Column("organization_id", text(128), reference("organization.id"), primary_key=True),
    Column("account_id", text(128), reference("account.id"), primary_key=True),
    Column("since", UtcTimestamp()),
    Column("pin", text()),
)


def _who(secret: str, place: str, *, source: str, number: str) -> str:
    return (
        f"SELECT {number and number + ','} account.id, member.organization_id, member.since"
        f" FROM {source and source + ' JOIN'} account {source and 'ON account.secret = ' + secret}"
        " LEFT JOIN member ON member.account_id = account.id"
        f" AND ({place} IS NULL OR member.organization_id = {place})"
        f" WHERE account.secret = {secret} ORDER BY {number and number + ','} member.organization_id"
    )


WHO = Lookup(
    "normata_test_who",
    ("secret", "place"),
    {"account_id": text(128), "organization_id": text(128), "since": UtcTimestamp()},
    _who,
)
SECURITY = Security(
    writes=(
        Write("label", "INSERT"),
        Write("label", "UPDATE", frozenset({"name"})),
        Write("label", "UPDATE", frozenset({"archived_at"})),
        Write("framework", "INSERT"),
        Write("framework", "UPDATE", frozenset({"name", "organization_id"})),
        Write("framework", "DELETE"),
        Write("note", "INSERT"),
        Write("note", "DELETE"),
        Write("account", "UPDATE", frozenset({"name"})),
    ),
    lookups=(WHO,),
    partly_readable={"account": frozenset({"id", "name"}), "member": frozenset({"account_id"})},
)


def open_url(url: str, *, create: bool = False, serving: bool = False, **settings: Any) -> Database:
    """A database, as the command line has it unless it is ``serving``."""
    return open_database(Settings(database_url=url, **settings), create=create, serving=serving)


def secure(database: Database) -> None:
    """What `normata migrate` does to a schema that is current."""
    database.alter_now(lambda connection: database.secure(connection, METADATA, SECURITY))


def faults(database: Database) -> list[str]:
    """What `normata check` finds."""
    return database.read_now(lambda transaction: list(database.faults(transaction, METADATA, SECURITY)))


def build(url: str, **settings: Any) -> None:
    """Make a database with two organizations in it."""
    database = open_url(url, create=True, **settings)

    def make(connection: Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        METADATA.create_all(connection)
        database.secure(connection, METADATA, SECURITY)

    try:
        database.alter_now(make)
        database.write_now(fill)
    finally:
        database.close()


def fill(transaction: Transaction) -> None:
    """Two organizations with something of each kind, and what is of none."""
    for name in ("alpha", "beta"):
        owner = {"organization_id": f"org-{name}"}
        transaction.rows(insert(organization).values(id=f"org-{name}", name=name.title(), slug=name))
        transaction.rows(insert(label).values(id=f"label-{name}", slug="first", name=name, **owner))
        transaction.rows(insert(framework).values(id=f"framework-{name}", name=name, **owner))
        transaction.rows(insert(note).values(id=f"note-{name}", **owner))
        transaction.rows(insert(account).values(id=f"user-{name}", name=name, secret=f"secret-{name}"))
        transaction.rows(insert(member).values(account_id=f"user-{name}", since=NOON, **owner))
    transaction.rows(insert(framework).values(id="framework-shared", name="shared"))
    transaction.rows(insert(account).values(id="user-nobody", name="nobody", secret="secret-nobody"))


def new_label(name: str, slug: str | None = None, owner: str = ALPHA) -> dict[str, str]:
    """The least that a label has."""
    return {"id": name, "organization_id": owner, "slug": slug or name, "name": name}


def adding(name: str, slug: str | None = None, *, then: Exception | None = None) -> Callable[[Transaction], str]:
    """Work that adds a label and returns its name, or raises after that."""

    def work(transaction: Transaction) -> str:
        transaction.rows(insert(label).values(new_label(name, slug)))
        if then is not None:
            raise then
        return name

    return work


LABELS = [new_label(f"label-{number}") | {"order": number, "is_open": number % 2 == 0} for number in range(6)]
ORDERED = select(label.c.id).order_by(label.c.id)
