"""The subscribers of changes, and the jobs of the service, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from normata.core.changes.jobs import JobType
from normata.core.changes.revisions import AdvanceRevisions
from normata.core.changes.unit_of_work import Changes, Shown, Subscriber, UnitOfWork
from normata.core.db.database import Database
from normata.events.recording import RecordEvents
from normata.evidence.following import FollowEvidence
from normata.files.attaching import NoteAttached
from normata.notifications.model import Notification
from normata.notifications.subscriber import RULES, NotifyMembers
from normata.recurrences.following import MakeNext


def subscribers(*, mails: bool = False) -> tuple[Subscriber, ...]:
    """The subscribers of changes. ``mails`` is true if there is a mail server for notifications."""
    notify = NotifyMembers(RULES, mails=mails)
    return MakeNext(), RecordEvents(), NoteAttached(), FollowEvidence(), notify, AdvanceRevisions()


SUBSCRIBERS = subscribers()


def job_types() -> tuple[JobType, ...]:
    """The jobs of the service. Commands do not need what these import."""
    from normata.coverage.lapses import LAPSES  # noqa: PLC0415
    from normata.files.expiry import UNATTACHED_FILES  # noqa: PLC0415
    from normata.files.replaced import REPLACED_FILES  # noqa: PLC0415
    from normata.identity.members.expiry import EXPIRIES  # noqa: PLC0415
    from normata.notifications.reminders import REMINDERS  # noqa: PLC0415
    from normata.policies.acknowledging import ACKNOWLEDGEMENT_JOBS  # noqa: PLC0415
    from normata.records.search.indexing import INDEXING  # noqa: PLC0415

    return REMINDERS, LAPSES, EXPIRIES, UNATTACHED_FILES, REPLACED_FILES, INDEXING, ACKNOWLEDGEMENT_JOBS


def changes_of(database: Database, *, mails: bool = False) -> Changes:
    """The :class:`Changes` of a database, through which all changes go.

    ``mails`` is true if there is a mail server for notifications.
    """

    def effects(unit: UnitOfWork, shown: Shown) -> Mapping[str, Any]:
        # Only dry runs need them.
        from normata.coverage.effects import coverage_effects  # noqa: PLC0415
        from normata.evidence.effects import unsupported_by  # noqa: PLC0415

        return coverage_effects(unit, shown, unsupported_by(unit, shown))

    return Changes(database, subscribers(mails=mails), Notification, effects)
