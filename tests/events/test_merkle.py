"""Merkle trees, held against RFC 9162, section 2.1.1, written down naively; and checkpoints as C2SP has them."""

from __future__ import annotations

import stat
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from normata.events.keys import BadNote, KeyUnusable, Signer, origin_of, read_note, require_signed
from normata.events.merkle import (
    EMPTY_ROOT,
    Checkpoint,
    Frontier,
    consistency_path,
    inclusion_path,
    is_consistent,
    leaf_hash,
    root_by,
)


def tree_hash(leaves: list[bytes]) -> bytes:
    """MTH of the RFC, by its definition."""
    if not leaves:
        return sha256().digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\x01" + tree_hash(leaves[:split]) + tree_hash(leaves[split:])).digest()


def test_each_size_has_the_root_of_the_definition() -> None:
    """Also where the frontier goes through the database in between."""
    frontier, leaves = Frontier(), list[bytes]()
    assert frontier.root == EMPTY_ROOT == tree_hash([]).hex()
    for number in range(300):
        leaves.append(f"leaf {number}".encode())
        frontier.append(leaf_hash(f"leaf {number}"))
        assert frontier.size == len(leaves)
        assert frontier.root == tree_hash(leaves).hex()
        frontier = Frontier.of_text(frontier.size, frontier.text)


# The roots of the eight leaves that every implementation of Certificate Transparency is tested with.
KNOWN_LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
KNOWN_ROOTS = {
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}


def test_known_vectors() -> None:
    frontier = Frontier()
    for size, leaf in enumerate(KNOWN_LEAVES, 1):
        frontier.append(leaf_hash(bytes.fromhex(leaf).decode("ascii")))
        assert frontier.root == KNOWN_ROOTS.get(size, frontier.root)


@given(st.lists(st.text(max_size=20), max_size=40))
def test_any_leaves(texts: list[str]) -> None:
    frontier = Frontier()
    for text in texts:
        frontier.append(leaf_hash(text))
    assert frontier.root == tree_hash([text.encode() for text in texts]).hex()


def test_a_frontier_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="3 leaves has 2"):
        Frontier.of_text(3, "0" * 64)


# --- Checkpoints

CHECKPOINT = Checkpoint("org/ä +1", 3, tree_hash([b"a", b"b", b"c"]).hex())


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    """A signer with a new key."""
    return Signer(tmp_path / "a.key")


def test_a_checkpoint_is_a_signed_note(signer: Signer) -> None:
    """Read here by hand, as the specification has it."""
    note = signer.note(CHECKPOINT)
    text, _, signature = note.rpartition("\n\n")
    origin, size, root = text.split("\n")
    assert (origin, size) == ("normata/org%2F%C3%A4%20%2B1", "3")
    assert b64decode(root).hex() == CHECKPOINT.root
    dash, name, encoded = signature.removesuffix("\n").split(" ")
    assert (dash, name) == ("\u2014", origin)
    named, key_id, key = signer.verifier(CHECKPOINT.organization_id).split("+", 2)
    public = b64decode(key)
    assert (named, public[0], len(public)) == (origin, 1, 33)
    assert key_id == sha256(origin.encode() + b"\n" + public).hexdigest()[:8]
    assert b64decode(encoded)[:4].hex() == key_id
    Ed25519PublicKey.from_public_bytes(public[1:]).verify(b64decode(encoded)[4:], f"{text}\n".encode())


def test_a_note_is_read_and_verified(signer: Signer, tmp_path: Path) -> None:
    note = read_note(signer.note(CHECKPOINT))
    assert (note.origin, note.size, note.root) == (origin_of(CHECKPOINT.organization_id), 3, CHECKPOINT.root)
    require_signed(note, signer.verifier(CHECKPOINT.organization_id))
    with pytest.raises(BadNote, match="is that of normata/other"):
        require_signed(note, signer.verifier("other"))
    with pytest.raises(BadNote, match="not signed with this key"):
        require_signed(note, Signer(tmp_path / "b.key").verifier(CHECKPOINT.organization_id))
    with pytest.raises(BadNote, match="has been changed"):
        require_signed(
            read_note(signer.note(CHECKPOINT).replace("\n3\n", "\n4\n")), signer.verifier(CHECKPOINT.organization_id)
        )


@pytest.mark.parametrize("key", ["", "a+b", "normata+00000000+AQ==", "a+b+c+d"])
def test_what_is_no_verifier_key_is_told(signer: Signer, key: str) -> None:
    with pytest.raises(BadNote, match="name\\+hash\\+key"):
        require_signed(read_note(signer.note(CHECKPOINT)), key)


@pytest.mark.parametrize(
    "text", ["", "a\nb\nc", "a\n1\nAAAA\n\n\u2014 a AAAA\n", "a\nx\nAAAA\n\n\u2014 a AAAA\n", "a\n\n\u2014 a AAAA\n"]
)
def test_what_is_no_checkpoint_is_told(text: str) -> None:
    with pytest.raises(BadNote):
        read_note(text)


def test_every_leaf_of_every_small_tree_has_one_proof() -> None:
    """And none of another length, nor of another place, leads to the same root (RFC 9162, section 2.1.3)."""
    leaves = [leaf_hash(str(number)) for number in range(18)]

    def root_of(start: int, end: int) -> str:
        frontier = Frontier()
        for leaf in leaves[start:end]:
            frontier.append(leaf)
        return frontier.root

    for size in range(1, len(leaves) + 1):
        for number in range(size):
            path = inclusion_path(number, size, root_of)
            assert root_by(leaves[number], number, size, path) == root_of(0, size)
            assert root_by(leaves[number], number, size, [*path, leaves[0]]) is None
            assert root_by(leaves[number], number, size, path[:-1]) is None or not path
            assert root_by(leaves[number], number + 1, size, path) != root_of(0, size)


def test_every_small_tree_is_consistent_with_those_before_and_with_no_other() -> None:
    """A proof that lacks a hash, or has one more, or another one, proves nothing (RFC 9162, section 2.1.4)."""
    leaves = [leaf_hash(str(number)) for number in range(18)]

    def root_of(start: int, end: int) -> str:
        frontier = Frontier()
        for leaf in leaves[start:end]:
            frontier.append(leaf)
        return frontier.root

    for new in range(len(leaves) + 1):
        for old in range(new + 1):
            path = consistency_path(old, new, root_of)
            roots = root_of(0, old), root_of(0, new)
            assert is_consistent(old, roots[0], new, roots[1], path)
            assert old == 0 or not is_consistent(old, roots[0], new, leaf_hash("other"), path)
            for other in (path[:-1], [*path, leaves[0]], [leaf_hash("other"), *path[1:]]):
                assert other == path or not is_consistent(old, roots[0], new, roots[1], other)


# --- The key


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    """However many processes want it at once."""
    path = tmp_path / "new.key"
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: Signer(path).verifier("o"), range(16)))
    assert keys == {Signer(path).verifier("o")}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["new.key"]


@pytest.mark.parametrize("content", ["", "nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_what_is_no_key_is_told(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.key"
    path.write_text(content)
    with pytest.raises(KeyUnusable, match=r"bad\.key"):
        Signer(path).verifier("o")


def test_a_key_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(KeyUnusable, match="cannot be used"):
        Signer(tmp_path / "missing" / "a.key").verifier("o")
