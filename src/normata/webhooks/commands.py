"""Creating, changing, testing and removing webhooks, and setting where their deliveries go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, func, insert, select, update

from normata.core.changes.source import Fault, FaultyInput
from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of, update_of
from normata.core.changes.writing import BODY
from normata.core.db.types import format_timestamp
from normata.core.http.outgoing_addresses import Network, origin_of, url_fault
from normata.core.schema.table import new_id, sql_table, tables
from normata.errors import NotFound
from normata.events.proofs import size_of
from normata.identity.authority import require_role
from normata.identity.organization_lookup import reached
from normata.webhooks.model import MOST, Webhook, WebhookDelivery
from normata.webhooks.secrets import SecretBox, as_text, new_secret

BOTH_VALID_FOR = timedelta(hours=24)  # of two secrets

_DELIVERY_WRITES = update_of(WebhookDelivery, "next_number", "due_at", "claim", "attempts", "failing_since")
CREATION_WRITES = (insert_of(Webhook), insert_of(WebhookDelivery))
CHANGE_WRITES = (
    update_of(Webhook, "url", "origin", "kinds", "actions", "format", "updated_at", "disabled_at", "disabled_reason"),
    _DELIVERY_WRITES,
)
ROTATION_WRITES = (update_of(Webhook, "secret", "former_secret", "former_until", "updated_at"),)
REPLAY_WRITES = (_DELIVERY_WRITES,)
REMOVAL_WRITES = (delete_of(Webhook), delete_of(WebhookDelivery))


class WithSecret(NamedTuple):
    """The row of a webhook with its delivery, and its new secret."""

    row: Any
    secret: str


def create(
    unit: UnitOfWork, box: SecretBox, networks: Sequence[Network], organization: str, body: Mapping[str, Any]
) -> WithSecret:
    """Create a webhook, which gets the events from now on.

    Raises NotFound, InsufficientRole, KeyUnusable, and FaultyInput, also if the organization has 50 already.
    """
    organization_id = reached(unit, organization)
    require_role(unit, organization_id, "admin")
    unit.lock(f"webhooks of {organization_id}")
    faults = list(_faults(body, networks))
    if (unit.scalar(_COUNT, {"organization": organization_id}) or 0) >= MOST:
        faults.append(Fault(BODY, "", f"an organization has at most {MOST} webhooks", "too_many"))
    if faults:
        raise FaultyInput(faults)
    webhook_id, secret = new_id(), new_secret()
    row = {
        "id": webhook_id,
        "organization_id": organization_id,
        **{name: body[name] for name in ("url", "kinds", "actions", "format")},
        "origin": origin_of(body["url"]),
        "secret": box.seal(webhook_id, secret),
        "former_secret": None,
        "former_until": None,
        "created_at": unit.moment,
        "updated_at": unit.moment,
        "disabled_at": None,
        "disabled_reason": None,
    }
    unit.rows(_CREATE, row)
    next_number = size_of(unit, organization_id)
    begin = {"webhook_id": webhook_id, "owner": organization_id, "next_number": next_number, "due_at": unit.moment}
    unit.rows(_BEGIN, begin | {"attempts": 0})
    unit.publish(Change("create", Webhook, organization_id, webhook_id, row))
    return WithSecret(_found(unit, webhook_id), as_text(secret))


def change(unit: UnitOfWork, networks: Sequence[Network], webhook_id: str, body: Mapping[str, Any]) -> Any:
    """Change the fields in ``body`` of a webhook, by column names, and return its row.

    ``is_active`` stops it, or lets it go on where it is, at once and as if it had never failed. Raises NotFound,
    InsufficientRole and FaultyInput.
    """
    unit.lock(lock_of(webhook_id))  # else one of two at the same time would write what the other one has read
    before = _found(unit, webhook_id)
    is_active = body.get("is_active")
    values = {name: value for name, value in body.items() if name != "is_active"}
    if faults := list(_faults(values, networks)):
        raise FaultyInput(faults)
    if "url" in values:
        values["origin"] = origin_of(values["url"])
    if is_active is not None and is_active != (before.disabled_at is None):
        values |= {
            "disabled_at": None if is_active else unit.moment,
            "disabled_reason": None if is_active else "STOPPED",
        }
    known = before._asdict()
    after = known | values
    if after == known:
        return before
    after["updated_at"] = unit.moment
    unit.rows(_CHANGE, {"webhook": webhook_id, **{f"new_{name}": after[name] for name in _CHANGEABLE}})
    # Whoever sends with the old values stops. A receiver that was changed may have been repaired.
    unit.rows(_GO_ON, {"webhook": webhook_id, "moment": None if after["disabled_at"] else unit.moment})
    unit.publish(Change("update", Webhook, before.organization_id, webhook_id, after, known))
    return _found(unit, webhook_id)


def lock_of(webhook_id: str) -> str:
    """The name of the lock of whoever writes what was read of a webhook."""
    return f"webhook {webhook_id}"


def rotate(unit: UnitOfWork, box: SecretBox, webhook_id: str) -> WithSecret:
    """Give a webhook another secret; the one that it had is valid for another day.

    Raises NotFound, InsufficientRole and KeyUnusable.
    """
    before = _found(unit, webhook_id)
    secret = new_secret()
    until = format_timestamp(datetime.fromisoformat(unit.moment) + BOTH_VALID_FOR)
    unit.rows(
        _ROTATE,
        {"webhook": webhook_id, "new_secret": box.seal(webhook_id, secret), "until": until, "moment": unit.moment},
    )
    after = before._asdict() | {"former_until": until, "updated_at": unit.moment}
    unit.publish(Change("rotate", Webhook, before.organization_id, webhook_id, after, before._asdict()))
    return WithSecret(_found(unit, webhook_id), as_text(secret))


def replay(unit: UnitOfWork, webhook_id: str, number: int) -> Any:
    """Let a webhook go on with the event of a number, and return its row.

    That of the next event, which is not there yet, leaves out all that there is. Raises NotFound, InsufficientRole, and
    FaultyInput for a larger number.
    """
    before = _found(unit, webhook_id)
    size = size_of(unit, before.organization_id)
    if number > size:
        raise FaultyInput([Fault(BODY, "/number", f"must be at most {size}", "too_large")])
    unit.rows(_REPLAY, {"webhook": webhook_id, "number": number})
    unit.rows(_GO_ON, {"webhook": webhook_id, "moment": None if before.disabled_at else unit.moment})
    unit.publish(Change("replay", Webhook, before.organization_id, webhook_id, counts={"fromNumber": number}))
    return _found(unit, webhook_id)


def test(unit: UnitOfWork, webhook_id: str) -> Any:
    """Note that a webhook is tested, and return its row. Raises NotFound and InsufficientRole."""
    row = _found(unit, webhook_id)
    unit.publish(Change("test", Webhook, row.organization_id, webhook_id, counts={}))
    return row


def remove(unit: UnitOfWork, webhook_id: str) -> None:
    """Remove a webhook with its secrets. Raises NotFound and InsufficientRole."""
    before = _found(unit, webhook_id)
    unit.rows(_END, {"webhook": webhook_id})
    unit.rows(_REMOVE, {"webhook": webhook_id})
    unit.publish(Change("delete", Webhook, before.organization_id, webhook_id, before=before._asdict()))


def _found(unit: UnitOfWork, webhook_id: str) -> Any:
    """The row of a webhook that the actor may change, with its delivery."""
    row = unit.row(FIND, {"webhook": webhook_id})
    if row is None:
        raise NotFound
    require_role(unit, row.organization_id, "admin")
    return row


def _faults(body: Mapping[str, Any], networks: Sequence[Network]) -> Iterator[Fault]:
    if "url" in body and (reason := url_fault(body["url"], networks)) is not None:
        yield Fault(BODY, "/url", reason)
    known = {table.array for table in tables() if table.array}
    for place, kind in enumerate(body.get("kinds", ())):
        if kind not in known:
            yield Fault(BODY, f"/kinds/{place}", f"is no kind of row that events are about: {kind}")


_TABLE, _DELIVERY = sql_table(Webhook), sql_table(WebhookDelivery)
# Without the secrets, so that no event and no answer can have them.
SHOWN = [column for column in _TABLE.c if column.name not in ("secret", "former_secret")]
STATE = [column for column in _DELIVERY.c if column.name not in ("webhook_id", "owner", "claim")]
JOINED = select(*SHOWN, *STATE).join(_DELIVERY, _DELIVERY.c.webhook_id == _TABLE.c.id)
FIND = JOINED.where(_TABLE.c.id == bindparam("webhook"))

_TIME = _TABLE.c.updated_at.type
_CHANGEABLE = (
    *("url", "origin", "kinds", "actions", "format"),
    *("updated_at", "disabled_at", "disabled_reason"),
)
_COUNT = select(func.count()).where(_TABLE.c.organization_id == bindparam("organization"))
_CREATE = insert(_TABLE).values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
_BEGIN = insert(_DELIVERY).values(
    {
        name: bindparam(name, type_=_DELIVERY.c[name].type)
        for name in ("webhook_id", "owner", "next_number", "due_at", "attempts")
    }
)
_CHANGE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("webhook"))
    .values({name: bindparam(f"new_{name}", type_=_TABLE.c[name].type) for name in _CHANGEABLE})
)
_ROTATE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("webhook"))
    .values(
        secret=bindparam("new_secret"),
        former_secret=_TABLE.c.secret,
        former_until=bindparam("until", type_=_TIME),
        updated_at=bindparam("moment", type_=_TIME),
    )
)
_IS_ITS = _DELIVERY.c.webhook_id == bindparam("webhook")
_GO_ON = (
    update(_DELIVERY)
    .where(_IS_ITS)
    .values(due_at=bindparam("moment", type_=_TIME), claim=None, attempts=0, failing_since=None)
)
_REPLAY = update(_DELIVERY).where(_IS_ITS).values(next_number=bindparam("number"))
_END = delete(_DELIVERY).where(_IS_ITS)
_REMOVE = delete(_TABLE).where(_TABLE.c.id == bindparam("webhook"))
