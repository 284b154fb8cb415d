"""Walks the whole life of a record over HTTP, for every kind of record: make, change, archive, restore, look back.

What it has made is in the archive in the end, whatever happens: nothing is ever deleted.

    TOKEN=… python examples/whole_life.py http://127.0.0.1:8000 org-harbourlight

TOKEN is one of an admin, with the scope `write`. What kinds there are, and what a record of each looks like, the script
reads in the OpenAPI document. In the end `normata`, which must be on the PATH, proves without the service that
the log of events is complete and unchanged. NORMATA_DATABASE_URL names the database if it is not normata.db here. The
script needs httpx2, and no other library.
"""

import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx

Record = dict[str, Any]


class Failed(Exception):
    """The service has answered something else than it should."""


class Service:
    """The service, as a program sees it that works for one organization."""

    def __init__(self, base_url: str, token: str, organization: str) -> None:
        self.organization = organization
        self._client = httpx.Client(base_url=base_url, headers={"Authorization": f"Bearer {token}"}, timeout=30)

    def send(self, method: str, path: str, expected: int = 200, **request: Any) -> httpx.Response:
        """The answer to a request. Raises Failed where it has another status than ``expected``."""
        response = self._client.request(method, path, **request)
        if response.status_code != expected:
            raise Failed(f"{method} {path}: {response.status_code} instead of {expected}: {response.text[:500]}")
        return response

    def archive(self, place: str, reason: str) -> None:
        """Archive the record at an address, unless it is archived already."""
        record = self.send("GET", place, params={"organizationId": self.organization}).json()
        if record["archivedAt"] is None:
            self.send("POST", f"{place}archive/", json={"reason": reason})

    def read(self, path: str, **query: Any) -> Any:
        """What is at an address of the organization."""
        return self.send("GET", path, params={"organizationId": self.organization, **query}).json()


def kinds(service: Service) -> Iterator[tuple[str, Record, Record]]:
    """The path of every kind that can be archived, with an example of a new record and of a change."""
    paths = service.send("GET", "/openapi.json").json()["paths"]
    for path in sorted(paths):
        kind = path.strip("/").removesuffix("/{id}/archive")
        if path == f"/{kind}/{{id}}/archive/":
            new, change = (
                next(iter(operation["requestBody"]["content"].values()))["example"]
                for operation in (paths[f"/{kind}/"]["post"], paths[f"/{kind}/{{id}}/"]["patch"])
            )
            yield kind, new, change


def walk(service: Service, kind: str, new: Record, change: Record) -> list[str]:
    """One record's life. Returns what its history says that was done, the first first."""
    # Made. The key makes it safe to send the request again: the second answer is the first one.
    key = {"Idempotency-Key": str(uuid.uuid4())}
    body = new | {"organizationId": service.organization}
    made = service.send("POST", f"/{kind}/", 201, json=body, headers=key)
    place = made.headers["Location"]
    try:
        again = service.send("POST", f"/{kind}/", 201, json=body, headers=key)
        require(again.json() == made.json(), "a request that is sent again makes nothing new")
        change_and_restore(service, kind, made.json(), place, change)
    finally:
        service.archive(place, "The example cleans up after itself.")
    events = service.read(f"{place}events/")["items"]
    return [event["action"] for event in reversed(events)]


def change_and_restore(service: Service, kind: str, record: Record, place: str, change: Record) -> None:
    """Change a record that was just made, archive it and restore it."""
    where = {"organizationId": service.organization}

    # Changed, but only as it was read. Who has read an older state is told so, and overwrites nothing.
    read = service.send("GET", place, params=where)
    require(read.json() == record, "what was made is what is read")
    changed = service.send("PATCH", place, json=change, headers={"If-Match": read.headers["ETag"]})
    service.send("PATCH", place, 412, json=change, headers={"If-Match": read.headers["ETag"]})
    require(changed.json() == record | change | later(changed.json()), "a change leaves the rest alone")

    # Archived, with a reason. Then it is read-only, and the archive has it.
    service.archive(place, "The example is over.")
    service.send("PATCH", place, 409, json=change)
    listed = service.read("/archive/", kind=kind)["items"][0]
    require((listed["id"], listed["reason"]) == (record["id"], "The example is over."), "the archive has it first")
    require(listed["restorable"], "nothing stands in the way")

    # Tried, then restored. The restore of an integration check answers null, so look at the record itself.
    planned = service.send("POST", f"{place}restore/", params={"dryRun": "true"}).json()
    require([one["action"] for one in planned["changes"]] == ["restore"], "the dry run says what would be done")
    require(service.send("GET", place, params=where).json()["archivedAt"] is not None, "and does nothing")
    service.send("POST", f"{place}restore/")
    restored = service.send("GET", place, params=where).json()
    require(restored == changed.json() | later(restored), "it is as it was")


def prove(service: Service) -> str:
    """What `normata events verify` says of the whole log of the organization. Raises Failed where it finds a fault."""
    total = service.read("/events/")["total"]
    for _ in range(100):  # events are sealed within a second
        checkpoint = service.read("/events/checkpoint/")
        if checkpoint["size"] >= total:
            break
        time.sleep(0.1)
    with tempfile.TemporaryDirectory() as folder:
        log, note, keys = (Path(folder) / name for name in ("events.jsonl", "checkpoint.txt", "keys.txt"))
        note.write_text(checkpoint["note"], "utf-8")
        keys.write_text(normata("key", service.organization), "utf-8")
        normata("export", service.organization, "--output", str(log))
        return normata("verify", str(log), str(note), "--key", str(keys))


def normata(*arguments: str) -> str:
    """What `normata events` prints. Raises Failed where it fails."""
    done = subprocess.run(["normata", "events", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"normata events {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def later(record: Record) -> Record:
    """The times of a record that each change sets."""
    return {name: record[name] for name in ("updatedAt",) if name in record}


def require(holds: bool, claim: str) -> None:
    """Raise Failed unless a claim holds."""
    if not holds:
        raise Failed(f"this does not hold: {claim}")


def main() -> None:
    if len(sys.argv) != 3 or "TOKEN" not in os.environ:
        sys.exit("usage: TOKEN=… python examples/whole_life.py BASE_URL ORGANIZATION")
    service = Service(sys.argv[1], os.environ["TOKEN"], sys.argv[2])
    try:
        for kind, new, change in kinds(service):
            print(f"{kind}: {', '.join(walk(service, kind, new, change))}")
        print(prove(service), end="")
    except (Failed, httpx.HTTPError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
