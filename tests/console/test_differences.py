"""What has become of a text, as pieces."""

from __future__ import annotations

import time

import pytest

from normata.console.differences import difference, difference_as_read

LONG = " ".join(f"word{number}" for number in range(400))


def _sides(before: str, after: str) -> tuple[str, str]:
    """Both texts again, of the pieces."""
    pieces = difference(before, after)
    return (
        "".join(piece.words for piece in pieces if piece.did in ("keep", "drop")),
        "".join(piece.words for piece in pieces if piece.did in ("keep", "add")),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "New."),
        ("Gone.", ""),
        ("Keys end in 2027.", "Keys end in 2028, at the latest."),
        ("one\ntwo\nthree", "one\nthree\nfour"),
        ("été über", "été unter"),
    ],
)
def test_the_pieces_are_both_texts(before: str, after: str) -> None:
    assert _sides(before, after) == (before, after)


def test_what_stays_is_shown_around_changes_alone() -> None:
    pieces = difference(f"{LONG} old. {LONG}", f"{LONG} new. {LONG}")
    assert [piece.did for piece in pieces] == ["skip", "keep", "drop", "add", "keep", "skip"]
    assert [piece.words for piece in pieces[2:4]] == ["old", "new"]
    assert sum(len(piece.words) for piece in pieces) < 200


def test_of_many_words_lines_are_compared() -> None:
    lines = [f"This is line {number} of the old text." for number in range(100)]
    changed = [line.replace("old", "new") if number % 2 else line for number, line in enumerate(lines)]
    did = {piece.did for piece in difference("\n".join(lines), "\n".join(changed))}
    assert did == {"keep", "drop", "add"}


@pytest.mark.parametrize(
    ("before", "after"),
    [("w " * 50_000, "v " * 50_000), ("a\n" * 50_000, "b\na\n" * 50_000), ("a " * 50_000, "a b " * 50_000)],
)
def test_long_ones_take_no_time(before: str, after: str) -> None:
    began = time.process_time()
    pieces = difference(before, after)
    assert time.process_time() - began < 2
    assert 0 < sum(len(piece.words) for piece in pieces) < 10_000


def test_marks_of_markdown_are_no_words() -> None:
    before = "# Rules\n\n## Why there is a rule\n\n> **Keys** end in `2027`.\n"
    pieces = difference_as_read(before, before.replace("2027", "2028"))
    assert (
        "".join(piece.words for piece in pieces if piece.did != "add")
        == "Rules\n\nWhy there is a rule\n\nKeys end in 2027.\n"
    )
    assert [piece.words for piece in pieces if piece.did in ("drop", "add")] == ["2027", "2028"]
    assert [piece.words for piece in difference_as_read("## Keys", "### Keys") if piece.did == "add"] == ["#"]
