"""Since when the coverage of organizations has followed the rules of this version."""

from __future__ import annotations

from sqlalchemy import bindparam, update

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.types import UtcTimestamp
from normata.core.schema.table import sql_table
from normata.coverage.recompute import recompute_all
from normata.history.model import HistoryStart


def compute_by_new_rules(unit: UnitOfWork) -> None:
    """Compute all coverage after an upgrade, and note that what was stored before may have followed other rules."""
    recompute_all(unit)
    unit.rows(_NOTE, {"moment": unit.moment})


_NOTE = update(sql_table(HistoryStart)).values(rules_since=bindparam("moment", type_=UtcTimestamp()))
