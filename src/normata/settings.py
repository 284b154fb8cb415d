"""All settings of the service: name, default and meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from typing_extensions import override

from normata.environment import Environment
from normata.setting_values import FilesAddress, Hosts, MailServer, Networks, PublicAddress, ScannerAddress, Sender


class Settings(BaseSettings):
    """The settings, from environment variables that start with ``NORMATA_``; ``docs/operations.md`` lists them all.

    A secret can also be in a file that a variable names, see :mod:`normata.environment`. Raises BadSetting if a file
    cannot be read, and pydantic's ValidationError for a value that is not allowed.
    """

    model_config = SettingsConfigDict(env_prefix="NORMATA_", extra="ignore", frozen=True)

    @classmethod
    @override
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *others: Any, **named: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del others, named
        return init_settings, Environment(settings_cls)

    database_url: str = Field(
        default="sqlite:///normata.db",
        description="The database: `sqlite:///relative.db`, `sqlite:////absolute/path.db`, or"
        " `postgresql://user:password@host:5432/name`. Separate several hosts of PostgreSQL by commas.",
    )
    database_timeout: float = Field(
        default=5.0,
        gt=0,
        le=60,
        description="Seconds to wait for the database (for a turn, a connection or a lock) before a request is"
        " answered with 503, or a command fails.",
    )
    database_pool_size: int = Field(
        default=16,
        ge=1,
        le=64,
        description="PostgreSQL: the maximum number of connections per process. Token lookups use one more.",
    )
    database_role: str = Field(
        default="normata_service",
        pattern=r"^[a-z_][a-z0-9_]{0,62}$",
        description="PostgreSQL: the role that the service acts as, whichever user the URL names. `normata migrate`"
        " creates it.",
    )
    database_statement_cache: int = Field(
        default=100,
        ge=0,
        le=10_000,
        description="PostgreSQL: the number of prepared statements that a connection caches. Use 0 behind a pooler in"
        " transaction mode.",
    )
    event_key: str = Field(
        default="",
        description="The file with the key that signs the checkpoints of audit events. It is created if it does not"
        " exist. Empty: next to the SQLite file (`normata.db.event-key`), else `normata.event-key` in the working"
        " directory.",
    )
    host: str = Field(
        default="127.0.0.1",
        description="The address that `normata serve` listens on, or a name such as `localhost`.",
    )
    port: int = Field(default=8000, ge=1, le=65535, description="The port that `normata serve` listens on.")
    workers: int = Field(default=1, ge=1, le=128, description="The number of processes that `normata serve` runs.")
    public_url: PublicAddress = Field(
        default="http://localhost:8000",
        description="The address at which people reach the service, such as `https://normata.example.org`. Links begin"
        " with it. People can sign in only if it is `https`, or `http` on this machine (`localhost`).",
    )
    allowed_hosts: Hosts = Field(
        default="",
        description="The hosts that requests may name in `Host`, separated by commas and without ports; others are"
        " answered 400. `/livez`, `/readyz` and `/metrics` take any. Empty: every host is allowed.",
    )
    local_sign_in: bool = Field(
        default=True,
        description="Whether people can sign in with a password or a passkey. With `off`, they sign in with the OpenID"
        " provider, or with a link from the command line.",
    )
    sign_in_limit: int = Field(
        default=10,
        ge=0,
        le=10_000,
        description="The maximum number of password attempts per minute for one account. One address may make twenty"
        " times as many. Further attempts are answered with 429. 0 means no limit.",
    )
    max_body_bytes: int = Field(
        default=65_536,
        ge=1_024,
        le=16_777_216,
        description="The maximum size of a request body in bytes, unless the operation accepts a larger one. A larger"
        " one is answered with 413.",
    )
    files_url: FilesAddress = Field(
        default="",
        description="Where uploaded files are: a folder, as `file:///var/lib/normata/files`, which is created if it"
        " does not exist, or a bucket of an object store that speaks S3, as `s3://bucket/prefix`. A bucket requires the"
        " extra `s3`, and is configured by the variables `AWS_*`. Empty: next to the SQLite file (`normata.db.files`),"
        " else `normata.files` in the working directory.",
    )
    files_timeout: float = Field(
        default=10.0,
        gt=0,
        le=300,
        description="Seconds that a request to the object store may take before an upload or a download is answered"
        " with 503.",
    )
    scanner: ScannerAddress = Field(
        default="",
        description="The malware scanner that sees every file before it is stored: clamd, at `tcp://host:port` or"
        " `unix:/path`. A file in which it finds something is answered with 422. Empty: none.",
    )
    scanner_timeout: float = Field(
        default=60.0,
        gt=0,
        le=3_600,
        description="Seconds that the scanner may take to accept a part of a file, or to answer after the last one,"
        " before the upload is answered with 503.",
    )
    max_file_bytes: int = Field(
        default=104_857_600,
        ge=1,
        le=1_099_511_627_776,
        description="The maximum size of an uploaded file in bytes. A larger one is answered with 413.",
    )
    files_quota: int = Field(
        default=10_737_418_240,
        ge=0,
        le=2**53 - 1,
        description="The maximum size of all files of an organization together, in bytes. What would exceed it is"
        " answered with 409. 0 means no limit.",
    )
    body_timeout: float = Field(
        default=10.0,
        gt=0,
        le=600,
        description="Seconds to wait for the next part of a request body before the request is answered with 408.",
    )
    body_deadline: float = Field(
        default=30.0,
        gt=0,
        le=3_600,
        description="Seconds that a whole request body may take, plus one for each `NORMATA_BODY_RATE` bytes received."
        " After that the request is answered with 408.",
    )
    body_rate: int = Field(
        default=16_384,
        ge=1,
        le=1_073_741_824,
        description="The minimum number of bytes per second of a large request body, after `NORMATA_BODY_DEADLINE`.",
    )
    organization_long_reads: int = Field(
        default=4,
        ge=0,
        le=10_000,
        description="The maximum number of long reads of one organization at a time: reports, searches, far pages and"
        " dry runs of many rows. Further ones wait, its users taking turns, and are answered 429 after some seconds. 0"
        " means no limit.",
    )
    caller_long_reads: int = Field(
        default=2,
        ge=0,
        le=10_000,
        description="The same for one user, with all their tokens together. 0 means no limit.",
    )
    long_read_processes: int = Field(
        default=2,
        ge=0,
        le=64,
        description="The maximum number of processes of a worker in which long reads run. They start when they are"
        " needed, and end after a minute without use. 0 means that a worker runs long reads itself.",
    )
    long_read_process_after: float = Field(
        default=0.05,
        ge=0,
        le=60,
        description="Seconds that a long read may take in a worker. It runs in a process for ten minutes after it has"
        " taken longer; a report does so at first, too. 0 means that all long reads run in processes.",
    )
    read_timeout: float = Field(
        default=30.0,
        gt=0,
        le=3_600,
        description="Seconds that a read may take, without the time that it waits for its turn. After that the request"
        " is answered with 503.",
    )
    address_connections: int = Field(
        default=512,
        ge=0,
        le=1_000_000,
        description="The maximum number of connections of a worker from one address (for IPv6, one /64), and of"
        " simultaneous requests from one client behind a trusted proxy. The newest connections beyond that are"
        " closed. 0 means no limit.",
    )
    smtp_url: MailServer = Field(
        default="",
        description="The mail server: `smtp://user:password@host:587` (encrypted if it offers STARTTLS) or"
        " `smtps://user:password@host:465`. Empty: no mail is sent.",
    )
    mail_from: Sender = Field(
        default="normata@localhost",
        description="The sender of mail: an address, or `Name <address>`.",
    )
    webhook_networks: Networks = Field(
        default="",
        description="The addresses or networks, separated by commas, that webhooks may reach although they are not"
        " public, such as `10.0.7.0/24`. Only there may a webhook have `http`. Empty: public addresses only, with"
        " `https`.",
    )
    root_path: str = Field(
        default="",
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
        description="The path under which a proxy serves the application, such as `/normata`; empty for none.",
    )
    trust_forwarded_prefix: bool = Field(
        default=False,
        description="Whether to read the root path from `X-Forwarded-Prefix`. Use this only behind a proxy that sets"
        " or removes the header.",
    )
    trusted_proxies: Networks = Field(
        default="",
        description="The addresses or networks of proxies, separated by commas, that send the client's address in"
        " `X-Forwarded-For`. Empty for none.",
    )
    page_cache_mib: int = Field(
        default=24,
        ge=0,
        le=65_536,
        description="The size of each process's page cache in MiB. 0 turns it off.",
    )
    rate_limit: int = Field(
        default=0,
        ge=0,
        le=10_000_000,
        description="The maximum number of requests per minute with one token. Further requests are answered with 429."
        " 0 means no limit.",
    )
    address_rate_limit: int = Field(
        default=0,
        ge=0,
        le=10_000_000,
        description="The maximum number of requests per minute from one address (for IPv6, one /64). Further requests"
        " are answered with 429. 0 means no limit. Behind a proxy, all requests have the proxy's address unless"
        " `NORMATA_TRUSTED_PROXIES` names it.",
    )
    bad_token_limit: int = Field(
        default=60,
        ge=0,
        le=10_000_000,
        description="The maximum number of requests per minute without a valid token from one address (for IPv6, one"
        " /64). Further ones are answered with 429, after a second. 0 means no limit.",
    )
    forget_mail: int = Field(
        default=30,
        ge=0,
        le=36_500,
        description="Days after which it is forgotten that notifications were mailed. 0 means never.",
    )
    forget_notifications: int = Field(
        default=0,
        ge=0,
        le=36_500,
        description="Days after which notifications that were read are forgotten. 0 means never.",
    )
    forget_sessions: int = Field(
        default=30,
        ge=0,
        le=36_500,
        description="Days after which sessions that have ended are forgotten. 0 means never.",
    )
    forget_tokens: int = Field(
        default=0,
        ge=0,
        le=36_500,
        description="Days after which tokens that were revoked or have expired are forgotten, and sign-in links,"
        " invitations and links of vendors that were used, revoked or have expired. 0 means never.",
    )
    oidc_issuer: str = Field(
        default="",
        description="Single sign-on: the issuer of the OpenID provider: an address with https, or http on this"
        " machine. Empty: no single sign-on.",
    )
    oidc_client_id: str = Field(default="", description="Single sign-on: the client ID of Normata at the provider.")
    oidc_client_secret: str = Field(
        default="",
        repr=False,
        description="Single sign-on: the client secret of Normata at the provider. Empty for a public client.",
    )
    oidc_name: str = Field(
        default="",
        max_length=100,
        description="Single sign-on: the provider's name on the sign-in button. Empty: the host of its address.",
    )
    oidc_groups_claim: str = Field(
        default="groups",
        min_length=1,
        max_length=255,
        pattern=r"^[^\s\x00-\x1f\x7f]+$",
        description="Single sign-on: the claim that contains a person's groups.",
    )
    oidc_roles: str = Field(
        default="",
        description="Single sign-on: the roles that groups give, as `group=organization:role,…`, with the slug or id"
        " of the organization. Empty: groups give no roles.",
    )
    oidc_join: Literal["invitation", "groups"] = Field(
        default="invitation",
        description="Single sign-on: how people without an account become members: by an `invitation`, or also by"
        " `groups` that give them a role.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least severe events that are logged."
    )
    log_format: Literal["json", "text"] = Field(
        default="json", description="`json` writes one JSON object per line, `text` is easier to read for people."
    )
    tracing: bool = Field(
        default=False,
        description="Whether to send spans of requests and of the database with OpenTelemetry, configured by the"
        " variables `OTEL_*`. Requires the extra `otel`.",
    )

    @property
    def has_public_url(self) -> bool:
        """Whether ``public_url`` is set."""
        return "public_url" in self.model_fields_set

    @property
    def event_key_file(self) -> Path:
        """The path of the key file: ``event_key``, or its default."""
        if self.event_key:
            return Path(self.event_key)
        return self._beside_database("event-key")

    @property
    def files_folder(self) -> Path:
        """The folder of uploaded files, unless they are in a bucket: ``files_url``, or its default."""
        return Path(urlsplit(self.files_url).path) if self.files_url else self._beside_database("files")

    @property
    def files_bucket(self) -> tuple[str, str] | None:
        """The bucket of uploaded files and the prefix of their names there, null if they are in a folder."""
        parts = urlsplit(self.files_url)
        return (parts.netloc, parts.path.strip("/")) if parts.scheme == "s3" else None

    def _beside_database(self, ending: str) -> Path:
        """A path next to the SQLite file, or in the working directory."""
        backend, _, path = self.database_url.partition(":///")
        is_file = backend.startswith("sqlite") and path
        return Path(f"{path.partition('?')[0]}.{ending}" if is_file else f"normata.{ending}")
