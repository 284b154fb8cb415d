"""The key that signs checkpoints: a file, because the proof against rewriting must not be in the database.

A checkpoint is a signed note of C2SP (tlog-checkpoint, signed-note), with Ed25519 (RFC 8032). Each organization has a
log of its own, all logs have the same key, and each log's name is part of the signed text and of its verifier key.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from normata.errors import CommandError
from normata.events.merkle import Checkpoint
from normata.events.private_files import written_beside

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_ED25519 = b"\x01"  # the type of signature
_DASH = "\u2014"


class KeyUnusable(CommandError):
    """The key file cannot be read or created, or has other content."""


def origin_of(organization_id: str) -> str:
    """The name of an organization's log, or of the operator's (empty id)."""
    return f"normata/{quote(organization_id, safe='')}" if organization_id else "normata"


def owner_of(origin: str) -> str:
    """The organization whose log has this name; empty for the operator's. Raises BadNote if it is no such name."""
    owner = unquote(origin.partition("/")[2])
    if origin_of(owner) != origin:
        raise BadNote(f"{origin} is not the name of a log")
    return owner


class Signer:
    """Signs checkpoints with the key in a file, which is read or created when it is first needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._key: Ed25519PrivateKey | None = None

    def note(self, checkpoint: Checkpoint) -> str:
        """A checkpoint as a signed note. Raises KeyUnusable."""
        origin = origin_of(checkpoint.organization_id)
        text = f"{origin}\n{checkpoint.size}\n{b64encode(bytes.fromhex(checkpoint.root)).decode()}\n"
        return f"{text}\n{_DASH} {origin} {self.signature(checkpoint.organization_id, text)}\n"

    def signature(self, organization_id: str, text: str) -> str:
        """The signature of a text that begins with the name of an organization's log. Raises KeyUnusable."""
        key_id = _key_id(origin_of(organization_id), self._public())
        return b64encode(key_id + self._loaded().sign(text.encode())).decode()

    def verifier(self, organization_id: str) -> str:
        """The verifier key of an organization's checkpoints: name, hash and public key. Raises KeyUnusable."""
        origin, public = origin_of(organization_id), self._public()
        return f"{origin}+{_key_id(origin, public).hex()}+{b64encode(_ED25519 + public).decode()}"

    def key_for(self, purpose: str) -> bytes:
        """A secret key of 32 bytes that follows from this one, for another purpose (RFC 5869). Raises KeyUnusable."""
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 - as below
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415 - as below

        own = self._loaded().private_bytes_raw()
        return HKDF(SHA256(), 32, salt=None, info=f"normata {purpose}".encode()).derive(own)

    def existing_verifier(self, organization_id: str) -> str | None:
        """Like :meth:`verifier`, but null if there is no key, which is then not created. Raises KeyUnusable."""
        return self.verifier(organization_id) if self._key is not None or self.path.exists() else None

    def derived(self, purpose: str) -> bytes:
        """A key of 256 bits for another purpose, from which the key itself does not follow. Raises KeyUnusable."""
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 - as below
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

        return HKDF(SHA256(), 32, salt=None, info=f"normata {purpose}".encode()).derive(
            self._loaded().private_bytes_raw()
        )

    def _public(self) -> bytes:
        return self._loaded().public_key().public_bytes_raw()

    def _loaded(self) -> Ed25519PrivateKey:
        if self._key is None:
            self._key = _load(self.path)
        return self._key


def _key_id(name: str, public: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:4]


def _load(path: Path) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - few processes sign, and it is slow
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    try:
        if not path.exists():
            _make(path)
        key = load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise KeyUnusable(f"{path}: the key of the events cannot be used: {error.strerror or error}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyUnusable(f"{path} is not the key of the events: it has no private key in PEM") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyUnusable(f"{path} is not the key of the events: it has a key of another sort than Ed25519")
    return key


def _make(path: Path) -> None:
    """Create a key, readable only by its owner. If several processes do, one of them wins."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    # A hard link creates the complete file or none, and never replaces a key.
    with written_beside(path, pem) as part, suppress(FileExistsError):
        os.link(part, path)


# --- Notes


class BadNote(CommandError):
    """A checkpoint cannot be read, or its signature is not that of the key."""


@dataclass(frozen=True, slots=True)
class Note:
    """A checkpoint that was stored elsewhere. ``signatures`` has those of each key, by its name and id."""

    origin: str
    size: int
    root: str
    text: str
    signatures: Mapping[tuple[str, bytes], bytes]


def read_note(note: str) -> Note:
    """A checkpoint from a signed note. Raises BadNote."""
    text, separator, signed = note.replace("\r\n", "\n").rpartition("\n\n")
    lines = text.split("\n")
    if not separator or len(lines) < 3:
        raise BadNote("the checkpoint is not a signed note")
    try:
        root = b64decode(lines[2], validate=True)
        size = int(lines[1])
        if len(root) != 32 or size < 0 or lines[1] != str(size):
            raise BadNote("the checkpoint is not one of a log: it needs a name, a size and a root")
        signatures = {}
        for line in signed.strip("\n").split("\n"):
            dash, name, encoded = line.split(" ")
            signature = b64decode(encoded, validate=True)
            if dash == _DASH:
                signatures[name, signature[:4]] = signature[4:]
    except ValueError:
        raise BadNote("the checkpoint is not a signed note") from None
    return Note(lines[0], size, root.hex(), text + "\n", signatures)


def require_signed(note: Note, *verifiers: str) -> None:
    """Raise BadNote unless a note has a signature of one of the keys that ``verifiers`` name."""
    faults = [_note_fault(note, verifier) for verifier in verifiers]
    if None not in faults:
        raise BadNote(faults[0])


def has_signed(verifier: str, text: str, signature: str) -> bool:
    """Whether the key in ``verifier`` has made the signature of a text. Raises BadNote if it is not a key."""
    name, key_id, public = _verifier(verifier)
    try:
        signed = b64decode(signature, validate=True)
    except ValueError:
        return False
    is_same_log = text.startswith(f"{name}\n")
    return is_same_log and signed[:4] == key_id and _is_signature(public, signed[4:], text)


def _note_fault(note: Note, verifier: str) -> str | None:
    name, key_id, public = _verifier(verifier)
    if name != note.origin:
        return f"the key is that of {name}, the checkpoint that of {note.origin}"
    signature = note.signatures.get((name, key_id))
    if signature is None:
        return "the checkpoint is not signed with this key"
    if not _is_signature(public, signature, note.text):
        return "the checkpoint has been changed: its signature is not that of the key"
    return None


def _is_signature(public: Ed25519PublicKey, signature: bytes, text: str) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - as above

    try:
        public.verify(signature, text.encode())
    except InvalidSignature:
        return False
    return True


@lru_cache(maxsize=1_000)
def _verifier(verifier: str) -> tuple[str, bytes, Ed25519PublicKey]:
    """The name of the log, the id of the key, and the key itself. Raises BadNote."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - as above

    try:
        name, key_id, encoded = verifier.strip().split("+", 2)
        key = b64decode(encoded, validate=True)
        if key[:1] == _ED25519 and _key_id(name, key[1:]).hex() == key_id:
            return name, bytes.fromhex(key_id), Ed25519PublicKey.from_public_bytes(key[1:])
    except ValueError:
        pass
    raise BadNote("the key is not the verifier key of a log: name+hash+key")
