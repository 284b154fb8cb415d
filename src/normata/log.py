"""How events are logged: structured, to standard error, without anything secret."""

from __future__ import annotations

import logging
import sys

import structlog

from normata.settings import Settings


def configure(settings: Settings) -> None:
    """Log as the settings say. Tokens are never passed to a logger, so there is nothing to strike out."""
    pretty = settings.log_format == "text"
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if pretty else [structlog.processors.format_exc_info]),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
            if pretty
            else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[settings.log_level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
