"""Functions that `normata migrate` makes, and checks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, exc

Ask = Callable[..., Sequence[Any]]  # runs SQL with values, and returns rows


@dataclass(frozen=True, slots=True)
class Function:
    """A function as it should be: its name, its signature, and the statement that creates or replaces it.

    The service's role may execute it unless it is a trigger's, which nobody calls.
    """

    name: str
    signature: str
    definition: str
    is_trigger: bool = False


def secure(connection: Connection, role: str, function: Function) -> None:
    """Create a function unless it is correct, and let only the role execute it."""
    run = connection.exec_driver_sql

    def ask(sql: str, *values: Any) -> Sequence[Any]:
        return run(sql, values).all()

    if not _is_right(ask, function):
        try:
            with connection.begin_nested():
                run(function.definition)
        except exc.ProgrammingError:  # a function with another result type cannot be replaced
            run(f"DROP FUNCTION {function.signature}")
            run(function.definition)
        run(f"COMMENT ON FUNCTION {function.signature} IS '{_fingerprint(ask, function)}'")
    run(f"REVOKE ALL ON FUNCTION {function.signature} FROM PUBLIC")
    if not function.is_trigger:
        quoted = connection.dialect.identifier_preparer.quote_identifier(role)
        run(f"GRANT EXECUTE ON FUNCTION {function.signature} TO {quoted}")


def faults(ask: Ask, role: str, function: Function) -> Iterator[str]:
    """The faults of a function, a sentence each."""
    if not ask("SELECT 1 WHERE to_regprocedure($1) IS NOT NULL", function.signature):
        yield f"the function {function.name} is missing; run `normata migrate`"
        return
    if not _is_right(ask, function):
        yield f"the function {function.name} is not as Normata makes it; run `normata migrate`"
    ((role_may, public_may),) = ask(_MAY_EXECUTE, function.signature, role)
    if not role_may and not function.is_trigger:
        yield f"the role {role} may not execute the function {function.name}; run `normata migrate`"
    if public_may:
        yield f"every role (PUBLIC) may execute the function {function.name}; run `normata migrate`"


_MAY_EXECUTE = (
    "SELECT coalesce(bool_or(grantee = role.oid), false), coalesce(bool_or(grantee = 0), false)"
    " FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))), pg_roles AS role"
    " WHERE pg_proc.oid = to_regprocedure($1) AND rolname = $2"
)


def _is_right(ask: Ask, function: Function) -> bool:
    ((comment,),) = ask("SELECT obj_description(to_regprocedure($1), 'pg_proc')", function.signature)
    return bool(comment == _fingerprint(ask, function))


def _fingerprint(ask: Ask, function: Function) -> str:
    """The expected comment of an unchanged function that was made from this source."""
    ((stored,),) = ask("SELECT pg_get_functiondef(to_regprocedure($1))", function.signature)
    return sha256(f"{function.definition}{stored}".encode()).hexdigest()
