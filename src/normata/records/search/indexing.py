"""The job that has new texts indexed for searches, where the database does not do that as they are written."""

from __future__ import annotations

from collections.abc import Sequence

from normata.core.changes.jobs import DueJob, JobType
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction


def _run(unit: UnitOfWork, job: DueJob) -> str | None:
    return job.moment if unit.index_texts() else None


def _find(transaction: Transaction, organizations: Sequence[str], moment: str) -> Sequence[str]:
    """One organization, because its job indexes the texts of all."""
    del moment
    return organizations[:1] if transaction.texts_wait() else ()


INDEXING = JobType("search_index", _run, find=_find)
