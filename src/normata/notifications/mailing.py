"""The job that mails notifications, one for each organization, so that the mail of none waits for that of others.

It is found when something is due, sends for some seconds, and is repeated after the jobs of others if there is more. If
no message can be sent at all, the job fails, and the runner attempts it again after ever longer pauses, up to an hour.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from normata.core.changes.jobs import DueJob, JobType
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.core.db.transaction import TenantScope
from normata.identity.mail import AddressRefused, Mail, MailConnection, MailDelayed, Mailer, MailFailed, MailRejected
from normata.notifications import outbox
from normata.notifications.model import Outcome
from normata.notifications.outbox import PLANNED_AT_ONCE, Claimed

NAME = "mail"
# The time for one job, and for one message: together less than the claim of a job (`jobs.CLAIMED_FOR`), and the second
# less than that of a message.
_SENDS_FOR = 20.0  # seconds
_ONE_WITHIN = 30.0  # seconds
# After the server could not be reached, no other job of this process attempts it, so that jobs of other types need not
# wait while many attempts time out.
_AWAY_FOR = timedelta(seconds=30)


def mailing(mailer: Mailer, compose: Callable[[Sequence[Any], str], Mail]) -> JobType:
    """The job that mails notifications; ``compose`` makes the mail about notifications, with the id of its message."""
    return JobType(NAME, _next, find=outbox.find, act=_Sending(mailer, compose).act)


def _next(_unit: UnitOfWork, job: DueJob) -> str | None:
    """Immediately if there is more to send; later mail is found when it is due."""
    return job.moment if job.outcome else None


class _Sending:
    """Plans and sends what is due of an organization."""

    def __init__(self, mailer: Mailer, compose: Callable[[Sequence[Any], str], Mail]) -> None:
        self._mailer = mailer
        self._compose = compose
        self._failed_at: datetime | None = None

    async def act(self, database: Database, job: DueJob) -> bool:
        """Send what is due, for some seconds. Returns whether there may be more. Raises MailFailed."""
        until = time.monotonic() + _SENDS_FOR
        scope = TenantScope(readable=(job.owner,), writable=(job.owner,))
        planned = PLANNED_AT_ONCE
        while planned >= PLANNED_AT_ONCE and time.monotonic() < until:
            planned = await database.write(lambda transaction: outbox.plan(transaction, job.owner, job.moment), scope)
        connection = self._mailer.connection()
        try:
            while time.monotonic() < until:
                self._require_server(job.moment)
                claimed = await database.write(
                    lambda transaction: outbox.claim(transaction, job.owner, job.moment), scope
                )
                if claimed is None:
                    return False
                if claimed.notifications:
                    await self._send(database, scope, connection, claimed, job)
            return True
        finally:
            await asyncio.to_thread(connection.close)

    async def _send(
        self, database: Database, scope: TenantScope, connection: MailConnection, claimed: Claimed, job: DueJob
    ) -> None:
        """Send a message, and store what became of it as soon as the server has answered."""
        mail, recipient = self._compose(claimed.notifications, claimed.message), claimed.notifications[0].user_id
        this: dict[str, Any] = {"organization_id": job.owner, "claimed": claimed, "moment": job.moment}
        outcome: Outcome | None = "SENT"
        try:
            await connection.send_within(mail, _ONE_WITHIN)
        except AddressRefused:
            outcome = "REFUSED"
            refuse = partial(outbox.refuse, user_id=recipient, email=mail.to)
            await database.write(refuse, TenantScope(users=(recipient,)))
        except MailRejected:
            outcome = "REJECTED"
        except MailDelayed:
            outcome = None
        except MailFailed:
            self._failed_at = datetime.fromisoformat(job.moment)
            self._mailer.mailed("failed")
            await database.write(partial(outbox.release, **this), scope)
            raise
        self._mailer.mailed("sent" if outcome == "SENT" else "failed")
        store = partial(outbox.delay, **this) if outcome is None else partial(outbox.end, outcome=outcome, **this)
        await database.write(store, scope)

    def _require_server(self, moment: str) -> None:
        """Raise MailFailed if the server could not be reached just now."""
        if self._failed_at is not None and abs(datetime.fromisoformat(moment) - self._failed_at) < _AWAY_FOR:
            raise MailFailed("the mail server could not be reached just now")
