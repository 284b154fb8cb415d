"""Whom the URL of the service names: a login that owns nothing is enough, and a stronger one is warned of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from normata.app import create_app
from normata.core.db.transaction import Transaction
from normata.identity.tokens.lookup import TOKEN_LOOKUP
from normata.identity.tokens.tokens import digest
from normata.records.base import Restorable
from normata.settings import Settings
from tests.client import TestClient
from tests.core.db.sessions import Service, as_role, session
from tests.databases import migrate, open_url
from tests.postgres import Server
from tests.postgresql.conftest import is_one_sentence, new_token, normata
from tests.server import free_port, serving
from tests.world import ALPHA, USERS, record_id

KINDS = Restorable.kinds


class Roles:
    """Makes logins for one test, and removes them after it."""

    def __init__(self, server: Server, url: str) -> None:
        self._server = server
        self._url = url
        self._made: list[str] = []

    def login(self, rights: str) -> str:
        """The address of the world for a new login."""
        name = f"normata_login_{uuid4().hex[:12]}"
        self._server.run(f"CREATE ROLE {name} LOGIN PASSWORD 'login' {rights}")
        self._made.append(name)
        return as_role(self._url, name, "login")

    def remove(self) -> None:
        self._server.run(*(f"DROP ROLE {name}" for name in self._made))


@pytest.fixture
def roles(postgres: Server, postgres_url: str) -> Iterator[Roles]:
    made = Roles(postgres, postgres_url)
    yield made
    made.remove()


@pytest.fixture
def weak_url(roles: Roles) -> str:
    """The address for one that may do what the service may, and nothing else: as the docs have it."""
    return roles.login("IN ROLE normata_service")


@pytest.fixture
def owner_url(postgres: Server) -> Iterator[str]:
    """The address of a database without rows for the owner of its tables, who has no special rights otherwise."""
    name, database = f"normata_owner_{uuid4().hex[:12]}", f"normata_{uuid4().hex}"
    postgres.run(f"CREATE ROLE {name} LOGIN CREATEROLE PASSWORD 'owner'")
    url = as_role(postgres.create(database), name, "owner")
    postgres.run(f'ALTER DATABASE "{database}" OWNER TO {name}')
    with closing(open_url(url, database_role=f"{name}_service")) as opened:
        migrate(opened)
    yield url
    postgres.drop(database)
    postgres.run(f"DROP ROLE {name}_service", f"DROP ROLE {name}")


def warnings(url: str, role: str = "normata_service") -> list[str]:
    """What a process that serves is told of its login."""

    def work(transaction: Transaction) -> list[str]:
        return list(service.database.serving_warnings(transaction))

    with closing(Service(url, role=role)) as service:
        return service.read(work)


def name_of(url: str) -> str:
    return url.partition("://")[2].partition(":")[0]


# --- The weak login


def test_the_application_needs_no_more_than_the_weak_login(weak_url: str, postgres_url: str) -> None:
    """All lists, all restores, and what happens beside the requests."""
    headers = {"Authorization": f"Bearer {new_token(postgres_url)}"}
    with TestClient(create_app(Settings(database_url=weak_url, log_level="error"))) as client:
        assert client.get("/readyz").status_code == 200
        for path in ("/controls/", "/frameworks/", "/notifications/"):
            assert client.get(path, params={"organizationId": ALPHA}, headers=headers).status_code == 200
        for kind in KINDS:
            answer = client.post(f"/{kind.path}/{record_id(kind, 'archived')}/restore/", headers=headers)
            assert answer.status_code == 200, answer.text
    with session(postgres_url) as admin:
        assert admin.value("SELECT count(*) FROM audit_event WHERE user_id IS NOT NULL") == len(KINDS)
        assert admin.value("SELECT bool_or(last_used_at IS NOT NULL) FROM access_token") is True


def test_the_lookup_tells_the_weak_login_of_a_token_what_it_cannot_read(weak_url: str, postgres_url: str) -> None:
    token = digest(new_token(postgres_url))
    ask = f"SELECT user_id, role FROM {TOKEN_LOOKUP.name}($1, $2, $3)"
    with session(weak_url) as asking:
        assert asking.rows(ask, [token], [ALPHA], [None]) == [("user-editor", "editor")]
        for table, column in (("access_token", "digest"), ("password", "hash")):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                asking.rows(f"SELECT {column} FROM {table}")


def test_nothing_is_said_of_the_weak_login(weak_url: str) -> None:
    assert warnings(weak_url) == []


def test_nothing_is_said_on_sqlite(sqlite_url: str) -> None:
    with closing(open_url(sqlite_url)) as database:
        assert database.read_now(lambda transaction: list(database.serving_warnings(transaction))) == []


# --- Stronger ones


def test_a_superuser_is_warned_of(postgres_url: str) -> None:
    (warning,) = warnings(postgres_url)
    assert warning.startswith("the login postgres is a superuser, so ")
    assert "a member of normata_service only" in warning


def test_who_bypasses_row_level_security_is_warned_of(roles: Roles) -> None:
    url = roles.login("BYPASSRLS IN ROLE normata_service")
    (warning,) = warnings(url)
    assert warning.startswith(f"the login {name_of(url)} bypasses row-level security, so ")


def test_the_owner_of_the_tables_is_warned_of(owner_url: str) -> None:
    role = f"{name_of(owner_url)}_service"
    (warning,) = warnings(owner_url, role)
    assert warning.startswith(f"the login {name_of(owner_url)} owns the tables, or may act as their owner, so ")
    assert f"a member of {role} only" in warning


@pytest.mark.long
@pytest.mark.parametrize("inherits", ["INHERIT", "NOINHERIT"])
def test_who_may_act_as_the_owner_is_warned_of(postgres: Server, owner_url: str, inherits: str) -> None:
    owner, name = name_of(owner_url), f"normata_login_{uuid4().hex[:12]}"
    postgres.run(f"CREATE ROLE {name} LOGIN {inherits} PASSWORD 'login' IN ROLE {owner}, {owner}_service")
    try:
        (warning,) = warnings(as_role(owner_url, name, "login"), f"{owner}_service")
        assert warning.startswith(f"the login {name} owns the tables, or may act as their owner, so ")
    finally:
        postgres.run(f"DROP ROLE {name}")


# --- normata serve


def said(url: str, folder: Path) -> list[str]:
    """What `normata serve` writes until it is ready."""
    log = folder / "log"
    with serving(url, log=log):
        pass
    return log.read_text("utf-8").splitlines()


@pytest.mark.long
def test_serve_says_so_on_standard_error_and_in_the_log(postgres_url: str, tmp_path: Path) -> None:
    sentence, *lines = said(postgres_url, tmp_path)
    assert sentence.startswith("warning: the login postgres is a superuser, so ")
    (event,) = [one for one in map(json.loads, lines) if one["event"] == "unsafe_login"]
    assert (event["level"], event["reason"]) == ("warning", sentence.removeprefix("warning: "))


@pytest.mark.long
def test_serve_says_nothing_of_the_weak_login(weak_url: str, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in said(weak_url, tmp_path)]
    assert "serving" in {line["event"] for line in lines}
    assert {line["level"] for line in lines} == {"info"}


# --- Commands that the login may not run

COMMANDS = {
    "load": ("load", "bundle.json"),
    "token create": ("token", "create", "--user", USERS["editor"]),
    "token list": ("token", "list"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_under_the_login_of_the_service_says_what_it_needs(
    command: tuple[str, ...], weak_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bundle.json").write_text('{"organizations": [{"id": "new", "name": "New"}]}', "utf-8")
    done = normata(*command, url=weak_url)
    assert done.returncode == 1
    assert is_one_sentence(done.stderr), done.stderr
    assert done.stderr.startswith("normata: the login role of the database URL does not have the rights for this (")
    assert "every other command the owner of the tables" in done.stderr


@pytest.mark.parametrize("command", [("serve",), ("check",), ("token", "list")], ids=" ".join)
def test_a_login_that_may_read_nothing_is_told_so(command: tuple[str, ...], roles: Roles) -> None:
    done = normata(*command, url=roles.login(""), settings={"NORMATA_PORT": str(free_port())})
    assert done.returncode == 1
    assert is_one_sentence(done.stderr), done.stderr
    assert "permission denied for table alembic_version" in done.stderr
    assert "`normata serve` needs a member of the service's role" in done.stderr
