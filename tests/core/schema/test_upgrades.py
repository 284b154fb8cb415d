"""Every schema that ever was, filled, becomes the current one with all that it held."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Column, Connection, MetaData, select

from normata.audits.model import ChecklistRow
from normata.cli import check
from normata.cli.upgrade import upgrade
from normata.comments.model import Comment
from normata.core.changes.revisions import ListRevision
from normata.core.db.database import Database
from normata.core.db.types import now
from normata.core.http.operation import ChangeOperation, ListOperation, Operation
from normata.core.schema import migrations
from normata.core.schema.history_triggers import FOREVER
from normata.core.schema.migrations import upgrading
from normata.coverage.recompute import recompute
from normata.coverage.upgrades import ReportedChange, reported_changes
from normata.entitlements.model import EntitlementReviewItem
from normata.events.model import AuditEvent
from normata.external_ids.model import ExternalId
from normata.files.model import File
from normata.frameworks.evidence_model import ControlEvidence
from normata.frameworks.model import ControlCoverage, EffectiveCoverage
from normata.history.model import HISTORY_TABLES, HistoryStart
from normata.identity.model import CalendarAddress
from normata.links.model import Link
from normata.notifications.model import Notification
from normata.operations import OPERATIONS, SECURITY
from normata.policies.acknowledgement_model import Acknowledgement
from normata.policies.model import PolicyVersion
from normata.records.assurance import Evidence
from normata.records.base import Restorable
from normata.recurrences.model import Recurrence
from normata.risks.review_model import RiskReviewOutcome
from normata.soa_versions.model import SoaVersion
from normata.tables import Table
from normata.vendors.link_model import VendorLink
from normata.vendors.model import Questionnaire, VendorAnswer
from normata.views.model import SavedView
from tests import stored, world
from tests.core.http.samples import enough, sample
from tests.databases import change, migrate, open_url
from tests.scim.rows import PROVISIONED
from tests.served import run_sql, served
from tests.webhooks.rows import add_missing_webhooks

VERSIONS = sorted(migrations.known_versions())
SHARES = 3
# The upgrade of the first version goes through every migration, so a share of the others is tried: a larger one on
# SQLite, which makes a table anew for most changes of it, and all of the newest there, whose migrations are new.
NEWEST = 6
ON_SQLITE = sorted({*VERSIONS[::3], *VERSIONS[-NEWEST:]})
ON_POSTGRESQL = sorted({*VERSIONS[::8], VERSIONS[-2]})
TRIED = sorted({*ON_SQLITE, *ON_POSTGRESQL})
FILLED = [(version, "sqlite") for version in ON_SQLITE] + [(version, "postgresql") for version in ON_POSTGRESQL]


def asked(version: str) -> list[Operation]:
    """The operations that are tried after the upgrade of a version: those of one kind, and a share of all others.

    What is stored then is what a fresh load makes, so each need not be tried after each version.
    """
    number = TRIED.index(version)
    kind = Restorable.kinds[number % len(Restorable.kinds)]
    left_out = {other.path for other in Restorable.kinds if other is not kind}
    return [one for one in OPERATIONS if one.path.split("/")[1] not in left_out][number % SHARES :: SHARES]


KEPT = {one.cached for one in OPERATIONS if isinstance(one, ListOperation) and one.cached}

Contents = dict[str, list[str]]
HELD = f"file-of-{world.ALPHA}"  # a file that a record has, while nobody has that of beta


@pytest.fixture
def old(old_url: str) -> Iterator[Database]:
    """The database that is to be brought up to date."""
    with closing(open_url(old_url)) as database:
        yield database


@pytest.fixture
def fresh(sqlite_url: str) -> Iterator[Database]:
    """The test world as a load into the current schema makes it."""
    with closing(open_url(sqlite_url)) as database:
        yield database


def forget_the_newer(fresh: Database, old: Database, version: str) -> bool:
    """Take from the world what the schema of a version could not hold; whether what is for sign-in was among it.

    That is newer kinds of record, too, saved views, links, comments, files, versions of statements, outcomes and
    items of reviews, and service accounts.
    """
    there = old.read_now(lambda transaction: transaction.tables())
    tables = [
        *(kind.sql().name for kind in Restorable.kinds),
        *(str(one.__tablename__) for one in (SavedView, Link, File, Comment, SoaVersion, Acknowledgement)),
        *(str(one.__tablename__) for one in (ChecklistRow, RiskReviewOutcome, Recurrence, EntitlementReviewItem)),
        *(str(one.__tablename__) for one in (Questionnaire, VendorAnswer, VendorLink, CalendarAddress, ExternalId)),
        *(*(str(one.__tablename__) for one in PROVISIONED), "webhook", "webhook_delivery"),
    ]
    newer = [name for name in tables if name not in there]
    if {Evidence.__tablename__, Link.__tablename__}.intersection(newer):  # which it follows from
        newer.append(str(ControlEvidence.__tablename__))
    run_sql(fresh, *(f"DELETE FROM {name}" for name in newer))
    if str(PolicyVersion.__tablename__) not in there:  # the upgrade makes those that say they were imported
        run_sql(fresh, "DELETE FROM policy_version WHERE NOT is_imported")
    if version >= "20261122_11":
        return False
    run_sql(
        fresh,
        *(f"DELETE FROM {name}" for name in ("operator", "session", "invitation", "access_token")),
        "DELETE FROM membership WHERE user_id LIKE 'robot-%'",
        "DELETE FROM user_account WHERE organization_id IS NOT NULL",
    )
    return True


def fill(old: Database, fresh: Database) -> int:
    """Copy all rows of all tables that the old schema has, as far as it has their columns; how many there are."""
    tables = Table.metadata.sorted_tables
    rows = fresh.read_now(
        lambda transaction: {
            table.name: [row._asdict() for row in transaction.rows(select(*table.c))] for table in tables
        }
    )

    def write(connection: Connection) -> int:
        there = MetaData()
        there.reflect(connection)
        written = 0
        for table in tables:
            if table.name in there.tables and rows[table.name] and table.name not in PAST:
                known = there.tables[table.name].c
                values = [
                    {name: as_it_was(column, row[name]) for name, column in known.items() if name in row}
                    for row in rows[table.name]
                ]
                connection.execute(table.insert(), values)
                written += len(values)
        begin_the_past(connection, there)
        return written

    return old.alter_now(write)


PAST = {str(table.__tablename__) for table in HISTORY_TABLES}


def begin_the_past(connection: Connection, there: MetaData) -> None:
    """Let the past begin with the rows that are there: they came one after the other, past the rules."""
    moment = now()
    for name in PAST & there.tables.keys():
        table = Table.metadata.tables[name]
        if name == HistoryStart.__tablename__:
            connection.execute(table.update().values(since=moment))
        else:
            connection.execute(table.delete().where(table.c.valid_to != FOREVER))
            connection.execute(table.update().values(valid_from=moment))


def as_it_was(column: Column[Any], value: Any) -> Any:
    """A value as an older schema has it: what an assessment left open was applicable, and not covered."""
    return _ONCE[column.name] if value is None and not column.nullable else value


_ONCE = {"coverage_status": "NONE", "is_applicable": True}


def lasting(contents: Contents) -> Contents:
    """Contents without what is new each time: the revisions of lists, the times of statements, and the past.

    What was before depends on how the rows came there, and begins with the upgrade.
    """
    # The owner, the note and the review follow, when it was assessed, and what has lapsed.
    times = re.compile(
        r", '20\d\d-[^']*', '20\d\d-[^']*', None, None, None, ('20\d\d-[^']*'|None)(?=, None, None, None, None\)$)"
    )
    cached = {name: rows for name, rows in contents.items() if name not in {ListRevision.__tablename__, *PAST}}
    statements = cached[str(ControlCoverage.__tablename__)]
    assert all(times.search(row) for row in statements)
    return cached | {str(ControlCoverage.__tablename__): [times.sub("", row) for row in statements]}


def but_for_assessments(contents: Contents) -> Contents:
    """Contents without what is recorded of controls."""
    return {name: rows for name, rows in contents.items() if name != ControlCoverage.__tablename__}


def revisions(database: Database) -> list[tuple[Any, ...]]:
    """Of which organization and list there is a revision."""
    statement = select(ListRevision.organization_id, ListRevision.list, ListRevision.revision)
    found = database.read_now(lambda transaction: transaction.rows(statement))
    assert all(row.revision for row in found)
    return sorted((row.organization_id, row.list) for row in found)


def faults(database: Database) -> list[str]:
    """What `normata check` finds."""
    return database.read_now(lambda transaction: list(check.faults(database, transaction, SECURITY)))


@pytest.mark.long
@pytest.mark.parametrize(("version", "old_url"), FILLED, indirect=["old_url"])
def test_what_an_older_schema_holds_is_what_a_fresh_load_makes(
    version: str, old: Database, fresh: Database, old_url: str
) -> None:
    """In two steps: as far as is needed, with the version before still running, and to the end. Then it is served."""
    lacks_sign_in = forget_the_newer(fresh, old, version)
    run_sql(fresh, f"UPDATE evidence SET file_ids = '[\"{HELD}\"]' WHERE organization_id = '{world.ALPHA}'")
    assert old.read_now(migrations.is_servable) is (version >= migrations.needed())
    assert fill(old, fresh) > 100
    upgrading.prepare(old, Table.metadata, SECURITY, finish=False)
    assert old.read_now(migrations.version) == max(version, migrations.needed())
    assert old.read_now(migrations.is_servable)
    old.read_now(migrations.require_current)
    files = {row["id"]: row["detached_at"] for row in stored.rows(old, File)}
    if files and version < "20261126_10":  # what no record has counts as given up since the upgrade
        assert {name for name, moment in files.items() if moment is None} == {HELD}
        run_sql(old, "UPDATE file SET detached_at = NULL")
    # What assessments leave open is written only when no version is left that would not know what that is.
    assert but_for_assessments(lasting(world.contents(old))) == but_for_assessments(lasting(world.contents(fresh)))
    migrate(old)
    assert old.read_now(migrations.version) == migrations.head()
    assert lasting(world.contents(old)) == lasting(world.contents(fresh))
    assert revisions(old) == [(name, cached) for name in (world.ALPHA, world.BETA) for cached in sorted(KEPT)]
    assert faults(old) == []
    world.load(old, world.bundle())
    change(old, world.furnish if lacks_sign_in else add_missing_webhooks)
    change(old, world.remember)
    with served(old_url, database_timeout=30) as service:  # it is not about time, and others use the machine
        bearers = {user: service.bearer(user) for user in {*map(enough, OPERATIONS)}}
        for operation in asked(version):
            request = sample(operation)
            if isinstance(operation, ChangeOperation):  # it may take away what others are about
                request = request.but(query=request.query | {"dryRun": "true"})
            response = request.send(service.client, bearers[enough(operation)])
            assert response.is_success, response.text


@pytest.mark.long
@pytest.mark.parametrize("old_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("version", ON_SQLITE)
def test_the_least_that_a_reference_needs(old: Database) -> None:
    """One organization with one membership: to make either table anew breaks the reference between them."""
    was_there = ListRevision.__tablename__ in old.read_now(lambda transaction: transaction.tables())
    run_sql(
        old,
        "INSERT INTO organization (id, name, slug) VALUES ('o', 'O', 'o')",
        "INSERT INTO user_account (id, email, name, email_folded) VALUES ('u', 'u@x', 'U', 'u@x')",
        "INSERT INTO membership (id, organization_id, user_id, role) VALUES ('m', 'o', 'u', 'owner')",
    )
    migrate(old)
    assert faults(old) == []
    assert was_there or revisions(old) == [("o", cached) for cached in sorted(KEPT)]


@pytest.mark.parametrize("old_url", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("version", ["20261124_11"])
def test_a_status_that_nobody_meant_is_null_afterwards(old: Database) -> None:
    """Justified, with reasons or excluded, and without a gap; the report names each. All else is as it was."""
    rows = {  # status, gap, applicable, justification, reasons
        "bare": (0, None, True, None, ""),
        "gap": (0, "All of it.", True, "Law.", "LEGAL"),
        "justified": (0, "", True, "Law.", ""),
        "reasoned": (0, None, True, " ", "LEGAL"),
        "excluded": (0, " ", False, "No premises.", ""),
        "partial": (1, None, True, "Law.", "LEGAL"),
        "full": (2, None, False, "No premises.", ""),
    }
    run_sql(
        old,
        "INSERT INTO organization (id, name, slug) VALUES ('o', 'O', 'o')",
        "INSERT INTO framework (id, identifier, slug, name, created_at, updated_at, is_active, is_centralized,"
        " required_tier, search_text, identifier_key, name_key, slug_key) VALUES"
        " ('f', 'F', 'f', 'F', '2026-01-02 00:00:00', '2026-01-02 00:00:00', true, true, 'free-trial', '', '', '', '')",
        *(
            "INSERT INTO control (id, framework_id, identifier, name, slug, type, is_mandatory, is_centralized,"
            " created_at, updated_at, position, search_text, identifier_key, name_key, slug_key) VALUES"
            f" ('{control}', 'f', '{control}', 'C', '{control}', 'CONTROL', false, true, '2026-01-02 00:00:00',"
            f" '2026-01-02 00:00:00', {number}, '', '', '', '')"
            for number, control in enumerate(rows)
        ),
        *(
            "INSERT INTO control_coverage (id, organization_id, control_id, coverage_status, coverage_gap,"
            f" is_applicable, justification, reasons) VALUES ('{control}', 'o', '{control}', {status},"
            f" {'NULL' if gap is None else repr(gap)}, {str(applies).lower()},"
            f" {'NULL' if why is None else repr(why)}, '{reasons}')"
            for control, (status, gap, applies, why, reasons) in rows.items()
        ),
    )
    migrate(old)
    found = {row["control_id"]: row for row in stored.rows(old, ControlCoverage)}
    assert {control: (row["coverage_status"], row["is_applicable"]) for control, row in found.items()} == {
        "bare": ("NONE", None),
        "gap": ("NONE", None),
        "justified": (None, None),
        "reasoned": (None, None),
        "excluded": (None, False),
        "partial": ("PARTIAL", None),
        "full": ("FULL", False),
    }
    assert [row["coverage_gap"] for row in found.values()] == [rows[control][1] for control in found]
    assert old.read_now(lambda transaction: list(reported_changes(transaction))) == [
        ReportedChange("o", "F", control, "NOT_ASSESSED", "NONE", "not assessed")
        for control in ("justified", "reasoned", "excluded")
    ]


CONTRADICTED: dict[
    str, dict[str, Any]
] = {  # the world has FULL matches from sun.A.1, which is FULL, to moon.A.1, and from that to own.A.2
    "moon.A.1": {"coverageStatus": "NONE", "coverageGap": "All of it."},
    "own.A.2": {"coverageStatus": None, "justification": "By law."},  # that was NONE, and nobody meant it
    "sun.A": {"coverageStatus": "FULL"},  # and sun.A.2 is PARTIAL
}
OTHER_RULES = "UPDATE effective_coverage SET status = 2, own = 2 WHERE control_id IN ('own.A.9', 'moon.A.7')"


def in_conflict(database: Database) -> dict[str, str]:
    return {row["control_id"]: row["conflict"] for row in stored.rows(database, EffectiveCoverage) if row["conflict"]}


def about_coverage(database: Database) -> list[tuple[str, str]]:
    rows = [row for row in stored.rows(database, Notification) if row["type"].startswith("coverage.")]
    return sorted((row["user_id"], row["type"]) for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("old_url", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("version", ["20261122_13", "20261124_11"])
def test_conflicts_are_stored_by_the_upgrade_and_are_no_news(old: Database, fresh: Database, version: str) -> None:
    """Admins are notified once, of the rules. What the next computation finds is what is stored."""
    assessments = [
        {"id": f"say-{control}", "organizationId": world.ALPHA, "controlId": control, **said}
        for control, said in CONTRADICTED.items()
    ]
    world.load(fresh, {"controlCoverages": assessments})
    expected = {"moon.A.1": "MATCHES", "sun.A": "BELOW"}
    assert in_conflict(fresh) == expected
    past = (f"DELETE FROM {name}" for name in ("audit_event", "unsealed_event"))
    run_sql(fresh, *past, "DELETE FROM notification WHERE type LIKE 'coverage.%'", OTHER_RULES)
    forget_the_newer(fresh, old, version)
    fill(old, fresh)
    tried = upgrade(old, finish=True, command="normata migrate", dry_run=True)
    upgrade(old, finish=False, command="normata migrate")
    if not old.embedded:  # the version before goes on, and stores coverage by its rules
        # It does not know what is not assessed yet.
        assert in_conflict(old) == expected | {"own.A.2": "MATCHES"}
        assert faults(old) == []
        run_sql(old, OTHER_RULES)
    done = upgrade(old, finish=True, command="normata migrate")
    assert done.recorded == tried.recorded
    assert in_conflict(old) == expected
    assert faults(old) == []
    once = [(f"user-{user}", "coverage.rules_changed") for user in ("admin", "owner")]
    assert about_coverage(old) == once
    assert stored.rows(old, AuditEvent, action="lose") == stored.rows(old, AuditEvent, action="conflict") == []
    assert change(old, lambda unit: recompute(unit, world.ALPHA)) == 0
    assert about_coverage(old) == once
    assert {one.control: (one.before, one.after) for one in done.recorded} == {
        "A.2": ("NONE", "not assessed"),
        "A.7": ("FULL", "NONE"),
        "A.9": ("FULL", "NONE"),
    }
    assert world.BETA not in {row["organization_id"] for row in stored.rows(old, Notification, type=once[0][1])}


@pytest.mark.long
@pytest.mark.parametrize("old_url", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("version", ["20261122_13"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_of_what_applies_as_before_an_upgrade_says_nothing(
    old: Database, fresh: Database, version: str, dry_run: bool
) -> None:
    """That an assessment no longer says that a control applies is no news; that it is excluded with its group is."""
    excluded = {"coverageStatus": "NONE", "isApplicable": False, "justification": "We have no moon."}
    said: dict[str, dict[str, Any]] = {"moon.A": excluded, "sun.A.2": {"coverageStatus": "FULL"}}
    assessments = [
        {"id": f"say-{control}", "organizationId": world.ALPHA, "controlId": control, **values}
        for control, values in said.items()
    ]
    world.load(fresh, {"controlCoverages": assessments})
    run_sql(fresh, *(f"DELETE FROM {name}" for name in ("audit_event", "unsealed_event")))
    forget_the_newer(fresh, old, version)
    fill(old, fresh)
    below = {row["control_id"] for row in stored.rows(fresh, EffectiveCoverage) if not row["applies"]} - {"moon.A"}
    assert len(below) > 3
    found = upgrade(old, finish=True, command="normata migrate", dry_run=dry_run).differences
    places = {one.place: (one.before, one.after) for one in found if one.subject.name == "applicability"}
    assert places == {f"SUN-10 {control.removeprefix('moon.')}": ("applies", "does not apply") for control in below}
