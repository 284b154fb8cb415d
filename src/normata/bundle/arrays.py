"""The arrays of a bundle, each with the table that it carries, in the order in which a dump writes them."""

from __future__ import annotations

from normata.frameworks.model import Control, ControlCoverage, ControlMatch, Framework, FrameworkAdoption
from normata.identity.model import AccessToken, AuditEvent, Membership, Organization, User
from normata.models import Table
from normata.notifications.model import Notification
from normata.records.base import Restorable

# What an organization cannot take along, but the operator can: a token is its user's everywhere, and events are proof.
OPERATORS_OWN: tuple[type[Table], ...] = (AccessToken, AuditEvent)

_TABLES: tuple[type[Table], ...] = (
    Organization,
    User,
    Membership,
    Framework,
    Control,
    ControlMatch,
    FrameworkAdoption,
    ControlCoverage,
    Notification,
    *Restorable.kinds,
    *OPERATORS_OWN,
)

ARRAYS: dict[str, type[Table]] = {table.array: table for table in _TABLES}
