"""Coverage: each rule by example, then all of them at once against the definition, iterated naively."""

from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise

import pytest

from normata.coverage import engine
from normata.coverage.engine import Computed, Level, Place

NONE, PARTIAL, FULL = Level

Parents = Mapping[str, str | None]
Match = tuple[str, str, Level]
Statements = Mapping[str, Level]


def top(controls: str) -> dict[str, str | None]:
    """Controls without parents, one a letter."""
    return dict.fromkeys(controls)


def compute(
    parents: Parents, matches: Iterable[Match], assessed: Statements, not_applicable: Collection[str] = ()
) -> dict[str, Computed]:
    """What follows where each control that has others below it is a category."""
    groups = set(parents.values())
    places = {control: Place(parent, control in groups) for control, parent in parents.items()}
    return engine.compute(places, matches, assessed, not_applicable)


def effective(
    parents: Parents,
    matches: Iterable[Match] = (),
    assessed: Statements | None = None,
    not_applicable: Collection[str] = (),
) -> dict[str, Level]:
    computed = compute(parents, matches, assessed or {}, not_applicable)
    return {control: found.effective for control, found in computed.items()}


def indirect(parents: Parents, matches: Iterable[Match] = (), assessed: Statements | None = None) -> set[str]:
    return {control for control, computed in compute(parents, matches, assessed or {}).items() if computed.indirect}


# Statements


def test_nothing_adopted() -> None:
    assert compute({}, [("a", "b", FULL)], {"a": FULL}) == {}


@pytest.mark.parametrize("assessed", Level)
def test_statement_counts_as_it_is(assessed: Level) -> None:
    assert compute(top("a"), [], {"a": assessed}) == {"a": Computed.of(assessed, own=assessed)}


def test_without_a_statement_a_control_is_at_none() -> None:
    assert compute(top("a"), [], {}) == {"a": Computed.of(NONE, own=NONE)}


def test_answers_for_each_control_in_the_order_given() -> None:
    assert list(compute(top("cab"), [], {"b": FULL})) == ["c", "a", "b"]


# Matches


@pytest.mark.parametrize("level", [PARTIAL, FULL])
def test_match_from_a_full_control_gives_its_level(level: Level) -> None:
    assert effective(top("ab"), [("a", "b", level)], {"a": FULL})["b"] == level


@pytest.mark.parametrize("level", [PARTIAL, FULL])
@pytest.mark.parametrize("source", [NONE, PARTIAL])
def test_match_from_any_other_control_gives_nothing(source: Level, level: Level) -> None:
    """What is done of the source may be just what is not in the target."""
    assert effective(top("ab"), [("a", "b", level)], {"a": source})["b"] == NONE


@pytest.mark.parametrize("level", [PARTIAL, FULL])
@pytest.mark.parametrize(("back", "expected"), [(PARTIAL, NONE), (FULL, PARTIAL)])
def test_match_from_a_partial_control_gives_partial_where_it_lies_within(
    level: Level, back: Level, expected: Level
) -> None:
    """What is done of the source is done of the target, which contains all of it: the match back says so."""
    assert effective(top("ab"), [("a", "b", level), ("b", "a", back)], {"a": PARTIAL})["b"] == expected


def test_match_back_alone_gives_nothing() -> None:
    assert effective(top("ab"), [("b", "a", FULL)], {"a": FULL})["b"] == NONE


def test_match_leads_one_way() -> None:
    assert effective(top("ab"), [("a", "b", FULL)], {"b": FULL}) == {"a": NONE, "b": FULL}


@pytest.mark.parametrize("assessed", Level)
@pytest.mark.parametrize("matched", Level)
def test_larger_of_statement_and_match_wins(assessed: Level, matched: Level) -> None:
    equal = [("a", "b", FULL), ("b", "a", FULL)]
    assert effective(top("ab"), equal, {"a": matched, "b": assessed})["b"] == max(assessed, matched)


def test_overlap_is_not_handed_on() -> None:
    chain = [("a", "b", FULL), ("b", "c", PARTIAL), ("c", "d", FULL)]
    assert effective(top("abcd"), chain, {"a": FULL}) == {"a": FULL, "b": FULL, "c": PARTIAL, "d": NONE}


def test_partial_climbs_from_what_is_within_to_what_contains_it() -> None:
    chain = [("a", "b", PARTIAL), ("b", "a", FULL), ("b", "c", PARTIAL), ("c", "b", FULL)]
    assert effective(top("abc"), chain, {"a": PARTIAL}) == {"a": PARTIAL, "b": PARTIAL, "c": PARTIAL}
    assert effective(top("abc"), chain, {"c": PARTIAL}) == {"a": NONE, "b": NONE, "c": PARTIAL}


