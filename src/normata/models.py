"""Every table there is: importing this module defines them all."""

from normata.frameworks import model as _frameworks
from normata.identity import model as _identity
from normata.notifications import model as _notifications
from normata.records import kinds as _records
from normata.records import short_ids as _short_ids
from normata.vocabulary import Table

__all__ = ["Table"]

_modules = (_frameworks, _identity, _notifications, _records, _short_ids)
