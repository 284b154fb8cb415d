"""What the application has at run time, handed to each operation when it is put together."""

from __future__ import annotations

from dataclasses import dataclass

from normata.core.changes.idempotency import UnderWay
from normata.core.changes.unit_of_work import Changes
from normata.core.db.database import Database
from normata.core.http.counters import Counters
from normata.core.http.metrics import Metrics
from normata.core.http.page_cache import KeptPages
from normata.core.http.rate_limit import Limit
from normata.events.kept_totals import KeptTotals
from normata.events.keys import Signer
from normata.events.sealer import Sealer
from normata.identity.last_use import LastUse
from normata.identity.mail import Mailer


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that operations share, one of each in a process."""

    database: Database
    changes: Changes
    last_use: LastUse
    session_use: LastUse
    sealer: Sealer
    signer: Signer
    counters: Counters
    requests_by_address: Limit
    requests_by_token: Limit
    bad_tokens_by_address: Limit
    metrics: Metrics
    pages: KeptPages
    totals: KeptTotals
    under_way: UnderWay
    mailer: Mailer
    public_url: str
