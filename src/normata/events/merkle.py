"""Merkle trees of RFC 9162, section 2.1, with SHA-256."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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

    def subtrees(self) -> Iterator[tuple[int, int, str]]:
        """The perfect subtrees that the tree is made of: the first leaf of each, its number of leaves, and its root."""
        start, hashes = 0, iter(self._hashes)
        for bit in reversed(range(self.size.bit_length())):
            if self.size >> bit & 1:
                yield start, 1 << bit, next(hashes).hex()
                start += 1 << bit

    @property
    def root(self) -> str:
        """The root of the tree."""
        if not self._hashes:
            return EMPTY_ROOT
        *larger, root = self._hashes
        for left in reversed(larger):
            root = _node_hash(left, root)
        return root.hex()


def split(size: int) -> int:
    """The leaves in the left half of a tree of at least two: the largest power of two below their number."""
    return 1 << (size - 1).bit_length() - 1


def node(left: str, right: str) -> str:
    """The root of two subtrees."""
    return _node_hash(bytes.fromhex(left), bytes.fromhex(right)).hex()


def inclusion_path(number: int, size: int, root_of: Callable[[int, int], str]) -> list[str]:
    """The inclusion proof of a leaf in a tree of ``size`` leaves (RFC 9162, section 2.1.3.1).

    ``root_of`` returns the root of the leaves from one to before another.
    """
    path: list[str] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + split(end - start)
        if number < middle:
            path.append(root_of(middle, end))
            end = middle
        else:
            path.append(root_of(start, middle))
            start = middle
    return path[::-1]


def root_by(leaf: str, number: int, size: int, path: Sequence[str]) -> str | None:
    """The root that follows from a leaf and its inclusion proof (RFC 9162, section 2.1.3.2).

    Null if the proof has another length than one of this leaf has.
    """
    if not 0 <= number < size:
        return None
    found, place, last = bytes.fromhex(leaf), number, size - 1
    for sibling in map(bytes.fromhex, path):
        if last == 0:
            return None
        if place & 1 or place == last:
            found = _node_hash(sibling, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = _node_hash(found, sibling)
        place, last = place >> 1, last >> 1
    return found.hex() if last == 0 else None


def consistency_path(old: int, new: int, root_of: Callable[[int, int], str]) -> list[str]:
    """The proof that a tree of ``new`` leaves begins with the ``old`` ones (RFC 9162, section 2.1.4.1).

    ``root_of`` returns the root of the leaves from one to before another. Where ``old`` is 0 or ``new``, it is empty.
    """
    path: list[str] = []
    if not 0 < old < new:
        return path
    start, end = 0, new
    while end != old:
        middle = start + split(end - start)
        if old <= middle:
            path.append(root_of(middle, end))
            end = middle
        else:
            path.append(root_of(start, middle))
            start = middle
    if start:  # else it is the root of the old tree, which is known
        path.append(root_of(start, end))
    return path[::-1]


def is_consistent(old: int, old_root: str, new: int, new_root: str, path: Sequence[str]) -> bool:
    """Whether a proof leads from both roots to the same leaves (RFC 9162, section 2.1.4.2)."""
    if old == new:
        return old_root == new_root and not path
    if not 0 < old < new:
        return old == 0 and old_root == EMPTY_ROOT and not path
    hashes = [bytes.fromhex(one) for one in path]
    if old & (old - 1) == 0:
        hashes.insert(0, bytes.fromhex(old_root))
    if not hashes:
        return False
    place, last = old - 1, new - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    before = after = hashes[0]
    for one in hashes[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            before, after = _node_hash(one, before), _node_hash(one, after)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            after = _node_hash(after, one)
        place, last = place >> 1, last >> 1
    return last == 0 and before.hex() == old_root and after.hex() == new_root
