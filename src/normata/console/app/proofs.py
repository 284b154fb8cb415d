"""Proofs of coverage as trees: each step above what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_DEEPEST = 40  # steps below each other that are shown; nobody follows more


class Branch(NamedTuple):
    """A step of a proof, and the steps that it rests on. One that is shown above already has no branches again."""

    step: Mapping[str, Any]
    premises: tuple[Branch, ...]
    is_repeated: bool


def as_tree(proof: Sequence[Mapping[str, Any]]) -> Branch | None:
    """The proof with its last step at the top; null for an empty one.

    Each step comes after those that it rests on, so that the tree ends.
    """
    if not proof:
        return None
    places = {(step["control"]["id"], step["level"]): number for number, step in enumerate(proof)}
    shown: set[int] = set()

    def branch(number: int, depth: int = 0) -> Branch:
        step = proof[number]
        if number in shown or depth == _DEEPEST:
            return Branch(step, (), is_repeated=bool(step["premises"]))
        shown.add(number)
        below = [places.get((one["controlId"], one["level"])) for one in step["premises"]]
        return Branch(
            step, tuple(branch(one, depth + 1) for one in below if one is not None and one < number), is_repeated=False
        )

    return branch(len(proof) - 1)
