"""Merkle trees of RFC 9162, section 2.1, with SHA-256."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

_DIGEST = 64  # hexadecimal digits of a hash

EMPTY_ROOT = sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The root of an organization's log when it had ``size`` leaves."""

    organization_id: str
    size: int
    root: str


def leaf_hash(text: str) -> str:
    """The hash of a leaf."""
    return sha256(b"\x00" + text.encode()).hexdigest()


def _node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


class Frontier:
    """The right edge of a tree: the roots of the perfect subtrees that it is made of, the largest first.

    It is sufficient to add leaves and to compute the root; its size is the logarithm of the number of leaves.
    """

    def __init__(self, size: int = 0, hashes: Iterable[str] = ()) -> None:
        """Raises ValueError if there are too few or too many hashes, or one is not valid."""
        self.size = size
        self._hashes = [bytes.fromhex(one) for one in hashes]
        if len(self._hashes) != size.bit_count():
            raise ValueError(f"a tree of {size} leaves has {size.bit_count()} perfect subtrees")

    @classmethod
    def of_text(cls, size: int, text: str) -> Frontier:
        """The frontier with this :attr:`text`."""
        return cls(size, (text[start : start + _DIGEST] for start in range(0, len(text), _DIGEST)))

    @property
    def text(self) -> str:
        """All hashes, one after the other."""
        return b"".join(self._hashes).hex()

    def append(self, leaf: str) -> None:
        """Add a leaf, by its hash. Raises ValueError if the hash is not valid."""
        carried, size = bytes.fromhex(leaf), self.size
        while size & 1:  # merge subtrees of the same size
            carried = _node_hash(self._hashes.pop(), carried)
            size >>= 1
        self._hashes.append(carried)
        self.size += 1

    @property
    def root(self) -> str:
        """The root of the tree."""
        if not self._hashes:
            return EMPTY_ROOT
        *larger, root = self._hashes
        for left in reversed(larger):
            root = _node_hash(left, root)
        return root.hex()
