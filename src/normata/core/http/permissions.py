"""The table of permissions: the scope and the role that each operation needs, from its declaration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from normata.core.http.operation import Operation
from normata.core.http.roles import ROLES

# The caller: a member with a role, a user who is no member, or an operator who is no member.
Who = Literal["viewer", "auditor", "editor", "admin", "owner", "no member", "operator"]
WHO: tuple[Who, ...] = (*ROLES, "no member", "operator")

# Whether they may call it: always, for what is their own, or never.
May = Literal["yes", "own", ""]

_HEAD = """\
# Permissions

The smallest scope of the token that each operation needs, and who may call it. `make docs` generates the table from the
declarations of the operations. Tests compare the two, and check the service for every cell: with a token of each scope,
in the user's own organization and in another one.

A token has one scope: `read`, `write`, which includes `read`, or `admin`, which includes both. Operations that manage
people, tokens and organizations need `admin`. The scope `scim` allows none of them: it is for provisioning
(`docs/provisioning.md`) by an admin or owner. A member has one role in each organization. Four roles include what the
smaller ones allow, and one stands beside them:

- a `viewer` reads, the history of what they can read included: `GET /events/` of one row;
- an `editor` also writes records, assessments and matches;
- an `admin` also adopts and creates frameworks, invites people, gives roles up to their own, and sees all events;
- an `owner` also appoints and removes owners, and removes the organization;
- an `auditor` reads what an admin reads, and changes nothing: no record names an auditor as responsible, and an auditor
  saves no views. They may mark their own notifications, leave, and make tokens of the scope `read`.

A membership may have an end, `expiresAt`: from then on the user is no member.

An operator administers the instance. This is not a role in an organization: an operator who is not a member of an
organization sees nothing of it. `own` means that the operation is about the user's own data: their account, their
tokens, their membership, the views that they have saved.

A user who is not a member of an organization gets 404, as if it did not exist. A role or a scope that is too small gets
403, and so does an operation for operators. Nobody can give a larger role than their own, or change a member who has
one; the role of an auditor is given and taken by admins and owners.

"""


def may(operation: Operation, who: Who) -> May:
    """Whether a caller with a sufficient scope may call an operation: always, for their own data, or not at all."""
    if operation.authority == "self":
        return "own"
    if operation.authority == "operator":
        return "yes" if who == "operator" else ""
    if who in ("no member", "operator"):
        return ""
    if operation.admits(who):
        return "yes"
    return "own" if operation.admits_own(who) else ""


def document(operations: Sequence[Operation]) -> str:
    """The content of ``docs/permissions.md``."""
    rows = [
        ("Operation", "Scope", *WHO),
        ("---", "---", *(":-:" for _ in WHO)),
        *(
            (f"`{operation.method} {operation.path}`", operation.scope, *(may(operation, who) for who in WHO))
            for operation in sorted(operations, key=lambda operation: (operation.path, operation.method))
        ),
    ]
    return _HEAD + "".join("|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|\n" for row in rows)
