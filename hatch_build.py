"""Puts into the wheel what takes seconds to make, so that no start has to: documentation, and compiled templates."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackageFilesHook(BuildHookInterface[Any]):
    """Adds the files of :mod:`normata.cli.package_files` to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files, from the source that the wheel is built from; an editable installation has none."""
        if version == "editable":
            return
        self._folder = TemporaryDirectory(prefix="normata-wheel-")
        subprocess.run(  # noqa: S603 - a module of ours
            [sys.executable, "-B", "-P", "-m", "normata.cli.package_files", self._folder.name],
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(self.root, "src")), *sys.path])},
            check=True,
        )
        folder = Path(self._folder.name)
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            build_data["force_include"][str(file)] = f"normata/{file.relative_to(folder).as_posix()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel by now."""
        del build_data, artifact_path
        if version != "editable":
            self._folder.cleanup()
