"""A database with the demo, in which everybody but one has signed in already, with a service account and a webhook."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select

from normata.cli import demo as content
from normata.console.page_request import SESSION_COOKIE
from normata.core.changes.unit_of_work import UnitOfWork
from normata.demo.files import ORGANIZATION
from normata.events.keys import Signer
from normata.files.opening import open_store
from normata.identity.model import User
from normata.identity.service_accounts import service_accounts
from normata.identity.sessions import sessions
from normata.settings import Settings
from normata.webhooks import commands as webhooks
from normata.webhooks.secrets import SecretBox
from tests.databases import change, migrate, open_url

PLACE = "/app/harbourlight-robotics/"
_WEBHOOK = {
    "url": "https://receiver.example.org/normata",
    "kinds": ["policies"],
    "actions": ["restore"],
    "format": "THIN",
}
NEWCOMER = "femke.degraaf@harbourlight.example"  # who has not: only so a provider's word suffices


class Demo(NamedTuple):
    """The file, the secrets of sessions by the ids of users, and the user to whom the demo belongs."""

    path: Path
    secrets: dict[str, str]
    user: str

    def cookie(self, user: str, base: str) -> Any:
        """The cookie of a user's session, as Playwright takes it."""
        return {"name": SESSION_COOKIE, "value": self.secrets[user], "url": base, "httpOnly": True, "sameSite": "Lax"}


def demonstrated(path: Path) -> Demo:
    """Make it at ``path``."""
    return Demo(path, *filled(f"sqlite:///{path}"))


def filled(url: str) -> tuple[dict[str, str], str]:
    """Make it in a database that is empty or missing, and tell the secrets and the user of :class:`Demo`."""
    with closing(open_url(url, create=True)) as database:
        migrate(database)
        content.fill(database, lambda *_: None, open_store(Settings(database_url=url)))
        change(database, lambda unit: service_accounts.create(unit, ORGANIZATION, "Nightly export", "viewer"))
        box = SecretBox(Signer(Settings(database_url=url).event_key_file))
        change(database, lambda unit: webhooks.create(unit, box, (), ORGANIZATION, _WEBHOOK))
        secrets = change(database, _sign_everybody_in)
        demo_user = database.read_now(lambda transaction: transaction.scalar(_DEMO_USER))
    return secrets, str(demo_user)


_DEMO_USER = select(User.id).where(User.email == content.USER)


def _sign_everybody_in(unit: UnitOfWork) -> dict[str, str]:
    return {
        row.id: sessions.begin(unit, row.id, "link", address="127.0.0.1", user_agent="")
        for row in unit.rows(select(User.id).where(User.email != NEWCOMER))
    }
