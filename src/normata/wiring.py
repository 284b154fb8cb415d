"""The subscribers of changes, and the jobs of the service, in one place."""

from __future__ import annotations

from normata.core.changes.jobs import JobType
from normata.core.changes.revisions import AdvanceRevisions
from normata.core.changes.unit_of_work import Changes, Subscriber
from normata.core.db.database import Database
from normata.coverage.effects import coverage_effects
from normata.coverage.lapses import LAPSES
from normata.events.recording import RecordEvents
from normata.identity.members.expiry import EXPIRIES
from normata.notifications.model import Notification
from normata.notifications.reminders import REMINDERS
from normata.notifications.subscriber import RULES, NotifyMembers

SUBSCRIBERS: tuple[Subscriber, ...] = (RecordEvents(), NotifyMembers(RULES), AdvanceRevisions())

JOB_TYPES: tuple[JobType, ...] = (REMINDERS, LAPSES, EXPIRIES)


def changes_of(database: Database) -> Changes:
    """The :class:`Changes` of a database, through which all changes go."""
    return Changes(database, SUBSCRIBERS, Notification, coverage_effects)
