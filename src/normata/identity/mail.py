"""Sending mail, if a server is set up. A failure is reported, and affects nothing else."""

from __future__ import annotations

import asyncio
import re
import smtplib
import ssl
from collections.abc import Callable
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate, make_msgid, parseaddr
from typing import Literal
from urllib.parse import unquote, urlsplit

from normata.core.log import logger
from normata.core.schema.text import UNSEEN, plain

_TIMEOUT = 10.0  # seconds to wait for each answer of the server

# One address for every reader: without characters for quotes, comments and lists (RFC 5322, section 3.2.3).
_PART = rf"""[^@\s{UNSEEN}()<>\[\]:;\\,"]+"""
_PLAIN_ADDRESS = re.compile(f"{_PART}@{_PART}")

# The result for a message: there is no mail server, the server has accepted it, or sending has failed.
Delivery = Literal["off", "sent", "failed"]


class MailFailed(Exception):
    """A message could not be sent to the server. The text is our own, because the server's may contain the address."""


class Mailer:
    """Sends mail through the server at ``url``, such as ``smtps://user:password@host:465``; empty for none.

    ``mailed`` is called with the delivery of each message.
    """

    def __init__(self, url: str, sender: str, mailed: Callable[[Delivery], None] = lambda _: None) -> None:
        self._server = urlsplit(url) if url else None
        self._sender = sender
        self._mailed = mailed

    async def send(self, to: str, subject: str, text: str) -> Delivery:
        """Send a message to one address, and return its delivery. A failure is logged, without the address."""
        delivery: Delivery
        try:
            delivery = "off" if self._server is None else await asyncio.to_thread(self.send_now, to, subject, text)
        except MailFailed as error:
            logger.warning("mail_failed", error=str(error))
            delivery = "failed"
        self._mailed(delivery)
        return delivery

    def send_now(self, to: str, subject: str, text: str) -> Delivery:
        """Send a message and wait for it, for commands. Raises MailFailed."""
        if self._server is None:
            return "off"
        try:
            self._send(to, self._message(to, subject, text))
        except (OSError, smtplib.SMTPException, MessageError, ValueError) as error:
            raise MailFailed(type(error).__name__) from error
        return "sent"

    def _message(self, to: str, subject: str, text: str) -> EmailMessage:
        if not _PLAIN_ADDRESS.fullmatch(to):
            raise ValueError("the address cannot be written without quotes")
        name, address = parseaddr(self._sender)
        message = EmailMessage()
        message["Subject"] = plain(subject)
        message["From"] = Address(name, addr_spec=address)
        local, _, domain = to.rpartition("@")
        message["To"] = Address(username=local, domain=domain)
        message["Date"] = formatdate()
        message["Message-ID"] = make_msgid(domain=address.rpartition("@")[2])
        message["Auto-Submitted"] = "auto-generated"  # so that no machine replies (RFC 3834)
        message.set_content(text)
        return message

    def _send(self, to: str, message: EmailMessage) -> None:
        server = self._server
        assert server is not None  # noqa: S101 - narrows the type
        host, context = server.hostname or "localhost", ssl.create_default_context()
        connection: smtplib.SMTP
        if server.scheme == "smtps":
            connection = smtplib.SMTP_SSL(host, server.port or 465, timeout=_TIMEOUT, context=context)
        else:
            connection = smtplib.SMTP(host, server.port or 587, timeout=_TIMEOUT)
        with connection:
            connection.ehlo_or_helo_if_needed()
            if server.scheme == "smtp" and connection.has_extn("starttls"):
                connection.starttls(context=context)
                connection.ehlo()
            if server.username:
                connection.login(unquote(server.username), unquote(server.password or ""))
            connection.send_message(message, from_addr=parseaddr(self._sender)[1], to_addrs=[to])


def sign_in_mail(link: str) -> tuple[str, str]:
    """Subject and text of the mail to somebody who has forgotten their password."""
    text = f"""\
You, or somebody else, asked for a link to sign in to Normata with this address.

Open it within 15 minutes, and set a new password:

{link}

The link is for you alone, and good once. If you did not ask for it, do nothing: your password is as it was.
"""
    return "Sign in to Normata", text


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
