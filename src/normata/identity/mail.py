"""Sending mail, if a server is set up: the only module that speaks SMTP (RFC 5321)."""

from __future__ import annotations

import asyncio
import re
import smtplib
import socket
import ssl
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, EmailPolicy
from email.utils import formatdate, make_msgid, parseaddr
from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit

from normata.core.log import logger
from normata.core.schema.text import UNSEEN, plain

_TIMEOUT = 10.0  # seconds to wait for each answer of the server

# One address for every reader: without characters for quotes, comments and lists (RFC 5322, section 3.2.3).
_PART = rf"""[^@\s{UNSEEN}()<>\[\]:;\\,"]+"""
_PLAIN_ADDRESS = re.compile(f"{_PART}@{_PART}")

# The result for a message: there is no mail server, the server has accepted it, or sending has failed.
Delivery = Literal["off", "sent", "failed"]


class _Folding(EmailPolicy):
    """How headers become lines: only the subject is folded, since readers decode words up to 75 (RFC 2047, section 2).

    Links in headers have no spaces, and folding would encode them. Servers take lines of 998 (RFC 5322, section 2.1.1).
    A content that is encoded has lines of 76 (RFC 2045, section 6).
    """

    def fold_binary(self, name: str, value: str) -> bytes:
        return super().fold_binary(name, value) if name == "Subject" else _UNFOLDED.fold_binary(name, value)


_LONGEST_LINE = 998
_UNFOLDED = SMTP.clone(max_line_length=_LONGEST_LINE)
_POLICY = _Folding(linesep=SMTP.linesep, max_line_length=76)


class MailFailed(Exception):
    """A message could not be sent to the server. The text is our own, because the server's may contain the address."""


class AddressRefused(MailFailed):
    """The server has refused the recipient for good: the address does not exist."""


class MailRejected(MailFailed):
    """The server has refused this message for good."""


class MailDelayed(MailFailed):
    """The server does not take this message now, but may later."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A message to one address. ``html`` is the same in HTML.

    Without ``message_id``, what stands before the @ of the Message-ID, the message gets a random one. ``unsubscribe``
    is a link that ends further ones with one click (RFC 8058).
    """

    to: str
    subject: str
    text: str
    html: str = ""
    message_id: str = ""
    unsubscribe: str = ""


class Mailer:
    """Sends mail through the server at ``url``, such as ``smtps://user:password@host:465``; empty for none.

    ``mailed`` is called with the delivery of each message.
    """

    def __init__(self, url: str, sender: str, mailed: Callable[[Delivery], None] = lambda _: None) -> None:
        self._server = urlsplit(url) if url else None
        self._sender = sender
        self.mailed = mailed

    async def send(self, to: str, subject: str, text: str) -> Delivery:
        """Send a message to one address, and return its delivery. A failure is logged, without the address."""
        delivery: Delivery
        try:
            delivery = "off" if self._server is None else await asyncio.to_thread(self.send_now, to, subject, text)
        except MailFailed as error:
            logger.warning("mail_failed", error=str(error))
            delivery = "failed"
        self.mailed(delivery)
        return delivery

    def send_now(self, to: str, subject: str, text: str) -> Delivery:
        """Send a message and wait for it, for commands. Raises MailFailed."""
        if self._server is None:
            return "off"
        with closing(self.connection()) as connection:
            connection.send(Mail(to, subject, text))
        return "sent"

    def connection(self) -> MailConnection:
        """A connection to the server, for several messages. There must be a server."""
        assert self._server is not None  # noqa: S101 - narrows the type
        return MailConnection(self._server, self._sender)


