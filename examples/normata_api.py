"""What the five integrations share: how a program talks to Normata, and what it does when something is refused.

It needs Python 3.11 and no library. NORMATA_SERVER is the address of the service, such as https://normata.example.org,
and NORMATA_TOKEN a token that is narrowed to one organization. docs/integrating.md explains both.
"""

import argparse
import csv
import json
import os
import re
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, NoReturn
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

Row = dict[str, Any]
Outcome = tuple[str, list[str]]  # one line of what was done, and one for each refusal

_PAUSES = (1, 2, 4, 8, 16)  # seconds before a request is sent again, where the service does not say how long
_LONGEST = 120  # seconds
_AT_ONCE = 500  # records
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_TRANSIENT = {500, 502, 503, 504}


class Failed(Exception):
    """The program cannot go on. The message says why, in one line."""


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect, because the token would go wherever it leads."""

    def redirect_request(self, *_: Any) -> None:
        """Leave the redirect as the answer, which is a refusal."""


_OPENER = build_opener(_NoRedirects)


class Organization:
    """The one organization that the token reaches. Every method raises Failed where the service refuses."""

    def __init__(self, server: str, token: str, *, dry_run: bool = False) -> None:
        self._server, self._token, self._dry_run = server.rstrip("/"), token, dry_run
        if not server.startswith("https://") and urlsplit(server).hostname not in _LOOPBACK:
            raise Failed(f"{server} does not begin with https://, so others could read the token")
        me = self._send("GET", "/me/")[0]
        if len(me["organizations"]) != 1:
            raise Failed(
                f"the token reaches {len(me['organizations'])} organizations: make one that is narrowed to one"
            )
        self.id: str = me["organizations"][0]["id"]
        self.user_id: str = me["id"]

    def get(self, path: str, **query: Any) -> Any:
        """What is at a path of the organization."""
        return self._send("GET", _address(path, {"organizationId": self.id, **query}))[0]

    def items(self, path: str, **query: Any) -> Iterator[Row]:
        """All items of a list. Pages are read by their links, so what others archive meanwhile moves nothing."""
        address: str | None = _address(path, {"organizationId": self.id, **query})
        while address:
            page, links = self._send("GET", address)
            yield from page["items"]
            found = re.search(r'<([^>]+)>; rel="next"', links)
            address = found[1] if found else None

    def change(self, method: str, path: str, body: object = None) -> Any:
        """Change something, or only try to in a dry run; what the service answers or would answer."""
        if not self._dry_run:
            return self._send(method, path, body)[0]
        return self._send(method, _address(path, {"dryRun": "true"}), body)[0]["answer"]

    def known(self, kind: str, source: str) -> dict[str, str]:
        """The ids of the records, live and archived, that have an id of another system, by that id."""
        listed = self.items("/external-ids/", kind=kind)
        return {one["externalId"]: one["recordId"] for one in listed if one["source"] == source}

    def upsert(
        self, kind: str, source: str, records: Mapping[str, Row], *, if_archived: str = "skip"
    ) -> tuple[Counter[str], list[str]]:
        """Create or change records by their ids in another system. What is the same already is no change.

        Returns how many were ``created``, ``updated`` and ``unchanged``, and what was refused. The others are done.
        """
        done: Counter[str] = Counter()
        refused: list[str] = []
        for ids in _parts(records):
            items = [
                {"action": "upsert", "external": {"source": source, "id": one}, "values": records[one]} for one in ids
            ]
            body = {"organizationId": self.id, "mode": "each", "ifArchived": if_archived, "items": items}
            outcomes = self.change("POST", f"/{kind}/batch/", body)["items"]
            done.update(outcome["outcome"] for outcome in outcomes if outcome["done"])
            refused += [
                _refusal(one, outcome) for one, outcome in zip(ids, outcomes, strict=True) if outcome["refusal"]
            ]
        return done, refused

    def archive(self, kind: str, ids: Collection[str], reason: str) -> tuple[int, list[str]]:
        """Archive records: how many, and what was refused. What somebody else has just archived is neither."""
        done, refused = 0, []
        for part in _parts(ids):
            records = [{"kind": kind, "id": one} for one in part]
            body = {"organizationId": self.id, "mode": "each", "reason": reason, "records": records}
            answer = self.change("POST", "/archive/", body)
            done += answer["done"]
            failed = [one for one in answer["records"] if not one["done"] and one["refusal"]["code"] != "archived"]
            refused += [_refusal(one["id"], one) for one in failed]
        return done, refused

    def _send(self, method: str, address: str, body: object = None) -> tuple[Any, str]:
        """An answer, and its links. The request is sent again as long as that may help: nothing is done twice."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", "Prefer": "handling=strict"}
        if method == "POST":
            headers["Idempotency-Key"] = str(uuid.uuid4())
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = Request(self._server + address, data, headers, method=method)  # noqa: S310 # the operator's address
        for pause in (*_PAUSES, None):
            try:
                with _OPENER.open(request, timeout=60) as answer:
                    return json.load(answer), answer.headers.get("Link", "")
            except HTTPError as error:
                with error:
                    reason, wait = _reason(error), error.headers.get("Retry-After", "")
                if pause is None or not (wait or error.code in _TRANSIENT):
                    raise Failed(f"{method} {address}: {error.code} {reason}") from None
                time.sleep(min(int(wait), _LONGEST) if wait.isdecimal() else pause)
            except (OSError, HTTPException, ValueError) as error:
                if pause is None:
                    raise Failed(f"{method} {address}: {error}") from None
                time.sleep(pause)
        raise AssertionError


