"""By when the supervisory authority must be notified of a personal data breach."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from normata.core.db.types import format_timestamp

# GDPR, article 33 (1): not later than 72 hours after having become aware of it.
_NOTIFICATION = timedelta(hours=72)


def notification_deadline(incident: Mapping[str, Any] | None) -> str | None:
    """The deadline of an incident, from its columns; null if it is no breach, or not known since when.

    It is null, too, where the calendar ends before.
    """
    if incident is None or not incident["is_personal_data_breach"] or incident["detected_at"] is None:
        return None
    try:
        return format_timestamp(datetime.fromisoformat(incident["detected_at"]) + _NOTIFICATION)
    except OverflowError:
        return None


def follow_detection(before: Mapping[str, Any] | None, after: dict[str, Any]) -> None:
    """Set the deadline of an incident ``after`` a request, until somebody sets another one."""
    stored = None if before is None else before["notification_deadline"]
    if after["notification_deadline"] == stored == notification_deadline(before):
        after["notification_deadline"] = notification_deadline(after)
