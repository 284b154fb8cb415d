"""Mail about notifications, as tests cause and send it: with the rights of the service, and a clock of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import update

from normata.console.app.row_links import path_of
from normata.core.changes import job_runner
from normata.core.changes.job_runner import JobRunner
from normata.core.changes.jobs import Job
from normata.core.db.opening import open_database
from normata.core.db.types import format_timestamp, now
from normata.events.keys import Signer
from normata.identity.mail import Mailer
from normata.identity.model import User
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS
from normata.notifications.mail_texts import mail_of
from normata.notifications.mailing import mailing
from normata.notifications.model import Notification, OutgoingMail
from normata.settings import Settings
from normata.wiring import changes_of
from tests import stored
from tests.identity.smtp_server import Inbox, mail_server
from tests.served import Served, served
from tests.world import ALPHA, USERS

SITE = "https://normata.example.org"
VIEWER = USERS["viewer"]


@dataclass
class Post:
    """The service with a mail server, and the clock of the runner of jobs."""

    service: Served
    inbox: Inbox
    moment: str = field(default_factory=now)

    def choose(self, mail: str | None, by_type: dict[str, str] | None = None, *, user: str = "viewer") -> None:
        """Have one of the world's users choose when to get mail."""
        statement = update(User).where(User.id == f"user-{user}").values(mail=mail, mail_by_type=by_type)
        self.service.database.write_now(lambda transaction: transaction.rows(statement))

    def notify(self, *titles: str, member: str = "viewer", organization: str = ALPHA, by: str = "editor") -> None:
        """Assign tasks to a member, each in a change of its own."""
        for title in titles:
            body = {"organizationId": organization, "title": title, "assigneeMemberId": f"member-{member}"}
            made = self.service.client.post("/tasks/", json=body, headers=self.service.bearer(by))
            assert made.status_code == 201, made.text

    def run(self, *, processes: int = 1, url: str | None = None, after: timedelta = timedelta()) -> list[str]:
        """Do what is due once some time has passed, and return the subjects of the messages that came."""
        self.moment = format_timestamp(datetime.fromisoformat(max(self.moment, now())) + after)
        before = len(self.inbox.messages)
        asyncio.run(self._run(processes, self.inbox.url if url is None else url))
        return [str(message["Subject"]) for message in self.inbox.messages[before:]]

    def rows(self, **values: Any) -> list[dict[str, Any]]:
        """The rows of the outbox, oldest first."""
        return stored.rows(self.service.database, OutgoingMail, **values)

    def notifications(self) -> list[dict[str, Any]]:
        """The notifications that tests have caused, oldest first."""
        found = stored.rows(self.service.database, Notification)
        return [row for row in found if not row["id"].startswith("note-")]

    def outcomes(self) -> list[str | None]:
        """What became of each notification."""
        return [row["outcome"] for row in self.rows()]

    def jobs(self) -> list[dict[str, Any]]:
        """The jobs that wait."""
        return stored.rows(self.service.database, Job)

    def database(self) -> Any:
        """A database, with the rights of the service."""
        return open_database(Settings(database_url=self.service.url), serving=True)

    def runner(self, database: Any, url: str) -> JobRunner:
        """A runner of the job that mails."""
        compose = partial(mail_of, public_url=SITE, page_of=path_of, signer=Signer(Settings().event_key_file))
        job = mailing(Mailer(url, "Normata <normata@example.org>"), compose)
        return JobRunner(database, changes_of(database), [job], NEXT_ORGANIZATIONS, clock=lambda: self.moment)

    async def _run(self, processes: int, url: str) -> None:
        databases = [self.database() for _ in range(processes)]
        runners = [self.runner(one, url) for one in databases]
        try:
            await asyncio.gather(*(one.find() for one in runners))
            await asyncio.gather(*(one.do_due() for one in runners))
        finally:
            for one in databases:
                await one.aclose()


@contextmanager
def posting(url: str) -> Iterator[Post]:
    """The service over a database, with a mail server. It does no jobs itself."""
    with pytest.MonkeyPatch.context() as patch, mail_server() as inbox:
        patch.setattr(job_runner, "_PAUSE", 3_600)
        with served(url, smtp_url=inbox.url, public_url=SITE) as service:
            yield Post(service, inbox)
