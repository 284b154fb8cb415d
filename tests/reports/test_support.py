"""Which matches carry an indirectly covered control: no control vouches for itself."""

from __future__ import annotations

from typing import NamedTuple

from normata.reports.supporting_matches import SupportingMatches


class Match(NamedTuple):
    id: str
    source_id: str
    target_id: str
    match_level: str
    source_own: str = "NONE"
    target_own: str = "NONE"
    is_within: bool = False


class Child(NamedTuple):
    id: str
    parent_id: str
    own: str = "NONE"
    parent_own: str = "NONE"


def test_controls_that_equal_each_other_do_not_vouch_for_each_other() -> None:
    """Of two ways round a circle, only the one that comes from the statement counts."""
    matches = [
        Match("in", "assessed", "a", "FULL", source_own="FULL"),
        Match("a-b", "a", "b", "FULL", is_within=True),
        Match("b-a", "b", "a", "FULL", is_within=True),
    ]
    supporting_matches = SupportingMatches(matches, [])
    assert supporting_matches.of("a", "FULL") == ["in"]
    assert supporting_matches.of("b", "FULL") == ["a-b"]


def test_all_matches_of_the_shortest_proofs_count() -> None:
    matches = [
        Match("first", "one", "a", "FULL", source_own="FULL"),
        Match("second", "two", "a", "FULL", source_own="FULL"),
        Match("overlap", "two", "a", "PARTIAL", source_own="FULL"),
        Match("longer", "b", "a", "FULL"),
        Match("one-b", "one", "b", "FULL", source_own="FULL"),
    ]
    assert SupportingMatches(matches, []).of("a", "FULL") == ["first", "second"]


def test_overlap_is_not_handed_on_unless_the_source_lies_within() -> None:
    matches = [
        Match("overlap", "one", "a", "PARTIAL", source_own="PARTIAL"),
        Match("within", "one", "a", "PARTIAL", source_own="PARTIAL", is_within=True),
    ]
    assert SupportingMatches(matches, []).of("a", "PARTIAL") == ["within"]
    full = [Match("overlap", "one", "a", "PARTIAL", source_own="FULL")]
    assert SupportingMatches(full, []).of("a", "PARTIAL") == ["overlap"]
    assert SupportingMatches(full, []).of("a", "FULL") == []


def test_roll_up_takes_all_children_for_full_and_one_for_partial() -> None:
    matches = [
        Match("to-x", "assessed", "x", "FULL", source_own="FULL"),
        Match("to-y", "x", "y", "FULL"),
        Match("to-a", "top", "a", "FULL"),
        Match("to-b", "top", "b", "PARTIAL"),
    ]
    children = [Child("x", "top"), Child("y", "top")]
    supporting_matches = SupportingMatches(matches, children)
    assert supporting_matches.of("a", "FULL") == ["to-a"]
    assert supporting_matches.of("b", "PARTIAL") == ["to-b"]
    unfinished = SupportingMatches(matches, [*children, Child("z", "top")])
    assert unfinished.of("a", "FULL") == []
    assert unfinished.of("b", "PARTIAL") == []


def test_a_control_that_nothing_lifts_has_no_support() -> None:
    assert SupportingMatches([], []).of("a", "FULL") == []
