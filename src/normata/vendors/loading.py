"""What loaded answers must have: a question of the questionnaire of their assessment, and a value that fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.changes.references import References
from normata.core.changes.rows import PendingRow
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import batches
from normata.core.schema.table import sql_table
from normata.records.assurance import VendorAssessment
from normata.vendors.model import Questionnaire
from normata.vendors.questions import fault_of, questions_of

_Questions = Mapping[str, Mapping[str, Any]]


class LoadedAnswers:
    """The rules of one load: what it has of questionnaires is noted first, then its answers are checked."""

    def __init__(self) -> None:
        self._loaded: dict[str, PendingRow] = {}

    def note(self, _unit: UnitOfWork, rows: Sequence[PendingRow], _references: References) -> None:
        """Note the questionnaires of the load."""
        self._loaded = {row.id: row for row in rows}

    def check(self, unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
        """Add faults for answers to questions that nobody asks, and for values that do not fit their question."""
        used = _questionnaires_of(unit, {row.final["assessment_id"] for row in rows}, references)
        questions = self._questions(unit, {one for one in used.values() if one is not None})
        for row in rows:
            questionnaire_id = used.get(row.final["assessment_id"])
            if questionnaire_id is not None and references.is_faulty("questionnaire", questionnaire_id):
                continue
            question = questions.get(questionnaire_id or "", {}).get(row.final["question"])
            if question is None:
                row.add_fault("question", "is not the id of a question of the assessment's questionnaire")
            elif row.changed and row.after["value"] is not None:
                reason = fault_of(question, row.after["value"])
                if reason is not None:
                    row.add_fault("value", reason)

    def _questions(self, unit: UnitOfWork, ids: Iterable[str]) -> dict[str, _Questions]:
        """The questions of these questionnaires, by the ids of both."""
        found = {}
        stored = []
        for one in ids:
            row = self._loaded.get(one)
            if row is not None and row.changed:
                found[one] = _by_id(row.after["parts"])
            else:
                stored.append(one)
        for batch in batches(sorted(stored)):
            found |= {row.id: _by_id(row.parts) for row in unit.rows(_PARTS, {"ids": batch})}
        return found


def _questionnaires_of(unit: UnitOfWork, ids: Iterable[str], references: References) -> dict[str, str | None]:
    """The ids of the questionnaires of assessments: of the load's where it has them, else of those stored."""
    found: dict[str, str | None] = {}
    stored = []
    for one in ids:
        row = references.get("vendor_assessment", one)
        if row is not None and "questionnaire_id" in row:
            found[one] = row["questionnaire_id"]
        else:
            stored.append(one)
    for batch in batches(sorted(stored)):
        found |= {row.id: row.questionnaire_id for row in unit.rows(_USED, {"ids": batch})}
    return found


def _by_id(parts: Sequence[Mapping[str, Any]]) -> _Questions:
    return {question["id"]: question for question in questions_of(parts)}


_QUESTIONNAIRE, _ASSESSMENT = sql_table(Questionnaire), VendorAssessment.sql()
_PARTS = select(_QUESTIONNAIRE.c.id, _QUESTIONNAIRE.c.parts).where(
    _QUESTIONNAIRE.c.id.in_(bindparam("ids", expanding=True))
)
_USED = select(_ASSESSMENT.c.id, _ASSESSMENT.c.questionnaire_id).where(
    _ASSESSMENT.c.id.in_(bindparam("ids", expanding=True))
)
