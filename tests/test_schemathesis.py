"""Schemathesis, with all its checks, against the running server: what OpenAPI says holds for whatever is sent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from normata.records.base import Restorable
from tests import world
from tests.server import serving

_LISTS = """
[[operations]]
include-tag = ["Frameworks", "Notifications"]
parameters = { "query.organizationId" = "org-alpha" }
"""


def _configuration(token: str, *, real: bool) -> str:
    """A header for every request and, where ``real``, an organization and ids that exist."""
    lines = [f'headers = {{ Authorization = "Bearer {token}" }}']
    if real:
        lines.append(_LISTS)
        lines.extend(
            f'[[operations]]\ninclude-operation-id = "restore{kind.__name__}"\n'
            f'parameters = {{ "path.id" = "{world.record_id(kind, "archived")}" }}\n'
            for kind in Restorable.kinds
        )
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("database_url", "user", "real"),
    [
        pytest.param("sqlite", "editor", True, id="editor asks for what exists, on SQLite"),
        pytest.param("postgresql", "editor", True, id="editor asks for what exists, on PostgreSQL"),
        pytest.param("postgresql", "viewer", False, id="viewer asks for anything, on PostgreSQL"),
    ],
    indirect=["database_url"],
)
def test_holds_against_anything_sent(
    database_url: str, make_token: Callable[..., str], tmp_path: Path, user: str, real: bool
) -> None:
    configuration = tmp_path / "schemathesis.toml"
    configuration.write_text(_configuration(make_token(user), real=real))
    with serving(database_url) as base:
        finished = subprocess.run(
            [
                Path(sys.executable).with_name("schemathesis"),
                f"--config-file={configuration}",
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
    assert "19 selected / 19 total" in finished.stdout
