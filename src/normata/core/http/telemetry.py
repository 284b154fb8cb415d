"""Whether OpenTelemetry is requested and available. This module does not import it, which takes a third of a second."""

from __future__ import annotations

import os
from importlib.util import find_spec

from normata.errors import CommandError
from normata.settings import Settings

# The values of OTEL_TRACES_EXPORTER: `console` prints spans, `none` exports nothing.
EXPORTERS = ("otlp", "console", "none")
_PROTOCOL = "http/protobuf"


class TracingImpossible(CommandError):
    """Tracing is turned on and cannot work; the message is the reason, in one sentence."""


def exporter() -> str:
    """The exporter of spans in the environment (OpenTelemetry's specification, "Environment Variable")."""
    return os.environ.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"


def require_possible(settings: Settings) -> None:
    """Raise TracingImpossible if the settings request tracing but the installation or the environment prevents it.

    Call it once at the start, so that workers do not repeat the message.
    """
    if not settings.tracing:
        return
    if not (_is_installed("opentelemetry.sdk") and _is_installed("opentelemetry.exporter.otlp.proto.http")):
        raise TracingImpossible("NORMATA_TRACING needs the extra otel: install normata[otel]")
    if exporter() not in EXPORTERS:
        raise TracingImpossible(f"OTEL_TRACES_EXPORTER is one of {', '.join(EXPORTERS)}, and not {exporter()}")
    general = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "").strip()
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "").strip() or general or _PROTOCOL
    if exporter() == "otlp" and protocol != _PROTOCOL:
        raise TracingImpossible(f"Normata speaks OTLP as {_PROTOCOL}, and not {protocol}")


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it is missing, too
        return False