def test_best_of_all_paths_wins_however_long() -> None:
    short = [("a", "z", PARTIAL)]
    long = [("a", "b", FULL), ("b", "c", FULL), ("c", "z", FULL)]
    for matches in (short + long, long + short):
        assert effective(top("abcz"), matches, {"a": FULL})["z"] == FULL


def test_partial_paths_do_not_add_up() -> None:
    matches = [("a", "c", PARTIAL), ("b", "c", PARTIAL)]
    assert effective(top("abc"), matches, {"a": FULL, "b": FULL})["c"] == PARTIAL


def test_diamond() -> None:
    matches = [("a", "b", FULL), ("a", "c", PARTIAL), ("b", "d", FULL), ("c", "d", FULL)]
    assert effective(top("abcd"), matches, {"a": FULL}) == {"a": FULL, "b": FULL, "c": PARTIAL, "d": FULL}


def test_strongest_of_duplicate_matches_wins() -> None:
    matches = [("a", "b", PARTIAL), ("a", "b", FULL), ("a", "b", FULL), ("a", "b", PARTIAL)]
    assert effective(top("ab"), matches, {"a": FULL})["b"] == FULL


def test_matches_may_be_read_once_only() -> None:
    assert effective(top("ab"), iter([("a", "b", FULL)]), {"a": FULL})["b"] == FULL


# Roll-up

CATEGORY: dict[str, str | None] = {"p": None, "a": "p", "b": "p"}
CATEGORY_AND_X = CATEGORY | {"x": None}


@pytest.mark.parametrize(
    ("a", "b", "category"),
    [
        (NONE, NONE, NONE),
        (PARTIAL, NONE, PARTIAL),
        (FULL, NONE, PARTIAL),
        (PARTIAL, PARTIAL, PARTIAL),
        (FULL, PARTIAL, PARTIAL),
        (FULL, FULL, FULL),
    ],
)
def test_roll_up(a: Level, b: Level, category: Level) -> None:
    assert effective(CATEGORY, [], {"a": a, "b": b})["p"] == category
    assert effective(CATEGORY, [], {"a": b, "b": a})["p"] == category


def test_statement_of_the_parent_outranks_a_smaller_roll_up() -> None:
    assert effective(CATEGORY, [], {"p": FULL, "a": PARTIAL})["p"] == FULL


def test_statement_of_the_parent_does_not_hold_the_roll_up_down() -> None:
    assert effective(CATEGORY, [], {"p": NONE, "a": FULL, "b": FULL})["p"] == FULL


def test_parent_covers_no_child() -> None:
    assert effective(CATEGORY, [], {"p": FULL}) == {"p": FULL, "a": NONE, "b": NONE}


def test_roll_up_climbs_every_storey() -> None:
    tree = {"r": None, "p": "r", "q": "r", "a": "p", "b": "p", "c": "q"}
    assert effective(tree, [], {"a": FULL, "b": FULL}) == {
        "a": FULL,
        "b": FULL,
        "p": FULL,
        "c": NONE,
        "q": NONE,
        "r": PARTIAL,
    }
    assert effective(tree, [], {"a": FULL, "b": FULL, "c": FULL})["r"] == FULL


def test_what_states_a_requirement_of_its_own_gets_nothing_from_below() -> None:
    """Enhancements do not make up for their base. Both count for the category."""
    places = {"AC": Place(None, True), "AC-2": Place("AC"), "AC-2(1)": Place("AC-2"), "AC-2(2)": Place("AC-2")}
    enhanced = {"AC-2": NONE, "AC-2(1)": FULL, "AC-2(2)": FULL}
    found = {name: one.effective for name, one in engine.compute(places, [], enhanced).items()}
    assert found == {"AC": PARTIAL, "AC-2": NONE, "AC-2(1)": FULL, "AC-2(2)": FULL}
    found = {name: one.effective for name, one in engine.compute(places, [], enhanced | {"AC-2": FULL}).items()}
    assert found == dict.fromkeys(places, FULL)


def test_what_is_assessed_of_a_group_below_counts_for_no_group_above() -> None:
    tree = {"r": None, "p": "r", "a": "p"}
    assert effective(tree, [], {"p": FULL}) == {"r": NONE, "p": FULL, "a": NONE}


# Roll-up and matches together


