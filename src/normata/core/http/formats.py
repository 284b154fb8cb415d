"""The formats of reports besides JSON: spreadsheets and files for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from pydantic import Field

from normata.core.db.transaction import Transaction
from normata.core.http.content import Content
from normata.core.http.negotiation import best_media_type
from normata.core.http.problems import FieldFault, InvalidRequest, NotAcceptable
from normata.core.schema.paging import OrganizationQuery, PastQuery
from normata.core.schema.wire import encode

FormatName = Literal["json", "csv", "xlsx", "pdf", "text", "metadata", "ndjson", "oscal"]
ReportFormat = Literal["json", "csv", "xlsx"]


class FormatQuery(OrganizationQuery):
    """The query of a report with several formats."""

    format: Annotated[
        ReportFormat | None,
        Field(description="The format of the answer. It wins over `Accept`, so that a link can name it."),
    ] = None


class PastFormatQuery(FormatQuery, PastQuery):
    """The query of a report with several formats that can be read of the past."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """One format of a report.

    ``media_type`` is what ``Accept`` names, and ``parameters`` follow it in ``Content-Type``. ``render`` makes the
    bytes of a report in wire form. ``is_packed`` is true if compression would gain nothing. ``schema`` is that of the
    body in OpenAPI; with ``is_text``, it has an example. ``ending`` is that of file names, if it is not the name of the
    format. ``extra`` names the extra that a format needs, and
    ``is_there`` whether it is installed. ``objection`` says why a report cannot have the format; null if it can.
    """

    media_type: str
    render: Callable[[Mapping[str, Any]], bytes]
    parameters: str = ""
    is_packed: bool = False
    is_text: bool = True
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    ending: str = ""
    extra: str = ""
    is_there: Callable[[], bool] = lambda: True
    objection: Callable[[Mapping[str, Any]], str | None] = lambda _: None


_BINARY = {"type": "string", "format": "binary"}

JSON = Format(media_type="application/json", render=encode)


def csv(render: Callable[[Mapping[str, Any]], bytes]) -> Format:
    """CSV with a line of headers (RFC 4180)."""
    return Format(media_type="text/csv", parameters="; charset=utf-8; header=present", render=render)


def plain(render: Callable[[Mapping[str, Any]], bytes]) -> Format:
    """Plain text."""
    return Format(media_type="text/plain", parameters="; charset=utf-8", render=render)


def lines(render: Callable[[Mapping[str, Any]], bytes]) -> Format:
    """Lines of JSON."""
    return Format(media_type="application/x-ndjson", render=render)


def xlsx(render: Callable[[Mapping[str, Any]], bytes]) -> Format:
    """A workbook of Office Open XML (ECMA-376)."""
    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    return Format(media_type=media_type, render=render, is_packed=True, is_text=False, schema=_BINARY)


def pdf(
    render: Callable[[Mapping[str, Any]], bytes],
    extra: str,
    is_there: Callable[[], bool],
    objection: Callable[[Mapping[str, Any]], str | None],
) -> Format:
    """A document of ISO 32000, if the extra that makes it is installed."""
    return Format(
        media_type="application/pdf",
        render=render,
        is_packed=True,
        is_text=False,
        schema=_BINARY,
        extra=extra,
        is_there=is_there,
        objection=objection,
    )


@dataclass(frozen=True, kw_only=True)
class FormatChoice:
    """The formats of an answer, the default first."""

    by_name: Mapping[FormatName, Format]

    @property
    def media_types(self) -> tuple[str, ...]:
        """What ``Accept`` may name."""
        return tuple(one.media_type for one in self.by_name.values() if one.is_there())

    def choose(self, query: FormatQuery, accept: bytes) -> FormatName:
        """The requested format. Raises NotAcceptable, and InvalidRequest if it is not installed."""
        if query.format is not None:
            chosen = self.by_name[query.format]
            if not chosen.is_there():
                message = f"is not available: this installation is without the extra normata[{chosen.extra}]"
                fault = FieldFault(in_="query", name="format", code="unavailable", message=message, allowed=None)
                raise InvalidRequest.of([fault])
            return query.format
        wanted = best_media_type(accept, self.media_types)
        if wanted is None:
            raise NotAcceptable
        return next(name for name, one in self.by_name.items() if one.media_type == wanted)


@dataclass(frozen=True, kw_only=True)
class ListFormats(FormatChoice):
    """The formats of a list: JSON for its pages, and others for files with all its rows.

    ``write`` writes the rows of a request in one of the other formats into a file, and returns the name of the file,
    without the extension. Raises what the list declares. The formats only render examples.
    """

    write: Callable[[Transaction, Any, FormatName, BinaryIO], str]


@dataclass(frozen=True, kw_only=True)
class Formats(FormatChoice):
    """The formats of a report.

    ``present`` turns the data of the report's ``build`` into the report in wire form; it needs no database.
    ``file_name`` is the report's file name, without the extension. ``own_type`` is the media type and the ending of a
    report that has its own, whatever the format; null for all others.
    """

    present: Callable[[Any], Mapping[str, Any]]
    file_name: Callable[[Mapping[str, Any]], str]
    own_type: Callable[[Mapping[str, Any]], tuple[str, str] | None] = lambda _: None

    def content(self, read: Any, name: FormatName) -> Content:
        """The data of ``build``, in a format. Raises InvalidRequest if the report cannot have it."""
        report, chosen = self.present(read), self.by_name[name]
        reason = chosen.objection(report)
        if reason is not None:
            fault = FieldFault(in_="query", name="format", code="too_large", message=reason, allowed=None)
            raise InvalidRequest.of([fault])
        usual = f"{chosen.media_type}{chosen.parameters}", chosen.ending or name
        media_type, ending = self.own_type(report) or usual
        return Content(
            chosen.render(report),
            media_type.encode(),
            vary=b"accept, accept-encoding, authorization",
            disposition=_disposition(f"{self.file_name(report)}.{ending}", is_shown=media_type == JSON.media_type),
            is_packed=chosen.is_packed,
        )


def _disposition(name: str, *, is_shown: bool) -> bytes:
    """A Content-Disposition (RFC 6266): with the exact name (RFC 8187), and one in plain ASCII for other clients."""
    plain = "".join(one if one.isascii() and (one.isalnum() or one in "-._") else "-" for one in name)
    sort = "inline" if is_shown else "attachment"
    return f"{sort}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}".encode()
