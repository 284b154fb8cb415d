"""The rows of the documents that frameworks and baselines are imported from."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from normata.core.changes.source import Row
from normata.frameworks.source_model import LARGEST, MEDIA_TYPES

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

# Never change this: ids of documents follow from it, so that a later import replaces them.
_SOURCES = UUID("3f0f9a52-6d0e-5b43-8c11-0d5f6f0f7b1e")
_TOO_LARGE = "originals that are too large to keep"


def source_values(content: bytes, left_out: Counter[str], *, is_json: bool) -> Mapping[str, object]:
    """The columns of a document, which was read as JSON or YAML in UTF-8 before.

    They are empty if it is too large to keep, which is counted in ``left_out``.
    """
    if len(content) > LARGEST:
        left_out[_TOO_LARGE] += 1
        return {}
    text, media_type = content.decode(), MEDIA_TYPES["json" if is_json else "yaml"]
    return {"mediaType": media_type, "sha256": sha256(content).hexdigest(), "size": len(content), "content": text}


def source_rows(
    file: str, place: str, values: Mapping[str, object], framework_id: str, baseline_id: str | None = None
) -> list[Row]:
    """The row of the document of a framework, or of a baseline of it; none without ``values``."""
    if not values:
        return []
    row_id = str(uuid5(_SOURCES, json.dumps([framework_id, baseline_id])))
    key = {"id": row_id, "frameworkId": framework_id, "baselineId": baseline_id}
    return [Row("sourceDocuments", file, place, key | dict(values))]
