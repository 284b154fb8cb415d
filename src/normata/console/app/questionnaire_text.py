"""Questionnaires as text: a line for each part, question and choice, so that one can be written without a script.

A line that begins with ``#`` is a part, and one with ``-`` a choice of the question above, as in ``- Yearly = 80``. Any
other line is a question: ``Where is our data? [text, weight 3]``. Lines without anything are left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from normata.console.texts import text
from normata.vendors.questions import (
    CHOICE,
    MAX_CHOICE,
    MAX_CHOICES,
    MAX_NAME,
    MAX_PARTS,
    MAX_QUESTIONS,
    MAX_SCORE,
    MAX_TEXT,
    MAX_WEIGHT,
    NOT_APPLICABLE,
    TEXT,
    YES_NO,
    questions_of,
)

_PART, _CHOICE = "#", "-"
_MARKED = re.compile(r"(.*?)\s*\[([^\[\]]*)\]", re.DOTALL)
_WEIGHT = re.compile(r"weight\s+([0-9]{1,3})", re.ASCII)
_SCORED = re.compile(r"(.*\S)\s*=\s*([0-9]{1,3})", re.ASCII)
_LONGEST_ID = 40  # characters of an id that is made from a question
_NO_ID = "question"  # of a question without any letter of an id

Parts = Sequence[Mapping[str, Any]]


class LineFault(NamedTuple):
    """What is wrong with a line; the first has number 1."""

    line: int
    reason: str


class Written(NamedTuple):
    """The parts that a text says, and what is wrong with it. With faults, the parts are only to be shown."""

    parts: Sequence[dict[str, Any]]
    faults: Sequence[LineFault]


def written(parts: Parts) -> str:
    """The text of a questionnaire."""
    return "\n\n".join("\n".join((f"{_PART} {part['name']}", "", *map(_written, part["questions"]))) for part in parts)


def is_writable(parts: Parts) -> bool:
    """Whether a questionnaire can be written as text without becoming another one. One with line breaks cannot."""
    found = read(written(parts), parts)
    return not found.faults and found.parts == list(parts)


def read(content: str, known: Parts = ()) -> Written:
    """The questionnaire that a text says. A question that ``known`` has gets its id; another one gets a new id."""
    reader = _Reader(_Ids(known))
    for number, line in enumerate(content.splitlines(), 1):
        words = line.strip()
        if words.startswith(_PART):
            reader.part(number, words.lstrip(_PART).strip())
        elif words.startswith(_CHOICE):
            reader.choice(number, words.removeprefix(_CHOICE).strip())
        elif words:
            reader.question(number, words)
    reader.end()
    return Written(reader.parts, sorted(reader.faults))


def _written(question: Mapping[str, Any]) -> str:
    marks = ["text"] if question["kind"] == TEXT else []
    if question["weight"] != 1:
        marks.append(f"weight {question['weight']}")
    line = f"{question['text']} [{', '.join(marks)}]" if marks else str(question["text"])
    return "\n".join([line, *(f"{_CHOICE} {one['text']} = {one['score']}" for one in question["choices"])])


class _Reader:
    """Reads line by line. The number of the line of the last part, and of the last question, says where a fault is."""

    def __init__(self, ids: _Ids) -> None:
        self.parts: list[dict[str, Any]] = []
        self.faults: list[LineFault] = []
        self._ids = ids
        self._part_line = self._question_line = 0
        self._question: dict[str, Any] | None = None
        self._count = 0

    def part(self, line: int, name: str) -> None:
        self._end_part()
        if not name:
            self._fault(line, "no_name")
        elif len(name) > MAX_NAME:
            self._fault(line, "long", most=MAX_NAME)
        if len(self.parts) == MAX_PARTS:
            self._fault(line, "parts", most=MAX_PARTS)
        self._part_line = line
        self.parts.append({"name": name, "questions": []})

    def question(self, line: int, words: str) -> None:
        self._end_question()
        if not self.parts:
            self._fault(line, "no_part")
            self.parts.append({"name": "", "questions": []})
        kind, weight = YES_NO, 1
        marked = _MARKED.fullmatch(words)
        if marked is not None:
            words = marked[1]
            for mark in marked[2].split(","):
                found = _WEIGHT.fullmatch(mark.strip())
                if mark.strip() == "text":
                    kind = TEXT
                elif found is not None and 1 <= int(found[1]) <= MAX_WEIGHT:
                    weight = int(found[1])
                else:
                    self._fault(line, "mark", mark=mark.strip(), most=MAX_WEIGHT)
        if not words:
            self._fault(line, "no_words")
        elif len(words) > MAX_TEXT:
            self._fault(line, "long", most=MAX_TEXT)
        self._count += 1
        if self._count == MAX_QUESTIONS + 1:
            self._fault(line, "questions", most=MAX_QUESTIONS)
        self._question_line = line
        self._question = {
            "id": self._ids.of(words),
            "text": words,
            "kind": kind,
            "weight": weight,
            "choices": [],
        }
        self.parts[-1]["questions"].append(self._question)

    def choice(self, line: int, words: str) -> None:
        question = self._question
        if question is None:
            self._fault(line, "no_question")
            return
        if question["kind"] == TEXT:
            self._fault(line, "choice_of_text")
            return
        scored = _SCORED.fullmatch(words)
        if scored is None or int(scored[2]) > MAX_SCORE:
            self._fault(line, "score", most=MAX_SCORE)
            return
        found, choices = scored[1], question["choices"]
        if len(found) > MAX_CHOICE:
            self._fault(line, "long", most=MAX_CHOICE)
        if found == NOT_APPLICABLE or any(one["text"] == found for one in choices):
            self._fault(line, "same_choice")
        if len(choices) == MAX_CHOICES:
            self._fault(line, "choices", most=MAX_CHOICES)
        question["kind"] = CHOICE
        choices.append({"text": found, "score": int(scored[2])})

    def end(self) -> None:
        self._end_part()
        if not self.parts:
            self._fault(1, "nothing")

    def _end_part(self) -> None:
        self._end_question()
        if self.parts and not self.parts[-1]["questions"]:
            self._fault(self._part_line, "no_questions")

    def _end_question(self) -> None:
        if self._question is not None and len(self._question["choices"]) == 1:
            self._fault(self._question_line, "one_choice")
        self._question = None

    def _fault(self, line: int, what: str, **values: Any) -> None:
        self.faults.append(LineFault(line, text(f"questionnaire.fault.{what}", **values)))


class _Ids:
    """The ids of questions: known ones by their words, and new ones that no other question has."""

    def __init__(self, known: Parts) -> None:
        self._known: dict[str, list[str]] = {}
        for question in questions_of(known):
            self._known.setdefault(question["text"], []).append(question["id"])
        self._taken = {question["id"] for question in questions_of(known)}

    def of(self, words: str) -> str:
        if self._known.get(words):
            return self._known[words].pop(0)
        made = _free(_plain(words), self._taken)
        self._taken.add(made)
        return made


def _plain(words: str) -> str:
    """The words as an id: "How often, and by whom?" becomes how-often-and-by-whom."""
    letters = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode().lower()
    return re.sub("[^a-z0-9]+", "-", letters)[:_LONGEST_ID].strip("-") or _NO_ID


def _free(wanted: str, taken: Collection[str]) -> str:
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted}-{number}"
    return found
