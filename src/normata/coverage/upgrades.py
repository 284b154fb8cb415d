"""Changes of coverage by upgrades of the schema, recorded for each control."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.transaction import Transaction
from normata.core.db.types import text
from normata.core.schema.fields import Identifier, ShortName, Timestamp
from normata.core.schema.table import CODED, Table, foreign_key, sql_table
from normata.coverage.upgrading import EXCLUDED_ABOVE, FOLLOWS, GROUP_ROLL_UP, OWN_REQUIREMENT
from normata.frameworks.model import Control, Framework

# How each rule explains a changed control.
RULES = {
    EXCLUDED_ABOVE: "it is below a group that was excluded, and no longer applies either",
    FOLLOWS: "it follows from other controls, whose status has changed",
    GROUP_ROLL_UP: "a category, or a control that is decomposed, is rolled up from the requirements below it",
    OWN_REQUIREMENT: "it states a requirement of its own, and gets nothing from its children",
    "NOT_ASSESSED": "a status NONE without a gap, beside reasons, a justification or an exclusion, is now not assessed",
}


class UpgradeChange(Table):
    """A change of a control's assessment or coverage by an upgrade, with the rule.

    The statuses are null if there is none.
    """

    __tablename__ = "upgrade_change"
    published = False  # nobody has made this change

    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"), primary_key=True)
    control_id: Mapped[Identifier] = mapped_column(primary_key=True)
    rule: Mapped[ShortName] = mapped_column(text(64), primary_key=True, info=CODED)
    status_before: Mapped[ShortName | None] = mapped_column(text(64), info=CODED)
    status_after: Mapped[ShortName | None] = mapped_column(text(64), info=CODED)
    changed_at: Mapped[Timestamp]


class ReportedChange(NamedTuple):
    """A line of the report."""

    organization: str
    framework: str
    control: str
    rule: str
    before: str
    after: str


def reported_changes(transaction: Transaction) -> Iterator[ReportedChange]:
    """The changes by upgrades, by organization and in catalog order."""
    for row in transaction.rows(_CHANGES):
        yield ReportedChange(
            row.organization_id,
            row.framework or "",
            row.identifier or row.control_id,
            row.rule,
            row.status_before or "not assessed",
            row.status_after or "not assessed",
        )


_CHANGE, _CONTROL, _FRAMEWORK = sql_table(UpgradeChange), sql_table(Control), sql_table(Framework)
_CHANGES = (
    select(*_CHANGE.c, _CONTROL.c.identifier, _FRAMEWORK.c.identifier.label("framework"))
    .outerjoin(_CONTROL, _CONTROL.c.id == _CHANGE.c.control_id)
    .outerjoin(_FRAMEWORK, _FRAMEWORK.c.id == _CONTROL.c.framework_id)
    .order_by(
        _CHANGE.c.organization_id,
        _FRAMEWORK.c.identifier_key,
        _CONTROL.c.framework_id,
        _CONTROL.c.position,
        _CHANGE.c.control_id,
        _CHANGE.c.rule,
    )
)
