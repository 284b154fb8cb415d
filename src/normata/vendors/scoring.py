"""Scores of answers: how good they are, by part and in all, from 0 to 100.

An answer has the score of its value, and counts as much as the weight of its question. What is not applicable, not
answered, or a text has no score and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from normata.vendors.questions import NOT_APPLICABLE, scores_of


@dataclass
class Score:
    """The answers to some questions: how many there are of each sort, and their weighted score."""

    answered: int = 0
    unanswered: int = 0
    not_applicable: int = 0
    _points: int = field(default=0, repr=False)
    _weights: int = field(default=0, repr=False)

    @property
    def value(self) -> int | None:
        """The mean of the scores, rounded half up; null if no answer has one."""
        return (2 * self._points + self._weights) // (2 * self._weights) if self._weights else None

    def count(self, question: Mapping[str, Any], value: str | None) -> None:
        """Count the answer to a question."""
        if value is None:
            self.unanswered += 1
            return
        self.answered += 1
        if value == NOT_APPLICABLE and question["kind"] != "TEXT":
            self.not_applicable += 1
        score = scores_of(question).get(value)
        if score is not None:
            self._points += score * question["weight"]
            self._weights += question["weight"]


def score_of(questions: Iterable[Mapping[str, Any]], values: Mapping[str, str | None]) -> Score:
    """The score of the values of answers, by the ids of their questions."""
    score = Score()
    for question in questions:
        score.count(question, values.get(question["id"]))
    return score
