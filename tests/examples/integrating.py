"""The programs that integrate other systems, run as their readers run them, against the shipped server."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from sqlalchemy import func, select

from normata.core.db.database import Database
from normata.core.schema.table import sql_table
from normata.events.model import AuditEvent
from normata.identity.tokens import tokens
from tests import world
from tests.databases import change

FOLDER = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Done:
    """What a program has said, and with which status it has ended."""

    status: int
    said: str
    refused: list[str]


@dataclass(frozen=True)
class Integrations:
    """The server, the database below it, and a folder for files."""

    base: str
    database: Database
    folder: Path
    _tokens: dict[tuple[str | None, ...], str] = field(default_factory=dict)

    def token(self, user: str = "admin", scope: str = "admin", organization: str | None = world.ALPHA) -> str:
        """A token of a user of the world, the same each time: to make one is an event."""
        named = (user, scope, organization)
        if named not in self._tokens:
            email = world.USERS[user]
            self._tokens[named] = change(
                self.database,
                lambda unit: tokens.create(unit, email=email, scope=scope, lifetime=None, organization=organization),
            )
        return self._tokens[named]

    def run(self, program: str, file: Path, *options: str, token: str) -> Done:
        """Run a program."""
        done = subprocess.run(
            [sys.executable, str(FOLDER / program), str(file), *options],
            env={**os.environ, "NORMATA_SERVER": self.base, "NORMATA_TOKEN": token},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr.splitlines())

    def events(self) -> int:
        """How many events requests have made so far; those that the service makes by itself do not count."""
        table = sql_table(AuditEvent)
        count = select(func.count()).select_from(table).where(table.c.token_id.is_not(None))
        found: int = self.database.read_now(lambda transaction: transaction.scalars(count))[0]
        return found

    def table(self, name: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> Path:
        """A CSV file."""
        path = self.folder / name
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns or list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return path

    def items(self, path: str, **query: str) -> list[Any]:
        """The first items of a list of alpha."""
        address = f"{self.base}{path}?{urlencode({'organizationId': world.ALPHA, **query})}"
        request = Request(address, headers={"Authorization": f"Bearer {self.token('auditor', 'read')}"})
        with urlopen(request, timeout=30) as answer:
            items: list[Any] = json.load(answer)["items"]
            return items

    def change(self, method: str, path: str, body: object = None, *, user: str = "editor", scope: str = "write") -> Any:
        """Change something by hand, as a member does in between: the answer."""
        headers = {"Authorization": f"Bearer {self.token(user, scope)}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.base + path, data, headers, method=method)
        with urlopen(request, timeout=30) as answer:
            return json.load(answer)
