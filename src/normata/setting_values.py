"""The values of settings that have rules of their own."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator

# The name of a bucket, and what the names of its objects begin with.
_BUCKET = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?"


def _mail_server(value: str) -> str:
    parts = _parts(value)
    if value and (re.search(r"\s", value) or parts is None or parts.scheme not in ("smtp", "smtps")):
        raise ValueError("must be an address like smtps://user:password@mail.example.org:465")
    return value


def _sender(value: str) -> str:
    address = r"[^@\s<>,;:\"()]+@[^@\s<>,;:\"()]+"
    if not re.fullmatch(rf'{address}|("[^"\r\n]*"|[^<>,;"\r\n]*)<{address}>', value):
        raise ValueError("must be an address, or Name <address>")
    return value


def _networks(value: str) -> str:
    networks = [one.strip() for one in value.split(",")] if value else []
    for one in networks:
        try:
            ip_network(one)
        except ValueError:
            raise ValueError(f"has {one!r}, which is no address or network like 10.0.0.7, 10.0.0.0/24 or ::1") from None
    return ",".join(networks)


def _store(value: str) -> str:
    parts = urlsplit(value)
    is_folder = parts.scheme == "file" and not parts.netloc and parts.path.strip("/") and "%" not in value
    if value and not is_folder and not re.fullmatch(_BUCKET, value):
        raise ValueError("must be a folder like file:///var/lib/normata/files, or a bucket like s3://bucket/prefix")
    return value


def _scanner(value: str) -> str:
    parts = _parts(value)
    is_host = parts is not None and parts.scheme == "tcp" and parts.port and value == f"tcp://{parts.netloc}"
    if value and not (is_host and "@" not in value) and not re.fullmatch(r"unix:/[^\s\0]+", value):
        raise ValueError("must be an address like tcp://127.0.0.1:3310 or unix:/run/clamav/clamd.ctl")
    return value


def _hosts(value: str) -> str:
    hosts = [one.strip().lower() for one in value.split(",")] if value else []
    for one in hosts:
        if not re.fullmatch(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\]", one):
            raise ValueError(f"has {one!r}, which is no host like normata.example.org, 10.0.0.7 or [::1]")
    return ",".join(hosts)


def _address(value: str) -> str:
    parts = _parts(value)
    is_plain = parts is not None and not (parts.username or parts.password or parts.query or parts.fragment)
    if parts is None or parts.scheme not in ("http", "https") or not is_plain or "\\" in value:
        raise ValueError("must be an address like https://normata.example.org, without user, query and fragment")
    return value.rstrip("/")


def _parts(url: str) -> SplitResult | None:
    """The parts of a URL with a host and, if it names a port, a valid one; else null."""
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_whole else None


MailServer = Annotated[str, AfterValidator(_mail_server)]
Sender = Annotated[str, AfterValidator(_sender)]
Networks = Annotated[str, AfterValidator(_networks)]
FilesAddress = Annotated[str, AfterValidator(_store)]
ScannerAddress = Annotated[str, AfterValidator(_scanner)]
Hosts = Annotated[str, AfterValidator(_hosts)]
PublicAddress = Annotated[str, AfterValidator(_address)]
