"""A provider that follows the standards, until a test tells it to forge one thing."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from joserfc.jwk import ECKey, Key, RSAKey
from joserfc.jws import JWSRegistry

Claims = dict[str, Any]
CLIENT, SECRET = "normata", "a secret: 100%+ät"


@cache
def rsa_key(kid: str) -> RSAKey:
    """A key of this id; the same one each time."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


@cache
def ec_key(kid: str) -> ECKey:
    """A key of this id; the same one each time."""
    return ECKey.generate_key("P-256", {"kid": kid, "use": "sig"})


@dataclass
class Forger:
    """The provider. Change its fields to forge.

    ``metadata``, ``claims`` and ``header`` are merged over what is right, and a null takes a member away; ``sign``
    makes the whole ID token; ``answers`` replace what a path answers: status and body.
    """

    issuer: str = ""
    person: Claims = field(default_factory=lambda: {"sub": "subject-1"})
    userinfo: Claims | None = None
    metadata: Claims = field(default_factory=dict)
    claims: Claims = field(default_factory=dict)
    header: Claims = field(default_factory=dict)
    key: Key = field(default_factory=lambda: rsa_key("first"))
    keys: list[Key] = field(default_factory=lambda: [rsa_key("first")])
    sign: Callable[[Claims, Claims], str] | None = None
    tokens: Claims = field(default_factory=dict)
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    delay: float = 0.0
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def authorize(self, url: str) -> str:
        """What the browser is sent back to from a page of this provider, once the person has signed in."""
        asked = {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()}
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        return asked["redirect_uri"] + "?" + urlencode({"code": code, "state": asked["state"]})

    def answer(self, method: str, path: str, headers: Any, body: str) -> tuple[int, bytes]:
        """Status and body of the answer to a request."""
        self.asked.append(path)
        time.sleep(self.delay)
        if path in self.answers:
            return self.answers[path]
        match method, path:
            case "GET", "/.well-known/openid-configuration":
                return 200, _json(_merged(self._metadata(), self.metadata))
            case "GET", "/keys":
                return 200, _json({"keys": [key.as_dict(private=False) for key in self.keys]})
            case "GET", "/userinfo" if headers.get("Authorization") == "Bearer opaque":
                return 200, _json(self.userinfo or {})
            case "POST", "/token":
                return self._token(headers, {name: value for name, (value,) in parse_qs(body).items()})
        return 404, b"{}"

    def _metadata(self) -> Claims:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo" if self.userinfo is not None else None,
        }

    def _token(self, headers: Any, form: dict[str, str]) -> tuple[int, bytes]:
        sent = base64.b64decode(headers.get("Authorization", "").removeprefix("Basic ")).decode()
        if [unquote_plus(part) for part in sent.split(":")] != [CLIENT, SECRET]:
            return 401, _json({"error": "invalid_client"})
        asked = self._codes.pop(form.get("code", ""), None)
        if asked is None or asked["redirect_uri"] != form.get("redirect_uri"):
            return 400, _json({"error": "invalid_grant"})
        challenge = _base64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if challenge != asked["code_challenge"]:
            return 400, _json({"error": "invalid_grant"})
        now = int(time.time())
        right = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            "at_hash": _base64(hashlib.sha256(b"opaque").digest()[:16]),
            **self.person,
        }
        algorithm = "ES256" if isinstance(self.key, ECKey) else "RS256"
        header = _merged({"alg": algorithm, "kid": self.key.kid}, self.header)
        token = (self.sign or self.signed)(header, _merged(right, self.claims))
        told = {"access_token": "opaque", "token_type": "Bearer", "expires_in": 300, "id_token": token}
        return 200, _json(_merged(told, self.tokens))

    def signed(self, header: Claims, claims: Claims) -> str:
        """An ID token with this header and these claims, signed with the key."""
        signed = f"{_base64(_json(header))}.{_base64(_json(claims))}"
        # Not by the library's own way, which refuses to sign what is forged.
        signature = JWSRegistry.algorithms[header["alg"]].sign(signed.encode(), self.key)
        return f"{signed}.{_base64(signature)}"


def unsigned(header: Claims, claims: Claims) -> str:
    """A token without a signature."""
    return f"{_base64(_json(header))}.{_base64(_json(claims))}."


def _merged(right: Claims, forged: Claims) -> Claims:
    return {name: value for name, value in {**right, **forged}.items() if value is not None}


def _json(document: Any) -> bytes:
    return json.dumps(document).encode()


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@contextmanager
def running_forger() -> Iterator[Forger]:
    """The provider on a port of loopback, ended at the end."""
    forger = Forger()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._do("")

        def do_POST(self) -> None:
            self._do(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _do(self, body: str) -> None:
            status, answer = forger.answer(self.command, self.path, self.headers, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            if status in (301, 302, 307):
                self.send_header("Location", f"{forger.issuer}/elsewhere")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    forger.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield forger
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
