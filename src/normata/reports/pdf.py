"""Tables as a PDF, printed by Typst. It needs the extra ``pdf``, and no network and no fonts of the system.

The font is Typst's own. What it has no letters for, such as Chinese, is printed in a font of the system, if one has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from normata.core.schema.wire import encode
from normata.reports.tables import Sheet, shown

# Typst lays out a table as a whole, in about 0.24 MB a row: without a limit a catalog of 26,000 takes 6 GB.
MAX_ROWS = 2_500

_SOURCE = Path(__file__).with_name("tables.typ").read_bytes()


@cache
def is_installed() -> bool:
    """Whether the extra ``pdf`` is there."""
    return find_spec("typst") is not None


def objection(rows: int) -> str | None:
    """Why a document cannot have this many rows; null if it can."""
    if rows <= MAX_ROWS:
        return None
    return f"has at most {MAX_ROWS} rows as PDF, and this report has {rows}: choose another format"


def as_pdf(title: str, sheets: Sequence[Sheet], date: str) -> bytes:
    """A document of the sheets, made on a day. The same sheets of the same day give the same bytes."""
    content = {
        "title": title,
        "foot": sheets[0].foot,
        "sheets": [
            {
                "name": sheet.name,
                "head": [(label, shown(cell)) for label, cell in sheet.head],
                "titles": [column.title for column in sheet.columns],
                "widths": [column.width for column in sheet.columns],
                "rows": [[shown(cell) for cell in row] for row in sheet.rows],
            }
            for sheet in sheets
        ],
    }
    return compiled(_SOURCE, content, datetime.fromisoformat(date).replace(tzinfo=UTC))


def compiled(source: bytes, content: Mapping[str, Any], moment: datetime) -> bytes:
    """The document that a source of Typst makes of its ``content``, said to be made at a moment."""
    typst, fonts = _typst()
    made: bytes = typst.Compiler(source, font_paths=fonts).compile(
        format="pdf", sys_inputs={"content": encode(content).decode()}, timestamp=moment
    )
    return made


@cache
def _typst() -> tuple[Any, Any]:
    """Typst, which is imported when the first document is made, and the fonts that it has found."""
    typst: Any = import_module("typst")
    return typst, typst.Fonts()
