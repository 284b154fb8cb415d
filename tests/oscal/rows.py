"""The rows of imported documents that tests of all tables need."""

from __future__ import annotations

from collections import Counter
from typing import Any

from normata.catalogs.sources import source_values

OPTIONAL_OF_DOCUMENTS = {"sourceDocuments": {"baselineId"}}


def bare_document(row_id: str, framework_id: str) -> dict[str, dict[str, Any]]:
    """A document with what it must have, by the name of its array."""
    values = source_values(b"{ }", Counter(), is_json=True)
    return {"sourceDocuments": {"id": row_id, "frameworkId": framework_id, **values}}
