"""The table of permissions is what the operations declare; tests/test_docs.py compares it with the committed one."""

from __future__ import annotations

from normata.identity.roles import ROLES, role_suffices
from normata.operations import OPERATIONS
from normata.web.operation import Operation
from normata.web.permissions import document
from tests.web.samples import operations


@operations()
def test_every_operation_has_its_row(operation: Operation) -> None:
    place = f"`{operation.method} {operation.path}`"
    (row,) = (line for line in document(OPERATIONS).splitlines() if f" {place} " in line)
    _, scope, *allowed = (cell.strip() for cell in row.strip("|").split("|"))
    assert scope == operation.scope
    assert [bool(cell) for cell in allowed] == [role_suffices(role, operation.role) for role in ROLES]


def test_there_is_no_row_of_anything_else() -> None:
    rows = [line for line in document(OPERATIONS).splitlines() if line.startswith("| `")]
    assert len(rows) == len(OPERATIONS)
