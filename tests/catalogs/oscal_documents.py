"""Small documents in OSCAL, and how they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from normata.catalogs.reading import read
from normata.core.changes.source import FaultyInput, Row

UUID = "3f1d1c52-0b7a-4c39-9d44-6a1b7f0f2a10"
ELSEWHERE = "b2a9f0de-7c11-4f6e-8a55-0e9d3c1b4f77"


def metadata(**more: Any) -> dict[str, Any]:
    return {
        "title": "Garden Special Publication 7 Revision 2",
        "last-modified": "2025-03-01T10:00:00+01:00",
        "version": "2.0",
        "oscal-version": "1.1.2",
        **more,
    }


def label(value: str, kind: str | None = None) -> dict[str, str]:
    return {"name": "label", "value": value} | ({"class": kind} if kind else {})


def statement(prose: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"name": "statement", "prose": prose} | ({"parts": list(parts)} if parts else {})


def item(name: str, prose: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"name": "item", "props": [label(name)], "prose": prose} | ({"parts": list(parts)} if parts else {})


def control(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "title": f"Title of {name}", **more}


def catalog(*controls: dict[str, Any], **more: Any) -> dict[str, Any]:
    group = {"id": "wt", "title": "Water", "controls": list(controls or [control("wt-1")])}
    return {"catalog": {"uuid": UUID, "metadata": metadata(), "groups": [group], **more}}


def end(name: str, kind: str = "control") -> dict[str, str]:
    return {"type": kind, "id-ref": name}


def collection(
    relationship: str = "equal-to",
    sources: list[dict[str, str]] | None = None,
    targets: list[dict[str, str]] | None = None,
    href: str = f"#{UUID}",
    **more: Any,
) -> dict[str, Any]:
    entry = {
        "uuid": "7e0b5a64-52de-4c25-8e0b-1c9e0f1d2a33",
        "relationship": relationship,
        "sources": sources or [end("wt-1")],
        "targets": targets or [end("x-1")],
    }
    mapping = {
        "uuid": "0d9c8b7a-1234-4e5f-8a9b-abcdefabcdef",
        "source-resource": {"type": "catalog", "href": href},
        "target-resource": {"type": "catalog", "href": f"urn:uuid:{ELSEWHERE}"},
        "maps": [entry],
    }
    provenance = {
        "method": "human",
        "matching-rationale": "semantic",
        "status": "complete",
        "mapping-description": "How one garden is like another.",
    }
    whole = {
        "uuid": "5a5a5a5a-1111-4222-8333-444444444444",
        "metadata": metadata(),
        "provenance": provenance,
        "mappings": [mapping],
        **more,
    }
    return {"mapping-collection": whole}


class Reader:
    """Reads documents from files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, *documents: dict[str, Any]) -> list[Row]:
        paths = [self._folder / f"document-{number}.json" for number in range(len(documents))]
        for path, document in zip(paths, documents, strict=True):
            path.write_text(json.dumps(document), encoding="utf-8")
        return read(paths)

    def faults(self, *documents: dict[str, Any]) -> list[tuple[str, str]]:
        with pytest.raises(FaultyInput) as caught:
            self(*documents)
        return [(fault.place, fault.reason) for fault in caught.value.faults]


def controls(rows: list[Row]) -> dict[str, dict[str, Any]]:
    return {row.values["identifier"]: dict(row.values) for row in rows if row.array == "controls"}
