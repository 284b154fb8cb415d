"""The database: its column types, and how work is run in a transaction of it.

This package is the only place that knows which database it is: ``sqlite`` and ``postgresql`` beside this file each
have one. Queries are written against a synchronous :class:`sqlalchemy.Connection`. Requests and commands hand them
over as a function (*work*) to :meth:`Database.read` or :meth:`Database.write`, which run it in one transaction and
commit before they return, so that nothing is acknowledged that is not stored. Two things are asked so often that they
go past SQLAlchemy: who asks (:meth:`Database.admit`), and restores, which are *scripts* for :meth:`Database.perform`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sqlalchemy import (
    JSON,
    Connection,
    DateTime,
    Delete,
    Dialect,
    Engine,
    Insert,
    MetaData,
    Select,
    String,
    Update,
    exc,
    make_url,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

if TYPE_CHECKING:
    from normata.database.admission import Admission
    from normata.settings import Settings

T = TypeVar("T")
Work = Callable[[Connection], T]


Statement = Select[Any] | Insert | Update | Delete
# A piece of work as the statements that it sends, one after the other, each with its parameters; it is sent the rows of
# each. So it can be done over the driver alone, at a fraction of what it costs over SQLAlchemy.
Script = Generator[tuple[Statement, Mapping[str, Any]], Sequence[Mapping[str, Any]], T]


class Unavailable(Exception):
    """The database cannot be reached, or not in time. What was asked has not been done; asking again may work."""


class BadDatabaseUrl(ValueError):
    """The database URL is not one that Normata can use; the message says why in one sentence."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a transaction may see of what belongs to organizations.

    PostgreSQL holds every statement to it, over and above what the statement itself asks for; SQLite cannot.
    ``organizations`` are those in sight.
    """

    organizations: tuple[str, ...] = ()


NOTHING = Sight()


def text(length: int | None = None) -> TypeEngine[str]:
    """A character column that every database orders by code point, whatever its locale."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


def format_timestamp(moment: datetime) -> str:
    """``moment`` (aware) as the wire has it: RFC 3339, UTC, milliseconds, ``Z``.

    The width is fixed, so that the order of the texts is the order of the times.
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> str:
    """The current time as the wire has it."""
    return format_timestamp(datetime.now(UTC))


def from_instant(moment: datetime) -> str:
    """An instant as asyncpg hands it out, as the wire has it."""
    # It hands out the first instant of year 1 as it does minus infinity: without a zone.
    return format_timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


class UtcTimestamp(TypeDecorator[str]):
    """An instant, in Python always the wire's text.

    PostgreSQL keeps it as ``timestamptz``. SQLite has no type for instants and would hand back naive ones; there the
    text is stored as it is, which sorts rightly and costs nothing to read.
    """

    impl = String(24)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The type that the database has for it."""
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else String(24))

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """From the wire's text."""
        return value if value is None or dialect.name != "postgresql" else datetime.fromisoformat(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """To the wire's text."""
        return cast("str | None", value) if value is None or dialect.name != "postgresql" else from_instant(value)


class Document(TypeDecorator[Any]):
    """A JSON value, kept as it was given, the order of its names included.

    SQLite would take a column that it is told is JSON for one of numbers, and make 0 of a bare 0.0: there it is text.
    """

    impl = JSON(none_as_null=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The type that the database has for it."""
        return dialect.type_descriptor(JSON(none_as_null=True) if dialect.name == "postgresql" else String())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """From a value that JSON can hold."""
        return value if value is None or dialect.name == "postgresql" else json.dumps(value, ensure_ascii=False)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """To the same value."""
        return value if value is None or dialect.name == "postgresql" else json.loads(value)


def document() -> TypeEngine[Any]:
    """A column type for JSON values, as migrations name it."""
    return Document()


def timestamp() -> TypeEngine[str]:
    """A column type for instants, as migrations name it."""
    return UtcTimestamp()


_BATCH = 500  # values a statement, well below every database's limit of parameters


def batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """``items`` in runs that fit one statement."""
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]


_CONTENT_LOCK = 0x6C6F6164  # "load": names the lock among all users of the database


def write_alone(connection: Connection) -> None:
    """Have the transaction wait for others that call this, before it reads what it will write back.

    Requests do not: it is for loads and adoptions, which go by rows that they have read. On SQLite there is one writer
    anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CONTENT_LOCK})")