def test_roll_up_counts_what_matches_give() -> None:
    assert effective(CATEGORY_AND_X, [("x", "b", FULL)], {"a": FULL, "x": FULL})["p"] == FULL
    assert effective(CATEGORY_AND_X, [("x", "b", PARTIAL)], {"a": FULL, "x": FULL})["p"] == PARTIAL


def test_match_passes_on_what_the_roll_up_gives() -> None:
    assert effective(CATEGORY_AND_X, [("p", "x", FULL)], {"a": FULL, "b": FULL})["x"] == FULL
    assert effective(CATEGORY_AND_X, [("p", "x", FULL)], {"a": FULL})["x"] == NONE
    equal = [("p", "x", FULL), ("x", "p", FULL)]
    assert effective(CATEGORY_AND_X, equal, {"a": FULL})["x"] == PARTIAL


def test_roll_up_and_match_feed_each_other() -> None:
    """From a and b to p by roll-up, to c by match, to q by roll-up, to e by match, to r by roll-up."""
    parents = CATEGORY | {"q": None, "c": "q", "d": "q", "r": None, "e": "r"}
    matches = [("q", "e", FULL), ("p", "c", FULL)]
    computed = effective(parents, matches, {"a": FULL, "b": FULL, "d": FULL})
    assert set(computed.values()) == {FULL}


def test_parent_does_not_lift_the_child_that_it_needs() -> None:
    """Only if p were FULL could b be, and the other way round: nothing stated supports either."""
    computed = effective(CATEGORY, [("p", "b", FULL)], {"a": FULL})
    assert computed == {"p": PARTIAL, "a": FULL, "b": NONE}


# Controls that do not apply


def test_not_applicable_is_none_whatever_is_stated() -> None:
    computed = compute(CATEGORY, [("a", "p", FULL)], {"a": FULL}, {"a"})
    assert computed == dict.fromkeys(CATEGORY, Computed.of(NONE, own=NONE))


def test_not_applicable_is_no_child() -> None:
    assert effective(CATEGORY, [], {"a": FULL}, {"b"}) == {"p": FULL, "a": FULL, "b": NONE}
    assert effective(CATEGORY, [], {"a": PARTIAL}, {"b"}) == {"p": PARTIAL, "a": PARTIAL, "b": NONE}
    assert effective(CATEGORY, [], {"a": FULL, "b": FULL}, {"a", "b"}) == {"p": NONE, "a": NONE, "b": NONE}


def test_not_applicable_hands_nothing_on() -> None:
    chain = [("a", "b", FULL), ("b", "c", FULL)]
    assert effective(top("abc"), chain, {"a": FULL}, {"b"}) == {"a": FULL, "b": NONE, "c": NONE}


def test_what_applies_below_a_group_that_does_not_counts_above() -> None:
    tree = {"r": None, "p": "r", "a": "p"}
    assert effective(tree, [], {"a": FULL}, {"p"}) == {"r": FULL, "p": NONE, "a": FULL}


def test_not_applicable_elsewhere_is_ignored() -> None:
    assert effective(top("a"), [], {"a": FULL}, {"x"}) == {"a": FULL}


# Cycles


def test_cycle_without_a_statement_stays_at_none() -> None:
    ring = [("a", "b", FULL), ("b", "c", FULL), ("c", "a", FULL)]
    assert effective(top("abc"), ring) == {"a": NONE, "b": NONE, "c": NONE}


def test_cycle_does_not_amplify() -> None:
    ring = [("a", "b", FULL), ("b", "c", FULL), ("c", "a", FULL)]
    assert effective(top("abc"), ring, {"b": PARTIAL}) == {"a": NONE, "b": PARTIAL, "c": NONE}
    equal = [*ring, ("b", "a", FULL), ("c", "b", FULL), ("a", "c", FULL)]
    assert effective(top("abc"), equal, {"b": PARTIAL}) == {"a": PARTIAL, "b": PARTIAL, "c": PARTIAL}


@pytest.mark.parametrize(
    ("forward", "back", "stated_left", "stated_right"),
    [
        (FULL, FULL, FULL, FULL),
        (FULL, PARTIAL, FULL, PARTIAL),
        (PARTIAL, FULL, PARTIAL, FULL),
        (PARTIAL, PARTIAL, PARTIAL, PARTIAL),
    ],
)
def test_two_frameworks_that_map_onto_each_other(
    forward: Level, back: Level, stated_left: Level, stated_right: Level
) -> None:
    """A relation is one match a direction: what is stated on one side shows on the other, by that direction's level."""
    matches = [("left", "right", forward), ("right", "left", back)]
    parents = dict.fromkeys(("left", "right"))
    assert effective(parents, matches, {"left": FULL}) == {"left": FULL, "right": stated_left}
    assert effective(parents, matches, {"right": FULL}) == {"left": stated_right, "right": FULL}
    assert effective(parents, matches) == {"left": NONE, "right": NONE}
    # PARTIAL shows where the one that is PARTIAL lies within the other.
    shows = {FULL: PARTIAL, PARTIAL: NONE}
    assert effective(parents, matches, {"left": PARTIAL})["right"] == shows[back]
    assert effective(parents, matches, {"right": PARTIAL})["left"] == shows[forward]


