"""What records refer to, by name: to be shown as links, and to be chosen from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from normata.console.app.api_calls import Question
from normata.console.app.organization_request import OrganizationVisit
from normata.console.texts import text
from normata.records.archive.queries import KINDS
from normata.records.fields import Field

_MOST = 100  # ids of one question, and names to choose from
_BY_IDENTIFIER = ("controls", "controlCoverages")  # people know these by identifier and name

Named = Mapping[tuple[str, str], "Called"]


class Called(NamedTuple):
    """Something with a name. ``steps`` lead to its page; they are empty where it has none, or none to be seen.

    ``note`` says why it is not live; it is empty where it is.
    """

    id: str
    words: str
    steps: tuple[str, ...]
    note: str


class Choice(NamedTuple):
    """What can be chosen for a reference: the first of ``total`` that ``find`` finds, and what is chosen already."""

    options: Sequence[Called]
    total: int
    find: str

    @property
    def is_part(self) -> bool:
        """Whether there is more to choose from than is shown."""
        return bool(self.find) or self.total > _MOST


def asked_names(wanted: Iterable[tuple[str, str | None]]) -> list[Question]:
    """The questions for what things are called, live or not: pairs of their sort and their id."""
    ids: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for target, row_id in wanted:
        if target and row_id:
            ids[target][row_id] = None
    return [
        Question("listNames", {"kind": target, "id": found[start : start + _MOST], "archived": "include"})
        for target, found in ((target, list(found)) for target, found in ids.items())
        for start in range(0, len(found), _MOST)
    ]


async def names_of(visit: OrganizationVisit, wanted: Iterable[tuple[str, str | None]]) -> Named:
    """What things are called, by their sort and id; what is not to be seen is left out."""
    questions = asked_names(wanted)
    answers = await visit.ask(*questions) if questions else []
    return {
        (str(question.query["kind"]), item["id"]): called(str(question.query["kind"]), item)
        for question, answer in zip(questions, answers, strict=True)
        for item in answer["items"]
    }


def called(target: str, item: Mapping[str, Any]) -> Called:
    """The name of a thing of this sort, as an operation answers it."""
    words, identifier = item["label"], item["identifier"]
    if target in _BY_IDENTIFIER:
        words = f"{identifier} {words}"
    note = "" if item["isLive"] else text(f"record.{_gone(target)}")
    return Called(item["id"], words, _steps(target, item), note)


def _gone(target: str) -> str:
    if target in KINDS:
        return "not_live"
    return "removed" if target in ("memberships", "users") else "not_adopted"


def _steps(target: str, item: Mapping[str, Any]) -> tuple[str, ...]:
    if target in KINDS:
        return "records", target, item["id"]
    if target == "controlCoverages":
        return "controls", item["controlId"]
    if target == "frameworks" and not item["isLive"]:  # what adopting it again would bring
        return target, item["id"], "adoption"
    return (target, item["id"]) if target in ("controls", "frameworks") and item["isLive"] else ()


async def choices_of(
    visit: OrganizationVisit, fields: Sequence[Field], chosen: Mapping[str, str], find: Mapping[str, str]
) -> Mapping[str, Choice]:
    """What can be chosen for fields that are references, by their names.

    ``chosen`` has what is chosen already, ``find`` what to look for where there is too much to choose from.
    """
    if not fields:
        return {}
    offered = {
        field.name: Question(
            "listNames", {"kind": field.target, "search": find.get(field.name, ""), "limit": str(_MOST)}
        )
        for field in fields
    }
    questions: list[Question] = []
    for question in offered.values():
        if question not in questions:
            questions.append(question)
    known = asked_names((field.target, chosen.get(field.name)) for field in fields)
    answers = await visit.ask(*questions, *known)
    found = dict(enumerate(answers[: len(questions)]))
    names = {
        (str(question.query["kind"]), item["id"]): called(str(question.query["kind"]), item)
        for question, answer in zip(known, answers[len(questions) :], strict=True)
        for item in answer["items"]
    }
    return {
        field.name: _choice(
            field,
            found[questions.index(offered[field.name])],
            names.get((field.target, chosen.get(field.name, ""))),
            find.get(field.name, ""),
        )
        for field in fields
    }


def _choice(field: Field, answer: Mapping[str, Any], chosen: Called | None, find: str) -> Choice:
    options = [called(field.target, item) for item in answer["items"]]
    if chosen is not None and all(option.id != chosen.id for option in options):
        options.insert(0, chosen)
    return Choice(options, answer["total"], find)
