"""Requests of commands to a server: bounded in time and size, never redirected, each failure a sentence."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlencode, urlsplit

import httpx2

from normata.cli.backend import Refused, RefusedField
from normata.errors import DomainError
from normata.loopback import is_loopback

_CONNECT = 10.0  # seconds
_SILENCE = 120.0  # seconds without a byte; the service gives up long reads itself after a shorter time
_WHOLE = 900.0  # seconds for a whole answer
_LARGEST = 2**28  # bytes of an answer
_LARGEST_FILE = 2**33
_LARGEST_REFUSAL = 2**20
_LONGEST = 500  # characters that are shown of what a server says

# Tests put an application of their own here.
TRANSPORT: httpx2.BaseTransport | None = None

_JSON = "application/json"


class ServerFailed(DomainError):
    """The server cannot be reached, or does not answer as Normata does."""


class Answer(NamedTuple):
    """An answer with success: its body, and the cursor of the next page if it is one of a list."""

    body: bytes
    next: str | None


def object_in(text: bytes | str, base: str) -> dict[str, Any]:
    """The JSON object that the server at ``base`` sends. Raises ServerFailed."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ServerFailed(f"{base} answers with what is not JSON: is it Normata's address?")
    return found


class Transport:
    """The connections to a server. Nothing of a token is in any message."""

    def __init__(self, base: str, token: str) -> None:
        self.base = base
        host = urlsplit(base).hostname or ""
        local = is_loopback(host)
        self._client = httpx2.Client(
            # Reading the certificates of the system takes longer than most requests.
            verify=httpx2.create_ssl_context() if base.startswith("https:") else False,
            timeout=httpx2.Timeout(_SILENCE, connect=_CONNECT),
            follow_redirects=False,
            trust_env=not local,  # a proxy is for other machines
            transport=TRANSPORT,
            headers={
                "Authorization": f"Bearer {token}",
                "Accept-Encoding": "gzip",
                "User-Agent": "normata",
            },
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def send(
        self,
        method: str,
        path: str,
        query: list[tuple[str, str]],
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        media_type: str = _JSON,
    ) -> Answer:
        """The answer to a request, with a body of a media type. Raises Refused and ServerFailed."""
        with self._answered(method, path, query, body, {"Accept": media_type, **(headers or {})}) as response:
            self._require_type(response, media_type)
            return Answer(self._read(response, _LARGEST), _next_cursor(response))

    def download(self, path: str, query: list[tuple[str, str]], media_type: str, file: BinaryIO) -> None:
        """Write an answer of a media type into a file, while it arrives. Raises Refused and ServerFailed."""
        with self._answered("GET", path, query, None, {"Accept": media_type}) as response:
            self._require_type(response, media_type)
            file.writelines(self._pieces(response, _LARGEST_FILE))

    def lines(self, path: str, query: list[tuple[str, str]]) -> Iterator[str]:
        """The lines of an answer in NDJSON while they arrive. Raises Refused and ServerFailed."""
        media_type = "application/x-ndjson"
        with self._answered("GET", path, query, None, {"Accept": media_type}) as response:
            self._require_type(response, media_type)
            rest = b""
            for piece in response.iter_bytes():
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > _LARGEST:
                    raise ServerFailed(f"{self.base} answers with a line that is too long")
                yield from (line.decode("utf-8", "replace") for line in lines)
            if rest:
                raise ServerFailed(f"{self.base} has ended its answer in the middle")

    @contextmanager
    def _answered(
        self, method: str, path: str, query: list[tuple[str, str]], body: bytes | None, headers: Mapping[str, str]
    ) -> Iterator[httpx2.Response]:
        """An answer with success, whose body is still to read."""
        url = f"{self.base}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            with self._client.stream(method, url, content=body, headers=headers) as response:
                if not response.is_success:
                    self._refuse(response)
                yield response
        except httpx2.ConnectTimeout:
            raise ServerFailed(f"{self.base} cannot be reached: no answer within {_CONNECT:g} seconds") from None
        except httpx2.TimeoutException:
            raise ServerFailed(self._unsure(f"{self.base} has not answered for {_SILENCE:g} seconds", method)) from None
        except httpx2.ConnectError as error:
            raise ServerFailed(f"{self.base} cannot be reached: {_reason(error)}") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ServerFailed(self._unsure(f"the answer of {self.base} broke off: {_reason(error)}", method)) from None

    @staticmethod
    def _unsure(sentence: str, method: str) -> str:
        return sentence if method == "GET" else f"{sentence}; look whether the change was made before you repeat it"

    def _require_type(self, response: httpx2.Response, media_type: str) -> None:
        found = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if found != media_type:
            shown = found[:100] or "no type"
            raise ServerFailed(f"{self.base} answers with {shown} instead of {media_type}: is it Normata's address?")

    def _read(self, response: httpx2.Response, most: int) -> bytes:
        return b"".join(self._pieces(response, most))

    def _pieces(self, response: httpx2.Response, most: int) -> Iterator[bytes]:
        """The pieces of an answer of at most so many bytes, within a time."""
        size, end = 0, time.monotonic() + _WHOLE
        for piece in response.iter_bytes():
            size += len(piece)
            if size > most:
                raise ServerFailed(f"{self.base} answers with more than {most // 2**20:,} MiB")
            if time.monotonic() > end:
                raise ServerFailed(f"{self.base} takes more than {_WHOLE:g} seconds for an answer")
            yield piece

    def _refuse(self, response: httpx2.Response) -> None:
        """Raise what an answer without success means."""
        status, base = response.status_code, self.base
        if 300 <= status < 400:
            where = response.headers.get("location", "")[:_LONGEST]
            raise ServerFailed(f"{base} redirects to {where or 'nowhere'}, which is not followed; give that address")
        problem = self._problem(response)
        if problem is None:
            raise ServerFailed(f"{base} answers with status {status}, and not as Normata does: is it its address?")
        detail = str(problem.get("detail") or "")[:_LONGEST]
        if status == 401:
            raise Refused(f"{base} does not accept the token: it is unknown, revoked or expired", status)
        if status == 403:
            raise Refused(f"{base} does not allow this: {detail}", status)
        if status == 429:
            raise Refused(f"{base} takes no more requests at the moment: {detail}{_again(response)}", status)
        if status >= 500:
            raise Refused(f"{base} cannot do this at the moment: {detail}{_again(response)}", status)
        raise Refused(detail or f"{base} answers with status {status}", status, _faults(problem))

    def _problem(self, response: httpx2.Response) -> dict[str, Any] | None:
        """The problem of an answer; null if it has none of Normata's."""
        try:
            found = json.loads(self._read(response, _LARGEST_REFUSAL))
        except (ValueError, RecursionError, ServerFailed, httpx2.DecodingError):
            return None
        return found if isinstance(found, dict) and "code" in found and "detail" in found else None


def _faults(problem: Mapping[str, Any]) -> list[RefusedField]:
    found = problem.get("errors")
    return [
        RefusedField(*(str(one.get(name) or "")[:_LONGEST] for name in ("in", "name", "message")))
        for one in (found if isinstance(found, list) else ())
        if isinstance(one, dict)
    ]


def _again(response: httpx2.Response) -> str:
    seconds = response.headers.get("retry-after", "")
    if not (seconds.isascii() and seconds.isdigit() and len(seconds) <= 6):
        return ""
    return f" Repeat it in {int(seconds)} second{'' if int(seconds) == 1 else 's'}."


def _next_cursor(response: httpx2.Response) -> str | None:
    """The cursor of the next page; null at the end of a list. Nothing else of the link is followed."""
    from urllib.parse import parse_qs

    following = response.links.get("next", {}).get("url", "")
    return parse_qs(urlsplit(following).query).get("cursor", [None])[0]


def _reason(error: BaseException) -> str:
    """Why a connection failed, in a sentence."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not valid ({cause.verify_message.rstrip('.')})"
        if isinstance(cause, ssl.SSLError):
            return "it does not speak TLS as it should; is the address right?"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror[0].lower() + cause.strerror[1:]
        cause = cause.__cause__ or cause.__context__
    return str(error)[:_LONGEST] or type(error).__name__
