"""Runs the tests of what was changed, or of one feature, on SQLite: for the minute between two edits.

    python -m tests.fast [FEATURE…]

A feature is a folder below ``src/normata``, such as ``coverage`` or ``core/changes``. Without one, what was changed
since the last commit decides, and where nothing was, the last commit. A changed module chooses the tests of its folder
and those that import it; of ``core/http``, which every feature goes through, those that bear its name.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = Path("src/normata"), Path("tests")
ALWAYS = (TESTS / "test_structure.py", TESTS / "test_glossary.py")
# These need more than a minute, or more than Python: a browser, a cluster.
NEVER = tuple(TESTS / name for name in ("browser", "clients", "failover", "patroni", "wheel", "postgresql"))
WHOLE = TESTS / "core" / "http"  # too many for a minute


def main(features: list[str]) -> int:
    changed = [SOURCE / feature for feature in features] or list(changed_files())
    chosen = sorted({*ALWAYS, *(test for path in changed for test in tests_of(path))})
    print(f"tests of {', '.join(map(str, changed)) or 'nothing'}:", *chosen, sep="\n  ")  # noqa: T201 - a program
    return int(pytest.main(["-k", "not postgresql", "-m", "not long", "-n", "auto", *map(str, chosen)]))


def changed_files() -> Iterator[Path]:
    """The files that differ from the last commit, or else those of the last commit."""
    named = lines("git", "diff", "--name-only", "HEAD") + lines("git", "ls-files", "--others", "--exclude-standard")
    yield from map(Path, named or lines("git", "diff", "--name-only", "HEAD~1", "HEAD"))


def tests_of(path: Path) -> Iterable[Path]:
    """The files and folders with the tests of a changed file, or of a feature's folder."""
    if path.is_relative_to(TESTS):
        is_test = path.name.startswith("test_") and path.exists() and not is_below(path, NEVER)
        return [path] if is_test else []
    if not path.is_relative_to(SOURCE):
        return [TESTS / "test_docs.py"] if path.suffix == ".md" else []
    within = path.relative_to(SOURCE)
    folder = TESTS / (within if (ROOT / path).is_dir() else within.parent)
    while folder != TESTS and not (ROOT / folder).is_dir():
        folder = folder.parent
    found = set((ROOT / TESTS).rglob(f"test_*{within.stem}*.py")) | set(importers(within))
    if folder not in (TESTS, WHOLE):
        found.add(ROOT / folder)
    return [test.relative_to(ROOT) for test in found if not is_below(test.relative_to(ROOT), NEVER)]


def importers(module: Path) -> Iterator[Path]:
    """The test files that import a module of the source."""
    package, name = ".".join(("normata", *module.parent.parts)), module.stem
    for path in (ROOT / TESTS).rglob("test_*.py"):
        text = path.read_text("utf-8")
        if f"from {package}.{name} import" in text or f"from {package} import {name}\n" in text:
            yield path


def is_below(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a path is in one of the folders."""
    return any(path.is_relative_to(folder) for folder in folders)


def lines(*command: str) -> list[str]:
    """The lines that a command prints."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
