"""Uploads in parts that were never completed, because their process has ended. S3 shows them in a list of their own.

The library that stores files can neither list nor abort them, so these two requests are made here. They are signed
with the key in the environment. Where credentials come from elsewhere, such as the role of a machine, the bucket needs
a rule that aborts them.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree

import httpx2

_EMPTY = sha256().hexdigest()
_AT_ONCE = 1_000


class _Abandoned(NamedTuple):
    key: str
    upload_id: str


class _Bucket:
    def __init__(self, endpoint: str, bucket: str, client: httpx2.Client) -> None:
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        has_own_host = os.environ.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower() in ("1", "true")
        address = (endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/")
        self._region = region
        self._address = address if endpoint and has_own_host else f"{address}/{bucket}"
        self._client = client

    def ask(self, method: str, key: str, query: dict[str, str]) -> bytes:
        """The body of an answer. Raises OSError."""
        url = f"{self._address}/{quote(key)}" if key else self._address
        coded = urlencode(sorted(query.items()), quote_via=quote, safe="")
        try:
            headers = signed(method, url, coded, self._region, datetime.now(UTC))
            answer = self._client.request(method, f"{url}?{coded}", headers=headers)
        except httpx2.HTTPError as error:
            raise OSError(f"{method} {url} failed: {type(error).__name__}") from error
        if answer.status_code == 404:  # another process has just aborted it
            return b""
        if not answer.is_success:
            raise OSError(f"{method} {url} was answered {answer.status_code}")
        return answer.content


def abort_abandoned(endpoint: str, bucket: str, prefix: str, before: float, timeout: float) -> None:
    """Abort what was begun before a time, with names that begin with a prefix. Raises OSError.

    Does nothing if no key is in the environment.
    """
    if not os.environ.get("AWS_ACCESS_KEY_ID") or not os.environ.get("AWS_SECRET_ACCESS_KEY"):
        return
    with httpx2.Client(timeout=timeout, trust_env=False) as client:
        requests = _Bucket(endpoint, bucket, client)
        for one in list(_abandoned(requests, prefix, before)):
            requests.ask("DELETE", one.key, {"uploadId": one.upload_id})


def _abandoned(requests: _Bucket, prefix: str, before: float) -> Iterator[_Abandoned]:
    position: dict[str, str] = {}
    while True:
        query = {"uploads": "", "max-uploads": str(_AT_ONCE), "prefix": f"{prefix}/" if prefix else ""} | position
        # The parser has limits of its own against documents that grow.
        root = ElementTree.fromstring(requests.ask("GET", "", query) or b"<none/>")  # noqa: S314
        for upload in root.iterfind("{*}Upload"):
            begun = datetime.fromisoformat(upload.findtext("{*}Initiated", ""))
            if begun.timestamp() < before:
                yield _Abandoned(upload.findtext("{*}Key", ""), upload.findtext("{*}UploadId", ""))
        if root.findtext("{*}IsTruncated", "") != "true":
            return
        position = {
            "key-marker": root.findtext("{*}NextKeyMarker", ""),
            "upload-id-marker": root.findtext("{*}NextUploadIdMarker", ""),
        }


def signed(method: str, url: str, query: str, region: str, at: datetime) -> dict[str, str]:
    """The headers of a request without a body, signed with the key in the environment (AWS Signature Version 4)."""
    moment = at.strftime("%Y%m%dT%H%M%SZ")
    parts = urlsplit(url)
    headers = {"host": parts.netloc, "x-amz-content-sha256": _EMPTY, "x-amz-date": moment}
    if token := os.environ.get("AWS_SESSION_TOKEN"):
        headers["x-amz-security-token"] = token
    names = ";".join(headers)
    fields = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = f"{method}\n{parts.path or '/'}\n{query}\n{fields}\n{names}\n{_EMPTY}"
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    key = f"AWS4{os.environ['AWS_SECRET_ACCESS_KEY']}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"{os.environ['AWS_ACCESS_KEY_ID']}/{scope}"
    return {
        **headers,
        "authorization": f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}",
    }
