"""The arrays of a bundle, each with the table that it carries, in the order in which a dump writes them."""

from __future__ import annotations

from normata.frameworks.model import Control, ControlCoverage, ControlMatch, Framework, FrameworkAdoption
from normata.identity.model import Membership, Organization, User
from normata.models import Table
from normata.notifications.model import Notification
from normata.records.base import Restorable

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
)

ARRAYS: dict[str, type[Table]] = {table.array: table for table in _TABLES}
