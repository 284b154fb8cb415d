"""Every setting of the service, once: its name, its default and what it does."""

from __future__ import annotations

import re
from ipaddress import ip_network
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Read from environment variables that start with ``NORMATA_``; ``docs/operations.md`` lists them all."""

    model_config = SettingsConfigDict(env_prefix="NORMATA_", extra="ignore", frozen=True)

    database_url: str = Field(
        default="sqlite:///normata.db",
        description="The database: `sqlite:///relative.db`, `sqlite:////absolute/path.db`, or"
        " `postgresql://user:password@host:5432/name`. Several hosts of PostgreSQL are separated by commas.",
    )
    database_timeout: float = Field(
        default=5.0,
        gt=0,
        le=60,
        description="Seconds to wait for the database (for a connection, and for a lock) before a request answers 503.",
    )
    database_pool_size: int = Field(
        default=16,
        ge=1,
        le=64,
        description="PostgreSQL: the most connections that one process opens; token lookups use one more.",
    )
    database_role: str = Field(
        default="normata_service",
        pattern=r"^[a-z_][a-z0-9_]{0,62}$",
        description="PostgreSQL: the role whose rights the service uses, whichever user the URL names."
        " `normata migrate` creates it.",
    )
    database_statement_cache: int = Field(
        default=100,
        ge=0,
        le=10_000,
        description="PostgreSQL: prepared statements that a connection keeps; 0 behind a pooler in transaction mode.",
    )
    event_key: str = Field(
        default="",
        description="The file with the key that signs the checkpoints of audit events; it is made where there is"
        " none. Empty: beside the file of SQLite (`normata.db.event-key`), else `normata.event-key` in the working"
        " directory.",
    )
    host: str = Field(
        default="127.0.0.1",
        description="The address that `normata serve` listens on, or a name such as `localhost`.",
    )
    port: int = Field(default=8000, ge=1, le=65535, description="The port that `normata serve` listens on.")
    workers: int = Field(default=1, ge=1, le=128, description="The number of processes that `normata serve` runs.")
    public_url: str = Field(
        default="http://localhost:8000",
        description="The address at which people reach the service, such as `https://normata.example.org`. Links are"
        " made from it. People can sign in only where it is `https`, or `http` on this machine (`localhost`).",
    )
    local_sign_in: bool = Field(
        default=True,
        description="Let people sign in with a password or a passkey. `off` leaves links of the command line, and the"
        " OpenID provider.",
    )
    sign_in_limit: int = Field(
        default=10,
        ge=0,
        le=10_000,
        description="Attempts a minute to sign in with a password to one account, and twenty times as many from one"
        " address. Further ones are answered 429. 0 means no limit.",
    )
    max_body_bytes: int = Field(
        default=65_536, ge=1_024, le=16_777_216, description="The largest request body; a larger one is answered 413."
    )
    body_timeout: float = Field(
        default=10.0,
        gt=0,
        le=600,
        description="Seconds to wait for the next piece of a request body. After that the service answers 408.",
    )
    smtp_url: str = Field(
        default="",
        description="The server that takes mail: `smtp://user:password@host:587` (encrypted where it offers STARTTLS)"
        " or `smtps://user:password@host:465`. Empty: no mail is sent.",
    )
    mail_from: str = Field(
        default="normata@localhost",
        description="The sender of mail: an address, or `Name <address>`.",
    )
    root_path: str = Field(
        default="",
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
        description="The path under which a proxy serves the application, such as `/normata`; empty for none.",
    )
    trust_forwarded_prefix: bool = Field(
        default=False,
        description="Take that path from `X-Forwarded-Prefix`. Only behind a proxy that sets or removes this header.",
    )
    trusted_proxies: str = Field(
        default="",
        description="The addresses or networks of proxies, separated by commas, that tell a client's address in"
        " `X-Forwarded-For`. Empty for none.",
    )
    page_cache_mib: int = Field(
        default=24,
        ge=0,
        le=65_536,
        description="MiB of encoded list pages that each process keeps in memory for the next request; 0 keeps none.",
    )
    rate_limit: int = Field(
        default=0,
        ge=0,
        le=10_000_000,
        description="Requests a minute that one token may make; further ones are answered 429. 0 means no limit.",
    )
    address_rate_limit: int = Field(
        default=0,
        ge=0,
        le=10_000_000,
        description="Requests a minute that one address may make, of IPv6 one /64; further ones are"
        " answered 429. 0 means no limit. Behind a proxy all requests have its address.",
    )
    bad_token_limit: int = Field(
        default=60,
        ge=0,
        le=10_000_000,
        description="Requests a minute without a valid token that are answered at once, for one address (of IPv6 one"
        " /64). Further ones wait a second and are answered 429. 0 means no limit.",
    )
    oidc_issuer: str = Field(
        default="",
        description="Single sign-on: the address by which the OpenID provider names itself (its issuer), https, or http"
        " on this machine. Empty: none.",
    )
    oidc_client_id: str = Field(default="", description="Single sign-on: who Normata is to the provider.")
    oidc_client_secret: str = Field(
        default="",
        repr=False,
        description="Single sign-on: the secret that the provider has given Normata. Empty for a public client.",
    )
    oidc_name: str = Field(
        default="",
        max_length=100,
        description="Single sign-on: what the button calls the provider. Empty: the host of its address.",
    )
    oidc_groups_claim: str = Field(
        default="groups",
        min_length=1,
        max_length=255,
        pattern=r"^[^\s\x00-\x1f\x7f]+$",
        description="Single sign-on: the claim in which the provider tells a person's groups.",
    )
    oidc_roles: str = Field(
        default="",
        description="Single sign-on: the roles that groups give, as `group=organization:role,…`, with the slug or id of"
        " the organization. Empty: groups give none.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least severe events that are logged."
    )
    log_format: Literal["json", "text"] = Field(
        default="json", description="`json` writes one JSON object a line, `text` is for people."
    )
    tracing: bool = Field(
        default=False,
        description="Send spans of requests and of the database with OpenTelemetry, as the variables OTEL_* say."
        " It needs the extra `otel`.",
    )

    @field_validator("smtp_url")
    @classmethod
    def _is_mail_server(cls, value: str) -> str:
        parts = _parts(value)
        if value and (re.search(r"\s", value) or parts is None or parts.scheme not in ("smtp", "smtps")):
            raise ValueError("must be an address like smtps://user:password@mail.example.org:465")
        return value

    @field_validator("mail_from")
    @classmethod
    def _is_sender(cls, value: str) -> str:
        address = r"[^@\s<>,;:\"()]+@[^@\s<>,;:\"()]+"
        if not re.fullmatch(rf'{address}|("[^"\r\n]*"|[^<>,;"\r\n]*)<{address}>', value):
            raise ValueError("must be an address, or Name <address>")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: str) -> str:
        networks = [one.strip() for one in value.split(",")] if value else []
        for one in networks:
            try:
                ip_network(one)
            except ValueError:
                raise ValueError(
                    f"has {one!r}, which is no address or network like 10.0.0.7, 10.0.0.0/24 or ::1"
                ) from None
        return ",".join(networks)

    @field_validator("public_url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        parts = _parts(value)
        is_plain = parts is not None and not (parts.username or parts.password or parts.query or parts.fragment)
        if parts is None or parts.scheme not in ("http", "https") or not is_plain or "\\" in value:
            raise ValueError("must be an address like https://normata.example.org, without user, query and fragment")
        return value.rstrip("/")

    @property
    def event_key_file(self) -> Path:
        """The file that ``event_key`` means."""
        if self.event_key:
            return Path(self.event_key)
        backend, _, path = self.database_url.partition(":///")
        is_file = backend.startswith("sqlite") and path
        return Path(f"{path.partition('?')[0]}.event-key" if is_file else "normata.event-key")


def _parts(url: str) -> SplitResult | None:
    """The parts of an address that has a host, and a port that there can be if it names one; else null."""
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_whole else None