class MailConnection:
    """A connection to a mail server, which is made with the first message. It sends one message after the other."""

    def __init__(self, server: SplitResult, sender: str) -> None:
        self._server = server
        self._sender = sender
        self._smtp: smtplib.SMTP | None = None
        self._is_aborted = False

    async def send_within(self, mail: Mail, seconds: float) -> None:
        """:meth:`send` on a thread. If it takes longer, the connection is lost. Raises MailFailed."""
        sending = asyncio.create_task(asyncio.to_thread(self.send, mail))
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(sending)
        except (TimeoutError, asyncio.CancelledError) as error:
            self.abort()
            sending.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody waits for it now
            if isinstance(error, TimeoutError):
                raise MailFailed("TimeoutError") from None
            raise

    def send(self, mail: Mail) -> None:
        """Send a message, and return once the server has accepted it.

        Raises AddressRefused, MailRejected, MailDelayed, and MailFailed if no message can be sent now.
        """
        try:
            message = self._message(mail)
        except (MessageError, ValueError) as error:
            raise MailRejected(type(error).__name__) from None
        try:
            smtp = self._smtp or self._connect()
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise MailFailed(type(error).__name__) from None
        if self._is_aborted:
            raise MailFailed("TimeoutError")
        try:
            smtp.send_message(message, from_addr=parseaddr(self._sender)[1], to_addrs=[mail.to])
        except smtplib.SMTPRecipientsRefused as error:
            [(code, answer)] = error.recipients.values()
            raise _refusal(code, answer, AddressRefused)(type(error).__name__) from None
        except smtplib.SMTPDataError as error:
            raise _refusal(error.smtp_code, error.smtp_error, MailRejected)(type(error).__name__) from None
        except (MessageError, ValueError, smtplib.SMTPNotSupportedError) as error:  # such as an address not in ASCII
            raise MailRejected(type(error).__name__) from None
        except (OSError, smtplib.SMTPException) as error:
            raise MailFailed(type(error).__name__) from None

    def abort(self) -> None:
        """End the connection at once, also while another thread sends: that then fails."""
        self._is_aborted = True
        if self._smtp is not None and self._smtp.sock is not None:
            with suppress(OSError):
                self._smtp.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._smtp is not None and not self._is_aborted:
            with suppress(OSError, smtplib.SMTPException):
                self._smtp.quit()
        if self._smtp is not None:
            self._smtp.close()

    def _message(self, mail: Mail) -> EmailMessage:
        if not _PLAIN_ADDRESS.fullmatch(mail.to):
            raise ValueError("the address cannot be written without quotes")
        name, address = parseaddr(self._sender)
        message = EmailMessage(_POLICY)
        message["Subject"] = plain(mail.subject)
        message["From"] = Address(name, addr_spec=address)
        local, _, recipient_domain = mail.to.rpartition("@")
        message["To"] = Address(username=local, domain=recipient_domain)
        message["Date"] = formatdate()
        domain = address.rpartition("@")[2]
        message["Message-ID"] = f"<{mail.message_id}@{domain}>" if mail.message_id else make_msgid(domain=domain)
        message["Auto-Submitted"] = "auto-generated"  # so that no machine replies (RFC 3834)
        if mail.unsubscribe:
            message["List-Unsubscribe"] = f"<{mail.unsubscribe}>"
            message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        message.set_content(mail.text, cte=_encoding_of(mail.text))
        if mail.html:
            message.add_alternative(mail.html, subtype="html", cte=_encoding_of(mail.html))
        return message

    def _connect(self) -> smtplib.SMTP:
        server = self._server
        host, context = server.hostname or "localhost", ssl.create_default_context()
        if server.scheme == "smtps":
            self._smtp = smtplib.SMTP_SSL(host, server.port or 465, timeout=_TIMEOUT, context=context)
        else:
            self._smtp = smtplib.SMTP(host, server.port or 587, timeout=_TIMEOUT)
        self._smtp.ehlo_or_helo_if_needed()
        if server.scheme == "smtp" and self._smtp.has_extn("starttls"):
            self._smtp.starttls(context=context)
            self._smtp.ehlo()
        if server.username:
            self._smtp.login(unquote(server.username), unquote(server.password or ""))
        return self._smtp


def _encoding_of(text: str) -> str | None:
    """The transfer encoding of a text: none if its lines are short enough; null for one that makes them so."""
    if any(len(line.encode()) > _LONGEST_LINE for line in text.splitlines()):
        return None
    return "7bit" if text.isascii() else "8bit"


def _refusal(code: int, answer: bytes | str, for_good: type[MailFailed]) -> type[MailFailed]:
    """What a server's refusal of a recipient or a message means.

    A policy (enhanced code 5.7, RFC 3463) says nothing of the address: a server that does not relay for us yet gives it
    for all of them. So the message is attempted again. 421 is about the connection.
    """
    if code == 421:
        return MailFailed
    return for_good if code >= 500 and not _is_policy(answer) else MailDelayed


def _is_policy(answer: bytes | str) -> bool:
    text = answer if isinstance(answer, str) else answer.decode("ascii", "replace")
    return text.startswith("5.7.")


def sign_in_mail(link: str) -> tuple[str, str]:
    """Subject and text of the mail to somebody who has forgotten their password."""
    text = f"""\
You, or somebody else, asked for a link to sign in to Normata with this address.

Open it within 15 minutes, and set a new password:

{link}

The link is for you alone, and good once. If you did not ask for it, do nothing: your password is as it was.
"""
    return "Sign in to Normata", text


def vendor_link_mail(organization: str, sender: str, title: str, link: str, until: str) -> tuple[str, str]:
    """Subject and text of the mail that asks a vendor to answer questions; ``sender`` may be empty."""
    organization, sender, title = plain(organization), plain(sender), plain(title)
    subject = f"Questions about the security of your service, from {organization}"
    opening = f"{sender} of {organization} asks you" if sender else f"{organization} asks you"
    text = f"""\
{opening} to answer questions about the security of your service: {title}.

Open this link, which needs no account, until {until}:

{link}

You can stop at any time and go on later. Whoever has the link can read and change your answers until you submit them,
so pass it on only to those who help you to answer.
"""
    return subject, text


def invitation_mail(organization: str, inviter: str, link: str) -> tuple[str, str]:
    """Subject and text of the mail that invites somebody; ``inviter`` may be empty.

    Names are on one line, so that nobody can add text of their own.
    """
    organization, inviter = plain(organization), plain(inviter)
    subject = f"You are invited to {organization}"
    opening = f"{inviter} invites you" if inviter else "You are invited"
    text = f"""\
{opening} to work with {organization} on Normata, its compliance service.

Open this link within seven days to accept:

{link}

The link is for you alone, and good once. If you did not expect it, do nothing.
"""
    return subject, text
