"""A process that mails what is due, until it has, or is killed: the arguments are a database, a mail server, a time."""

from __future__ import annotations

import asyncio
import sys
from functools import partial

from normata.console.app.row_links import path_of
from normata.core.changes.job_runner import JobRunner
from normata.core.db.opening import open_database
from normata.events.keys import Signer
from normata.identity.mail import Mailer
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS
from normata.notifications.mail_texts import mail_of
from normata.notifications.mailing import mailing
from normata.settings import Settings
from normata.wiring import changes_of


async def main(url: str, server: str, moment: str) -> None:
    """Find and run the jobs that mail."""
    database = open_database(Settings(database_url=url), serving=True)
    compose = partial(
        mail_of,
        public_url="https://normata.example.org",
        page_of=path_of,
        signer=Signer(Settings().event_key_file),
    )
    job = mailing(Mailer(server, "normata@example.org"), compose)
    runner = JobRunner(database, changes_of(database), [job], NEXT_ORGANIZATIONS, clock=lambda: moment)
    try:
        await runner.find()
        await runner.do_due()
    finally:
        await database.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
