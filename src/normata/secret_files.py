"""Files that have a secret in one line, for settings and for commands."""

from __future__ import annotations

import re
from pathlib import Path

from normata.errors import BadSetting

_LARGEST = 65_536  # bytes


def read_secret(variable: str, path: Path) -> str:
    """The content of the file that a variable names, without the line end.

    Raises BadSetting, whose message does not contain the secret.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        value = content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise BadSetting(f"{variable}: {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadSetting(f"{variable}: {path} is not in UTF-8") from None
    if not value or len(content) > _LARGEST or re.search(r"[\r\n\0]", value):
        raise BadSetting(f"{variable}: {path} must have one line, and nothing else")
    return value
