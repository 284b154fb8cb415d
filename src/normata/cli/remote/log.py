"""The events of an organization on a server, as commands print them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from normata.cli.backend import Refused, Write
from normata.cli.remote.transport import Transport, object_in

_PATH = "/events/log/"
_PAUSE = 1.0  # seconds between two requests for new events
_AFTER_REFUSAL = 10.0
_MOST = 1_000  # events of an answer

_FIELDS = (
    *("id", "organizationId", "at", "action", "kind", "recordId", "userId", "tokenId", "requestId"),
    *("command", "address", "before", "after", "counts", "reason"),
)
_FORMER = {"kind": "entityType", "recordId": "entityId"}  # names in the events of older versions


def write_events(transport: Transport, organization: str, write: Write, *, follow: bool) -> None:
    """Write the sealed events, by number; with ``follow`` also new ones, for ever."""
    last: int | None = None

    def shown() -> Iterator[str]:
        nonlocal last
        for line in transport.lines(_PATH, [("organizationId", organization)]):
            item = object_in(line, transport.base)
            last = item["number"]
            yield _line(item, organization, transport.base)

    write(shown())
    while follow:
        time.sleep(_PAUSE)
        query = [("organizationId", organization), ("limit", str(_MOST))]
        if last is not None:
            query.append(("after", str(last)))
        try:
            found = object_in(transport.send("GET", _PATH, query).body, transport.base)
        except Refused as error:
            if error.status not in (429, 503):
                raise
            time.sleep(_AFTER_REFUSAL)
            continue
        write([_line(item, organization, transport.base) for item in found["items"]])
        last = found["next"]


def write_log(transport: Transport, organization: str, write: Write) -> None:
    """Write the lines of the log as the server has them."""
    write(transport.lines(_PATH, [("organizationId", organization)]))


def _line(item: Any, organization: str, base: str) -> str:
    """An event in wire form, from what was sealed. Of one whose content was erased only its id is known."""
    sealed = object_in(item["body"], base) if item["body"] else {"id": item["id"], "organizationId": organization}
    values = {name: sealed.get(name, sealed.get(_FORMER.get(name, name))) for name in _FIELDS}
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
