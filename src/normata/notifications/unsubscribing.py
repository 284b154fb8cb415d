"""Links that end mail about notifications without signing in (RFC 8058).

A link has the id of its user, and a signature of it with the key of the events. So nothing is stored, links do not
expire, and a link of one user is of no use for another. All that it can do is to end mail.
"""

from __future__ import annotations

from urllib.parse import urlencode

from normata.core.changes.unit_of_work import UnitOfWork
from normata.errors import NotFound
from normata.events.keys import Signer, has_signed, origin_of
from normata.identity import preferences

PATH = "/unsubscribe/"


def link(signer: Signer, public_url: str, user_id: str) -> str:
    """The link that ends mail to a user. Raises KeyUnusable."""
    token = signer.signature("", _text(user_id)).rstrip("=").replace("+", "-").replace("/", "_")
    return f"{public_url}{PATH}?{urlencode({'user': user_id, 'token': token})}"


def is_from_link(signer: Signer, user_id: str, token: str) -> bool:
    """Whether the token is that of a link for this user. Raises KeyUnusable."""
    signature = token.replace("-", "+").replace("_", "/")
    return has_signed(signer.verifier(""), _text(user_id), signature + "=" * (-len(signature) % 4))


def end_mail(unit: UnitOfWork, user_id: str) -> None:
    """End all mail about notifications to a user, until they choose again. Repeating it is harmless."""
    try:
        preferences.change(unit, user_id, {"mail": "OFF", "mail_by_type": None})
    except NotFound:
        return  # nobody gets any mail


def _text(user_id: str) -> str:
    # No other text that the key signs has such a second line.
    return f"{origin_of('')}\nunsubscribe {user_id}\n"
