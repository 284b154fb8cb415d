"""The checks of ``normata check``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock

from sqlalchemy import func, or_, select

from normata.cli.workers import Workers, workers
from normata.core.changes.jobs import failing
from normata.core.db.database import Database
from normata.core.db.security import Security
from normata.core.db.transaction import Transaction
from normata.core.db.types import now
from normata.core.schema.table import sql_table
from normata.coverage.recompute import is_current
from normata.events.checking import event_faults, log_faults, pending, unsealed_faults
from normata.events.contents import Contents, Part, contents_of, parts_of
from normata.events.keys import Signer
from normata.events.model import AuditEvent
from normata.events.seals import Known, Seals, end_of, owners, seals_of
from normata.events.verified import Verified
from normata.evidence.following import is_followed
from normata.external_ids.checking import external_id_faults
from normata.files.checking import file_faults
from normata.files.opening import open_store
from normata.frameworks.model import Control, Framework
from normata.history.past import Past
from normata.history.samples import random_moments
from normata.identity.model import Organization
from normata.identity.openid import groups
from normata.identity.openid.configuration import Configuration
from normata.operations import SECURITY
from normata.oscal.checking import original_faults
from normata.policies.checking import text_faults
from normata.settings import Settings
from normata.soa_versions.checking import version_faults
from normata.tables import Table

Report = Callable[[str, int, int], None]  # the step, its progress and its total; 0 if unknown

_MANY = 50_000  # events that are worth several processes, each of which takes a second to start
_ORGANIZATIONS_AT_ONCE = 20


@dataclass(slots=True)
class Findings:
    """The findings: the faults, a sentence each, the seals of each log, and the number of checked events.

    ``since`` has the parts that were verified before, and not checked again.
    """

    faults: list[str]
    seals: list[Seals]
    looked_at: int
    since: Mapping[str, Verified] = field(default_factory=dict)

    def verified(self) -> dict[str, Verified]:
        """The verified parts; none if there are faults."""
        moment = now()
        return {
            seals.owner: Verified(
                Known(seals.size, seals.root),
                moment,
                self.since[seals.owner].whole_at if seals.owner in self.since else moment,
            )
            for seals in self.seals
        }


def faults(
    database: Database, transaction: Transaction, security: Security, signer: Signer | None = None
) -> Iterator[str]:
    """All faults, a sentence each, found in one transaction.

    These are faults that the database itself finds (damage, broken references, wrong policies and grants), wrong stored
    coverage and counts, events, versions and imported documents that are not as they were, and jobs that fail
    repeatedly. Those of files are found by :func:`look_at_everything` alone. ``signer`` has the key of the events.
    Raises KeyUnusable.
    """
    yield from database.faults(transaction, Table.metadata, security)
    yield from _coverage_faults(database, transaction, transaction.scalars(_ORGANIZATION_IDS))
    yield from _count_faults(database, transaction)
    yield from event_faults(transaction, signer)
    yield from version_faults(transaction)
    yield from original_faults(transaction)
    yield from text_faults(transaction)
    yield from external_id_faults(transaction)
    yield from _job_faults(transaction)


def look_at_everything(database: Database, settings: Settings, signer: Signer, report: Report) -> Findings:
    """Find the same as :func:`faults`, with all processors. Raises KeyUnusable.

    Each part is checked in a transaction of its own. Sealed events do not change except by erasure, whose events are
    read last.
    """
    ends = database.read_now(_ends)
    organizations = database.read_now(lambda transaction: transaction.scalars(_ORGANIZATION_IDS))
    with workers(database, settings, are_worth_it=sum(ends.values()) > _MANY) as pool:
        report("Pages and references", 0, 1)
        stored = pool.submit(_database_faults, done=lambda: report("Pages and references", 1, 1))
        reader = _Reader(pool, report)
        for owner, end in ends.items():
            reader.add(owner, 0, end)
        coverage = _each_batch(pool, organizations, report)
        counts = pool.submit(_count_faults_of)
        unsealed = pool.submit(_unsealed_faults_of)
        versions = pool.submit(_version_faults_of)
        files = pool.submit(_file_faults_of, settings)
        # At the end, since seals must be checked one after the other.
        seals = database.read_now(lambda transaction: _seals(transaction, {}, report))
        for one in seals:
            reader.add(one.owner, ends.get(one.owner, 0), one.end)
        contents = reader.results()
        before = [*stored.result(), *(fault for some in coverage for fault in some.result()), *counts.result()]
        found = database.read_now(lambda transaction: list(log_faults(transaction, seals, contents, signer)))
        jobs = database.read_now(lambda transaction: list(_job_faults(transaction)))
        return Findings(
            [*before, *found, *unsealed.result(), *versions.result(), *files.result(), *jobs],
            seals,
            sum(one.end for one in seals),
        )


def look_quickly(
    database: Database, settings: Settings, signer: Signer, since: Mapping[str, Verified], report: Report
) -> Findings:
    """Find faults of the schema, and of the events after those that were verified before. Raises KeyUnusable."""

    def schema(transaction: Transaction) -> list[str]:
        return list(database.faults(transaction, Table.metadata, SECURITY, only_schema=True))

    before = database.read_now(schema)
    known = {owner: one.known for owner, one in since.items()}
    seals = database.read_now(lambda transaction: _seals(transaction, known, report))
    looked_at = sum(one.end - one.start for one in seals)
    with workers(database, settings, are_worth_it=looked_at > _MANY) as pool:
        reader = _Reader(pool, report)
        for one in seals:
            reader.add(one.owner, one.start, one.end)
        contents = reader.results()
    found = database.read_now(lambda transaction: list(log_faults(transaction, seals, contents, signer)))
    return Findings([*before, *found, *database.read_now(_events_without_place)], seals, looked_at, since)


class _Reader:
    """Has the contents of events checked, and reports their number."""

    def __init__(self, pool: Workers, report: Report) -> None:
        self._pool = pool
        self._report = report
        self._lock = Lock()  # callbacks of the process pool run on a thread of its own
        self._done = 0
        self._total = 0
        self._contents: list[Future[Contents]] = []

    def add(self, owner: str, start: int, end: int) -> None:
        """Have the events of a log checked, from one leaf to before another."""
        self._total += max(0, end - start)
        for part in parts_of(owner, start, end):

            def done(count: int = part.end - part.start) -> None:
                with self._lock:
                    self._done += count
                    self._report("Events", self._done, self._total)

            self._contents.append(self._pool.submit(_contents_of, part, done=done))

    def results(self) -> list[Contents]:
        """The findings, once all events were checked."""
        return [one.result() for one in self._contents]


def _each_batch(pool: Workers, organizations: Sequence[str], report: Report) -> list[Future[list[str]]]:
    """Have the coverage of each organization checked."""
    started, total = [], len(organizations)
    for start in range(0, total, _ORGANIZATIONS_AT_ONCE):
        end = min(start + _ORGANIZATIONS_AT_ONCE, total)

        def done(end: int = end) -> None:
            report("Coverage", end, total)

        started.append(pool.submit(_coverage_faults_of, organizations[start:end], done=done))
    return started


def _seals(transaction: Transaction, known: Mapping[str, Known], report: Report) -> list[Seals]:
    ends = {owner: end_of(transaction, owner) for owner in {*owners(transaction), *known}}
    starts = {owner: known[owner].size for owner in ends if owner in known}
    total, done, found = sum(ends.values()) - sum(starts.values()), 0, []
    for owner, end in sorted(ends.items()):
        start = starts.get(owner, 0)

        def passed(number: int, done: int = done - start) -> None:
            report("Seals", done + number, total)

        found.append(seals_of(transaction, owner, known.get(owner), passed))
        done += end - start
        report("Seals", done, total)
    return found


def _ends(transaction: Transaction) -> dict[str, int]:
    return {owner: end_of(transaction, owner) for owner in owners(transaction)}


# --- Work in other processes


def _database_faults(database: Database, transaction: Transaction) -> list[str]:
    return list(database.faults(transaction, Table.metadata, SECURITY))


def _coverage_faults(_database: Database, transaction: Transaction, organizations: Sequence[str]) -> Iterator[str]:
    for organization_id in organizations:
        if not is_current(transaction, organization_id):
            yield f"the stored coverage of organization {organization_id} does not follow from its assessments"
        if not is_followed(transaction, organization_id):
            yield f"the stored evidence of organization {organization_id} does not follow from its links"
        for moment in random_moments(transaction, organization_id):
            if not is_current(Past(transaction, organization_id, moment), organization_id):
                yield f"the coverage of organization {organization_id} as of {moment} does not follow from what held"


def _coverage_faults_of(database: Database, transaction: Transaction, organizations: Sequence[str]) -> list[str]:
    return list(_coverage_faults(database, transaction, organizations))


def _count_faults(_database: Database, transaction: Transaction) -> Iterator[str]:
    for framework_id in transaction.scalars(_MISCOUNTED):
        yield f"the framework {framework_id} has other controls than it has counted, or gaps in their order"


def _job_faults(transaction: Transaction) -> Iterator[str]:
    for job in failing(transaction):
        reason = "and its process ended" if job.failure is None else f"at last with {job.failure}"
        yield (
            f"the job {job.type} of {f'organization {job.owner}' if job.owner else 'the instance'} was attempted"
            f" {job.attempts} times, {reason}; the log says more"
        )


def _count_faults_of(database: Database, transaction: Transaction) -> list[str]:
    return list(_count_faults(database, transaction))


def _unsealed_faults_of(_database: Database, transaction: Transaction) -> list[str]:
    return list(unsealed_faults(transaction))


def _version_faults_of(_database: Database, transaction: Transaction) -> list[str]:
    return [
        *version_faults(transaction),
        *original_faults(transaction),
        *text_faults(transaction),
        *external_id_faults(transaction),
    ]


def _file_faults_of(_database: Database, transaction: Transaction, settings: Settings) -> list[str]:
    return list(file_faults(transaction, open_store(settings), time.time()))


def _contents_of(_database: Database, transaction: Transaction, part: Part) -> Contents:
    return contents_of(transaction, part)


# --- Other checks


def _events_without_place(transaction: Transaction) -> list[str]:
    """Whether there are more events than leaves and unsealed ones, by their numbers."""
    events = transaction.scalar(_EVENTS) or 0
    placed = sum(_ends(transaction).values()) + pending(transaction)[0]
    if events == placed:
        return []
    sentence = (
        f"there are {events} events, and {placed} are sealed or noted to be: events were inserted or removed by hand;"
        " run `normata check`, which names them"
    )
    return [sentence]


def unknown_organizations(transaction: Transaction, provider: Configuration | None) -> list[str]:
    """The organizations in NORMATA_OIDC_ROLES that do not exist."""
    return [] if provider is None else groups.unknown_organizations(transaction, provider.grants)


def contents(transaction: Transaction) -> Iterator[str]:
    """The organizations and frameworks, one per line."""
    for organization in transaction.rows(_ORGANIZATIONS):
        yield f"organization {organization.id}: {organization.name}"
    for row in transaction.rows(_FRAMEWORKS):
        yield f"framework {row.id} ({row.identifier}): {row.name}, {row.controls} controls"


_EVENTS = select(func.count()).select_from(sql_table(AuditEvent))
_ORGANIZATION, _FRAMEWORK, _CONTROL = sql_table(Organization), sql_table(Framework), sql_table(Control)
_ORGANIZATION_IDS = select(_ORGANIZATION.c.id).order_by(_ORGANIZATION.c.id)
_ORGANIZATIONS = select(_ORGANIZATION.c.id, _ORGANIZATION.c.name).order_by(_ORGANIZATION.c.id)

_counted = func.count(_CONTROL.c.id)
_places = func.count(_CONTROL.c.position.distinct())
_following = func.coalesce(func.max(_CONTROL.c.position) + 1, 0)
_MISCOUNTED = (
    select(_FRAMEWORK.c.id)
    .outerjoin(_CONTROL, _CONTROL.c.framework_id == _FRAMEWORK.c.id)
    .group_by(_FRAMEWORK.c.id, _FRAMEWORK.c.control_count)
    .having(or_(*(number != _FRAMEWORK.c.control_count for number in (_counted, _places, _following))))
    .order_by(_FRAMEWORK.c.id)
)
_FRAMEWORKS = (
    select(_FRAMEWORK.c.id, _FRAMEWORK.c.identifier, _FRAMEWORK.c.name, _counted.label("controls"))
    .outerjoin(_CONTROL, _CONTROL.c.framework_id == _FRAMEWORK.c.id)
    .group_by(_FRAMEWORK.c.id, _FRAMEWORK.c.identifier, _FRAMEWORK.c.name)
    .order_by(_FRAMEWORK.c.id)
)
