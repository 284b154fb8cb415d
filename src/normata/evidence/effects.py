"""What a dry run says of evidence: the assessments that become stale because the last piece of it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import and_, bindparam, or_, select

from normata.core.changes.unit_of_work import Change, Shown, UnitOfWork
from normata.core.db.transaction import batches
from normata.core.db.types import UtcTimestamp, passes_at
from normata.core.schema.table import sql_table
from normata.coverage.staleness import is_unsupported
from normata.evidence.following import concerned, controls_of
from normata.frameworks.evidence_model import ControlEvidence
from normata.frameworks.model import ControlCoverage
from normata.records.assurance import Evidence


def unsupported_by(unit: UnitOfWork, shown: Shown) -> list[tuple[str, str]]:
    """The assessments, by organization and control, that the changes of a unit of work make stale by ending evidence.

    It is called once everything is written. What was stale before is left out: of that, evidence had ended earlier.
    """
    published = [change for change in unit.published if shown is None or change.organization_id in shown]
    controls, pieces = concerned(published)
    found = []
    for organization_id in sorted({*controls, *pieces}):
        expired = controls_of(unit, organization_id, _expired(published, organization_id, unit.moment))
        every = controls[organization_id] | controls_of(unit, organization_id, pieces[organization_id])
        for batch in batches(sorted(every)):
            parameters = {
                "organization": organization_id,
                "ids": batch,
                "expired": sorted(expired.intersection(batch)),
                "moment": unit.moment,
            }
            found += [(organization_id, control) for control in unit.scalars(_UNSUPPORTED, parameters)]
    return found


def _expired(changes: Sequence[Change], organization_id: str, moment: str) -> list[str]:
    """The pieces of evidence that a change has given an end in the past, and that were valid until then."""
    return [
        change.row["id"]
        for change in changes
        if change.table is Evidence
        and change.organization_id == organization_id
        and change.row is not None
        and change.before is not None
        and _is_valid(change.before, moment)
        and not _is_valid(change.row, moment)
    ]


def _is_valid(piece: Mapping[str, Any], moment: str) -> bool:
    until = piece["valid_until"]
    return piece["archived_at"] is None and (until is None or passes_at(until) > moment)


_ASSESSMENT, _EVIDENCE = sql_table(ControlCoverage), sql_table(ControlEvidence)
_MOMENT = bindparam("moment", type_=UtcTimestamp())
_UNSUPPORTED = (
    select(_ASSESSMENT.c.control_id)
    .join(
        _EVIDENCE,
        and_(
            _EVIDENCE.c.organization_id == _ASSESSMENT.c.organization_id,
            _EVIDENCE.c.control_id == _ASSESSMENT.c.control_id,
        ),
    )
    .where(
        _ASSESSMENT.c.organization_id == bindparam("organization"),
        _ASSESSMENT.c.control_id.in_(bindparam("ids", expanding=True)),
        is_unsupported(_MOMENT),
        # What has ended at this moment has ended by these changes.
        or_(_EVIDENCE.c.ends_at == _MOMENT, _EVIDENCE.c.control_id.in_(bindparam("expired", expanding=True))),
    )
)
