"""The wordings that a control has had, and on which of them the organization's assessment was made."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Timestamp
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.coverage.assessments import read_assessments
from normata.coverage.staleness import is_made_on
from normata.frameworks.model import Control
from normata.frameworks.wording_model import ControlWording

MAX_EARLIER = 50


class EarlierWording(Wire):
    """A wording that a control had before an import replaced it."""

    identifier: str
    name: str
    description: str | None
    version: str | None = Field(description="The version of the framework then.")
    replaced_at: Timestamp = Field(description="When an import replaced it.")
    is_editorial: bool = Field(description="Whether that import was editorial: the next wording means the same.")
    is_assessed: bool = Field(
        description="Whether the organization's assessment was made, or confirmed last, on this wording."
    )


class ControlWordings(Wire):
    """The wording of a control, and those that it had."""

    id: str
    identifier: str
    name: str
    description: str | None
    is_stale: bool = Field(description="Whether the organization's assessment is stale because the wording changed.")
    earlier: list[EarlierWording] = Field(description=f"The {MAX_EARLIER} last wordings before, newest first.")


def control_wordings(transaction: Transaction, organization_id: str, control_id: str) -> dict[str, Any]:
    """The members of :class:`ControlWordings`, in three statements.

    Raises NotFound if no adopted framework has the control.
    """
    (assessment,) = read_assessments(transaction, organization_id, [control_id])
    made_at = assessment.assessed_at or assessment.created_at
    (control,) = transaction.rows(_CONTROL, {"control": control_id})
    return {
        **control._asdict(),
        "isStale": assessment.reworded_at is not None,
        "earlier": [
            {
                "identifier": row.identifier,
                "name": row.name,
                "description": row.description,
                "version": row.version,
                "replacedAt": row.replaced_at,
                "isEditorial": row.is_editorial,
                "isAssessed": assessment.assessment_id is not None
                and is_made_on(row.valid_from, row.replaced_at, made_at),
            }
            for row in transaction.rows(_EARLIER, {"control": control_id})
        ],
    }


_TABLE, _WORDING = sql_table(Control), sql_table(ControlWording)
_CONTROL = select(_TABLE.c.id, _TABLE.c.identifier, _TABLE.c.name, _TABLE.c.description).where(
    _TABLE.c.id == bindparam("control")
)
_EARLIER = (
    select(*_WORDING.c)
    .where(_WORDING.c.control_id == bindparam("control"))
    .order_by(_WORDING.c.replaced_at.desc(), _WORDING.c.id.desc())
    .limit(MAX_EARLIER)
)
