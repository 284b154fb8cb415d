"""Where settings come from: environment variables, and files that they name for secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic_settings import EnvSettingsSource
from typing_extensions import override

from normata.errors import BadSetting
from normata.secret_files import read_secret

# Settings that may contain a secret. A file can contain it as well: `NORMATA_<name>_FILE` is its path.
SECRETS = ("database_url", "smtp_url", "oidc_client_secret")


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
            values[name] = read_secret(f"{variable}_FILE", Path(path))
        return values
