"""How a person wants times and pages to look, and when they want mail: stored with the user, for every browser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field
from sqlalchemy import bindparam, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, update_of
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Input
from normata.errors import NotFound
from normata.identity.mail_choices import MailByType, MailChoice
from normata.identity.model import DateFormat, Theme, TimeZone, User


class Preferences(NamedTuple):
    """How a person wants pages to look; null is for what their browser says, or what is usual."""

    time_zone: str | None = None
    date_format: str | None = None
    theme: str | None = None


TIME_ZONE = (
    "The time zone in which the pages of the console show times, by its name in the tz database; null for that of the"
    " browser."
)
DATE_FORMAT = "How the pages of the console write dates and times; null for day, month and year."
THEME = "The colors of the pages of the console; null for those of the browser."
MAIL = (
    "When notifications are mailed: `IMMEDIATELY`, each by itself; `DAILY`, the unread ones in the morning; or `OFF`."
    " Null for what the organization of the notification has set."
)
MAIL_BY_TYPE = "The types of notifications that are mailed at other times, each with its own choice."
IS_MAIL_REFUSED = "Whether the mail server has refused the address for good. Then nothing is mailed to it."


class PreferencesPatch(Input):
    """What is to change of the preferences. What is omitted stays as it is; null takes a preference back."""

    time_zone: Annotated[TimeZone | None, Field(description=TIME_ZONE, examples=["Europe/Berlin"])] = None
    date_format: Annotated[DateFormat | None, Field(description=DATE_FORMAT)] = None
    theme: Annotated[Theme | None, Field(description=THEME)] = None
    mail: Annotated[MailChoice | None, Field(description=MAIL)] = None
    mail_by_type: Annotated[MailByType | None, Field(description=f"{MAIL_BY_TYPE} It replaces all of them.")] = None
    is_mail_refused: Annotated[
        Literal[False] | None, Field(description="False has the address tried again, if the server has refused it.")
    ] = None

    def changes(self) -> dict[str, Any]:
        """The preferences that change, by the names of their columns."""
        changes = {name: getattr(self, name) for name in _CHANGEABLE if name in self.model_fields_set}
        if self.mail_by_type is not None:
            changes["mail_by_type"] = self.mail_by_type or None
        if self.is_mail_refused is False:
            changes["refused_email"] = None
        return changes


_CHANGEABLE = (*Preferences._fields, "mail", "mail_by_type", "refused_email")

PREFERENCES_WRITES = (update_of(User, *_CHANGEABLE),)


def change(unit: UnitOfWork, user_id: str, changes: Mapping[str, Any]) -> None:
    """Change these preferences of a user. Raises NotFound."""
    before = unit.row(_FIND, {"user": user_id})
    if before is None:
        raise NotFound
    row = before._asdict()
    after = row | changes
    if after != row:
        unit.rows(_CHANGE, {"user": user_id} | {f"new_{name}": after[name] for name in _CHANGEABLE})
        unit.publish(Change("update", User, before.organization_id, user_id, after, row))


_USER = sql_table(User)
_FIND = select(
    *(_USER.c[name] for name in ("id", "email", "name", "organization_id", "removed_at", *_CHANGEABLE))
).where(_USER.c.id == bindparam("user"))
_CHANGE = (
    update(_USER)
    .where(_USER.c.id == bindparam("user"))
    .values({name: bindparam(f"new_{name}", type_=_USER.c[name].type) for name in _CHANGEABLE})
)
