"""Questionnaires of an organization, and the one of the service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, func, select

from normata.core.changes.source import Row
from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of, update_of
from normata.core.changes.writing import BODY, valid_rows, write_one
from normata.core.db.transaction import Transaction
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.wire import as_wire
from normata.errors import NotFound, WrongState
from normata.identity.organization_lookup import reached
from normata.records.assurance import VendorAssessment
from normata.vendors.model import Questionnaire
from normata.vendors.questions import EDITION, NAME, standard
from normata.vendors.rules import DRAFT

CREATION_WRITES = (insert_of(Questionnaire),)
CHANGE_WRITES = (update_of(Questionnaire, "name", "parts", "updated_at"),)
REMOVAL_WRITES = (delete_of(Questionnaire),)

IN_USE, UNUSED = "IN_USE", "UNUSED"


def list_questionnaires(transaction: Transaction, query: PageQuery) -> dict[str, Any]:
    """A page of the questionnaires of an organization, by name, each with how many assessments have it."""
    statement = select(*_TABLE.c).where(_TABLE.c.organization_id == query.organization_id)
    found = fetch_page(transaction, statement, [_TABLE.c.name.asc(), _TABLE.c.id.asc()], query)
    return envelope(with_uses(transaction, query.organization_id, found.rows), found, query)


def with_uses(transaction: Transaction, organization_id: str, rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Questionnaires of an organization in wire form, each with how many assessments have it."""
    key = {"organization": organization_id, "questionnaires": [row.id for row in rows]}
    uses: dict[str, Any] = {row.questionnaire_id: row for row in transaction.rows(_USES, key)} if rows else {}
    return [as_wire(Questionnaire, row) | _use(uses.get(row.id)) for row in rows]


def _use(row: Any) -> dict[str, Any]:
    return {"assessments": getattr(row, "assessments", 0), "isFixed": bool(getattr(row, "fixed", 0))}


def one_questionnaire(transaction: Transaction, organization_id: str, questionnaire_id: str) -> dict[str, Any]:
    """A questionnaire of an organization, in wire form and with its uses. Raises NotFound."""
    row = transaction.row(_ONE, {"questionnaire": questionnaire_id})
    if row is None or row.organization_id != organization_id:
        raise NotFound
    [found] = with_uses(transaction, organization_id, [row])
    return found


def create(
    unit: UnitOfWork,
    organization: str,
    name: str,
    parts: Sequence[Mapping[str, Any]] | None,
    *,
    row_id: str | None = None,
) -> Any:
    """Create a questionnaire, and return its row. Without ``parts`` it begins as that of the service.

    Its id is new, or ``row_id``, which must be free. Raises NotFound, InsufficientRole and FaultyInput.
    """
    content = standard() if parts is None else parts
    values = {"id": row_id or new_id(), "organizationId": reached(unit, organization), "name": name, "parts": content}
    return _store(unit, "create", values)


def change(
    unit: UnitOfWork, questionnaire_id: str, values: Mapping[str, Any], *, require_current: Callable[[Any], None]
) -> Any:
    """Change the name or the parts of a questionnaire that no assessment was sent with, and return its row.

    ``require_current`` gets the row before, and raises if that is not the state that the caller knows. Raises NotFound,
    InsufficientRole, WrongState and FaultyInput.
    """
    before = locked(unit, questionnaire_id)
    if unit.row(_IN_USE, {"organization": before.organization_id, "questionnaire": before.id}) is not None:
        raise WrongState(IN_USE, (UNUSED,), "An assessment was sent with it; make another questionnaire.")
    require_current(before)
    return _store(unit, "update", {**values, "id": questionnaire_id}, before)


def remove(unit: UnitOfWork, questionnaire_id: str) -> None:
    """Remove a questionnaire that no assessment has, not even a draft or an archived one.

    Raises NotFound, InsufficientRole and WrongState.
    """
    before = locked(unit, questionnaire_id)
    if unit.row(_NAMED, {"organization": before.organization_id, "questionnaire": before.id}) is not None:
        raise WrongState(IN_USE, (UNUSED,), "An assessment has it.")
    unit.rows(_DELETE, {"questionnaire": before.id})
    unit.publish(Change("delete", Questionnaire, before.organization_id, before.id, before=before._asdict()))


def locked(unit: UnitOfWork, questionnaire_id: str) -> Any:
    """The row of a questionnaire, locked until the transaction ends. Raises NotFound and InsufficientRole."""
    row = unit.row(_LOCK, {"questionnaire": questionnaire_id})
    if row is None:
        # With row-level security, nobody can lock a row that they may only read.
        row = unit.row(_ONE, {"questionnaire": questionnaire_id})
        if row is None:
            raise NotFound
    unit.require_reach(row.organization_id)
    return row


def of_service(unit: UnitOfWork, organization_id: str) -> Any:
    """The row of the service's questionnaire in an organization, which gets it with its first assessment."""
    found = unit.row(_OF_SERVICE, {"organization": organization_id, "edition": EDITION})
    if found is not None:
        return found
    values = {"id": new_id(), "organizationId": organization_id, "name": NAME, "edition": EDITION}
    return _store(unit, "create", {**values, "parts": standard()})


def _store(unit: UnitOfWork, action: str, values: Mapping[str, Any], before: Any = None) -> Any:
    row = Row(Questionnaire.array, BODY, "", dict(values))
    [pending] = valid_rows(unit, Questionnaire, [row], are_new=before is None)
    if not pending.changed:
        return before
    written = write_one(unit, Questionnaire, pending)
    known = None if before is None else before._asdict()
    unit.publish(Change(action, Questionnaire, written.organization_id, written.id, written._asdict(), known))
    return written


_TABLE, _ASSESSMENT = sql_table(Questionnaire), VendorAssessment.sql()
_ONE = select(*_TABLE.c).where(_TABLE.c.id == bindparam("questionnaire"))
_LOCK = _ONE.with_for_update(key_share=True)
_OF_SERVICE = select(*_TABLE.c).where(
    _TABLE.c.organization_id == bindparam("organization"), _TABLE.c.edition == bindparam("edition")
)
_NAMED = (
    select(_ASSESSMENT.c.id)
    .where(
        _ASSESSMENT.c.organization_id == bindparam("organization"),
        _ASSESSMENT.c.questionnaire_id == bindparam("questionnaire"),
    )
    .limit(1)
)
_IN_USE = _NAMED.where(_ASSESSMENT.c.status != DRAFT)
_USES = (
    select(
        _ASSESSMENT.c.questionnaire_id,
        func.count().label("assessments"),
        func.count().filter(_ASSESSMENT.c.status != DRAFT).label("fixed"),
    )
    .where(
        _ASSESSMENT.c.organization_id == bindparam("organization"),
        _ASSESSMENT.c.questionnaire_id.in_(bindparam("questionnaires", expanding=True)),
    )
    .group_by(_ASSESSMENT.c.questionnaire_id)
)
_DELETE = delete(_TABLE).where(_TABLE.c.id == bindparam("questionnaire"))
