"""Puts the documentation of the interface into the wheel: it takes a second to make, which no start has to spend."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DocumentationHook(BuildHookInterface[Any]):
    """Adds the files of :mod:`normata.core.http.documentation` to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files, from the source that the wheel is built from; an editable installation has none."""
        if version == "editable":
            return
        self._folder = TemporaryDirectory(prefix="normata-docs-")
        subprocess.run(  # noqa: S603 - a module of ours
            [sys.executable, "-B", "-P", "-m", "normata.cli.new_docs", "--package", self._folder.name],
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(self.root, "src")), *sys.path])},
            check=True,
        )
        for file in sorted(Path(self._folder.name).iterdir()):
            build_data["force_include"][str(file)] = f"normata/{file.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel by now."""
        del build_data, artifact_path
        if version != "editable":
            self._folder.cleanup()
