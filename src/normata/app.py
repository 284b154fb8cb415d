"""Creates the application: it only connects the parts."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from granian.utils.proxies import wrap_asgi_with_proxy_headers
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp, ExceptionHandler
from typing_extensions import override

from normata.console.app.event_sentences import described
from normata.console.app.row_links import path_of
from normata.console.routes import console_routes
from normata.core import log
from normata.core.changes.idempotency import ForgetKeys, InProgress
from normata.core.changes.job_runner import JobRunner
from normata.core.changes.jobs import JobType, job_figures
from normata.core.db.database import Database
from normata.core.db.opening import open_database
from normata.core.db.types import now
from normata.core.http import documentation, health
from normata.core.http.exclusive import Exclusive
from normata.core.http.forks import Forks
from normata.core.http.gateway import Gateway, refuse_route
from normata.core.http.long_dry_runs import ChangingHere, PackedDryRun
from normata.core.http.long_reads import LongReads
from normata.core.http.metrics import Metrics
from normata.core.http.outgoing import outgoing_of
from normata.core.http.page_cache import PageCache
from normata.core.http.rate_limit import Limit
from normata.core.http.read_processes import Allow, ReadProcesses, answer_questions
from normata.core.http.reads import Answered, PackedReading, Reads
from normata.core.http.request import Means
from normata.core.http.routing import Directory, resources
from normata.core.http.services import Services
from normata.core.http.telemetry import require_possible
from normata.errors import Unavailable
from normata.events.backlog import unsealed
from normata.events.keys import Signer
from normata.events.sealer import Sealer
from normata.files.expiry import cleaning
from normata.files.opening import open_store
from normata.files.scanner import Scanner
from normata.files.store import FileStore
from normata.identity.last_use import CalendarUse, LastUse, SessionUse
from normata.identity.mail import Mailer
from normata.identity.operators import require_operator
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS
from normata.identity.tokens.authenticator import TokenAuthenticator
from normata.mcp.endpoint import mcp_routes
from normata.notifications import texts
from normata.notifications.mail_texts import mail_of
from normata.notifications.mailing import mailing
from normata.operations import OPERATIONS
from normata.retention.forgetting import FORGOTTEN, retention
from normata.scim.endpoint import scim_routes
from normata.settings import Settings
from normata.webhooks.deliveries import figures
from normata.webhooks.secrets import SecretBox
from normata.webhooks.sender import Sender
from normata.wiring import changes_of, job_types

if TYPE_CHECKING:
    from normata.core.http.tracing import Tracing

_PACKAGE = Path(__file__).parent
_MAKING_TAKES = 120  # seconds; more than it takes on a busy machine


_forks: list[Forks] = []  # of this process, at most one


class Service(Starlette):
    """Starlette with :class:`Gateway` in place of its own middleware.

    That middleware handles errors that leave the application. None leaves the gateway, and each layer costs every
    request time.
    """

    gateway: Callable[[ASGIApp], ASGIApp]
    services: Services
    tracing: Tracing | None

    @override
    def build_middleware_stack(self) -> ASGIApp:
        handlers: Mapping[Any, ExceptionHandler] = self.exception_handlers
        return self.gateway(ExceptionMiddleware(self.router, handlers=handlers))


def create_app(settings: Settings | None = None) -> Service:
    """Create the application. Null settings are read from the environment.

    Raises :class:`normata.core.db.database.BadDatabaseUrl`. The database need not be reachable yet.
    """
    settings = settings or Settings()
    log.configure(settings)
    metrics = Metrics()
    database = open_database(settings, serving=True, monitor=metrics)
    tracing = _tracing(settings)
    if tracing is not None:
        tracing.watch(database, "sqlite" if database.embedded else "postgresql")
    signer = Signer(settings.event_key_file)
    uses = token_use, *_ = LastUse(database), SessionUse(database), CalendarUse(database)
    sealer = Sealer(database, signer, metrics.sealing_failed)
    store, scanner = open_store(settings), Scanner(settings.scanner, settings.scanner_timeout)
    mailer = Mailer(settings.smtp_url, settings.mail_from, metrics.mailed)
    processes = _read_processes(settings, metrics)
    if tracing is not None:
        tracing.watch_processes(processes, "sqlite" if database.embedded else "postgresql")
    database.interrupt_others(processes.interrupt)
    long_reads = LongReads(settings.organization_long_reads, settings.caller_long_reads, workers=settings.workers)
    services = Services(
        database=database,
        changes=changes_of(database, mails=bool(settings.smtp_url)),
        authenticator=TokenAuthenticator(database, token_use),
        require_operator=require_operator,
        requests_by_address=Limit("address", settings.address_rate_limit, workers=settings.workers),
        requests_by_token=Limit("token", settings.rate_limit, workers=settings.workers),
        bad_tokens_by_address=Limit("bad-tokens", settings.bad_token_limit, workers=settings.workers),
        metrics=metrics,
        figures=partial(_figures, database),
        pages=PageCache(settings.page_cache_mib * 2**20),
        in_progress=InProgress(),
        exclusive=Exclusive(),
        long_reads=long_reads,
        reads=Reads(database, long_reads, processes, settings.read_timeout, settings.long_read_process_after),
        processes=processes,
        means=Means(settings, signer, *uses, mailer, store, scanner, outgoing_of(settings)),
    )

    for one in FORGOTTEN:
        metrics.forgotten(one.name, 0)  # rates need a first value of each
    runner = _runner(services, metrics)

    sender = _sender(services, metrics)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        background = [
            *(asyncio.create_task(use.store_periodically()) for use in uses),
            asyncio.create_task(sealer.seal_periodically()),
            asyncio.create_task(ForgetKeys(database).purge_periodically()),
            asyncio.create_task(runner.run_periodically()),
            asyncio.create_task(sender.send_periodically()),
        ]
        try:
            yield
        finally:
            for task in background:
                task.cancel()
            try:
                await asyncio.wait(background)
                await asyncio.gather(runner.finish(), sender.finish())
                for use in uses:
                    await use.store()
                await sealer.finish()
            finally:
                processes.close()
                await database.aclose()
                if tracing is not None:
                    await asyncio.to_thread(tracing.close)

    found = resources(OPERATIONS, services)
    app = Service(
        routes=[
            *health.routes(services),
            *documentation.routes(documentation_files),
            *texts.routes(),
            *scim_routes(services, settings),
            *console_routes(services, settings, OPERATIONS),
            *mcp_routes(services, settings, OPERATIONS, found),
        ],
        exception_handlers={HTTPException: refuse_route},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.services = services
    gateway = partial(
        Gateway,
        operations=Directory(found.values()),
        settings=settings,
        metrics=services.metrics,
        requests_by_address=services.requests_by_address,
    )
    app.tracing = tracing
    app.gateway = gateway if tracing is None else lambda inner: tracing.around(gateway(inner))
    if settings.trusted_proxies:
        trusted, inner_gateway = settings.trusted_proxies.split(","), app.gateway
        app.gateway = lambda inner: wrap_asgi_with_proxy_headers(inner_gateway(inner), trusted)
    return app


def _job_types(means: Means, metrics: Metrics) -> Sequence[JobType]:
    """All jobs, with what they need of the service."""
    settings, mailer = means[Settings], means[Mailer]
    types = (*job_types(), retention(settings, metrics.forgotten), cleaning(means[FileStore]))
    if not settings.smtp_url:
        return types
    compose = partial(mail_of, public_url=settings.public_url, page_of=path_of, signer=means[Signer])
    return (*types, mailing(mailer, compose))


def _runner(services: Services, metrics: Metrics) -> JobRunner:
    """What does the jobs."""
    types = _job_types(services.means, metrics)
    return JobRunner(services.database, services.changes, types, NEXT_ORGANIZATIONS, count=metrics.job)


def _sender(services: Services, metrics: Metrics) -> Sender:
    """What sends webhooks."""
    means = services.means
    say = partial(described, public_url=means[Settings].public_url)
    # With threads of its own to resolve names, so that tests of webhooks, which are requests, hold up nothing.
    box, outgoing = SecretBox(means[Signer]), outgoing_of(means[Settings])
    return Sender(services.database, services.changes, box, outgoing, say, count=metrics.webhook)


def before_threads() -> None:
    """Prepare for processes for long reads, in a worker that has no threads yet."""
    if Settings().long_read_processes:
        _forks.append(Forks(_answer_long_reads))


def _read_processes(settings: Settings, metrics: Metrics) -> ReadProcesses:
    """The processes for long reads; none if this process cannot start any, or is not to."""
    return ReadProcesses(
        _forks[0].fork if _forks and settings.long_read_processes else None,
        settings.long_read_processes,
        timeout=settings.database_timeout,
        waits=metrics.waits("read_process"),
    )


def _answer_long_reads(connection: socket.socket) -> None:
    """What a process for long reads does."""
    settings = Settings()
    log.configure(settings)
    # It reads one thing at a time.
    database = open_database(settings.model_copy(update={"database_pool_size": 1}), serving=True)
    means = Means(settings, Signer(settings.event_key_file))
    changing = ChangingHere(changes_of(database), require_operator)
    operations = {one.operation_id: one for one in OPERATIONS}

    async def answer(question: PackedReading | PackedDryRun, allow: Allow) -> Any:
        if isinstance(question, PackedDryRun):
            return await question.unpacked(operations, means).run(changing, allow)
        return await Answered.by(question.unpacked(operations, means), database)

    answer_questions(connection, answer)


@cache
def documentation_files() -> documentation.Files:
    """The files of the documentation, which are part of the wheel.

    In a source checkout a process of its own generates them from the present source, because that takes memory and a
    second of processor, during which the event loop would stand still. Raises OSError and subprocess.SubprocessError.
    """
    names = (documentation.OPENAPI, documentation.REFERENCE)
    if all((_PACKAGE / name).is_file() for name in names):
        return {name: (_PACKAGE / name).read_bytes() for name in names}
    with TemporaryDirectory(prefix="normata-docs-") as folder:
        subprocess.run(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", "normata.cli.new_docs", "--package", folder],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},  # import this source and no other
            stdin=subprocess.DEVNULL,
            timeout=_MAKING_TAKES,
            check=True,
        )
        return {name: Path(folder, name).read_bytes() for name in names}


async def _figures(database: Database) -> Mapping[str, float]:
    """The metrics of the database as a whole. Without those that need a query if it cannot be reached."""
    found = dict(database.figures())
    with suppress(Unavailable):
        events, age = await database.read(unsealed)
        found |= {"normata_unsealed_events": events, "normata_unsealed_event_age_seconds": age}
        due, age, failed = await database.read(lambda transaction: job_figures(transaction, now()))
        failing, disabled, behind = await database.read(figures)
        found |= {"normata_failing_webhooks": failing, "normata_disabled_webhooks": disabled}
        found |= {"normata_webhook_events_behind": behind}
        found |= {"normata_due_jobs": due, "normata_due_job_age_seconds": age, "normata_failed_jobs": failed}
    return found


def _tracing(settings: Settings) -> Tracing | None:
    """The tracing; null if the settings ask for none. Raises TracingImpossible."""
    if not settings.tracing:
        return None
    require_possible(settings)
    from normata.core.http.tracing import Tracing  # noqa: PLC0415 - an optional package that is slow to import

    return Tracing()
