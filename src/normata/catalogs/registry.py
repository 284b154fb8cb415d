"""All formats of catalogs and mappings, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from normata.catalogs import ciso_assistant, oscal_catalog, oscal_mapping, oscal_profile, tables
from normata.catalogs.documents import JSON, Document, ImportFormat, MediaType
from normata.catalogs.unfit import reason_against
from normata.core.documents.files import Unreadable

FORMATS: tuple[ImportFormat, ...] = (
    tables.XLSX,
    tables.CSV,
    oscal_catalog.FORMAT,
    oscal_profile.FORMAT,
    oscal_mapping.FORMAT,
    ciso_assistant.FORMAT,
)


def by_media_type() -> Mapping[MediaType, Sequence[ImportFormat]]:
    """The formats that a body of each media type may have."""
    # JSON first, because the first media type is the example in OpenAPI.
    media_types = dict.fromkeys([JSON, *(media_type for one in FORMATS for media_type in one.media_types)])
    return {media_type: [one for one in FORMATS if media_type in one.media_types] for media_type in media_types}


def format_of(document: Document, formats: Sequence[ImportFormat] = FORMATS) -> ImportFormat:
    """The format of a document, among these. Raises Unreadable."""
    if len(formats) == 1:
        return formats[0]
    unreadable: Unreadable | None = None
    for one in formats:
        try:
            if one.recognizes(document):
                return one
        except Unreadable as error:
            unreadable = unreadable or error
    known = reason_against(document)
    if known is not None:
        raise Unreadable(known)
    raise unreadable or Unreadable(f"is not recognised: expected {list_of_formats(formats)}")


def list_of_formats(formats: Iterable[ImportFormat] = FORMATS) -> str:
    """The names of these formats as an enumeration."""
    *most, last = (f"{'an' if one.name[0] in 'AEIO' else 'a'} {one.name}" for one in formats)
    return f"{', '.join(most)} or {last}"
