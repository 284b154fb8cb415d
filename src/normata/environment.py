"""Where settings come from: environment variables, and files that they name for secrets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic_settings import EnvSettingsSource
from typing_extensions import override

from normata.errors import BadSetting

# Settings that may contain a secret. A file can contain it as well: `NORMATA_<name>_FILE` is its path.
SECRETS = ("database_url", "smtp_url", "oidc_client_secret")
_LARGEST_SECRET = 65_536  # bytes


class Environment(EnvSettingsSource):
    """Environment variables, and the files that ``…_FILE`` variables name."""

    @override
    def __call__(self) -> dict[str, Any]:
        values = super().__call__()
        for name in self.settings_cls.model_fields:
            variable = f"NORMATA_{name.upper()}"
            path = self.env_vars.get(f"{variable.lower()}_file")
            if not path:
                continue
            if name not in SECRETS:
                allowed = ", ".join(f"NORMATA_{name.upper()}" for name in SECRETS)
                raise BadSetting(f"{variable}_FILE is no setting: only {allowed} can be in files")
            if name in values:
                raise BadSetting(f"{variable} and {variable}_FILE are both set: remove one of them")
            values[name] = _secret(f"{variable}_FILE", Path(path))
        return values


def _secret(variable: str, path: Path) -> str:
    """The content of a file, without the line end. Raises BadSetting, whose message does not contain the secret."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_SECRET + 1)
        value = content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise BadSetting(f"{variable}: {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadSetting(f"{variable}: {path} is not in UTF-8") from None
    if not value or len(content) > _LARGEST_SECRET or re.search(r"[\r\n\0]", value):
        raise BadSetting(f"{variable}: {path} must have one line, and nothing else")
    return value
