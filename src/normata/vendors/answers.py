"""The answers of an assessment: reading them with their questions, and giving them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, insert, select, update

from normata.core.changes.source import Fault, FaultyInput, pointer
from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of, update_of
from normata.core.changes.writing import BODY
from normata.core.db.transaction import Transaction
from normata.core.schema.table import new_id, sql_table
from normata.errors import Archived, NotFound, WrongState
from normata.identity.authority import own_membership
from normata.records.assurance import VendorAssessment
from normata.records.lookup import find, found_for_change
from normata.vendors.model import Questionnaire, VendorAnswer
from normata.vendors.questions import NAME, fault_of, questions_of, standard
from normata.vendors.rules import SENT
from normata.vendors.scoring import Score, score_of

_CHANGED = ("value", "remark", "answered_at", "answered_by_id", "is_by_link")
ANSWER_WRITES = (insert_of(VendorAnswer), update_of(VendorAnswer, *_CHANGED), delete_of(VendorAnswer))


class Answer(NamedTuple):
    """An answer to a question. Without value and remark, the question is not answered."""

    question: str
    value: str | None = None
    remark: str | None = None


def read_answers(transaction: Transaction, organization_id: str, assessment_id: str) -> dict[str, Any]:
    """The questions of an assessment with their answers and scores, in wire form. Raises NotFound.

    Those of a draft are the ones with which it would be sent.
    """
    assessment: Any = transaction.row(find(VendorAssessment), {"record": assessment_id})
    if assessment is None or assessment.organization_id != organization_id:
        raise NotFound
    return answers_of(transaction, assessment)


def answers_of(transaction: Transaction, assessment: Any) -> dict[str, Any]:
    """The same, of an assessment that was read."""
    questionnaire = _questionnaire_of(transaction, assessment)
    answers = {row.question: row for row in _stored(transaction, assessment)}
    parts = NO_QUESTIONNAIRE["parts"] if questionnaire is None else questionnaire.parts
    name = NO_QUESTIONNAIRE["name"] if questionnaire is None else questionnaire.name
    return {
        "assessmentId": assessment.id,
        "status": assessment.status,
        "questionnaireId": None if questionnaire is None else questionnaire.id,
        "questionnaireName": name,
        **scores(score_of(questions_of(parts), {key: row.value for key, row in answers.items()})),
        "parts": [_part(part, answers) for part in parts],
    }


def write_answers(
    unit: UnitOfWork,
    assessment_id: str,
    answers: Sequence[Answer],
    *,
    require_current: Callable[[Mapping[str, Any]], None],
) -> dict[str, Any]:
    """Give answers to some questions of an assessment that was sent, and return what :func:`read_answers` returns.

    The others stay as they are. ``require_current`` gets the answers before, and raises if these are not what the
    caller knows. Raises NotFound, InsufficientRole, Archived, WrongState and FaultyInput.
    """
    assessment = found_for_change(unit, VendorAssessment, assessment_id)
    require_open(assessment)
    require_current(answers_of(unit, assessment))
    store(unit, assessment, answers, member_id=own_membership(unit, assessment.organization_id))
    return answers_of(unit, assessment)


def require_open(assessment: Any) -> None:
    """Raise Archived or WrongState unless an assessment takes answers."""
    if assessment.archived_at is not None:
        raise Archived
    if assessment.status != SENT:
        raise WrongState(assessment.status, (SENT,))


def store(
    unit: UnitOfWork, assessment: Any, answers: Sequence[Answer], *, member_id: str | None, is_by_link: bool = False
) -> None:
    """Store answers of a member, or of the vendor by a link. Raises FaultyInput."""
    _require_fit(_questionnaire_of(unit, assessment).parts, answers)
    stored = {row.question: row for row in _stored(unit, assessment)}
    who = {"answered_at": unit.moment, "answered_by_id": member_id, "is_by_link": is_by_link}
    for one in answers:
        _store_one(unit, assessment, one, stored.get(one.question), who)


def _store_one(unit: UnitOfWork, assessment: Any, answer: Answer, before: Any, who: Mapping[str, Any]) -> None:
    content: dict[str, Any] = {"value": answer.value, "remark": answer.remark or None}
    known = None if before is None else before._asdict()
    if all(content[name] == (known or {}).get(name) for name in content):
        return
    owner = assessment.organization_id
    if content == {"value": None, "remark": None}:
        unit.rows(_DELETE, {"answer": before.id})
        unit.publish(Change("delete", VendorAnswer, owner, before.id, before=known))
        return
    row: Any
    if before is None:
        key = {"id": new_id(), "organization_id": owner, "assessment_id": assessment.id, "question": answer.question}
        row = unit.row(_INSERT, {**key, **content, **who})
    else:
        row = unit.row(
            _UPDATE, {"answer": before.id} | {f"new_{name}": value for name, value in {**content, **who}.items()}
        )
    unit.publish(Change("answer", VendorAnswer, owner, row.id, row._asdict(), known))


def _require_fit(parts: Sequence[Mapping[str, Any]], answers: Sequence[Answer]) -> None:
    questions = {question["id"]: question for question in questions_of(parts)}
    faults: list[Fault] = []
    seen: set[str] = set()
    for index, one in enumerate(answers):
        place = pointer("answers", index)
        question = questions.get(one.question)
        if question is None or one.question in seen:
            reason = "is not the id of a question" if question is None else "is answered twice"
            faults.append(Fault(BODY, f"{place}/question", reason))
        elif one.value is not None and (reason := fault_of(question, one.value) or ""):
            faults.append(Fault(BODY, f"{place}/value", reason))
        seen.add(one.question)
    if faults:
        raise FaultyInput(faults)


def _questionnaire_of(transaction: Transaction, assessment: Any) -> Any:
    """The questionnaire of an assessment; null if that is to be the one of the service."""
    if assessment.questionnaire_id is None:
        return None
    return transaction.row(_QUESTIONNAIRE, {"questionnaire": assessment.questionnaire_id})


def _stored(transaction: Transaction, assessment: Any) -> Sequence[Any]:
    return transaction.rows(_ANSWERS, {"organization": assessment.organization_id, "assessment": assessment.id})


def score_in_all(transaction: Transaction, assessment: Any) -> int | None:
    """The score of all answers of an assessment that was sent; null if none has one."""
    values = {row.question: row.value for row in _stored(transaction, assessment)}
    return score_of(questions_of(_questionnaire_of(transaction, assessment).parts), values).value


def scores(score: Score) -> dict[str, Any]:
    """A score in wire form."""
    counts = {"answered": score.answered, "unanswered": score.unanswered, "notApplicable": score.not_applicable}
    return {"score": score.value, **counts}


def _part(part: Mapping[str, Any], answers: Mapping[str, Any]) -> dict[str, Any]:
    questions = part["questions"]
    values = {key: row.value for key, row in answers.items()}
    return {
        "name": part["name"],
        **scores(score_of(questions, values)),
        "questions": [{**question, **_answer(answers.get(question["id"]))} for question in questions],
    }


def _answer(row: Any) -> dict[str, Any]:
    return {
        "value": getattr(row, "value", None),
        "remark": getattr(row, "remark", None),
        "answeredAt": getattr(row, "answered_at", None),
        "answeredById": getattr(row, "answered_by_id", None),
        "isByLink": bool(getattr(row, "is_by_link", False)),
    }


NO_QUESTIONNAIRE: Mapping[str, Any] = {"name": NAME, "parts": standard()}

_TABLE, _QUESTIONS = sql_table(VendorAnswer), sql_table(Questionnaire)
_QUESTIONNAIRE = select(*_QUESTIONS.c).where(_QUESTIONS.c.id == bindparam("questionnaire"))
_ANSWERS = select(*_TABLE.c).where(
    _TABLE.c.organization_id == bindparam("organization"), _TABLE.c.assessment_id == bindparam("assessment")
)
_INSERT = (
    insert(_TABLE)
    .values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
    .returning(*_TABLE.c)
)
_UPDATE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("answer"))
    .values({name: bindparam(f"new_{name}", type_=_TABLE.c[name].type) for name in _CHANGED})
    .returning(*_TABLE.c)
)
_DELETE = delete(_TABLE).where(_TABLE.c.id == bindparam("answer"))
