"""Who follows changes: put together here, once, for the service and the commands alike."""

from __future__ import annotations

from normata.core.changes.revisions import AdvanceRevisions
from normata.core.changes.unit_of_work import Changes, Subscriber
from normata.core.db.database import Database
from normata.events.recording import RecordEvents
from normata.notifications.model import Notification
from normata.notifications.subscriber import RULES, NotifyMembers

SUBSCRIBERS: tuple[Subscriber, ...] = (RecordEvents(), NotifyMembers(RULES), AdvanceRevisions())


def changes_of(database: Database) -> Changes:
    """The one road for changes of a database."""
    return Changes(database, SUBSCRIBERS, Notification)
