"""What the texts of a policy change, on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import Response

from normata.policies.paragraphs import Comparison
from tests.policies.steps import TEXT, Policies
from tests.served import refused
from tests.world import ALPHA

NEXT = TEXT.replace("door", "doors")
_REWORDED = [
    {"change": "REMOVED", "paragraph": 2, "text": "Lock the door."},
    {"change": "ADDED", "paragraph": 2, "text": "Lock the doors."},
]


def _changes(policies: Policies, policy: str, **query: int) -> Response:
    """The answer to what differs between two texts."""
    path, headers = f"/policies/{policy}/changes/", policies.headers("auditor")
    return policies.service.client.get(path, params={"organizationId": ALPHA, **query}, headers=headers)


def _answer(policies: Policies, policy: str, **query: int) -> Any:
    answer = _changes(policies, policy, **query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_two_texts_are_compared(policies: Policies) -> None:
    policy = policies.make()
    assert _answer(policies, policy) == {"version": None, "since": None, "changes": None}
    policies.published(policy)
    assert _answer(policies, policy) == {"version": 1, "since": None, "changes": None}
    policies.draft(policy, "PUT", content=NEXT)
    assert _answer(policies, policy) == {"version": None, "since": 1, "changes": _REWORDED}
    policies.done("submit", policy)
    assert _answer(policies, policy) == {"version": 2, "since": 1, "changes": _REWORDED}
    policies.done("approve", policy, "viewer", version=2)
    policies.done("publish", policy)
    policies.draft(policy, "PUT", content=TEXT)
    policies.published(policy, 3)
    assert _answer(policies, policy, version=2) == {"version": 2, "since": 1, "changes": _REWORDED}
    assert _answer(policies, policy, since=1) == {"version": 3, "since": 1, "changes": []}
    for query in ({"version": 4}, {"since": 9}):
        refused(_changes(policies, policy, **query), 404, "not_found")
    refused(_changes(policies, "no-policy"), 404, "not_found")
    [second] = policies.versions(policy, number=2)
    assert (second["number"], second["changes"], second["changesLeftOut"]) == (2, _REWORDED, False)


def test_the_list_leaves_out_what_takes_too_long(policies: Policies) -> None:
    policy = policies.make(content=_long("a"))
    policies.published(policy)
    for number, word in enumerate("bcdefg", 2):
        policies.draft(policy, "PUT", content=_long(word))
        policies.published(policy, number)
    found = policies.versions(policy)
    assert [one["changesLeftOut"] for one in found] == [False] * 4 + [True] * 2 + [False]
    assert [one["changes"] is None for one in found] == [False] * 4 + [True] * 3
    assert len(_answer(policies, policy, version=2)["changes"]) == 600


def _long(word: str) -> str:
    return "\n\n".join(f"{word} {number}" for number in range(300))


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("a\n\nb\n\nc", "a\n\nc", ["REMOVED"]),
        ("a\n\na", "a\n\na\n\na", ["ADDED"]),
        ("\n\n".join(map(str, range(400))), "0\n\nnew\n\n399", ["REMOVED"] * 398 + ["ADDED"]),
    ],
    ids=["removed", "the same ones", "too long"],
)
def test_equal_ends_are_not_compared(before: str, after: str, kept: list[str]) -> None:
    assert [one["change"] for one in Comparison(before, after).changes] == kept
