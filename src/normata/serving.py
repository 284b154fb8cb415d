"""Running the application in its server, Granian."""

from __future__ import annotations

import os
import socket
import tempfile

from granian.constants import Interfaces, Loops
from granian.server import Server

from normata.settings import Settings


class AddressInUse(OSError):
    """Something else listens on the address, or it is not one of this machine."""


def run(settings: Settings, application: str = "normata.app:create_app") -> None:
    """Serve until interrupted. Worker processes read the settings from the environment, so they are put there.

    ``application`` names the factory of what is served; benchmarks name others, to have them served in the same way.
    """
    for name, value in settings.model_dump().items():
        os.environ[f"NORMATA_{name.upper()}"] = str(value)
    with tempfile.TemporaryDirectory(prefix="normata-metrics-") as folder:
        if settings.workers > 1:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        Server(
            application,
            factory=True,
            address=settings.host,
            port=settings.port,
            interface=Interfaces.ASGI,
            workers=settings.workers,
            loop=Loops.asyncio,
            websockets=False,
            log_enabled=False,
            respawn_failed_workers=True,
            workers_kill_timeout=10,
        ).serve()


def base_url(settings: Settings) -> str:
    """Where this machine reaches what the settings have listen."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def require_free_address(host: str, port: int) -> None:
    """Raise AddressInUse, at once and in a sentence, where the server would fail again and again."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise AddressInUse(error.errno, f"cannot listen there: {error.strerror}", f"{host}:{port}") from None
