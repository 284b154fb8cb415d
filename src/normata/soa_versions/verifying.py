"""Verifies offline that a file is that of a version, and that the log of a signed checkpoint has the version.

The console's page does the same in the browser (``console/static/verify.js``): change both together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from normata.errors import CommandError
from normata.events.keys import Note, origin_of, read_note
from normata.events.merkle import leaf_hash, root_by
from normata.soa_versions.model import FILE_FORMATS, SoaVersion


class NoProof(CommandError):
    """The file is not a proof of a version."""


class NotProven(CommandError):
    """The proof does not prove the file; the message says why."""


class _Event(NamedTuple):
    """An event of a proof, which is in the log of its checkpoint."""

    leaf: int
    body: Mapping[str, Any]

    @property
    def after(self) -> Mapping[str, Any]:
        """The changed fields."""
        return self.body["after"] or {}


def read_proof(text: str | bytes) -> Mapping[str, Any]:
    """The proof in a file; its other versions as pairs of number and hashes. Raises NoProof."""
    try:
        proof = json.loads(text)
        for event in proof["events"]:
            path = event["inclusionPath"]
            if type(event["leaf"]) is not int or not all(map(_is_hash, [*path, event["hash"]])):
                raise NoProof("the proof has an event without its place in the log")
        others = [(other["number"], [*other["hashes"].values()]) for other in proof["others"]]
        if isinstance(proof["versionId"], str) and isinstance(proof["checkpoint"]["note"], str):
            return {**proof, "others": others}
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise NoProof("the file is not a proof of a version: GET /soa-versions/{id}/proof/ answers one")


def note_of(proof: Mapping[str, Any]) -> Note:
    """The checkpoint in a proof. Raises BadNote."""
    return read_note(proof["checkpoint"]["note"])


def verify(content: bytes, proof: Mapping[str, Any], note: Note) -> str:
    """Verify a file, and return a sentence that says what it is. Raises NotProven.

    ``note`` is the checkpoint: one that was stored elsewhere, or that of the proof. Who has signed it is not verified.
    """
    inside = note_of(proof)
    if note.origin != inside.origin:
        raise NotProven(f"the checkpoint is that of {note.origin}, and the proof that of {inside.origin}")
    first = min((event["leaf"] for event in proof["events"]), default=None)
    if first is None:
        raise NotProven("the proof has no event: nothing in the log proves the version")
    if note.size <= first:
        raise NotProven(
            f"the checkpoint has {note.size} events and is from before the version, whose event has the number {first}"
        )
    if note.size != inside.size:
        raise NotProven(
            f"the checkpoint has {note.size} events, and the proof is for one of {inside.size}; get the proof with"
            f" size={note.size}"
        )
    if note.root != inside.root:
        raise NotProven("the log of the proof is not that of the checkpoint: one of them was rewritten")
    events = [_event(event, proof, note) for event in proof["events"]]
    made = next((event for event in events if "jsonSha256" in event.after), None)
    if made is None:
        raise NotProven("the proof has no event with the hashes of the version")
    form = _format_of(content, made, proof)
    return f"is version {made.after['number']} as {form.upper()}, {_state(events)}; {_place(events, note)}"


def _event(event: Mapping[str, Any], proof: Mapping[str, Any], note: Note) -> _Event:
    """An event, once it is known that the checkpoint has it and that it is about the version. Raises NotProven."""
    leaf, text = event["leaf"], str(event["event"])
    if leaf_hash(text) != event["hash"]:
        raise NotProven(f"the event {leaf} was changed: it is not what was sealed")
    if root_by(event["hash"], leaf, note.size, event["inclusionPath"]) != note.root:
        raise NotProven(f"the event {leaf} is not in the log of the checkpoint")
    body = json.loads(text)
    if body["kind"] != SoaVersion.array or body["recordId"] != proof["versionId"]:
        raise NotProven(f"the event {leaf} is about something else than the version")
    if origin_of(body["organizationId"] or "") != note.origin:
        raise NotProven(f"the event {leaf} is of another organization than the checkpoint")
    return _Event(leaf, body)


def _format_of(content: bytes, made: _Event, proof: Mapping[str, Any]) -> str:
    """The format of the version that a file is. Raises NotProven."""
    found = sha256(content).hexdigest()
    for name in FILE_FORMATS:
        if made.after.get(f"{name}Sha256") == found:
            return name
    number = made.after["number"]
    for other, hashes in proof["others"]:
        if found in hashes:
            raise NotProven(f"the file is that of version {other}, and the proof is that of version {number}")
    raise NotProven(f"the file is not that of version {number}: it was changed, or is another file")


def _state(events: Sequence[_Event]) -> str:
    """In which state the version was at the checkpoint, by its events."""
    fields: dict[str, Any] = {}
    for event in events:
        fields |= event.after
    if fields["state"] == "DRAFT":
        return "which nobody had approved"
    approved = next((one for one in events if one.after.get("approvedAt")), events[0])
    by = f"approved at {fields['approvedAt']} by {fields['approverId']}"
    by += " as it was loaded" if approved.body["action"] == "load" else ""
    return f"{by}, superseded at {fields['supersededAt']}" if fields["state"] == "SUPERSEDED" else by


def _place(events: Sequence[_Event], note: Note) -> str:
    numbers = [str(event.leaf) for event in events]
    named = f"event {numbers[0]} is" if len(numbers) == 1 else f"events {', '.join(numbers)} are"
    erased = next((f"; its files were erased by event {one.leaf}" for one in events if one.after.get("erasedAt")), "")
    return f"its {named} among the {note.size} of the checkpoint of {note.origin}{erased}"


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and len(value) == 64 and not value.strip("0123456789abcdef")
