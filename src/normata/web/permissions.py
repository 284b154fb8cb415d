"""The table of permissions: what each operation takes, from its own declaration."""

from __future__ import annotations

from collections.abc import Sequence

from normata.identity.roles import ROLES, role_suffices
from normata.web.operation import Operation

_HEAD = """\
# Permissions

What each operation takes: the least scope of the token, and the roles in the organization that allow it. The table is
made from the operations themselves (`make docs`); a test compares the two.

A token has the scope `read` or `write`; `write` includes `read`. A member has one role in each organization; each role
includes what the smaller ones allow. Whoever is no member of an organization is answered 404, as if it did not exist. A
role or a scope that is too small is answered 403.

"""


def document(operations: Sequence[Operation]) -> str:
    """The page ``docs/permissions.md`` as it has to be."""
    rows = [
        ("Operation", "Scope", *ROLES),
        ("---", "---", *(":-:" for _ in ROLES)),
        *(
            (
                f"`{operation.method} {operation.path}`",
                operation.scope,
                *("yes" if role_suffices(role, operation.role) else "" for role in ROLES),
            )
            for operation in sorted(operations, key=lambda operation: (operation.path, operation.method))
        ),
    ]
    return _HEAD + "".join("|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|\n" for row in rows)
