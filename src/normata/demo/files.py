"""The files of the demo: a fictional company as bundles, in this folder, and the files of its evidence."""

from __future__ import annotations

from pathlib import Path

from normata.demo.made_files import MADE

ORGANIZATION = "org-harbourlight"
BUNDLES = (
    "nist-csf-2.0.json",
    "iso-27001-2022.json",
    "mapping.json",
    "organization.json",
    "records.json",
    "links.json",
    "comments.json",
)


EVIDENCE = Path(__file__).parent / "evidence"


def content_of(name: str) -> bytes:
    """The bytes of a file of evidence."""
    made = MADE.get(name)
    return (EVIDENCE / name).read_bytes() if made is None else made()


def paths() -> list[Path]:
    """The bundle files, in the order in which they load."""
    return [Path(__file__).parent / name for name in BUNDLES]


def record_bundle() -> Path:
    """The bundle file with the records of every kind."""
    return Path(__file__).parent / "records.json"
