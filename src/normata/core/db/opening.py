"""Opening the database of the settings."""

from __future__ import annotations

from sqlalchemy import exc, make_url

from normata.core.db.database import BadDatabaseUrl, Database
from normata.core.db.monitoring import Monitor, NoMonitor
from normata.core.db.sqlite.database import SQLite
from normata.settings import Settings


def open_database(
    settings: Settings, *, serving: bool = False, create: bool = False, monitor: Monitor | None = None
) -> Database:
    """The database of the settings; it need not be reachable yet. Raises BadDatabaseUrl.

    With ``serving``, it acts with the rights of the service only. With ``create``, an embedded one is created if it
    does not exist. ``monitor`` records waits.
    """
    monitor = monitor or NoMonitor()
    url = settings.database_url
    try:
        # SQLAlchemy cannot parse a URL with several hosts, as PostgreSQL's own tools can.
        backend = "postgresql" if url.startswith(("postgresql:", "postgres:")) else make_url(url).get_backend_name()
    except exc.ArgumentError:
        raise BadDatabaseUrl(
            "the database URL cannot be read; it looks like sqlite:///normata.db or postgresql://user@host/name"
        ) from None  # without the URL, which may contain a password
    match backend:
        case "sqlite":
            return SQLite(settings, create=create, monitor=monitor)
        case "postgresql":
            # asyncpg takes a quarter of a second to import, which users of SQLite should not wait for.
            from normata.core.db.postgresql.database import PostgreSQL  # noqa: PLC0415

            return PostgreSQL(settings, serving=serving, monitor=monitor)
    raise BadDatabaseUrl(f"the database URL names {backend}; Normata takes sqlite:///… and postgresql://…")
