"""Shared functions of the commands that invite people."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from normata.cli.shared import echo, settings_with

if TYPE_CHECKING:
    from normata.identity.invitations.invitations import Invited


class InvitedByMail(NamedTuple):
    """A new invitation, and the name of its organization."""

    made: Invited
    organization: str


def invited(one: InvitedByMail) -> None:
    """Print only the link of a new invitation on standard output; and mail it, if mail is set up."""
    from normata.identity.invitations import invitations
    from normata.identity.mail import Mailer, MailFailed, invitation_mail

    settings = settings_with()
    link = invitations.link(settings.public_url, one.made.secret)
    email = one.made.invitation.email
    try:
        mailer = Mailer(settings.smtp_url, settings.mail_from)
        delivery = mailer.send_now(email, *invitation_mail(one.organization, "", link))
        message = f"give this link to {email}" if delivery == "off" else f"this link was mailed to {email}"
    except MailFailed as error:
        message = f"the mail failed ({error}); give this link to {email}"
    echo(f"{message}: it works once, within seven days", err=True)
    echo(link)
