"""Imports of a file in a form (``multipart/form-data``), as generated clients send it."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from httpx2 import Response

from tests.catalogs.test_reading import LIBRARY
from tests.databases import on_both
from tests.own_frameworks.conftest import Asked
from tests.own_frameworks.test_uploads import CSV, JSON, TABLE, XLSX, YAML, done, workbook
from tests.served import refused
from tests.world import ALPHA

File = tuple[str, bytes, str]


def send(ask: Asked, file: File | None, *, key: str | None = None, field: str = "file", **query: str) -> Response:
    headers = ask.headers["admin"] | ({} if key is None else {"Idempotency-Key": key})
    files: Any = {"note": ("", b"text", "")} if file is None else {field: file}
    return ask.client.post(
        "/imports/", files=files, headers=headers, params={"organizationId": ALPHA, "name": "Docks"} | query
    )


@on_both
@pytest.mark.parametrize(
    ("name", "content", "media_type"),
    [
        ("docks.csv", TABLE.encode(), CSV),
        ("docks.csv", TABLE.encode(), "application/vnd.ms-excel"),  # what browsers on Windows say of CSV
        ("DOCKS.CSV", TABLE.encode(), "application/octet-stream"),
        ("docks", TABLE.encode(), f"{CSV}; charset=utf-8"),
        ("docks.xlsx", workbook(("identifier", "name", "parent"), ("1", "Berths", None), ("1.1", "Lit", "1")), XLSX),
        ("library.json", json.dumps(LIBRARY).encode(), JSON),
        ("library.yml", json.dumps(LIBRARY).encode(), "application/octet-stream"),
        ("library", json.dumps(LIBRARY).encode(), YAML),
    ],
)
def test_the_same_as_the_body_alone(name: str, content: bytes, media_type: str, ask: Asked) -> None:
    tried = send(ask, (name, content, media_type), dryRun="true").json()["answer"]
    first = send(ask, (name, content, media_type))
    assert first.status_code == 200, first.text
    assert first.json() == tried
    assert first.json()["frameworks"]["new"] == 1
    alone = {".csv": CSV, ".xlsx": XLSX, ".yml": YAML}.get(name.lower()[name.rfind(".") :], media_type)
    again = done(ask, content, alone, name="Docks")
    assert again["frameworkIds"] == first.json()["frameworkIds"]
    assert again["controls"] == {"new": 0, "changed": 0, "unchanged": first.json()["controls"]["new"]}


def test_faults_of_the_file_have_their_places(ask: Asked) -> None:
    answer = send(ask, ("docks.csv", b"identifier,mandatory\n1,perhaps\n", CSV))
    alone = ask.client.post(
        "/imports/",
        content=b"identifier,mandatory\n1,perhaps\n",
        headers=ask.headers["admin"] | {"Content-Type": CSV},
        params={"organizationId": ALPHA, "name": "Docks"},
    )
    assert refused(answer, 400, "validation")["errors"] == refused(alone, 400, "validation")["errors"]


@on_both
def test_sent_again_with_the_same_key_it_gets_the_first_answer(ask: Asked) -> None:
    """Each time it has another boundary."""
    key, file = str(uuid4()), ("docks.csv", TABLE.encode(), CSV)
    first, second = send(ask, file, key=key), send(ask, file, key=key)
    assert (first.status_code, first.content) == (second.status_code, second.content)
    assert first.json()["frameworks"]["new"] == 1
    refused(send(ask, ("docks.csv", f"{TABLE}9,,,,,\n".encode(), CSV), key=key), 422, "key_reused")
    refused(send(ask, file, key=key, name="Other"), 422, "key_reused")


def test_a_form_without_a_file_or_with_another_one_is_refused(ask: Asked) -> None:
    for answer in (send(ask, None), send(ask, ("docks.csv", TABLE.encode(), CSV), field="upload")):
        [fault] = refused(answer, 400, "validation")["errors"]
        assert (fault["in"], fault["name"], fault["code"]) == ("body", "file", "required")
    for name in ("docks", "docks.exe", "csv", ""):
        answer = send(ask, (name or "x", TABLE.encode(), "application/octet-stream"))
        refused(answer, 415, "unsupported_media_type")
    headers = ask.headers["admin"] | {"Content-Type": "multipart/form-data"}
    answer = ask.client.post("/imports/", content=b"x", headers=headers, params={"organizationId": ALPHA})
    [fault] = refused(answer, 400, "validation")["errors"]
    assert fault["name"] == ""
    two = [("file", ("docks.csv", TABLE.encode(), CSV))] * 2
    answer = ask.client.post(
        "/imports/", files=two, headers=ask.headers["admin"], params={"organizationId": ALPHA, "name": "Docks"}
    )
    refused(answer, 400, "validation")


def test_it_is_bounded_like_other_bodies(ask: Asked) -> None:
    large = ("docks.csv", b"identifier\n" + b"x" * 17 * 2**20, CSV)
    refused(send(ask, large), 413, "too_large")
