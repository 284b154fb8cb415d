"""``python -m normata.cli.package_files FOLDER``: write what a wheel has beside the source, see ``hatch_build.py``."""

from __future__ import annotations

import sys
from pathlib import Path

from normata.cli import new_docs
from normata.console.pages import COMPILED, compile_templates


def write(folder: Path) -> None:
    """Write the documentation of the interface and the compiled templates into a folder, as the package has them."""
    new_docs.write_package_files(folder)
    compile_templates(folder / "console" / COMPILED.name)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
