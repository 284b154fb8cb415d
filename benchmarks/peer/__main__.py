"""Normata beside CISO Assistant: the same libraries, the same requests, each over SQLite with one worker.

    python -m benchmarks.peer --checkout DIR --python FILE [--folder DIR] [--write]

``--checkout`` is one of CISO Assistant, and ``--python`` an interpreter that has its backend's requirements. Its
migrations take minutes; with ``--folder``, the next run finds their database there. It exits with 1 if an answer is an
error, or if the search finds nothing.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.installations import processor_seconds, tell
from benchmarks.peer.services import Ask, Service, serve_ciso_assistant, serve_normata
from benchmarks.speed.report import table

REPORT = Path(__file__).parents[2] / "docs" / "peer.md"
TEMPLATE = Path(__file__).with_name("peer.md")
FRAMEWORKS = (
    "iso27001-2022",
    "nist-csf-2.0",
    "nist-sp-800-53-rev5",
    "scf-2025.2.2",
    "soc2_2017_with_rev_2022",
)
MAPPINGS = (  # which CISO Assistant's migrations load
    "mapping-nist-csf-2.0-to-iso27001-2022",
    "mapping-nist-sp-800-53-rev5-to-iso27001-2022",
    "mapping-nist-csf-2.0-and-scf-2025.2.2",
    "mapping-iso27001-2022-and-scf-2025.2.2",
    "mapping-soc2-2017-rev-2022-and-scf-2025.2.2",
)
RECORDS = 1_000
WORD = "cryptographic"
WARMING = 5  # requests of each type that do not count


@dataclass
class Cost:
    """What one request costs: milliseconds of each, and of the service's processor in each round."""

    times: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def medians(self) -> tuple[float, float]:
        return statistics.median(self.times), statistics.median(self.processor)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.peer", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkout", type=Path, required=True, metavar="DIR", help="a checkout of CISO Assistant")
    parser.add_argument("--python", type=Path, required=True, metavar="FILE", help="a Python with its requirements")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where its migrated database stays between runs")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one type of request in one round")
    parser.add_argument("--write", action="store_true", help="write docs/peer.md, too")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="normata-peer-")))
        migrated = options.folder or folder
        tell("starting both services")
        theirs = stack.enter_context(serve_ciso_assistant(options.checkout, options.python, migrated))
        ours = stack.enter_context(serve_normata(folder, "peer"))
        # Without a page cache, so that each page is read and encoded.
        built = stack.enter_context(serve_normata(folder, "peer_built", page_cache_mib=0))
        page = "\n\n".join(compared(theirs, ours, built, options))
    print(page)
    if options.write:
        values = {
            "date": datetime.now(UTC).date().isoformat(),
            "version": _answer("git", "-C", str(options.checkout), "log", "-1", "--format=%h of %cs"),
            "python": _answer(str(options.python), "--version"),
            "machine": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
            "rounds": options.rounds,
            "seconds": options.seconds,
            "records": f"{RECORDS:,}",
            "word": WORD,
            "tables": page,
        }
        REPORT.write_text(TEMPLATE.read_text("utf-8").format(**values), "utf-8")


def _answer(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def compared(theirs: Service, ours: Service, built: Service, options: argparse.Namespace) -> Iterator[str]:
    """The tables of the report."""
    libraries = options.checkout / "backend" / "library" / "libraries"
    rows = []
    for name in FRAMEWORKS:
        library = libraries / f"{name}.yaml"
        first, second = (_seconds(partial(service.load_library, library)) for service in (theirs, ours))
        built.load_library(library)
        rows.append([name, f"{first:.2f}", f"{second:.2f}", f"{first / second:.1f}"])
        tell(f"{name}: {first:.2f} s, {second:.2f} s")
    for name in MAPPINGS:
        library = libraries / f"{name}.yaml"
        rows.append([name, "-", f"{_seconds(partial(ours.load_library, library)):.2f}", "-"])
        built.load_library(library)
    yield table(["Library", "CISO Assistant, s", "Normata, s", "Ratio"], rows)
    records = {}
    for service in (theirs, ours):
        service.close()
        records[service] = [service.create(number) for number in range(RECORDS)]
        if not _items(service.send(service.search(WORD))):
            raise RuntimeError(f"{service.name} finds nothing with {WORD}")
    requests = {
        "100 controls": (theirs.list, ours, ours.list),
        "100 controls, built anew": (theirs.list, built, built.list),
        "A search of controls": (lambda: theirs.search(WORD), ours, lambda: ours.search(WORD)),
        "A search of controls, built anew": (lambda: theirs.search(WORD), built, lambda: built.search(WORD)),
        "A change of status": (_changes(theirs, records[theirs]), ours, _changes(ours, records[ours])),
    }
    columns = (f"{name}, {what}" for what in ("ms", "processor, ms") for name in ("CISO Assistant", "Normata"))
    yield table(
        ["Request", *columns, "Ratio of times", "Ratio of processor"],
        [
            [name, *_row(_measured(theirs, their, other, our, options))]
            for name, (their, other, our) in requests.items()
        ],
    )
    first, second = theirs.memory(), ours.memory()
    yield table(
        ["Memory of all processes afterwards", "CISO Assistant, MiB", "Normata, MiB", "Ratio"],
        [["One worker", f"{first:.0f}", f"{second:.0f}", f"{first / second:.1f}"]],
    )


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _items(body: bytes) -> list[object]:
    answer = json.loads(body)
    items: list[object] = answer["items"] if "items" in answer else answer["results"]
    return items


def _changes(service: Service, records: list[str]) -> Callable[[], Ask]:
    """Requests that change the status of one record after the other, each time to another one."""
    numbers = count()

    def following() -> Ask:
        number = next(numbers)
        return service.change(records[number % RECORDS], begun=number // RECORDS % 2 == 0)

    return following


def _measured(
    theirs: Service, their: Callable[[], Ask], ours: Service, our: Callable[[], Ask], options: argparse.Namespace
) -> tuple[Cost, Cost]:
    """The costs of a request of both services, whose rounds take turns."""
    costs = Cost(), Cost()
    for turn in range(options.rounds):
        pairs = [(theirs, their, costs[0]), (ours, our, costs[1])]
        for service, ask, cost in pairs if turn % 2 == 0 else reversed(pairs):
            service.close()
            for _ in range(WARMING):
                service.send(ask())
            used, until, done = processor_seconds(service.pid), time.perf_counter() + options.seconds, 0
            while time.perf_counter() < until:
                cost.times.append(_seconds(partial(service.send, ask())) * 1e3)
                done += 1
            cost.processor.append((processor_seconds(service.pid) - used) / done * 1e3)
    return costs


def _row(costs: tuple[Cost, Cost]) -> list[str]:
    (their_time, their_processor), (our_time, our_processor) = (cost.medians() for cost in costs)
    return [
        *(f"{value:.2f}" for value in (their_time, our_time, their_processor, our_processor)),
        f"{their_time / our_time:.0f}",
        f"{their_processor / our_processor:.0f}",
    ]


if __name__ == "__main__":
    main()
    sys.exit(0)
