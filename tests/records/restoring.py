"""How tests restore records, and the least that they load for it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from httpx2 import Response

from normata.notifications.model import Notification
from normata.records.base import Restorable
from tests import stored, world
from tests.served import Headers, Served
from tests.world import ALPHA

Row = dict[str, Any]


def address(kind: type[Restorable], row_id: str) -> str:
    """Where a record of a kind is restored."""
    return f"/{kind.path}/{quote(row_id, safe='')}/restore/"


def restore(service: Served, kind: type[Restorable], row_id: str, headers: Headers, **sent: Any) -> Response:
    """The answer to the restore of a record."""
    return service.client.post(address(kind, row_id), headers=headers, **sent)


def archived(kind: type[Restorable], row_id: str, organization_id: str = ALPHA, **values: Any) -> Row:
    """The least that a bundle says of an archived record."""
    least = {"id": row_id, "organizationId": organization_id, kind.title_column(): row_id, "archivedAt": world.ARCHIVED}
    return least | values


def add_archived(service: Served, kind: type[Restorable], row_id: str, **values: Any) -> None:
    """Load one more archived record of alpha."""
    service.load({kind.path: [archived(kind, row_id, **values)]})


def written(service: Served, kind: type[Restorable]) -> list[stored.Rows]:
    """All that a restore of the kind can write."""
    kept = [stored.rows(service.database, table) for table in (kind, Notification)]
    return [*kept, stored.events(service.database)]


def camel(name: str) -> str:
    """The wire's name of a column."""
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)
