"""What `normata check` has verified of each log, in a file beside the key: ``normata.db.event-key.verified``.

The next check can begin there. It is not in the database, which could be changed, and each entry is signed with the
key: a checkpoint (see ``keys``) with two more lines, the time of its verification, and the time of the last
verification from the first event on.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from normata.errors import CommandError
from normata.events.keys import BadNote, Signer, origin_of, read_note, require_signed
from normata.events.private_files import written_beside
from normata.events.seals import Known


class NotVerified(CommandError):
    """The file cannot be read, or was not written by a check with this key."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The verified checkpoint of a log, its time, and the time of the last verification from the first event on."""

    known: Known
    at: str
    whole_at: str


def path_of(signer: Signer) -> Path:
    """The path of the file."""
    return Path(f"{signer.path}.verified")


def read(signer: Signer) -> dict[str, Verified]:
    """The verified parts by log; empty if there are none. Raises NotVerified and KeyUnusable."""
    path = path_of(signer)
    try:
        notes = json.loads(path.read_bytes())
        return {owner: _verified(signer, owner, note) for owner, note in notes.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise NotVerified(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, AttributeError, IndexError, BadNote) as error:
        reason = str(error) if isinstance(error, BadNote) else "it is damaged"
        raise NotVerified(
            f"{path} is not what a check with this key has written ({reason}); run `normata check`, which writes it"
            f" again"
        ) from None


def write(signer: Signer, verified: Mapping[str, Verified]) -> None:
    """Replace the file with these verified parts. Raises OSError and KeyUnusable."""
    notes = {owner: _note(signer, owner, one) for owner, one in sorted(verified.items())}
    path = path_of(signer)
    with written_beside(path, json.dumps(notes, indent=1).encode()) as part:
        part.replace(path)


def _note(signer: Signer, owner: str, one: Verified) -> str:
    root = b64encode(bytes.fromhex(one.known.root)).decode()
    text = f"{origin_of(owner)}\n{one.known.size}\n{root}\nverified {one.at}\nas a whole {one.whole_at}\n"
    return f"{text}\n\u2014 {origin_of(owner)} {signer.signature(owner, text)}\n"


def _verified(signer: Signer, owner: str, text: str) -> Verified:
    note = read_note(text)
    require_signed(note, signer.verifier(owner))
    *_, at, whole_at = note.text.rstrip("\n").split("\n")
    if not (at.startswith("verified ") and whole_at.startswith("as a whole ")):
        raise ValueError
    return Verified(Known(note.size, note.root), at.removeprefix("verified "), whole_at.removeprefix("as a whole "))
