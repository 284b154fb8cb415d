"""The table of permissions: what each operation takes, from its own declaration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from normata.core.http.operation import Operation
from normata.core.http.roles import ROLES, role_suffices

# Who asks: a member with a role, a user who is no member, or an operator who is no member either.
Who = Literal["viewer", "editor", "admin", "owner", "no member", "operator"]
WHO: tuple[Who, ...] = (*ROLES, "no member", "operator")

# Whether they may: always, with what is their own, or not at all.
May = Literal["yes", "own", ""]

_HEAD = """\
# Permissions

What each operation takes: the least scope of the token, and who may do it. The table is made from the operations
themselves (`make docs`). Tests compare the two, and hold the service against every cell: with a token of every scope,
in the user's own organization and in another one.

A token has one scope: `read`, `write`, which includes `read`, or `admin`, which includes both. What manages people,
tokens and organizations takes `admin`. A member has one role in each organization, and each role includes what the
smaller ones allow:

- a `viewer` reads;
- an `editor` also writes records, assessments and matches;
- an `admin` also adopts frameworks, makes them, invites people, gives roles up to their own, and sees all events;
- an `owner` also appoints and removes owners, and removes the organization.

An operator runs the instance. That is no role in an organization: who is no member of one sees nothing of it, operator
or not. `own` means that it is about what is the user's own: who they are, their tokens, their own membership.

Whoever is no member of an organization is answered 404, as if it did not exist. A role or a scope that is too small is
answered 403, and so is an operation for operators. Nobody gives a larger role than their own, or changes who has one.

"""


def may(operation: Operation, who: Who) -> May:
    """Whether somebody may do what an operation does, with a token whose scope suffices."""
    if operation.authority == "self":
        return "own"
    if operation.authority == "operator":
        return "yes" if who == "operator" else ""
    if who in ("no member", "operator"):
        return ""
    if role_suffices(who, operation.role):
        return "yes"
    return "own" if operation.own_role is not None and role_suffices(who, operation.own_role) else ""


def document(operations: Sequence[Operation]) -> str:
    """The page ``docs/permissions.md`` as it has to be."""
    rows = [
        ("Operation", "Scope", *WHO),
        ("---", "---", *(":-:" for _ in WHO)),
        *(
            (f"`{operation.method} {operation.path}`", operation.scope, *(may(operation, who) for who in WHO))
            for operation in sorted(operations, key=lambda operation: (operation.path, operation.method))
        ),
    ]
    return _HEAD + "".join("|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|\n" for row in rows)
