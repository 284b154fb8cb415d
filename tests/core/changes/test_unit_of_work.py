"""Around every change, once and for all alike: what it declares, whom it reaches, what follows from it, one commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import bindparam, insert, update

from normata.console.writes import SIGN_IN_WRITES
from normata.core.changes.idempotency import KEY_WRITES
from normata.core.changes.jobs import JOB_WRITES
from normata.core.changes.revisions import current_revision
from normata.core.changes.unit_of_work import Actor, Change, Changes, Subscriber, UndeclaredWrite, UnitOfWork, update_of
from normata.core.changes.writing import every_column_of
from normata.core.db.database import Database
from normata.core.db.security import Write
from normata.core.db.transaction import ConstraintViolation, TenantScope, Transaction
from normata.core.http.operation import ChangeOperation, ListOperation
from normata.core.schema.table import sql_table
from normata.errors import Forbidden, NotFound
from normata.events.sealing import SEALING_WRITES
from normata.frameworks.model import Framework
from normata.identity.invitations.invitations import ACCEPTING_WRITES
from normata.identity.model import AccessToken, CalendarAddress
from normata.identity.sign_in_model import Session
from normata.notifications.outbox import MAILING_WRITES
from normata.operations import OPERATIONS, SECURITY
from normata.records.kinds import Label, Policy
from normata.retention.forgetting import FORGETTING_WRITES
from normata.scim.endpoint import PROVISIONING_WRITES
from normata.tables import Table
from normata.webhooks.deliveries import DISABLING_WRITES
from normata.wiring import SUBSCRIBERS, job_types
from tests import stored, world
from tests.databases import open_url
from tests.world import ALPHA, BETA, EARLIER

KEPT = sorted({one.cached for one in OPERATIONS if isinstance(one, ListOperation) and one.cached})

EDITOR = Actor("user-editor", "Editor", "token", "chain-1")
HERE = TenantScope(readable=(ALPHA,), writable=(ALPHA,))
LABEL = world.record_id(Label, "live")
CHANGE_OF_LABEL = every_column_of(Label)

_labels, _policies, _frameworks = sql_table(Label), sql_table(Policy), sql_table(Framework)
RENAME = update(_labels).where(_labels.c.id == bindparam("label")).values(name=bindparam("new")).returning(*_labels.c)

Work = Callable[[UnitOfWork], Any]


@pytest.fixture
def database(sqlite_url: str) -> Any:
    """The test world. The road is the same on every database; tests/records walks it on both."""
    opened = open_url(sqlite_url)
    yield opened
    opened.close()


def renamed(unit: UnitOfWork, name: str = "New", label: str = LABEL) -> Any:
    """Give a label another name, without saying so."""
    return unit.row(RENAME, {"label": label, "new": name})


def rename(unit: UnitOfWork) -> None:
    """Give a label another name, as a change must."""
    row = renamed(unit)
    unit.publish(Change("rename", Label, row.organization_id, row.id, row._asdict()))


def make(
    database: Database,
    work: Work,
    *,
    scope: TenantScope = HERE,
    writes: Sequence[Write] = (CHANGE_OF_LABEL,),
    subscribers: Sequence[Subscriber] = SUBSCRIBERS,
) -> Any:
    """Make a change as a request does."""
    return asyncio.run(Changes(database, subscribers, Label).make(work, actor=EDITOR, scope=scope, writes=writes))


def test_a_change_and_what_follows_from_it_are_kept_together(database: Database) -> None:
    make(database, rename)
    assert stored.row(database, Label, LABEL)["name"] == "New"
    (event,) = stored.events(database)
    told = {name: event[name] for name in ("action", "entity_type", "entity_id", "user_id", "token_id", "request_id")}
    assert told == {
        "action": "rename",
        "entity_type": "Label",
        "entity_id": LABEL,
        "user_id": "user-editor",
        "token_id": "token",
        "request_id": "chain-1",
    }


class Failing:
    """A subscriber that cannot do its part."""

    writes = ()

    def __call__(self, transaction: Transaction, changes: Sequence[Change], actor: Actor, moment: str) -> None:
        del transaction, changes, actor, moment
        raise RuntimeError("a subscriber fails")


def test_where_a_subscriber_fails_nothing_is_kept(database: Database) -> None:
    before = stored.everything(database)
    with pytest.raises(RuntimeError, match="subscriber"):
        make(database, rename, subscribers=(*SUBSCRIBERS, Failing()))
    assert stored.everything(database) == before


def also_a_policy(unit: UnitOfWork) -> None:
    rename(unit)
    unit.rows(update(_policies).values(title="x"))


UNDECLARED: dict[str, tuple[Work, Sequence[Write]]] = {
    "a table that is not declared": (also_a_policy, (CHANGE_OF_LABEL,)),
    "an action that is not declared": (rename, (Write("label", "INSERT"),)),
    "nothing declared": (rename, ()),
    "nothing published": (renamed, (CHANGE_OF_LABEL,)),
}


@pytest.mark.parametrize("case", UNDECLARED)
def test_what_is_written_without_a_word_is_a_defect_and_not_kept(database: Database, case: str) -> None:
    work, writes = UNDECLARED[case]
    before = stored.everything(database)
    with pytest.raises(UndeclaredWrite):
        make(database, work, writes=writes)
    assert stored.everything(database) == before


def test_a_statement_that_finds_no_row_has_written_nothing(database: Database) -> None:
    before = stored.everything(database)
    assert make(database, lambda unit: renamed(unit, label="nowhere")) is None
    assert stored.everything(database) == before


def test_what_follows_from_a_column_is_declared_with_it() -> None:
    """Else a label would be found by the name that it had."""
    with pytest.raises(UndeclaredWrite, match="search_text, title_key of label follow from name: write them"):
        update_of(Label, "name")
    assert update_of(Label, "name", "search_text", "title_key").columns == {"name", "search_text", "title_key"}
    assert update_of(Label, "archived_at").columns == {"archived_at"}
    with pytest.raises(UndeclaredWrite, match="name_key"):
        update_of(Framework, "name")
    assert update_of(Framework, "control_count").columns == {"control_count"}


@pytest.mark.parametrize(
    ("scope", "error"),
    [
        (TenantScope(readable=(ALPHA,)), Forbidden),
        (TenantScope(readable=(BETA,), writable=(BETA,)), NotFound),
        (TenantScope(), NotFound),
    ],
)
def test_what_happens_out_of_reach_is_refused_and_not_kept(
    database: Database, scope: TenantScope, error: type[Exception]
) -> None:
    """Whoever may see the organization is told that it is forbidden, others nothing."""
    before = stored.everything(database)
    with pytest.raises(error):
        make(database, rename, scope=scope)
    assert stored.everything(database) == before


def test_what_is_everybodys_is_in_nobodys_reach(database: Database) -> None:
    def work(unit: UnitOfWork) -> None:
        unit.rows(update(_frameworks).where(_frameworks.c.id == "fw-sun").values(name="Mine"))
        unit.publish(Change("rename", Framework, None, "fw-sun", {}))

    with pytest.raises(NotFound):
        make(database, work, writes=(every_column_of(Framework),))
    assert stored.row(database, Framework, "fw-sun")["name"] == "Sun Standard"


# --- Races


def taken(unit: UnitOfWork) -> None:
    """Take a slug that another live label has."""
    unit.rows(update(_labels).where(_labels.c.id == LABEL).values(slug="labels-shared"))


def test_whoever_loses_a_race_is_run_again_and_sees_the_winner(database: Database) -> None:
    attempts = []

    def work(unit: UnitOfWork) -> int:
        attempts.append(unit.moment)
        if len(attempts) == 1:
            taken(unit)
        rename(unit)
        return len(attempts)

    assert make(database, work, writes=(CHANGE_OF_LABEL,)) == 2
    assert stored.row(database, Label, LABEL)["slug"] == "labels-live"
    assert len(stored.events(database)) == 1


def test_whoever_loses_twice_is_told(database: Database) -> None:
    before = stored.everything(database)
    with pytest.raises(ConstraintViolation):
        make(database, taken, writes=(CHANGE_OF_LABEL,))
    assert stored.everything(database) == before


# --- Commands


def test_a_command_reaches_every_organization(database: Database) -> None:
    """There is no user to name; and what it writes need not be declared."""

    def work(unit: UnitOfWork) -> None:
        for organization in (ALPHA, BETA):
            row = renamed(unit, label=world.record_id(Label, "live", organization))
            unit.publish(Change("rename", Label, organization, row.id, row._asdict()))

    Changes(database, SUBSCRIBERS, Label).make_now(work)
    for organization in (ALPHA, BETA):
        assert stored.row(database, Label, world.record_id(Label, "live", organization))["name"] == "New"
    assert stored.events(database) == []


def test_a_command_must_say_what_it_has_changed_all_the_same(database: Database) -> None:
    with pytest.raises(UndeclaredWrite):
        Changes(database, SUBSCRIBERS, Label).make_now(renamed)


# --- Revisions


def revisions(database: Database) -> dict[tuple[str, str], str]:
    """The revision of every kept list of both organizations."""
    places = [(organization, name) for organization in (ALPHA, BETA) for name in KEPT]
    return database.read_now(lambda transaction: {place: current_revision(transaction, *place) for place in places})


SHOWN = sorted(
    (mapper.class_ for mapper in Table.registry.mappers if mapper.class_.published), key=lambda table: table.__name__
)


@pytest.mark.parametrize("table", SHOWN, ids=lambda table: str(table.__tablename__))
@pytest.mark.parametrize("organization", [ALPHA, None])
def test_a_change_advances_the_lists_that_show_it_and_no_others(
    database: Database, table: type[Table], organization: str | None
) -> None:
    """Of its organization alone; of all of them, where it is centralized."""
    before = revisions(database)
    Changes(database, SUBSCRIBERS, Label).make_now(lambda unit: unit.publish(Change("touch", table, organization)))
    after = revisions(database)
    touched = {place for place in before if after[place] != before[place]}
    everywhere = {ALPHA, BETA} if organization is None else {organization}
    assert touched == {(place, name) for place, name in before if place in everywhere and name in table.shown_in}


def test_every_list_that_a_table_is_shown_in_is_kept() -> None:
    assert {name for mapper in Table.registry.mappers for name in mapper.class_.shown_in} == set(KEPT)


# --- Rights


def test_the_service_may_write_what_operations_and_subscribers_declare_and_no_more() -> None:
    declared = {write for one in OPERATIONS if isinstance(one, ChangeOperation) for write in one.writes}
    declared |= {write for subscriber in SUBSCRIBERS for write in subscriber.writes}
    beside = {update_of(table, "last_used_at") for table in (AccessToken, CalendarAddress, Session)}
    beside |= {*SEALING_WRITES, *PROVISIONING_WRITES}
    beside |= {*KEY_WRITES, *SIGN_IN_WRITES, *ACCEPTING_WRITES, *JOB_WRITES, *MAILING_WRITES}
    beside |= {*DISABLING_WRITES, *FORGETTING_WRITES}
    beside |= {write for one in job_types() for write in one.writes}
    assert set(SECURITY.writes) == declared | beside, "beside the requests, by whatever comes with a key, and by pages"
    assert declared <= set(SECURITY.writes)


def test_an_insert_is_not_an_update(database: Database) -> None:
    def work(unit: UnitOfWork) -> None:
        unit.rows(
            insert(_labels).values(
                id="l", organization_id=ALPHA, slug="l", name="L", created_at=EARLIER, updated_at=EARLIER
            )
        )

    with pytest.raises(UndeclaredWrite, match="insert"):
        make(database, work)
