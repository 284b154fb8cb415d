"""Whether a file of a log has just the events that a checkpoint was made of. It needs nothing else, no database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from normata.errors import CommandError
from normata.events.content import ERASED_EVENTS, erased_by
from normata.events.exporting import FORMAT
from normata.events.keys import Note
from normata.events.log_walk import Walk, content_faults


class NoLog(CommandError):
    """The file is not one of a log."""


@dataclass(slots=True)
class Outcome:
    """What was found: the faults, a sentence each, how many events are proven and later, and which have no content.

    Of those that were ``erased`` another event of the log tells so; of those that are ``lost`` none does.
    """

    faults: list[str] = field(default_factory=list)
    proven: int = 0
    later: int = 0
    erased: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def verify(lines: Iterable[str], note: Note) -> Outcome:
    """Hold the lines of a file against a checkpoint. Raises NoLog."""
    numbered = enumerate(lines, 1)
    _require_head(next(numbered, (1, ""))[1], note)
    outcome = Outcome(proven=note.size)
    roots: dict[int, str] = {}
    walk = Walk(roots)
    seen: set[str] = set()
    erased_ids: set[str] = set()
    empty: dict[str, str] = {}
    for number, line in numbered:
        entry = _object(line)
        if entry is not None and _is_checkpoint(entry):
            roots[entry["checkpoint"]] = entry["root"]
        elif entry is not None and _is_event(entry):
            _take(entry, walk, note, seen, outcome)
            erased_ids.update(_erased_by(entry["event"]))
            if entry["event"] == "":
                empty[entry["id"]] = f"{entry['id']} (leaf {entry['leaf']})"
        else:
            outcome.faults.append(f"line {number} is not one that an export writes")
    outcome.faults += walk.up_to(note.size)
    outcome.erased = [event for event_id, event in empty.items() if event_id in erased_ids]
    outcome.lost = [event for event_id, event in empty.items() if event_id not in erased_ids]
    if not outcome.faults and walk.frontier.root != note.root:
        outcome.faults.append(
            f"{walk.broken} was changed along with its seal"
            if walk.broken
            else f"the {note.size} leaves are not those that the checkpoint was made of: the log was written anew"
        )
    return outcome


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
        outcome.later += 1  # the checkpoint is older, and says nothing of it


def _erased_by(text: str | None) -> list[str]:
    found = _object(text) if text and ERASED_EVENTS in text else None
    return [] if found is None else erased_by(found)


def _require_head(line: str, note: Note) -> None:
    head = _object(line)
    if head is None or head.get("format") != FORMAT:
        raise NoLog("the file is not one that `normata events export` writes")
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
