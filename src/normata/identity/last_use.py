"""The last use of tokens, sessions and addresses of calendars, without a write on every request."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Update, bindparam, update

from normata.core.changes.periodic import repeat
from normata.core.db.database import Database
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.db.types import format_timestamp
from normata.core.schema.table import sql_table
from normata.errors import Unavailable
from normata.identity.model import AccessToken, CalendarAddress
from normata.identity.sign_in_model import Session

_GRAIN = timedelta(minutes=1)  # the precision of the stored time
_TO_THE_MINUTE = len("2026-11-20T09:14")
_PAUSE = 1.0  # seconds between two writes


class LastUse:
    """Collects the uses of tokens and stores them together, at most once a minute for each.

    A process that is killed loses the uses of its last second. They only inform people.
    """

    def __init__(self, database: Database, table: type[AccessToken | CalendarAddress | Session] = AccessToken) -> None:
        self._database = database
        columns = sql_table(table).c
        self._note = update(table).where(columns.id == bindparam("used_id")).values(last_used_at=bindparam("used"))
        self._pending: dict[tuple[str, str], str] = {}

    def note(self, used_id: str, user_id: str, last_used_at: str | None, moment: str) -> None:
        """Note a use of the user's token or session at ``moment``; ``last_used_at`` is the stored one."""
        if last_used_at is not None and last_used_at[:_TO_THE_MINUTE] == moment[:_TO_THE_MINUTE]:
            return
        if last_used_at is None or last_used_at < format_timestamp(datetime.fromisoformat(moment) - _GRAIN):
            self._pending[used_id, user_id] = moment

    async def store_periodically(self) -> None:
        """Store the collected uses once a second, until cancelled."""
        await repeat(self.store, pause=lambda: _PAUSE, failure="last_use_not_stored")

    async def store(self) -> None:
        """Store the collected uses. If the database cannot be reached, they are dropped."""
        if not self._pending:
            return
        gathered, self._pending = self._pending, {}
        try:
            users = TenantScope(users=tuple({user_id for _, user_id in gathered}))
            await self._database.write(lambda transaction: _write(transaction, self._note, gathered), users)
        except Unavailable:
            return


class SessionUse(LastUse):
    """The same for sessions."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, Session)


class CalendarUse(LastUse):
    """The same for addresses of calendars."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, CalendarAddress)


def _write(transaction: Transaction, note: Update, uses: dict[tuple[str, str], str]) -> None:
    # In a fixed order, so that two processes cannot deadlock.
    transaction.execute_many(
        note, [{"used_id": used_id, "used": moment} for (used_id, _), moment in sorted(uses.items())]
    )
