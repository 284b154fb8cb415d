"""What was typed into a form whose session had ended: it goes along while its person signs in again.

The page to sign in has the form in it, sealed with a key that is in a cookie, for an hour. So neither the page, nor
what the service stores on the way to a provider, shows it to anybody without this browser. It names whose it is by the
cookie that this browser got with their last session: whoever signs in as somebody else does not get it.
"""

from __future__ import annotations

import zlib
from datetime import timedelta
from typing import NamedTuple

import orjson
from cryptography.fernet import Fernet, InvalidToken
from starlette.responses import Response

from normata.console.app.records.kinds import label
from normata.console.app.routes import shows_again
from normata.console.page_request import SAFE_METHODS, PageRequest, returning
from normata.console.return_path import safe_path
from normata.console.sign_in.start import start_page
from normata.core.http.problems import InvalidRequest, TooLarge, UnsupportedMediaType
from normata.identity.secrets import digest_of

AGAIN = "again"  # of the form that is sent again, to be shown and not saved
KEY_COOKIE = "normata-typed"
PERSON_COOKIE = "normata-person"
PERSON_LIFETIME = timedelta(days=30)
_LIFETIME = timedelta(hours=1)
_PAGES = "/app/"
_MOST_FIELDS = 600
_LARGEST = 4 * 2**20  # bytes of a form, which has a byte of a text in up to three of its own
LONGEST = 200_000  # characters that are sealed: a provider's answer is waited for with them in the database
_SECRET = ("password", "secret")  # no such field is on these pages; if one comes, it is not kept


class Typed(NamedTuple):
    """A form that was not saved: its path, and its fields."""

    path: str
    pairs: list[tuple[str, str]]


def person_mark(user_id: str) -> str:
    """The value of the cookie that says whose session this browser had last. Nobody learns who that is from it."""
    return digest_of(f"person {user_id}")


async def ask_to_sign_in(page_request: PageRequest) -> Response:
    """Have whoever has not signed in do so, and come back: to the page, or to the form that they have sent."""
    path = page_request.context.raw_path
    if page_request.request.method in SAFE_METHODS or not path.startswith(_PAGES):
        return page_request.redirect(f"/sign-in/{returning(page_request)}")
    key = Fernet.generate_key()
    sealed = await _sealed(page_request, key, page_request.cookie(PERSON_COOKIE))
    site = page_request.console.site
    headers = {"Set-Cookie": site.cookie(KEY_COOKIE, key.decode(), max_age=int(_LIFETIME.total_seconds()))}
    return await start_page(page_request, status=403, typed=sealed, was_typed=True, headers=headers if sealed else None)


async def _sealed(page_request: PageRequest, key: bytes, person: str) -> str:
    """The form that was sent, sealed; empty if it cannot be kept: it is too large, has files, or is nobody's."""
    page_request.context.body_limit = _LARGEST
    try:
        pairs = await page_request.form_pairs(_MOST_FIELDS)
    except (InvalidRequest, TooLarge, UnsupportedMediaType):
        return ""
    remaining = [(name, value) for name, value in pairs if not any(word in name.lower() for word in _SECRET)]
    if not person:
        return ""
    content = orjson.dumps([person, page_request.context.raw_path, remaining])
    sealed = Fernet(key).encrypt(zlib.compress(content)).decode()
    return sealed if len(sealed) <= LONGEST else ""


def unsealed(page_request: PageRequest, sealed: str, user_id: str) -> Typed | None:
    """The form that was sealed for this browser, if it is this user's; null if it is not, or too old, or spoilt."""
    key = page_request.cookie(KEY_COOKIE)
    if not sealed or not key:
        return None
    try:
        packed = Fernet(key).decrypt(sealed.encode(), ttl=int(_LIFETIME.total_seconds()))
        person, path, pairs = orjson.loads(zlib.decompressobj().decompress(packed, _LARGEST))
    except (InvalidToken, ValueError, zlib.error):
        return None
    if person != person_mark(user_id) or not safe_path(path).startswith(_PAGES):
        return None
    return Typed(path, [(str(name), str(value)) for name, value in pairs])


def typed_page(page_request: PageRequest, typed: Typed) -> Response:
    """The page that leads back to the form with what was typed. Nothing is saved before the person says so.

    Pages that show a form again do; of any other form what was typed is shown here, to be sent.
    """
    is_shown = shows_again(typed.path)
    response = page_request.page(
        "typed.html",
        visitor=None,
        action=typed.path,
        pairs=[*typed.pairs, (AGAIN, "true")] if is_shown else typed.pairs,
        is_shown=is_shown,
        shown=[(label(name), value) for name, value in typed.pairs if value and name not in _OURS and "." not in name],
    )
    response.headers.append("Set-Cookie", page_request.console.site.cookie(KEY_COOKIE, "", max_age=0))
    return response


# What forms send along that nobody has typed.
_OURS = frozenset({"assessed_at", "flags", "key", "kind", "marks", "return_to", "state", "step", "tag", "zone"})
