"""Schemathesis, with all its checks, against the running server: what OpenAPI says holds for whatever is sent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from normata.operations import OPERATIONS
from normata.web.operation import ListOperation
from tests.served import served
from tests.server import serving
from tests.web.samples import sample
from tests.world import ALPHA


def configuration(token: str, *, real: bool) -> str:
    """A header for every request and, where ``real``, an organization and ids that exist."""
    lines = [f'headers = {{ Authorization = "Bearer {token}" }}']
    for operation in OPERATIONS if real else ():
        found = []
        if isinstance(operation, ListOperation):
            found.append(f'"query.organizationId" = "{ALPHA}"')
        if "{id}" in operation.path:
            found.append(f'"path.id" = "{sample(operation).path.split("/")[2]}"')
        lines.append(
            f'[[operations]]\ninclude-operation-id = "{operation.operation_id}"\nparameters = {{ {", ".join(found)} }}'
        )
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("database_url", "user", "real"),
    [
        pytest.param("sqlite", "editor", True, id="an editor asks for what exists, on SQLite"),
        pytest.param("postgresql", "editor", False, id="an editor asks for anything, on PostgreSQL"),
    ],
    indirect=["database_url"],
)
def test_holds_against_anything_sent(database_url: str, tmp_path: Path, user: str, real: bool) -> None:
    with served(database_url) as service:
        token = service.token(user)
    file = tmp_path / "schemathesis.toml"
    file.write_text(configuration(token, real=real))
    with serving(database_url) as base:
        finished = subprocess.run(
            [
                Path(sys.executable).with_name("schemathesis"),
                f"--config-file={file}",
                "run",
                f"{base}/openapi.json",
                "--checks=all",
                "--max-examples=20",
                "--seed=1",
                "--no-color",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert finished.returncode == 0, finished.stdout[-6_000:] + finished.stderr[-2_000:]
    assert f"{len(OPERATIONS)} selected / {len(OPERATIONS)} total" in finished.stdout
