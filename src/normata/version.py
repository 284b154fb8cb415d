"""The version: of a release, its tag; of any other source, its commit (PEP 440).

hatchling reads it during a build, so this module needs only the standard library.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

_FIRST = "0.1.0"  # the version in development before the first release
_ROOT = Path(__file__).parents[2]
# The output of `git describe --long`: the last tag, commits since then, the commit, and whether files were changed.
_DESCRIBED = re.compile(
    r"(?:v(?P<tag>[0-9.]+(?:(?:a|b|rc)[0-9]+)?)-(?P<since>[0-9]+)-g)?(?P<commit>[0-9a-f]+)(?P<changed>-dirty)?"
)


@cache
def current() -> str:
    """The version of the running program: that of its source in a checkout, else of the installed package."""
    from importlib.metadata import version  # noqa: PLC0415 - few commands need it, and it is slow to import

    return of_source(_ROOT) or version("normata")


def to_build() -> str:
    """The version for a build from this source; ``0.1.0.dev0+unknown`` without git and without a release."""
    return of_source(_ROOT) or f"{_FIRST}.dev0+unknown"


def of_source(root: Path) -> str | None:
    """The version of a source, which is a checkout or an unpacked release; null if it is neither."""
    if (root / ".git").exists():
        return _of_commit(root)
    try:
        found = re.search(r"^Version: (\S+)$", (root / "PKG-INFO").read_text("utf-8"), re.MULTILINE)
    except OSError:
        return None
    return found and found[1]


def _of_commit(root: Path) -> str | None:
    """The version of a commit: ``0.1.0`` with the tag ``v0.1.0``, or ``0.1.1.dev3+5c0fd1e2a9b4`` three commits on."""
    # Let git trust the owner of this folder: whoever runs this runs the folder's code anyway.
    git = ("git", "-c", f"safe.directory={root}", "-C", str(root))
    describe = ("describe", "--always", "--long", "--tags", "--dirty", "--abbrev=12", "--match=v[0-9]*")
    try:
        found = _DESCRIBED.fullmatch(_output(*git, *describe))
        if found is None:
            return None
        tag, commits = found["tag"], found["since"]
        if tag is None:
            commits = _output(*git, "rev-list", "--count", "HEAD")
    except (OSError, subprocess.SubprocessError):  # no git, or no commit yet
        return None
    if tag is not None and commits == "0" and not found["changed"]:
        return tag
    following = _FIRST if tag is None else re.sub(r"[0-9]+$", lambda last: str(int(last[0]) + 1), tag)
    return f"{following}.dev{commits}+{found['commit']}{'.changed' if found['changed'] else ''}"


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=10).stdout.strip()  # noqa: S603
