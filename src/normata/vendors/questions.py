"""Questions: what a questionnaire consists of, and the one of the service."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from normata.core.schema.fields import NOT_BLANK
from normata.core.schema.wire import Input

EDITION = "normata-1"  # of the questionnaire of the service; another text is another edition
NAME = "Security of vendors"  # its name

MAX_PARTS, MAX_QUESTIONS, MAX_CHOICES = 20, 200, 20
MAX_NAME, MAX_TEXT, MAX_CHOICE = 200, 1_000, 300  # characters: of a part's name, a question and a choice
MAX_SCORE, MAX_WEIGHT = 100, 10
KEY = r"^[a-z0-9][a-z0-9-]{0,63}$"

AnswerKind = Literal["YES_NO", "CHOICE", "TEXT"]
YES_NO, CHOICE, TEXT = "YES_NO", "CHOICE", "TEXT"
NOT_APPLICABLE = "NOT_APPLICABLE"
SCORES: Mapping[str, int] = {"YES": 100, "PARTLY": 50, "NO": 0}


class Choice(Input):
    """One of the answers that a question offers."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_CHOICE, pattern=NOT_BLANK)] = Field(
        description="The answer."
    )
    score: Annotated[int, Field(ge=0, le=MAX_SCORE)] = Field(description="How good it is, from 0 to 100.")


class Question(Input):
    """A question."""

    id: Annotated[str, StringConstraints(pattern=KEY)] = Field(
        description="Its id in the questionnaire: small letters, digits and hyphens."
    )
    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT, pattern=NOT_BLANK)] = Field(
        description="The question."
    )
    kind: AnswerKind = Field(
        default="YES_NO",
        description="How it is answered: `YES_NO` with yes, partly, no or not applicable, `CHOICE` with one of"
        " `choices` or not applicable, `TEXT` with a text, which has no score.",
    )
    weight: Annotated[int, Field(ge=1, le=MAX_WEIGHT)] = Field(
        default=1, description="How much it counts in the score of its part, from 1 to 10."
    )
    choices: Annotated[list[Choice], Field(max_length=MAX_CHOICES)] = Field(
        default_factory=list, description="What a `CHOICE` offers: at least two different answers; else none."
    )

    @model_validator(mode="after")
    def _offers_choices(self) -> Self:
        texts = {choice.text for choice in self.choices}
        if len(texts) != len(self.choices) or NOT_APPLICABLE in texts:
            raise ValueError("must offer different choices, none of them NOT_APPLICABLE")
        if self.kind == CHOICE and len(texts) < 2:
            raise ValueError("must offer at least two choices, because its kind is CHOICE")
        if self.kind != CHOICE and texts:
            raise ValueError("must not offer choices, because its kind is not CHOICE")
        return self


class Part(Input):
    """A part of a questionnaire."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME, pattern=NOT_BLANK)] = Field(
        description="The name of the part."
    )
    questions: Annotated[list[Question], Field(min_length=1, max_length=MAX_QUESTIONS)] = Field(
        description="Its questions; all parts together have at most 200."
    )


def unambiguous(parts: list[Part]) -> list[Part]:
    """These parts. Raises ValueError if there are too many questions, or two have the same id."""
    ids = [question.id for part in parts for question in part.questions]
    if len(ids) > MAX_QUESTIONS:
        raise ValueError(f"must have at most {MAX_QUESTIONS} questions in all parts together")
    if len(set(ids)) != len(ids):
        raise ValueError("must give each question an id of its own")
    return parts


@cache
def standard() -> Sequence[Mapping[str, Any]]:
    """The parts of the questionnaire of the service, as they are stored."""
    found = json.loads((Path(__file__).parent / "questions.json").read_text("utf-8"))
    return [Part.model_validate(part).model_dump(by_alias=True) for part in found]


def questions_of(parts: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The questions of all parts, in their order."""
    for part in parts:
        yield from part["questions"]


def fault_of(question: Mapping[str, Any], value: str) -> str | None:
    """What is wrong with an answer to a question; null if nothing is."""
    if question["kind"] == TEXT:
        return None if value.strip() else "must not be blank"
    if value == NOT_APPLICABLE or value in scores_of(question):
        return None
    return f"must be one of {', '.join((*scores_of(question), NOT_APPLICABLE))}"


def scores_of(question: Mapping[str, Any]) -> Mapping[str, int]:
    """The answers to a question that have a score, each with it."""
    if question["kind"] == CHOICE:
        return {choice["text"]: choice["score"] for choice in question["choices"]}
    return SCORES if question["kind"] == YES_NO else {}
