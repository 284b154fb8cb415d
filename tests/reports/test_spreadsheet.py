"""The statement of applicability of the demo's ISO/IEC 27001 opens in a spreadsheet program, with all its controls."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from normata.app import create_app
from normata.cli import demo
from normata.demo.files import ORGANIZATION
from normata.files.opening import open_store
from normata.settings import Settings
from tests.client import TestClient
from tests.databases import change, migrate, open_url

ANNEX_A = [
    f"A.{theme}.{number}" for theme, last in ((5, 37), (6, 8), (7, 14), (8, 34)) for number in range(1, last + 1)
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The application over the demo, as its user."""
    url = f"sqlite:///{tmp_path_factory.mktemp('demo') / 'demo.db'}"
    database = open_url(url, create=True)
    migrate(database)
    demo.fill(database, lambda *_: None, open_store(Settings()))
    token = change(database, demo.new_token)
    database.close()
    application = create_app(Settings(database_url=url, log_level="error"))
    with TestClient(application, headers={"Authorization": f"Bearer {token}"}) as opened:
        yield opened


def statement(client: TestClient, name: str) -> Any:
    """The statement of applicability in a format."""
    path = "/frameworks/iso-27001-2022/statement-of-applicability/"
    answer = client.get(path, params={"organizationId": ORGANIZATION, "format": name})
    assert answer.status_code == 200
    return answer.json() if name == "json" else answer.content


def test_it_has_all_controls(client: TestClient) -> None:
    """In every format, in the order of the standard, and all formats say the same."""
    report = statement(client, "json")
    assert [control["identifier"] for control in report["controls"]] == ANNEX_A
    rows = list(csv.reader(statement(client, "csv").decode("utf-8-sig").splitlines(keepends=True)))
    book = load_workbook(BytesIO(statement(client, "xlsx")))
    cells = [["" if cell is None else cell for cell in row] for row in book.worksheets[0].iter_rows(values_only=True)]
    start = cells.index(rows[0])
    assert [row[0] for row in rows[1:]] == [row[0] for row in cells[start + 1 :]] == ANNEX_A
    assert cells[start:] == rows
    facts = dict(row[:2] for row in book["Summary"].iter_rows(values_only=True))
    assert facts["Requirements"] == 93
    assert facts["Framework"] == report["framework"]["name"]


def test_a_spreadsheet_program_opens_it(client: TestClient, tmp_path: Path) -> None:
    """LibreOffice reads the workbook, and writes it as CSV: every cell is there."""
    program = shutil.which("soffice")
    if program is None:
        pytest.skip("there is no LibreOffice here: install libreoffice-calc-nogui")
    (tmp_path / "statement.xlsx").write_bytes(statement(client, "xlsx"))
    subprocess.run(
        [
            program,
            f"-env:UserInstallation=file://{tmp_path}/profile",
            *("--headless", "--convert-to", "csv:Text - txt - csv (StarCalc):44,34,76", "--outdir", str(tmp_path)),
            str(tmp_path / "statement.xlsx"),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    read = list(csv.reader((tmp_path / "statement.csv").read_text("utf-8").splitlines(keepends=True)))
    written = list(csv.reader(statement(client, "csv").decode("utf-8-sig").splitlines(keepends=True)))
    start = read.index(written[0])
    assert [row[0] for row in read[start + 1 :]] == ANNEX_A
    assert read[start:] == written