class Database(ABC):
    """One database, for one process.

    ``embedded`` tells whether the data is a file of this program's own, which it then makes and migrates by itself.
    """

    embedded: bool
    engine: Engine  # for those who listen to what it does

    @abstractmethod
    async def read(self, work: Work[T], sight: Sight = NOTHING) -> T:
        """What ``work`` returns, from one consistent snapshot. Raises :class:`Unavailable`."""

    @abstractmethod
    async def admit(self, digest: str, organization_id: str | None) -> Sequence[Admission]:
        """The admissions of the token with this digest, as they are now: one for each organization of its owner.

        Where an organization is given, it is the only one that counts. An owner without any has one admission, a token
        that is unknown or revoked none. Raises :class:`Unavailable`.
        """

    @abstractmethod
    async def write(self, work: Work[T], sight: Sight = NOTHING) -> T:
        """What ``work`` returns, once its transaction is durable. Raises :class:`Unavailable`.

        Then nothing is kept, unless the connection was lost while the commit was on its way: whether that one arrived
        nobody can tell, so the client is told to look.
        """

    @abstractmethod
    async def perform(self, script: Callable[[], Script[T]], sight: Sight = NOTHING) -> T:
        """:meth:`write`, for a script that this makes; it may be made more than once."""

    @abstractmethod
    def read_now(self, work: Work[T]) -> T:
        """:meth:`read` with everything in sight, for callers without an event loop: the command line."""

    @abstractmethod
    def write_now(self, work: Work[T]) -> T:
        """:meth:`write` with everything in sight, for callers without an event loop."""

    @abstractmethod
    def exists(self) -> str | None:
        """Null where there is something to connect to, else what is missing, fit to follow "there is"."""

    @abstractmethod
    def lock_schema(self, connection: Connection) -> None:
        """Keep every other process from changing the schema until the transaction ends, or raise Unavailable."""

    @abstractmethod
    def secure(self, connection: Connection, metadata: MetaData) -> None:
        """Have the database itself keep organizations apart, where it can; again is harmless."""

    @abstractmethod
    def damage(self, connection: Connection) -> Iterator[str]:
        """What the database itself finds wrong with its files and references, a sentence each."""

    @abstractmethod
    async def aclose(self) -> None:
        """:meth:`close`, for callers with an event loop."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back. The database cannot be used afterwards."""


def open_database(settings: Settings, *, serving: bool = False, create: bool = False) -> Database:
    """The database that the settings name; it need not be reachable yet. Raises BadDatabaseUrl.

    With ``serving``, it acts with the rights of the service only. With ``create``, an embedded one is made where there
    is none.
    """
    url = settings.database_url
    try:
        # What names several hosts is a URL to PostgreSQL's own tools, but not to SQLAlchemy.
        backend = "postgresql" if url.startswith(("postgresql:", "postgres:")) else make_url(url).get_backend_name()
    except exc.ArgumentError:
        raise BadDatabaseUrl(
            "the database URL cannot be read; it looks like sqlite:///normata.db or postgresql://user@host/name"
        ) from None  # the URL itself may hold a password, so it is not repeated
    match backend:
        case "sqlite":
            from normata.database.sqlite import SQLite  # noqa: PLC0415 - a process needs one of the two

            return SQLite(settings, create=create)
        case "postgresql":
            from normata.database.postgresql import PostgreSQL  # noqa: PLC0415 - as above

            return PostgreSQL(settings, serving=serving)
    raise BadDatabaseUrl(f"the database URL names {backend}; Normata speaks sqlite:///… and postgresql://…")
