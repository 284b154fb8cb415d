"""The matches that give controls their status."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field
from sqlalchemy import BindParameter, and_, bindparam, literal, or_, select
from sqlalchemy.orm import aliased

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.fields import CoverageStatus, MatchLevel
from normata.core.schema.wire import Wire
from normata.frameworks.control_wire import MatchedControl
from normata.frameworks.counting import match_counts
from normata.frameworks.model import Control, ControlMatch, EffectiveCoverage, Framework


class CoveringMatch(Wire):
    """A match that gives a control the status that it has."""

    id: str
    match_level: MatchLevel
    matched_control: MatchedControl
    effective_coverage_status: CoverageStatus = Field(description="How far the source of the match is covered.")


def covering_matches(
    transaction: Transaction, organization_id: str, ids: Sequence[str]
) -> Mapping[str, list[dict[str, Any]]]:
    """The members of :class:`CoveringMatch` of each of the controls, in the frameworks' order."""
    covering: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for batch in batches(ids):
        for row in transaction.rows(_COVERING, {"organization": organization_id, "ids": batch}):
            framework = {
                "id": row.framework_id,
                "name": row.framework_name,
                "identifier": row.framework_identifier,
                "identifierColor": row.identifier_color,
            }
            matched = {name: getattr(row, name) for name in ("id", "identifier", "name", "slug")}
            covering[row.target_id].append(
                {
                    "id": row.match_id,
                    "matchLevel": row.match_level,
                    "matchedControl": matched | {"framework": framework},
                    "effectiveCoverageStatus": row.status,
                }
            )
    return covering


_source, _target = aliased(EffectiveCoverage, name="of_source"), aliased(EffectiveCoverage, name="of_target")
_back = aliased(ControlMatch, name="back")
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_is_before = _source.rank < _target.rank
_lies_within = (
    select(literal(1))
    .where(
        _back.source_control_id == ControlMatch.target_control_id,
        _back.target_control_id == ControlMatch.source_control_id,
        _back.match_level == "FULL",
        match_counts(_ORGANIZATION, _back),
    )
    .exists()
)
# By the rules of coverage (engine.py): at the same level, a source has a lower rank than what it covers.
_COVERING = (
    select(
        _target.control_id.label("target_id"),
        ControlMatch.id.label("match_id"),
        ControlMatch.match_level,
        Control.id,
        Control.identifier,
        Control.name,
        Control.slug,
        Framework.id.label("framework_id"),
        Framework.name.label("framework_name"),
        Framework.identifier.label("framework_identifier"),
        Framework.identifier_color,
        _source.status,
    )
    .select_from(_target)
    .join(ControlMatch, ControlMatch.target_control_id == _target.control_id)
    .join(
        _source,
        and_(
            _source.control_id == ControlMatch.source_control_id,
            _source.organization_id == _ORGANIZATION,
            _source.status != "NONE",
        ),
    )
    .join(Control, Control.id == ControlMatch.source_control_id)
    .join(Framework, Framework.id == Control.framework_id)
    .where(
        _target.organization_id == _ORGANIZATION,
        _target.control_id.in_(bindparam("ids", expanding=True)),
        match_counts(_ORGANIZATION),
        or_(
            and_(_target.status == "FULL", ControlMatch.match_level == "FULL", _source.status == "FULL", _is_before),
            and_(_target.status == "PARTIAL", or_(_source.status == "FULL", and_(_is_before, _lies_within))),
        ),
    )
    .order_by(Framework.identifier_key, Control.position, ControlMatch.id)
)
