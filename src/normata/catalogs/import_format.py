"""What a format of catalogs declares. ``registry.py`` lists them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from normata.catalogs.documents import Document
from normata.catalogs.matches import Relation
from normata.core.changes.source import Fault, Row

Reader: TypeAlias = Callable[[Document, Sequence[Document], list[Fault]], tuple[list[Row], list[Relation]]]


@dataclass(frozen=True, slots=True)
class MediaType:
    """A media type of request bodies, with its schema for OpenAPI."""

    name: str
    schema: Mapping[str, Any] = field(compare=False)


JSON = MediaType("application/json", {"type": "object"})
YAML = MediaType("application/yaml", {"type": "object"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImportFormat:
    """A format that catalogs or mappings come in.

    ``name`` is what messages, the OpenAPI document and the docs call it. ``recognizes`` looks at a document's content
    and may raise Unreadable, which counts as no. ``identity`` finds the identifier that its publisher gave to the whole
    document. ``read`` makes rows and relations of it. It may raise Unreadable, and what is wrong with the content goes
    to the list that it gets; it also gets all documents that are imported together.
    ``media_types`` are those of request bodies, and ``example`` is the example of such a body. A format that
    ``needs_name`` cannot name its own framework. ``extra`` is the optional extra of Normata that reading takes.
    """

    name: str
    recognizes: Callable[[Document], bool]
    read: Reader
    media_types: Sequence[MediaType]
    identity: Callable[[Document], object] = lambda _: None
    example: Any = None
    needs_name: bool = False
    extra: str | None = None
