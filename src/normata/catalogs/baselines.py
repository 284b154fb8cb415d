"""The rows of baselines, and the controls that a newer version of a baseline does not select any more."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from sqlalchemy import bindparam, select

from normata.catalogs.shortening import LONGEST_NAME, LONGEST_SHORT_TEXT, one_line
from normata.core.changes.source import Row
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.frameworks.baseline_model import BaselineControl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# Never change this: ids of baselines follow from it, so that a later import finds them again.
_BASELINES = UUID("c1a8f1f6-0c3e-5c1b-9b53-2d1f6f0a7e42")


def baseline_rows(
    file: str,
    place: str,
    values: Mapping[str, str | int | None],
    controls: Iterable[str],
    origin: Mapping[str, str],
) -> Iterator[Row]:
    """The rows of a baseline, and of the controls that it selects, by their ids.

    ``values`` has id, frameworkId, identifier, name, version, description and position.
    """
    identifier = one_line(str(values["identifier"]), LONGEST_SHORT_TEXT)
    name = one_line(str(values["name"] or identifier), LONGEST_NAME)
    yield Row("baselines", file, place, {**values, "identifier": identifier, "name": name}, origin)
    for control in dict.fromkeys(controls):
        selected = {
            "id": str(uuid5(_BASELINES, json.dumps([values["id"], control]))),
            "baselineId": values["id"],
            "controlId": control,
            "retiredAt": None,
        }
        yield Row("baselineControls", file, place, selected)


def retired_selections(transaction: Transaction, rows: Sequence[Row], moment: str) -> list[Row]:
    """The rows of controls that earlier versions of an import's baselines have selected, and these do not."""
    baselines = {row.values["id"]: row for row in rows if row.array == "baselines"}
    selected: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.array == "baselineControls":
            selected[row.values["baselineId"]].add(row.values["id"])
    retired = []
    for batch in batches(sorted(baselines)):
        for one in transaction.rows(_LIVE, {"ids": batch}):
            if one.id not in selected[one.baseline_id]:
                baseline = baselines[one.baseline_id]
                values = {"id": one.id, "retiredAt": moment}
                retired.append(Row("baselineControls", baseline.file, baseline.place, values))
    return retired


_MEMBER = sql_table(BaselineControl)
_LIVE = (
    select(_MEMBER.c.id, _MEMBER.c.baseline_id)
    .where(_MEMBER.c.baseline_id.in_(bindparam("ids", expanding=True)), _MEMBER.c.retired_at.is_(None))
    .order_by(_MEMBER.c.baseline_id, _MEMBER.c.id)
)
