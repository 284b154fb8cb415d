"""What an incident should have before it is closed. Nothing refuses to close one without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def needed_to_close(incident: Mapping[str, Any]) -> Mapping[str, bool]:
    """The fields that an incident in wire form should have before it is closed, and whether it has each."""
    is_to_notify = incident["isPersonalDataBreach"] or incident["notificationDeadline"]
    names = ["authorityNotifiedAt"] if is_to_notify else []
    return {name: bool(incident[name]) for name in (*names, "rootCause", "lessonsLearned", "resolvedAt")}
