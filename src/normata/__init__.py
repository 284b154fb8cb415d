"""Normata: a self-hosted compliance service."""

from __future__ import annotations

__version__: str


def __getattr__(name: str) -> str:
    """Look the version up on access only, because it would take a quarter of the time of ``normata --help``."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from normata.version import current  # noqa: PLC0415 - as above

    return current()
