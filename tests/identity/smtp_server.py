"""A real mail server on loopback, with a certificate that tests trust or do not."""

from __future__ import annotations

import asyncio
import ssl
from asyncio.base_events import Server
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USER, PASSWORD = "normata", "p@ss/word:1"


@dataclass
class Inbox:
    """What a server has taken: the messages, for whom, from whom by the envelope, and whether after STARTTLS.

    ``answers`` has the answers to addresses, and ``data_answer`` that to all messages, that are no acceptance.
    ``before_recipient`` is called when a recipient is named, and ``before_answer`` once a message is there: the server
    has not answered yet. The server never answers
    to RCPT if ``hangs`` is true.
    """

    url: str = ""
    messages: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    senders: list[str] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    users: list[bytes] = field(default_factory=list)
    refuses: bool = False
    answers: dict[str, str] = field(default_factory=dict)
    data_answer: str = ""
    before_recipient: Callable[[], None] | None = None
    before_answer: Callable[[], None] | None = None
    hangs: bool = False

    async def handle_RCPT(  # noqa: N802 - so aiosmtpd calls it
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        """Take a recipient, or refuse it."""
        if self.before_recipient is not None:
            self.before_recipient()
        if self.hangs:
            await asyncio.Event().wait()
        if address in self.answers:
            return self.answers[address]
        if self.refuses:
            return f"550 {address} is not known here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - as above
        """Take a message."""
        assert isinstance(envelope.content, bytes)
        if self.data_answer:
            return self.data_answer
        message = message_from_bytes(envelope.content, policy=default)
        assert isinstance(message, EmailMessage)
        self.messages.append(message)
        self.recipients += envelope.rcpt_tos
        self.senders.append(envelope.mail_from or "")
        self.encrypted.append(session.ssl is not None)
        if self.before_answer is not None:
            self.before_answer()
        return "250 OK"

    def authenticate(
        self, _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: Any
    ) -> AuthResult:
        """Take the one user's password."""
        assert isinstance(data, LoginPassword)
        is_right = data == LoginPassword(USER.encode(), PASSWORD.encode())
        if is_right:
            self.users.append(data.login)
        return AuthResult(success=is_right, handled=is_right)


def certificate(folder: Path, host: str = "") -> Path:
    """A file with a key and a certificate of its own for a host; for 127.0.0.1 where that is empty."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    named = x509.DNSName(host) if host else x509.IPAddress(ip_address("127.0.0.1"))
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([named]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


class _AnyPort(Controller):
    """A server on a port that is free."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call] # it has no types


@contextmanager
def mail_server(pem: Path | None = None, *, starttls: bool = False, login: bool = False) -> Iterator[Inbox]:
    """A server that runs while a block does: plain, with STARTTLS, or encrypted from the first byte."""
    inbox = Inbox()
    options: dict[str, Any] = {}
    context = None
    if pem is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pem)
    if starttls:
        options |= {"tls_context": context, "require_starttls": True}
    if login:
        options |= {"authenticator": inbox.authenticate, "auth_required": True}
    controller = _AnyPort(
        inbox, hostname="127.0.0.1", port=0, ssl_context=None if starttls else context, enable_SMTPUTF8=True, **options
    )
    controller.start()
    try:
        scheme = "smtps" if context is not None and not starttls else "smtp"
        inbox.url = f"{scheme}://127.0.0.1:{controller.port}"
        yield inbox
    finally:
        controller.stop()
