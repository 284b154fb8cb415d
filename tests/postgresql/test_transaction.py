"""How a script's transaction begins: what it is told goes along with the BEGIN, written out, whatever it contains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import ARRAY, String, func, insert, literal_column, select
from sqlalchemy.exc import IntegrityError

from normata.database import Script, Sight
from normata.identity.model import AuditEvent
from tests import world
from tests.postgresql.conftest import Service, session

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
HOSTILE = (
    "'; DROP TABLE policy; --",
    "\\'; DROP TABLE policy; --",
    '"},{"org-beta',
    '\\"},{\\"org-beta',
    "a,b",
    "{}",
    "NULL",
    "",
    " ",
    "\\",
    "\\\\'",
    "$1",
    "$$",
    "E'\\''",
    "\n\t\x01",
    "Ωδ≠🜚",
)


@pytest.fixture(params=["on", "off"])
def service(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[Service]:
    """The service, where backslashes in texts mean themselves and where they do not."""
    with session(postgres_url) as everything:
        name = everything.value("SELECT current_database()")
        everything.run(f'ALTER DATABASE "{name}" SET standard_conforming_strings = {request.param}')
    opened = Service(postgres_url)
    yield opened
    opened.close()


def told() -> Script[dict[str, Any]]:
    """What the transaction knows."""
    (row,) = yield _TOLD, {}
    return dict(row)


_TOLD = select(
    literal_column("current_user::text", String).label("role"),
    literal_column("current_setting('normata.organizations')::text[]", ARRAY(String)).label("organizations"),
    func.current_setting("normata.token").label("token"),
    func.current_setting("statement_timeout").label("statement"),
    func.current_setting("lock_timeout").label("lock"),
    func.current_setting("idle_in_transaction_session_timeout").label("idle"),
    func.current_setting("transaction_read_only").label("read_only"),
)


def test_it_is_told_who_acts_and_how_long_anything_may_take(service: Service) -> None:
    assert service.run(service.database.perform(told, Sight((world.ALPHA, world.BETA)))) == {
        "role": "normata_service",
        "organizations": [world.ALPHA, world.BETA],
        "token": "",
        "statement": "5s",
        "lock": "5s",
        "idle": "20s",
        "read_only": "off",
    }


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(organizations=st.lists(TEXTS))
def test_whatever_it_is_told_arrives_as_it_was(service: Service, organizations: list[str]) -> None:
    found = service.run(service.database.perform(told, Sight(tuple(organizations))))
    assert found["organizations"] == organizations


def test_nothing_that_it_is_told_is_taken_for_a_statement(service: Service) -> None:
    for text in HOSTILE:
        found = service.run(service.database.perform(told, Sight((text, text))))
        assert found["organizations"] == [text, text]


def test_after_a_script_that_fails_nothing_of_it_is_left_and_the_connection_is_as_new(service: Service) -> None:
    def failing() -> Script[None]:
        yield insert(AuditEvent).values(id="x", organization_id=world.ALPHA, action="restore"), {}

    sight = Sight((world.ALPHA,))
    for _ in range(3):
        with pytest.raises(IntegrityError):
            service.run(service.database.perform(failing, sight))
        found = service.run(service.database.perform(told))
        assert (found["organizations"], found["token"]) == ([], "")