def _parts(ids: Collection[str]) -> Iterator[list[str]]:
    """As many at a time as one request takes."""
    every = list(ids)
    return (every[start : start + _AT_ONCE] for start in range(0, len(every), _AT_ONCE))


def _refusal(about: str, outcome: Row) -> str:
    """Which record was refused and why; the place of the fault in the request is of no use to whoever reads it."""
    detail = re.sub(r"\bitems/\d+/", "", outcome["refusal"]["detail"])
    return f"{about}: {outcome['refusal']['code']}: {detail}"


def _address(path: str, query: Mapping[str, Any]) -> str:
    return f"{path}?{urlencode(query, doseq=True)}"


def _reason(error: HTTPError) -> str:
    """What a problem says, in one line; the status in words where something in between has answered."""
    try:
        problem = json.load(error)
        return f"{problem['code']}: {problem['detail']}"
    except (ValueError, TypeError, KeyError):
        return error.reason


def read_rows(path: Path, *required: str) -> list[Row]:
    """The rows of a CSV file, in which every line has the ``required`` columns. A file with a fault is not used at all.

    Raises Failed.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            columns, *lines = [[cell.strip() for cell in line] for line in csv.reader(file, strict=True) if line] or [
                []
            ]
    except (OSError, ValueError, csv.Error) as error:
        raise Failed(f"{path}: {error}") from None
    if not lines:
        raise Failed(f"{path} has no rows, so nothing is done")
    if absent := [name for name in required if name not in columns]:
        raise Failed(f"{path} has no column {' and no column '.join(absent)}, only {', '.join(columns)}")
    for number, line in enumerate(lines, 2):
        if len(line) != len(columns):
            raise Failed(f"{path}, row {number}: {len(line)} cells for {len(columns)} columns, so nothing is done")
        if missing := [name for name in required if not dict(zip(columns, line, strict=True)).get(name)]:
            raise Failed(f"{path}, row {number}: no {' and no '.join(missing)}, so nothing is done")
    return [dict(zip(columns, line, strict=True)) for line in lines]


def require_few(gone: Collection[object], known: Collection[object], at_most: int | None, what: str) -> None:
    """Raise Failed if suspiciously many would go: more than ``at_most``, or a fifth of all.

    A filter that is wrong looks as if everybody had left.
    """
    limit = max(1, len(known) // 5) if at_most is None else at_most
    if len(gone) > limit:
        raise Failed(f"{len(gone)} of {len(known)} {what}, more than {limit}: look at the input, or use --at-most")


def run(
    about: str | None, main: Callable[[Organization, argparse.Namespace], Outcome], *, reads: bool = False
) -> NoReturn:
    """Run a program, which only ``reads`` or changes something.

    It exits with 1 if something was refused, and says what on standard error.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(dry_run=False)
    parser.add_argument("file", type=Path)
    if not reads:
        parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
        parser.add_argument("--at-most", type=int, metavar="N", help="how many may go at once; default: a fifth of all")
    arguments = parser.parse_args()
    server, token = os.environ.get("NORMATA_SERVER"), os.environ.get("NORMATA_TOKEN")
    if not server or not token:
        parser.error("set NORMATA_SERVER and NORMATA_TOKEN")
    try:
        done, refused = main(Organization(server, token, dry_run=arguments.dry_run), arguments)
    except Failed as error:
        sys.exit(str(error))
    print(f"dry run: {done}" if arguments.dry_run else done)
    for line in refused:
        print(line, file=sys.stderr)
    sys.exit(1 if refused else 0)
