"""Rows of the histories of catalogs, which have none until a catalog changes."""

from __future__ import annotations

from collections.abc import Iterator

from normata.core.schema.history_triggers import BEGINNING
from normata.core.schema.table import sql_table
from normata.history.model import BaselineControlHistory, ControlHistory, FrameworkHistory, MatchHistory

_UNTIL = "2020-01-01T00:00:00.000Z"


def fill() -> Iterator[str]:
    """SQL that notes each row of a catalog as having been changed long ago."""
    for history in (ControlHistory, MatchHistory, BaselineControlHistory, FrameworkHistory):
        name = sql_table(history).name
        columns = [
            f'"{column.name}"'
            for column in sql_table(history).c
            if column.name not in ("was_absent", "valid_from", "valid_to")
        ]
        names = ", ".join(columns)
        yield (
            f"INSERT INTO {name} ({names}, was_absent, valid_from, valid_to)"
            f" SELECT {names}, false, '{BEGINNING}', '{_UNTIL}' FROM {name.removesuffix('_history')} AS c"
            f" WHERE NOT EXISTS (SELECT 1 FROM {name} AS h WHERE h.id = c.id)"
        )
