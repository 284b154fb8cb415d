"""The services of the application at run time, one of each in a process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from normata.core.changes.idempotency import InProgress
from normata.core.changes.unit_of_work import Changes
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.http.caller import Authenticator, Caller
from normata.core.http.exclusive import Exclusive
from normata.core.http.long_reads import LongReads
from normata.core.http.metrics import Metrics
from normata.core.http.page_cache import PageCache
from normata.core.http.rate_limit import Limit
from normata.core.http.read_processes import ReadProcesses
from normata.core.http.reads import Reads
from normata.core.http.request import Means


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that requests share. ``require_operator`` raises NotOperator unless a caller is an operator.

    ``means`` are those of operations.
    """

    database: Database
    changes: Changes
    authenticator: Authenticator
    require_operator: Callable[[Transaction, Caller], None]
    requests_by_address: Limit
    requests_by_token: Limit
    bad_tokens_by_address: Limit
    metrics: Metrics
    figures: Callable[[], Awaitable[Mapping[str, float]]]
    pages: PageCache
    in_progress: InProgress
    exclusive: Exclusive
    long_reads: LongReads
    reads: Reads
    processes: ReadProcesses
    means: Means
