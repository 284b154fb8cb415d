"""The version: of a release that of its tag, and of any other source that of its commit (PEP 440).

hatchling reads it from here when it builds, so this needs nothing but the standard library.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

_FIRST = "0.1.0"  # what is worked on as long as nothing has been released
_ROOT = Path(__file__).parents[2]
# `git describe --long`: the last tag, the commits since then, the commit, and whether its files were changed.
_DESCRIBED = re.compile(
    r"(?:v(?P<tag>[0-9.]+(?:(?:a|b|rc)[0-9]+)?)-(?P<since>[0-9]+)-g)?(?P<commit>[0-9a-f]+)(?P<changed>-dirty)?"
)


@cache
def current() -> str:
    """The version of the program that runs: of its source where that is a checkout, else of what is installed."""
    from importlib.metadata import version  # noqa: PLC0415 - few commands need it, and it takes a while

    return of_source(_ROOT) or version("normata")


def to_build() -> str:
    """The version of what is built from this source. Without git and without a release, it is unknown."""
    return of_source(_ROOT) or f"{_FIRST}.dev0+unknown"


def of_source(root: Path) -> str | None:
    """The version of a source: a checkout, or one that was unpacked from a release; null if it is neither."""
    if (root / ".git").exists():
        return _of_commit(root)
    try:
        found = re.search(r"^Version: (\S+)$", (root / "PKG-INFO").read_text("utf-8"), re.MULTILINE)
    except OSError:
        return None
    return found and found[1]


def _of_commit(root: Path) -> str | None:
    """``0.1.0`` of a commit with the tag ``v0.1.0``, and of one after it ``0.1.1.dev3+5c0fd1e2a9b4``."""
    # Of the tree whoever runs this has chosen, it runs the code anyway.
    git = ("git", "-c", f"safe.directory={root}", "-C", str(root))
    describe = ("describe", "--always", "--long", "--tags", "--dirty", "--abbrev=12", "--match=v[0-9]*")
    try:
        found = _DESCRIBED.fullmatch(_output(*git, *describe))
        if found is None:
            return None
        tag, commits = found["tag"], found["since"]
        if tag is None:
            commits = _output(*git, "rev-list", "--count", "HEAD")
    except (OSError, subprocess.SubprocessError):  # there is no git, or nothing has been committed
        return None
    if tag is not None and commits == "0" and not found["changed"]:
        return tag
    following = _FIRST if tag is None else re.sub(r"[0-9]+$", lambda last: str(int(last[0]) + 1), tag)
    return f"{following}.dev{commits}+{found['commit']}{'.changed' if found['changed'] else ''}"


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=10).stdout.strip()  # noqa: S603
