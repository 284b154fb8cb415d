"""Let 1,000 pieces of evidence expire at one moment where assessments lapse, and measure the pass and reads beside it.

    python -m benchmarks.evidence [--pieces 1000] [--only sqlite postgresql]

An organization has two frameworks, and a match from each control of the first to one of the second. Each control of the
first is assessed and has a piece of evidence; all of them expire at the same moment. The service's own job finds that.
A client reads the list of coverage and a control all the time, from some seconds before the moment to the end of the
pass. It exits with 1 if a read failed.
"""

import argparse
import http.client
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.installations import PostgreSQL, SQLite, Store, normata, tell
from benchmarks.world import Arrays
from normata.core.db.types import format_timestamp
from normata.identity.tokens.tokens import digest, generate
from tests.postgres import running_server

_ORGANIZATION = "expiring"
_WAIT = 25  # seconds from the load to the moment, in which reads are measured alone
_PATIENCE = 120.0  # seconds until the pass has to be over
_LAPSED = "SELECT count(*) FROM control_coverage WHERE lapsed_status IS NOT NULL"
_FIRST = "SELECT min(at) FROM audit_event WHERE action = 'lapse'"


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.evidence", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pieces", type=int, default=1_000, help="pieces of evidence, and assessments")
    parser.add_argument("--only", nargs="+", choices=("sqlite", "postgresql"), default=["sqlite", "postgresql"])
    options = parser.parse_args()
    for name in options.only:
        with _store(postgresql=name == "postgresql") as store:
            token = generate()
            store.create("evidence")
            moment = datetime.now(UTC) + timedelta(seconds=_WAIT)
            store.load("evidence", _world(options.pieces, token, format_timestamp(moment)))
            with normata(store, "evidence") as server:
                _measure(store, server.port, token, moment, options.pieces)


@contextmanager
def _store(*, postgresql: bool) -> Iterator[Store]:
    if postgresql:
        with running_server(durable=True) as running:
            yield PostgreSQL(running)
        return
    with tempfile.TemporaryDirectory(prefix="normata-evidence-") as folder:
        yield SQLite(Path(folder))


def _measure(store: Store, port: int, token: str, moment: datetime, pieces: int) -> None:
    """Read until all have lapsed, and print the seconds of the pass, and of the reads before and during it."""
    reads: list[tuple[float, float]] = []  # when each began, and the seconds that it took
    headers = {"Authorization": f"Bearer {token}"}
    until = time.time() + _PATIENCE
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)) as connection:
        while store.ask("evidence", _LAPSED) != [pieces]:
            if time.time() > until:
                sys.exit("no job has let them lapse")
            for path in ("/coverage/", "/controls/one:7/"):
                began = time.time()
                connection.request("GET", f"{path}?organizationId={_ORGANIZATION}", headers=headers)
                answer = connection.getresponse()
                answer.read()
                reads.append((began, time.time() - began))
                if answer.status != 200:
                    sys.exit(f"a read failed: {answer.status}")
            time.sleep(0.01)
    ended = time.time()
    (first,) = store.ask("evidence", _FIRST)
    started = (datetime.fromisoformat(first) if isinstance(first, str) else first).timestamp()
    alone = [taken for began, taken in reads if began < started]
    beside = [taken for began, taken in reads if began + taken >= started]
    print(f"{store.name}: {pieces:,} pieces expired {started - moment.timestamp():.1f} s before the pass began")
    print(f"    the pass took {ended - started:.2f} s")
    for words, times in (("alone", alone), ("beside it", beside)):
        longest = f"longest {max(times) * 1e3:.1f} ms"
        print(f"    {len(times)} reads {words}: median {statistics.median(times) * 1e3:.1f} ms, {longest}", flush=True)


def _world(pieces: int, token: str, moment: str) -> Arrays:
    """An organization in which assessments lapse, with as many controls in each of two frameworks as pieces."""
    user, of = "user-expiring", {"organizationId": _ORGANIZATION}
    frameworks = ("one", "two")
    yield (
        "organizations",
        [{"id": _ORGANIZATION, "name": "Expiring", "slug": _ORGANIZATION, "staleAssessments": "LAPSE"}],
    )
    yield "users", [{"id": user, "name": "Reader", "email": "reader@example.org"}]
    yield "memberships", [{"id": "member-expiring", "userId": user, "role": "admin", **of}]
    yield "accessTokens", [{"id": "token-expiring", "userId": user, "digest": digest(token), "scope": "read"}]
    yield "frameworks", [{"id": one, "identifier": one, "name": one, "isCentralized": True} for one in frameworks]
    yield (
        "controls",
        [
            {"id": f"{one}:{number}", "frameworkId": one, "identifier": str(number), "name": f"Control {number}"}
            for one in frameworks
            for number in range(pieces)
        ],
    )
    yield (
        "controlMatches",
        [
            {"id": f"match-{number}", "sourceControlId": f"one:{number}", "targetControlId": f"two:{number}"}
            | {"matchLevel": "FULL"}
            for number in range(pieces)
        ],
    )
    yield "frameworkAdoptions", [{"id": f"adopted-{one}", "frameworkId": one, **of} for one in frameworks]
    yield (
        "controlCoverages",
        [
            {"id": f"says-{number}", "controlId": f"one:{number}", "coverageStatus": "FULL", **of}
            for number in range(pieces)
        ],
    )
    yield (
        "evidence",
        [
            {"id": f"piece-{number}", "name": f"Piece {number}", "slug": f"piece-{number}", "shortId": number + 1}
            | {"type": "NOTE", "validUntil": moment, **of}
            for number in range(pieces)
        ],
    )
    yield (
        "links",
        [
            {"id": f"link-{number}", "fromKind": "evidence", "fromId": f"piece-{number}", "toKind": "controls"}
            | {"toId": f"one:{number}", "relation": "SUPPORTS", **of}
            for number in range(pieces)
        ],
    )


if __name__ == "__main__":
    tell("Times depend on the machine, and on what else it does.")
    main()
