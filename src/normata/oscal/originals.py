"""The documents of OSCAL that were imported, as they came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.errors import NotFound
from normata.frameworks.baselines import find_baselines
from normata.frameworks.source_model import MEDIA_TYPES, SourceDocument
from normata.oscal.catalog import find_framework


class NoOriginal(NotFound):
    """There is no document that a framework or a baseline was imported from."""

    message = (
        "There is no original. It was not imported as OSCAL, or by a version that kept no originals; or it was too"
        " large to keep, or named a person who was erased."
    )


@dataclass(frozen=True)
class Original:
    """A document as it came, and the name of what it was imported as."""

    name: str
    media_type: str
    content: bytes

    def present(self) -> Mapping[str, Any]:
        """The document as a report."""
        return {"original": self}

    @property
    def own_type(self) -> tuple[str, str] | None:
        """Its media type and the ending of its name, unless it is JSON, as all other documents are."""
        ending = next(ending for ending, one in MEDIA_TYPES.items() if one == self.media_type)
        return None if ending == "json" else (self.media_type, ending)


def read_original(
    transaction: Transaction, organization_id: str, framework_id: str, baseline: str | None = None
) -> Original:
    """The catalog of a framework, or the profile of the baseline of it that an id, slug or identifier names.

    Raises NotFound unless the organization can see the framework, and NoOriginal if there is no document.
    """
    framework = find_framework(transaction, organization_id, framework_id)
    if baseline is None:
        row = transaction.row(_OF_FRAMEWORK, {"framework": framework_id})
    else:
        named = find_baselines(transaction, organization_id, framework_id, baseline)
        row = transaction.row(_OF_BASELINES, {"framework": framework_id, "baselines": named})
    if row is None:
        raise NoOriginal
    return Original(f"{framework.name} {baseline or ''}", row.media_type, row.content.encode())


_TABLE = sql_table(SourceDocument)
_DOCUMENTS = (
    select(_TABLE.c.media_type, _TABLE.c.content)
    .where(_TABLE.c.framework_id == bindparam("framework"))
    .order_by(_TABLE.c.updated_at.desc(), _TABLE.c.id)
    .limit(1)
)
_OF_FRAMEWORK = _DOCUMENTS.where(_TABLE.c.baseline_id.is_(None))
_OF_BASELINES = _DOCUMENTS.where(_TABLE.c.baseline_id.in_(bindparam("baselines", expanding=True)))
