"""Every table there is: importing this module defines them all."""

from normata.changes import idempotency as _idempotency
from normata.changes import revisions as _revisions
from normata.changes import short_ids as _short_ids
from normata.events import model as _events
from normata.frameworks import model as _frameworks
from normata.identity import model as _identity
from normata.identity import sign_in_model as _sign_in
from normata.notifications import model as _notifications
from normata.records import archiving as _archiving
from normata.records import kinds as _records
from normata.schema.table import Table

__all__ = ["Table"]

_modules = (
    *(_archiving, _events, _frameworks, _idempotency, _identity),
    *(_notifications, _records, _revisions, _short_ids, _sign_in),
)
