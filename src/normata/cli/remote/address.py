"""The address of a server, and the token for it, from options and the environment."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from normata.errors import BadSetting
from normata.loopback import is_loopback
from normata.secret_files import read_secret

TOKEN = "NORMATA_TOKEN"  # noqa: S105 - the name of the variable
INSECURE = "NORMATA_INSECURE_HTTP"

_VISIBLE = re.compile(r"[\x21-\x7e]+")
_ON = ("1", "true", "on", "yes")
_OFF = ("", "0", "false", "off", "no")


def base_of(address: str, *, is_option: bool) -> str:
    """The address of a server, without a slash at its end. Raises BadSetting.

    The message never repeats the address, which may contain a password.
    """
    source = "--server" if is_option else "NORMATA_SERVER"
    form = f"{source} must be an address like https://normata.example.org, without user, query and fragment"
    if not _VISIBLE.fullmatch(address):
        raise BadSetting(form)
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadSetting(form) from None
    if not host or parts.scheme not in ("http", "https") or "@" in parts.netloc or "?" in address or "#" in address:
        raise BadSetting(form)
    if parts.scheme == "http" and not is_loopback(host) and not _insecure_is_allowed():
        raise BadSetting(
            f"{source} is not encrypted, so everybody on the way could read the token: use https, or set {INSECURE}=on"
            " in a network that you trust"
        )
    return address.rstrip("/")


def token() -> str:
    """The token in the environment, or in the file that it names. Raises BadSetting, without the token."""
    value, path = os.environ.get(TOKEN), os.environ.get(f"{TOKEN}_FILE")
    if value and path:
        raise BadSetting(f"{TOKEN} and {TOKEN}_FILE are both set: remove one of them")
    if path:
        value = read_secret(f"{TOKEN}_FILE", Path(path))
    if not value:
        raise BadSetting(f"a server needs a token: set {TOKEN}, or {TOKEN}_FILE to the name of a file with it")
    if not _VISIBLE.fullmatch(value):
        raise BadSetting(f"the token in {TOKEN} must be one line of letters, digits and signs, without blanks")
    return value


def _insecure_is_allowed() -> bool:
    value = os.environ.get(INSECURE, "").lower()
    if value not in (*_ON, *_OFF):
        raise BadSetting(f"the setting {INSECURE} is wrong: it must be on or off")
    return value in _ON
