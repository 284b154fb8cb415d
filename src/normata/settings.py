"""Every setting of the service, once: its name, its default and what it does."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Read from environment variables that start with ``NORMATA_``; ``docs/operations.md`` lists them all."""

    model_config = SettingsConfigDict(env_prefix="NORMATA_", extra="ignore", frozen=True)

    database_url: str = Field(
        default="sqlite:///normata.db",
        description="Where the data lives: `sqlite:///relative.db`, `sqlite:////absolute/path.db`, or"
        " `postgresql://user:password@host:5432/name`, with several hosts separated by commas where one may take over.",
    )
    database_timeout: float = Field(
        default=5.0,
        gt=0,
        le=60,
        description="Seconds that a request waits for the database (for each: a turn, a lock) before it answers 503.",
    )
    database_pool_size: int = Field(
        default=16,
        ge=1,
        le=64,
        description="PostgreSQL: connections of one process, at most; one more asks who calls.",
    )
    database_role: str = Field(
        default="normata_service",
        pattern=r"^[a-z_][a-z0-9_]{0,62}$",
        description="PostgreSQL: the role that the service acts as, whoever its URL names; `normata migrate` makes it.",
    )
    database_statement_cache: int = Field(
        default=100,
        ge=0,
        le=10_000,
        description="PostgreSQL: prepared statements that a connection keeps; 0 behind a pooler in transaction mode.",
    )
    host: str = Field(default="127.0.0.1", description="The address that `normata serve` listens on.")
    port: int = Field(default=8000, ge=1, le=65535, description="The port that `normata serve` listens on.")
    workers: int = Field(default=1, ge=1, le=128, description="Processes that `normata serve` runs.")
    max_body_bytes: int = Field(
        default=65_536, ge=1_024, le=16_777_216, description="Largest request body; a larger one is answered with 413."
    )
    page_cache_mib: int = Field(
        default=32,
        ge=0,
        le=65_536,
        description="MiB of encoded pages of lists that each process keeps for those who ask again; 0 keeps none.",
    )
    rate_limit: int = Field(
        default=0,
        ge=0,
        le=10_000_000,
        description="Requests a minute that each process grants one token before it answers 429; 0 is no limit.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least severe events that are logged."
    )
    log_format: Literal["json", "text"] = Field(
        default="json", description="`json` for one object a line, `text` for people."
    )
