"""``python -m normata.cli.new_docs docs``: write the documents that are made from the operations."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from normata.operations import OPERATIONS
from normata.web import openapi, permissions


def documents() -> dict[str, str]:
    """What each of these documents has to say, by its name."""
    return {
        "openapi.json": json.dumps(openapi.document(OPERATIONS), indent=2, ensure_ascii=False) + "\n",
        "permissions.md": permissions.document(OPERATIONS),
    }


def write(folder: Path) -> None:
    """Write the documents into a folder."""
    for name, text in documents().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
