"""How events are logged: structured, to standard error, without anything secret."""

from __future__ import annotations

import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

    from normata.settings import Settings

# Control characters, those that change the direction of text, and halves of surrogate pairs.
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""``text`` with each control character as an escape, such as ``\u001b``.

    A terminal obeys control characters: they can move the cursor, hide text and more. So every text that others have
    written goes through here before a terminal gets it. JSON has the same escapes, so JSON stays the same JSON.
    """
    return _INVISIBLE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


class _Logger:
    """The logger of the program. It imports structlog when something is logged, which small commands never do."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_structlog().get_logger("normata"), name)


logger: Any = _Logger()


def _structlog() -> Any:
    """The package structlog, without Rich, which it would import to format tracebacks.

    Nobody uses that, and it would take 5 MiB of each process.
    """
    if "structlog" not in sys.modules and "rich" not in sys.modules:
        sys.modules["rich"] = None  # type: ignore[assignment] # to import it fails, as if it were not installed
        try:
            importlib.import_module("structlog")
        finally:
            del sys.modules["rich"]
    return importlib.import_module("structlog")


def configure(settings: Settings) -> None:
    """Log as the settings say. Tokens are never passed to a logger, so there is nothing to strike out."""
    # Imported here, because commands need only `visible`, and importing these takes longer than a small command.
    import logging  # noqa: PLC0415

    from normata.core.log_lines import Lines  # noqa: PLC0415

    structlog = _structlog()
    lines = Lines(sys.stderr.buffer)
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    processors: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        # Plain text, because Rich, structlog's default, shows local variables, which may contain a token.
        structlog.processors.format_exc_info,
    ]
    wrapper_class = structlog.make_filtering_bound_logger(level)
    if settings.log_format == "text":
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
        structlog.configure(
            processors=[*processors, _make_visible, renderer],
            wrapper_class=wrapper_class,
            logger_factory=lambda *_: lines,
        )
    else:
        structlog.configure(
            processors=[*processors, structlog.processors.JSONRenderer(serializer=_as_json)],
            wrapper_class=wrapper_class,
            logger_factory=lambda *_: lines,
        )


def _make_visible(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        if isinstance(value, str):
            lines = value.split("\n") if key == "exception" else [value]
            event[key] = "\n".join(map(visible, lines))
    return event


def _as_json(event: EventDict, **options: Any) -> bytes:
    import orjson  # noqa: PLC0415 - as above

    try:
        line: bytes = orjson.dumps(event, **options)
    except TypeError:  # half of a surrogate pair cannot be encoded
        shown = {key: visible(value) if isinstance(value, str) else value for key, value in event.items()}
        line = orjson.dumps(shown, **options)
    return line if line.isascii() else visible(line.decode()).encode()
