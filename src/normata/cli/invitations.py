"""Shared functions of the commands that invite people."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from normata.cli.backend import Invitation
from normata.cli.shared import echo, settings_with

if TYPE_CHECKING:
    from normata.identity.invitations.invitations import Invited


class InvitedByMail(NamedTuple):
    """A new invitation, and the name of its organization."""

    made: Invited
    organization: str


def invited(one: InvitedByMail) -> None:
    """Print only the link of a new invitation on standard output; and mail it, if mail is set up."""
    print_invitation(mail(one))


def print_invitation(made: Invitation) -> None:
    """Print only the link of a new invitation on standard output."""
    echo(f"{made.delivery}: it works once, within seven days", err=True)
    echo(made.link)


def mail(one: InvitedByMail) -> Invitation:
    """The link of a new invitation, once it is mailed, if mail is set up."""
    from normata.identity.invitations import invitations
    from normata.identity.mail import Mailer, MailFailed, invitation_mail

    settings = settings_with()
    link = invitations.link(settings.public_url, one.made.secret)
    email = one.made.invitation.email
    try:
        mailer = Mailer(settings.smtp_url, settings.mail_from)
        delivery = mailer.send_now(email, *invitation_mail(one.organization, "", link))
    except MailFailed as error:
        return Invitation(link, f"the mail failed ({error}); give this link to {email}")
    return Invitation(link, delivery_words(delivery, email))


def delivery_words(delivery: str, email: str) -> str:
    """What became of the mail with a link, in words."""
    if delivery == "sent":
        return f"this link was mailed to {email}"
    return f"{'the mail failed; ' if delivery == 'failed' else ''}give this link to {email}"