@pytest.mark.parametrize("assessed", Level)
def test_self_match_adds_nothing(assessed: Level) -> None:
    assert compute(top("a"), [("a", "a", FULL)], {"a": assessed}) == {"a": Computed.of(assessed, own=assessed)}


def test_cycle_of_parents_ends() -> None:
    ring = {"a": "b", "b": "c", "c": "a"}
    assert effective(ring) == {"a": NONE, "b": NONE, "c": NONE}
    assert effective(ring, [], {"a": FULL}) == {"a": FULL, "b": NONE, "c": NONE}, "groups alone are no requirements"
    below = {**ring, "d": "b"}
    assert effective(below, [], {"d": FULL}) == dict.fromkeys("abcd", FULL)


def test_a_group_is_nothing_that_is_below_it() -> None:
    assert effective({"a": "a", "b": "a"}, [], {"a": FULL}) == {"a": FULL, "b": NONE}
    assert effective({"a": "a", "b": "a"}, [], {"b": PARTIAL}) == {"a": PARTIAL, "b": PARTIAL}


# Controls outside


def test_matches_through_a_control_outside_are_ignored() -> None:
    assert effective(top("ab"), [("a", "x", FULL), ("x", "b", FULL)], {"a": FULL}) == {"a": FULL, "b": NONE}


def test_statement_on_a_control_outside_is_ignored() -> None:
    assert effective(top("a"), [("x", "a", FULL)], {"x": FULL}) == {"a": NONE}


def test_parent_outside_counts_as_none() -> None:
    assert compute({"a": "x", "b": "x"}, [("a", "b", FULL)], {"a": FULL}) == {
        "a": Computed.of(FULL, own=FULL),
        "b": Computed.of(FULL, own=NONE),
    }


# Indirect


def test_indirect_where_a_match_gives_more_than_the_statement() -> None:
    matches = [("a", "b", FULL)]
    assert indirect(top("ab"), matches, {"a": FULL}) == {"b"}
    assert indirect(top("ab"), matches, {"a": FULL, "b": PARTIAL}) == {"b"}


def test_not_indirect_where_a_match_gives_no_more_than_the_statement() -> None:
    assert indirect(top("ab"), [("a", "b", FULL)], {"a": FULL, "b": FULL}) == set()
    assert indirect(top("ab"), [("a", "b", PARTIAL)], {"a": FULL, "b": PARTIAL}) == set()


def test_not_indirect_where_the_roll_up_alone_gives_it() -> None:
    assert indirect(CATEGORY, [], {"a": FULL, "b": FULL}) == set()
    assert indirect(CATEGORY, [], {"a": PARTIAL}) == set()


def test_not_indirect_where_the_roll_up_gives_as_much_as_the_match() -> None:
    assert indirect(CATEGORY_AND_X, [("x", "p", FULL)], {"a": FULL, "b": FULL, "x": FULL}) == set()


def test_indirect_where_a_match_lifts_the_roll_up() -> None:
    assert indirect(CATEGORY_AND_X, [("x", "b", FULL)], {"a": FULL, "x": FULL}) == {"b", "p"}


def test_indirect_climbs_only_as_far_as_it_makes_a_difference() -> None:
    """What b gains from the match is lost on p, which is PARTIAL either way."""
    assert indirect(CATEGORY_AND_X, [("x", "b", PARTIAL)], {"a": FULL, "x": FULL}) == {"b"}


# Depth


def test_depth_is_no_limit() -> None:
    """Far deeper than the interpreter would recurse, up a hierarchy and along a chain of matches."""
    names = [str(number) for number in range(20_000)]
    steps = list(pairwise(names))
    hierarchy: dict[str, str | None] = {**dict(steps), names[-1]: None}
    assert effective(hierarchy, [], {names[0]: FULL})[names[-1]] == FULL
    chain = [(source, target, FULL) for source, target in steps]
    assert effective(dict.fromkeys(names), chain, {names[0]: FULL})[names[-1]] == FULL


# Any graph
