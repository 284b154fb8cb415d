"""What the tests of processes over one PostgreSQL share: the command line, databases and roles to begin with."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from uuid import uuid4

import pytest

from normata.identity.tokens import tokens
from tests import world
from tests.databases import change, open_url
from tests.postgres import Server
from tests.postgresql.row_level import admin, login, service
from tests.prepared import Normata
from tests.server import SCRIPT

__all__ = ["admin", "login", "service"]


def new_token(url: str, user: str = "editor", *, scope: str = "write") -> str:
    """A token of one of the world's users."""
    email, lifetime = world.USERS[user], timedelta(hours=1)
    with closing(open_url(url)) as database:
        return change(database, lambda unit: tokens.create(unit, email=email, scope=scope, lifetime=lifetime))


def environment(**settings: str) -> dict[str, str]:
    """The environment of a command: ours without settings of the service, but for ``settings``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NORMATA_")}
    return kept | {"NORMATA_FILES_URL": os.environ["NORMATA_FILES_URL"]} | settings  # where the world's are


def start(*arguments: str, url: str, settings: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """``normata`` with arguments, started."""
    return Normata(
        [SCRIPT, *arguments, "--database", url],
        env=environment(**settings or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def normata(*arguments: str, url: str, settings: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """``normata`` with arguments, run to its end."""
    process = start(*arguments, url=url, settings=settings)
    try:
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def is_one_sentence(errors: str) -> bool:
    """Whether all that a command had to say is one line of its own, and no traceback."""
    return errors.startswith("normata: ") and errors.count("\n") == 1 and "unexpected" not in errors


@pytest.fixture
def postgres_url(own_postgres_url: str) -> str:
    """The address of a fresh copy of the test world: these tests lose connections, and change roles and rights."""
    return own_postgres_url


@pytest.fixture
def blank_url(postgres: Server) -> Iterator[str]:
    """The address of a database with nothing in it at all."""
    name = f"normata_{uuid4().hex}"
    yield postgres.create(name)
    postgres.drop(name)


@pytest.fixture
def new_role(postgres: Server) -> Iterator[str]:
    """The name of a role that is not there yet; databases that it has rights in must be gone before it."""
    name = f"normata_{uuid4().hex[:12]}"
    yield name
    postgres.run(f"DROP ROLE IF EXISTS {name}")
