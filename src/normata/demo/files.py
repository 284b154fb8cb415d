"""The files of the demo: a fictional company as bundles, in this folder."""

from __future__ import annotations

from pathlib import Path

ORGANIZATION = "org-harbourlight"
BUNDLES = (
    "nist-csf-2.0.json",
    "iso-27001-2022.json",
    "mapping.json",
    "organization.json",
    "records.json",
    "links.json",
)


def paths() -> list[Path]:
    """The bundle files, in the order in which they load."""
    return [Path(__file__).parent / name for name in BUNDLES]


def record_bundle() -> Path:
    """The bundle file with the records of every kind."""
    return Path(__file__).parent / "records.json"
