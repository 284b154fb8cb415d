"""How joins with what is below a group are written, so that each database looks into an index."""

from __future__ import annotations

import pytest
from sqlalchemy import and_, select
from sqlalchemy.engine import make_url

from normata.core.schema.table import sql_table
from normata.coverage.hierarchy import IsIdOf, below_groups
from normata.frameworks.model import Control


@pytest.mark.parametrize(
    ("dialect", "condition"),
    [
        ("sqlite", "control.id = below.id AND control.is_decomposed"),
        ("postgresql", "control.id = ANY (ARRAY[below.id]) AND control.is_decomposed"),
    ],
)
def test_a_join_with_what_is_below_can_use_an_index(dialect: str, condition: str) -> None:
    """A comparison of the condition with true could not: ``control.id = below.id = 1``."""
    control, below = sql_table(Control), below_groups()
    joined = select(control.c.id).join(below, and_(IsIdOf(control.c.id, below.c.id), control.c.is_decomposed))
    assert condition in str(joined.compile(dialect=make_url(f"{dialect}://").get_dialect()()))
