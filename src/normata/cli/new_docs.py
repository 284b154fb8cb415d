"""``python -m normata.cli.new_docs docs``: write the documents that are made from the operations."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from normata.core.http import openapi, permissions
from normata.operations import OPERATIONS


def _openapi() -> str:
    return json.dumps(openapi.document(OPERATIONS), indent=2, ensure_ascii=False) + "\n"


def _permissions() -> str:
    return permissions.document(OPERATIONS)


# What makes each of these documents, by its name.
DOCUMENTS: Mapping[str, Callable[[], str]] = {"openapi.json": _openapi, "permissions.md": _permissions}


def write(folder: Path) -> None:
    """Write the documents into a folder."""
    for name, made in DOCUMENTS.items():
        (folder / name).write_text(made(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
