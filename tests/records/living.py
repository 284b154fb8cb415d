"""How tests read, make and change records."""

from __future__ import annotations

from typing import Any

from httpx2 import Response
from pydantic.alias_generators import to_camel

from normata.core.schema.wire import columns
from normata.records.base import Restorable, is_id
from normata.records.writing import writable
from tests.records.shapes import SHAPES, full_record
from tests.served import Headers, Served
from tests.world import ALPHA, BETA

Item = dict[str, Any]

_FOREIGN = {
    "questionnaire": f"used-{BETA}",
    "membership": "member-foreigner",
    "control_coverage": "say-foreign",
    "control": "foreign.A.1",
    "framework": "fw-foreign",
}


def read(service: Served, kind: type[Restorable], row_id: str, headers: Headers, **query: str) -> Response:
    """The answer to the read of one record."""
    return service.client.get(f"/{kind.path}/{row_id}/", params={"organizationId": ALPHA} | query, headers=headers)


def make(service: Served, kind: type[Restorable], headers: Headers, **body: Any) -> Response:
    """The answer to the making of a record of alpha."""
    return service.client.post(f"/{kind.path}/", json={"organizationId": ALPHA} | body, headers=headers)


def change(service: Served, kind: type[Restorable], row_id: str, headers: Headers, **body: Any) -> Response:
    """The answer to the change of a record."""
    return service.client.patch(f"/{kind.path}/{row_id}/", json=body, headers=headers)


def written(kind: type[Restorable]) -> set[str]:
    """The wire names of what a request may write."""
    return {to_camel(name) for name in writable(kind)}


def everything(kind: type[Restorable], slug: str) -> Item:
    """A value for all that a request may write, each one easily damaged."""
    full = full_record(kind, "any")
    return {name: full[name] for name in SHAPES[kind.path].fields if name in written(kind)} | (
        {"slug": slug} if "slug" in full else {}
    )


def foreign_references(kind: type[Restorable]) -> Item:
    """For each field that refers to something that is kept here, something of beta's."""
    tables = {one.__tablename__: one for one in Restorable.kinds}
    return {
        to_camel(column.name): _FOREIGN.get(target) or f"{tables[target].path}-live-{BETA}"
        for column in columns(kind)
        if (target := column.info.get("refers_to")) is not None
    }


def references(kind: type[Restorable]) -> set[str]:
    """The fields that have the id of something, be it kept here or elsewhere."""
    return {to_camel(column.name) for column in columns(kind) if is_id(column)} - {"id", "organizationId"}
