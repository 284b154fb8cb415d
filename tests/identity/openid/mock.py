"""A provider that others have written, `oidc-provider-mock`, as a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import httpx2

from tests.server import PLAIN, free_port


class Mock:
    """The running provider, and what a person does in its pages."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer

    def know(self, subject: str, **claims: object) -> None:
        """Have it know a person."""
        answer = httpx2.put(f"{self.issuer}/users/{quote(subject)}", json=claims, timeout=10)
        assert answer.status_code == 204, answer.text

    def sign_in(self, url: str, subject: str) -> str:
        """Sign in at the page that Normata has sent the browser to; the address that it sends the browser back to."""
        return self._answer(url, {"sub": subject})

    def deny(self, url: str) -> str:
        """Press "deny" there instead."""
        return self._answer(url, {"action": "deny"})

    @staticmethod
    def _answer(url: str, form: dict[str, str]) -> str:
        answer = httpx2.post(url, data=form, timeout=10, verify=PLAIN)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]


@contextmanager
def running_mock(*options: str) -> Iterator[Mock]:
    """The provider on a port of loopback, ended at the end."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    mock = Mock(f"http://127.0.0.1:{port}")
    try:
        for _ in range(300):
            assert process.poll() is None, "the provider has ended"
            try:
                if (
                    httpx2.get(f"{mock.issuer}/.well-known/openid-configuration", timeout=5, verify=PLAIN).status_code
                    == 200
                ):
                    break
            except httpx2.TransportError:
                time.sleep(0.1)
        else:
            raise AssertionError("the provider was not ready in time")
        yield mock
    finally:
        process.terminate()
        process.wait(30)
