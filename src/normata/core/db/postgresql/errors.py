"""Translation of PostgreSQL's errors into those of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import asyncpg
from sqlalchemy import exc

from normata.core.db.transaction import ConstraintViolation, NotPermitted
from normata.errors import Unavailable, UnavailableReason

CONNECT_ERRORS = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)

# SQLSTATE classes and codes of temporary errors: connection, resources, operator, system; serialization, deadlock, lock
# not available; and read-only, which a standby returns between the loss of a primary and the next.
_TRANSIENT_CLASSES = frozenset({"08", "53", "57", "58"})
_TRANSIENT_CODES = frozenset({"40001", "40P01", "55P03", "25006"})

_REASONS: Mapping[str, UnavailableReason] = {
    "40001": "locked",
    "40P01": "locked",
    "55P03": "locked",
    "57014": "slow",
    "53100": "full",
}


def is_lost(error: BaseException) -> bool:
    """Whether asyncpg's connection cannot be used after this error."""
    lost = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.PostgresConnectionError)
    # asyncpg raises two others as such errors: for a value that it cannot encode, and for a type that a migration has
    # changed.
    if isinstance(error, ValueError | asyncpg.OutdatedSchemaCacheError):
        return False
    return isinstance(error, (*lost, asyncpg.AdminShutdownError, asyncpg.CrashShutdownError))


def may_be_wrong_server(error: BaseException) -> bool:
    """Whether the connection or its server may be the wrong one after this error: it is lost, or accepts no writes."""
    return is_lost(error) or isinstance(error, asyncpg.ReadOnlySQLTransactionError)


def raise_translated(error: Exception) -> NoReturn:
    """Raise the error translated for callers."""
    known = translate(error)
    if known is error:
        raise error
    # The details of a constraint violation contain values of users, which must not get into a log.
    raise known from (None if isinstance(known, ConstraintViolation) else error)


def translate(error: Exception) -> Exception:
    """The error translated for callers; the caller's own errors are unchanged."""
    if isinstance(error, exc.TimeoutError):
        return Unavailable("all connections are in use", "crowded")
    cause = _cause(error)
    if isinstance(cause, asyncpg.IntegrityConstraintViolationError):
        return ConstraintViolation(first_line(cause))
    if isinstance(cause, CONNECT_ERRORS) and (is_lost(cause) or _is_transient(cause)):
        return Unavailable(first_line(cause), _reason(cause))
    if isinstance(cause, asyncpg.InsufficientPrivilegeError):
        return NotPermitted(first_line(cause))
    return error


def _cause(error: Exception) -> BaseException:
    """The asyncpg error that caused one of SQLAlchemy's."""
    if isinstance(error, exc.DBAPIError) and error.orig is not None:
        return error.orig.__cause__ or error.orig
    return error


def _is_transient(error: BaseException) -> bool:
    # A migration has changed the result of a prepared statement. asyncpg prepares it again for the next transaction.
    if isinstance(error, asyncpg.InvalidCachedStatementError | asyncpg.OutdatedSchemaCacheError):
        return True
    code = getattr(error, "sqlstate", None) or ""
    return code[:2] in _TRANSIENT_CLASSES or code in _TRANSIENT_CODES


def _reason(error: BaseException) -> UnavailableReason:
    return _REASONS.get(getattr(error, "sqlstate", None) or "", "unreachable")


def first_line(error: BaseException) -> str:
    """The first line of the server's message; further lines may contain values."""
    return str(error).partition("\n")[0] or "the database did not answer in time"
