"""Mail, sent to a real server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
import structlog
from structlog.testing import capture_logs

from normata.identity.mail import Mail, Mailer, MailFailed, invitation_mail
from tests.identity.smtp_server import PASSWORD, USER, Inbox, certificate, mail_server

SENDER = "Normata Ünlü <normata@example.org>"


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    """The key and the certificate of a server."""
    return certificate(tmp_path)


@pytest.fixture
def trusted(pem: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, of a server whom this machine trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    return pem


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    """A server without encryption."""
    with mail_server() as found:
        yield found


def post(inbox: Inbox, *, to: str = "kim@example.org", subject: str = "Hello", url: str | None = None) -> str:
    """What becomes of a message."""
    mailer = Mailer(url or inbox.url, SENDER)
    return asyncio.run(mailer.send(to, subject, "Tschüß\nhttp://localhost:8000/x?secret=y\n"))


def test_a_message_arrives_as_it_was_written(inbox: Inbox) -> None:
    assert post(inbox) == "sent"
    (message,) = inbox.messages
    assert (message["Subject"], message["To"], message["From"]) == ("Hello", "kim@example.org", SENDER)
    assert message.get_content().splitlines() == ["Tschüß", "http://localhost:8000/x?secret=y"]
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Date"]
    assert message["Message-ID"].endswith("@example.org>")
    assert (inbox.recipients, inbox.senders) == (["kim@example.org"], ["normata@example.org"])


@pytest.mark.parametrize("text", ["plain " * 400, "Schlüssel " * 300, "鍵" * 1_200], ids=["ASCII", "some", "all"])
def test_a_line_that_no_server_takes_is_encoded_in_lines_of_76(text: str, inbox: Inbox) -> None:
    """And a long link in headers stays in one line (RFC 2045, section 6; RFC 5322, section 2.1.1)."""
    link = f"https://normata.example.org/{'x' * 400}"
    mail = Mail("kim@example.org", "Hello", text, html=f"<p>{text}</p>", unsubscribe=link)
    with closing(Mailer(inbox.url, SENDER).connection()) as connection:
        connection.send(mail)
    (message,) = inbox.messages
    assert message["List-Unsubscribe"] == f"<{link}>"
    for part, wanted in zip(message.iter_parts(), (text, f"<p>{text}</p>"), strict=True):
        assert max(map(len, str(part.get_payload()).splitlines())) <= 76
        assert part.get_content().rstrip("\r\n") == wanted


def test_a_long_subject_is_encoded_in_words_that_readers_decode(inbox: Inbox) -> None:
    subject = "Übergabe der Schlüssel, " * 7
    assert post(inbox, subject=subject) == "sent"
    (message,) = inbox.messages
    assert message["Subject"] == subject.strip()
    [sent] = [str(value) for name, value in message.raw_items() if name == "Subject"]
    assert max(len(word) for word in sent.split()) <= 75  # RFC 2047, section 2


def test_nothing_is_sent_where_there_is_no_server() -> None:
    assert asyncio.run(Mailer("", SENDER).send("kim@example.org", "Hello", "text")) == "off"


def test_a_server_that_is_encrypted(trusted: Path) -> None:
    with mail_server(trusted) as inbox:
        assert post(inbox) == "sent"
    assert len(inbox.messages) == 1


def test_encryption_is_begun_where_it_is_offered(trusted: Path) -> None:
    with mail_server(trusted, starttls=True) as inbox:
        assert post(inbox) == "sent"
    assert inbox.encrypted == [True]


@pytest.mark.parametrize("starttls", [True, False])
def test_a_server_that_nobody_vouches_for_gets_nothing(pem: Path, starttls: bool) -> None:
    with mail_server(pem, starttls=starttls) as inbox:
        assert post(inbox) == "failed"
    assert inbox.messages == []


def test_user_and_password_are_those_of_the_address(trusted: Path) -> None:
    """Escaped where they have characters that an address has for itself."""
    with mail_server(trusted, starttls=True, login=True) as inbox:
        place = inbox.url.removeprefix("smtp://")
        assert post(inbox, url=f"smtp://{USER}:{quote(PASSWORD, safe='')}@{place}") == "sent"
        assert post(inbox, url=f"smtp://{USER}:wrong@{place}") == "failed"
    assert inbox.users == [USER.encode()]


@pytest.fixture
def logging() -> Iterator[None]:
    """The log takes everything, whatever the service of another test has been told."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(0))
    yield
    structlog.configure(**before)


@pytest.mark.usefixtures("logging")
def test_a_recipient_that_is_refused_is_told_and_logged_without_the_address(inbox: Inbox) -> None:
    inbox.refuses = True
    with capture_logs() as logged:
        assert post(inbox, to="kim@example.org") == "failed"
    assert logged == [{"event": "mail_failed", "error": "SMTPRecipientsRefused", "log_level": "warning"}]


def test_a_server_that_is_not_there() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(MailFailed, match="ConnectionRefusedError"):
        Mailer(f"smtp://127.0.0.1:{port}", SENDER).send_now("kim@example.org", "Hello", "text")


@pytest.mark.parametrize(
    "to", ["kim@example.org\r\nBcc: eve@example.org", "kim@example.org>,<eve@example.org", "@", "no"]
)
def test_an_address_cannot_name_others(inbox: Inbox, to: str) -> None:
    assert post(inbox, to=to) == "failed"
    assert inbox.messages == []


def test_a_name_cannot_make_headers(inbox: Inbox) -> None:
    subject, text = invitation_mail("Acme\r\nBcc: eve@example.org", "Ann\nX: y", "http://localhost:8000/x")
    assert Mailer(inbox.url, SENDER).send_now("kim@example.org", subject, text) == "sent"
    (message,) = inbox.messages
    assert message["Bcc"] is None
    assert message["Subject"] == "You are invited to Acme Bcc: eve@example.org"
    assert "http://localhost:8000/x" in message.get_content()


def test_an_address_may_have_letters_of_every_script(inbox: Inbox) -> None:
    assert post(inbox, to="käthe@exämple.org") == "sent"
    assert inbox.recipients == ["käthe@exämple.org"]


def test_nobody_writes_a_mail_of_their_own_with_a_name(inbox: Inbox) -> None:
    subject, text = invitation_mail("Al\u202epha\n\nPay here: x", "Eve\r\n\u2067\x1b[2J", "https://x.example/")
    assert subject == "You are invited to Alpha Pay here: x"
    assert text.startswith("Eve [2J invites you to work with Alpha Pay here: x on Normata, its compliance service.\n")
    assert post(inbox, subject="A\u2028B\u200e") == "sent"
    assert inbox.messages[0]["Subject"] == "A B"


@pytest.mark.parametrize("to", ["k\u202eim@example.org", "kim@ex\u200fample.org", "kim\x85@example.org"])
def test_an_address_hides_nothing(to: str, inbox: Inbox) -> None:
    assert post(inbox, to=to) == "failed"
    assert inbox.messages == []
