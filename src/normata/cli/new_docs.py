"""``python -m normata.cli.new_docs docs``: generate the documents from the operations.

With ``--package`` before the folder: write the files of the documentation that the wheel has, see ``hatch_build.py``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from normata.core.http import documentation, openapi, openapi_types, permissions
from normata.operations import OPERATIONS


@cache
def _document() -> dict[str, Any]:
    return openapi.document(OPERATIONS)


def _openapi() -> str:
    return json.dumps(_document(), indent=2, ensure_ascii=False) + "\n"


def _api_surface() -> str:
    return openapi_types.surface(_document())


def _permissions() -> str:
    return permissions.document(OPERATIONS)


# The functions that generate the committed documents, by file name.
COMMITTED: Mapping[str, Callable[[], str]] = {"api-surface.txt": _api_surface, "permissions.md": _permissions}
DOCUMENTS: Mapping[str, Callable[[], str]] = {"openapi.json": _openapi, **COMMITTED}


def write(folder: Path) -> None:
    """Write the documents into a folder."""
    for name, made in DOCUMENTS.items():
        (folder / name).write_text(made(), encoding="utf-8")


def write_package_files(folder: Path) -> None:
    """Write what the wheel has into a folder."""
    for name, content in documentation.files(_document()).items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    if sys.argv[1] == "--package":
        write_package_files(Path(sys.argv[2]))
    else:
        write(Path(sys.argv[1]))
