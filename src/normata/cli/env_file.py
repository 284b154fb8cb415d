"""The file of settings that the service and the commands share: lines ``NAME=value``, as systemd and podman read them.

Only lines that both read in the same way are accepted, so that commands and the service have the same values.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from normata.errors import BadSetting

DEFAULT = Path("/etc/normata/normata.env")
VARIABLE = "NORMATA_ENV_FILE"

_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")
_QUOTES = ("'", '"')


def load(path: Path | None = None) -> None:
    """Set the variables of a file in the environment, except for those that are set already.

    Without a ``path`` it is the file that ``NORMATA_ENV_FILE`` names (empty for none), else :data:`DEFAULT` where it
    exists. Raises BadSetting.
    """
    named = os.environ.get(VARIABLE)
    if path is None and named is not None:
        path = Path(named) if named else None
    elif path is None and os.path.lexists(DEFAULT):
        path = DEFAULT
    if path is None:
        return
    before = set(os.environ)
    for name, value in _values(path).items():
        # A secret may also come from a file. Setting both would be a contradiction.
        other = name.removesuffix("_FILE") if name.endswith("_FILE") else f"{name}_FILE"
        if name not in before and not (name.startswith("NORMATA_") and other in before):
            os.environ[name] = value


def _values(path: Path) -> dict[str, str]:
    """The variables of a file; the last one if a name is repeated. Raises BadSetting."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        hint = f"; run this as the user of the service, or set {VARIABLE} to nothing" if path == DEFAULT else ""
        raise BadSetting(f"the settings in {path} cannot be read: {error.strerror or error}{hint}") from None
    except UnicodeDecodeError:
        raise BadSetting(f"the settings in {path} cannot be read: they are not in UTF-8") from None
    values = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", ";")):
            continue
        found = _LINE.fullmatch(stripped)
        if found is None:
            raise BadSetting(f"{path}, line {number}: it must be NAME=value")
        name, value = found.groups()
        fault = _fault(value := value.strip())
        if fault:
            raise BadSetting(f"{path}, line {number}: the value of {name} {fault}")
        values[name] = value[1:-1] if value.startswith(_QUOTES) else value
    return values


def _fault(value: str) -> str | None:
    """The fault of a value, without the value, which may be a secret."""
    if "\\" in value or "\0" in value:
        return "must not have a backslash, which systemd takes for an escape, or a null character"
    if value.startswith(_QUOTES) and (len(value) < 2 or value.find(value[0], 1) != len(value) - 1):
        return "must be in one pair of quotes as a whole, or in none"
    return None
