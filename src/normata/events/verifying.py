"""Verifies that a file of a log has exactly the events of a checkpoint, without a database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import orjson

from normata.errors import CommandError
from normata.events.content import ERASED_EVENTS
from normata.events.erasures import Erasure, erasure_of
from normata.events.exporting import FORMAT
from normata.events.keys import Note
from normata.events.log_walk import Walk, content_faults


class NoLog(CommandError):
    """The file is not that of a log."""


@dataclass(slots=True)
class Outcome:
    """The result: the faults, a sentence each, the numbers of proven and later events, and the events without content.

    ``erased`` ones are named by an event that the checkpoint proves; ``erased_later`` ones by a later event that the
    key has signed. ``lost`` has a sentence for each other.
    """

    faults: list[str] = field(default_factory=list)
    proven: int = 0
    later: int = 0
    erased: list[str] = field(default_factory=list)
    erased_later: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def verify(lines: Iterable[str], note: Note, verifiers: Collection[str] = ()) -> Outcome:
    """Compare the lines of a file with a checkpoint. Raises NoLog, and BadNote for an invalid key.

    ``verifiers`` are the keys for signatures of erasures. Without any, an erasure that the checkpoint proves counts,
    whoever has signed it.
    """
    numbered: Iterator[tuple[int, str]] = enumerate(lines, 1)
    first = next(numbered, (1, ""))
    if _fetched(_object(first[1])) is None:
        _require_head(first[1], note)
    else:  # fetched over HTTP, where no line names the log: the hashes are of bodies that do
        numbered = chain([first], numbered)
    outcome = Outcome(proven=note.size)
    roots: dict[int, str] = {}
    walk = Walk(roots)
    seen: set[str] = set()
    erasures: list[Erasure] = []
    empty: dict[str, str] = {}
    for number, line in numbered:
        entry = _object(line)
        entry = _fetched(entry) or entry
        if entry is not None and _is_checkpoint(entry):
            roots[entry["checkpoint"]] = entry["root"]
        elif entry is not None and _is_event(entry):
            _take(entry, walk, note, seen, outcome)
            if (found := _erasure(entry, note.origin, verifiers)) is not None:
                erasures.append(found)
            if entry["event"] == "":
                empty[entry["id"]] = f"{entry['id']} (leaf {entry['leaf']})"
        else:
            outcome.faults.append(f"line {number} is not one that an export writes")
    outcome.faults += walk.up_to(note.size)
    _sort_out(empty, erasures, note.size, outcome)
    if not outcome.faults and walk.frontier.root != note.root:
        outcome.faults.append(
            f"{walk.broken} was changed along with its seal"
            if walk.broken
            else f"the {note.size} leaves are not those of the checkpoint: the log was rewritten"
        )
    return outcome


def _sort_out(empty: Mapping[str, str], erasures: Collection[Erasure], size: int, outcome: Outcome) -> None:
    """Find the erasure of each event without content, and whether it is proven."""
    for event_id, name in empty.items():
        about = [erasure for erasure in erasures if event_id in erasure.erased]
        last = about[-1].event_id if about else ""
        if any(one.is_signed is not False and one.leaf is not None and one.leaf < size for one in about):
            outcome.erased.append(name)
        elif any(one.is_signed for one in about):
            outcome.erased_later.append(name)
        elif not about:
            outcome.lost.append(f"the content of the event {name} is missing, and no event records its erasure")
        elif about[-1].is_signed is None:
            outcome.lost.append(
                f"the content of the event {name} is missing; the event {last} says that it was erased after the"
                " checkpoint, which only --key can verify"
            )
        else:
            outcome.lost.append(
                f"the content of the event {name} is missing; the event {last} says that it was erased, and is not"
                " signed with the key"
            )


def _take(entry: dict[str, Any], walk: Walk, note: Note, seen: set[str], outcome: Outcome) -> None:
    leaf, event_id, text = entry["leaf"], entry["id"], entry["event"]
    if leaf is None:
        outcome.faults.append(f"the event {event_id} has no leaf: it was inserted, or is not sealed yet")
        return
    place = walk.frontier.size + outcome.later
    if event_id in seen or leaf < place:
        outcome.faults.append(f"the event {event_id} (leaf {leaf}) was inserted: its place is taken")
        return
    seen.add(event_id)
    outcome.faults += walk.up_to(min(leaf, note.size))
    outcome.faults += content_faults(event_id, leaf, entry["hash"], text)
    if leaf < note.size:
        walk.add(event_id, entry["hash"])
    else:
        outcome.later += 1  # the event is later than the checkpoint


def _erasure(entry: dict[str, Any], origin: str, verifiers: Collection[str]) -> Erasure | None:
    text = entry["event"]
    body = _object(text) if text and ERASED_EVENTS in text else None
    return None if body is None else erasure_of(body, entry["leaf"], origin, verifiers)


def _fetched(entry: dict[str, Any] | None) -> dict[str, Any] | None:
    """A line of `GET /events/log/` as an export has it; null for another one."""
    if entry is None or entry.keys() != {"number", "id", "leafHash", "body"}:
        return None
    return {"leaf": entry["number"], "id": entry["id"], "hash": entry["leafHash"], "event": entry["body"]}


def _require_head(line: str, note: Note) -> None:
    head = _object(line)
    if head is None or head.get("format") != FORMAT:
        raise NoLog("the file is neither one that `normata events export` writes, nor lines of `GET /events/log/`")
    if head.get("origin") != note.origin:
        raise NoLog(f"the file is the log {head.get('origin')}, the checkpoint is of {note.origin}")


def _is_checkpoint(entry: dict[str, Any]) -> bool:
    return entry.keys() == {"checkpoint", "root"} and _is_number(entry["checkpoint"]) and _is_hash(entry["root"])


def _is_event(entry: dict[str, Any]) -> bool:
    if entry.keys() != {"leaf", "id", "hash", "event"} or not isinstance(entry["id"], str):
        return False
    if not (entry["event"] is None or isinstance(entry["event"], str)):
        return False
    return entry["leaf"] is None or (_is_number(entry["leaf"]) and _is_hash(entry["hash"]))


def _is_number(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and len(value) == 64 and not value.strip("0123456789abcdef")


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = orjson.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
