"""What is open in a framework, as an OSCAL plan of action and milestones (POA&M): gaps, conflicts and findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import or_, select

from normata.core.db.transaction import Transaction
from normata.frameworks.model import Control
from normata.oscal.component import NOT_ASSESSED, Assessed
from normata.oscal.names import Document, left_out, line, metadata, prop, uuid_of, without_empty
from normata.records.kinds import Finding
from normata.reports.requirements import FRAMEWORK, ORGANIZATION, read_conflicts

_CONFORMITY = "CONFORMITY"  # a finding with nothing to correct


@dataclass(frozen=True)
class Poam:
    """The data of a POA&M. It has no findings of the past."""

    assessed: Assessed
    conflicts: Sequence[Any]
    findings: Sequence[Any]

    def present(self) -> Document:
        """The document."""
        about, names = self.assessed, self.assessed.content.names()
        entries = [*self._gaps(), *self._conflicts(), *self._findings()]
        found = [_finding(one, names[one.control_id]) for one in self.findings]
        modified = max(about.modified, *(one.updated_at for one in self.findings), "")
        document = {
            "uuid": uuid_of("poam", *about.identity),
            "metadata": metadata(
                about.title,
                modified,
                modified,
                [*about.about(), *([] if about.as_of is None else [_NO_FINDINGS])],
            ),
            "system-id": {
                "identifier-type": "https://ietf.org/rfc/rfc4122",
                "id": uuid_of("organization", about.identity[0]),
            },
            "risks": [risk for _, risk in entries],
            "findings": found,
            "poam-items": [item for item, _ in entries] or [_nothing(*about.identity)],
        }
        return {"plan-of-action-and-milestones": without_empty(document)}

    def _gaps(self) -> Iterator[tuple[Document, Document]]:
        for one in self.assessed.requirements:
            if one.is_applicable and one.effective != "FULL":
                planned = self.assessed.planned.get(one.assessment_id)
                covered = "is covered in part only" if one.effective == "PARTIAL" else "is not covered"
                yield self._entry(
                    "gap",
                    one,
                    one.coverage_gap or f"The requirement {covered}.",
                    f"The requirement applies and {covered}.",
                    props=_statuses(one),
                    deadline=planned,
                    status="remediating" if planned else "open",
                )

    def _conflicts(self) -> Iterator[tuple[Document, Document]]:
        for one in self.conflicts:
            yield self._entry(
                "conflict",
                one,
                f"The assessment cannot be right beside {_BESIDE[one.conflict]}.",
                "It is not known how far the control is implemented.",
                props=[*_statuses(one), prop("conflict", one.conflict)],
            )

    def _findings(self) -> Iterator[tuple[Document, Document]]:
        for one in self.findings:
            props = [prop("finding-type", one.type)] + ([prop("finding-status", one.status)] if one.status else [])
            item, risk = self._entry(
                "finding",
                one,
                one.findings or line(one.name) or "untitled",
                one.causes or "What was found is not corrected yet.",
                props=props,
                deadline=one.deadline,
                status="remediating" if one.status == "IN_PROGRESS" else "open",
            )
            item["related-findings"] = [{"finding-uuid": uuid_of("finding", one.id)}]
            if one.correction:
                risk["remediations"] = [
                    {
                        "uuid": uuid_of("correction", one.id),
                        "lifecycle": "planned",
                        "title": "Correction",
                        "description": one.correction,
                    }
                ]
            yield item, risk

    def _entry(
        self,
        kind: str,
        one: Any,
        description: str,
        statement: str,
        *,
        props: Sequence[Document],
        deadline: str | None = None,
        status: str = "open",
    ) -> tuple[Document, Document]:
        """An item, and the risk that has its deadline, because items have none."""
        identity = (kind, self.assessed.identity[0], one.id)
        risk_uuid = uuid_of("risk", *identity)
        title = line(f"{one.identifier or ''} {one.name}") or "untitled"
        known = [prop("kind", kind), prop("id", line(one.id)), *props]
        item = {
            "uuid": uuid_of("poam-item", *identity),
            "title": title,
            "description": description,
            "props": known,
            "related-risks": [{"risk-uuid": risk_uuid}],
        }
        risk = {
            "uuid": risk_uuid,
            "title": title,
            "description": description,
            "statement": statement,
            "status": status,
            "deadline": deadline,
        }
        return item, without_empty(risk)


def read_poam(transaction: Transaction, assessed: Assessed) -> Poam:
    """What is open in a framework of which was read what is assessed, in two statements."""
    organization_id, framework_id = assessed.identity
    conflicts = read_conflicts(transaction, organization_id, framework_id)
    if assessed.as_of is not None:
        return Poam(assessed, conflicts, [])
    key = {"organization": organization_id, "framework": framework_id}
    return Poam(assessed, conflicts, transaction.rows(_FINDINGS, key))


def _statuses(one: Any) -> list[Document]:
    return [
        prop("coverage-status", one.assessed or NOT_ASSESSED),
        prop("effective-coverage-status", one.effective),
    ]


def _finding(one: Any, control: str) -> Document:
    return {
        "uuid": uuid_of("finding", one.id),
        "title": line(one.name) or "untitled",
        "description": one.findings or line(one.name) or "untitled",
        "target": {"type": "objective-id", "target-id": control, "status": {"state": "not-satisfied"}},
    }


def _nothing(organization_id: str, framework_id: str) -> Document:
    """The item of a plan in which nothing is open: OSCAL requires one."""
    return {
        "uuid": uuid_of("poam-item", "nothing", organization_id, framework_id),
        "title": "Nothing is open",
        "description": "There are no gaps, conflicts or open findings. OSCAL requires an item nevertheless.",
        "props": [prop("kind", "nothing")],
    }


_BESIDE = {"MATCHES": "what matches say", "BELOW": "the assessments below it"}
_NO_FINDINGS = left_out("findings", "What was found is not known of the past.")

_FINDING = Finding.sql()
_FINDINGS = (
    select(
        _FINDING.c.id,
        _FINDING.c.identifier,
        _FINDING.c.name,
        _FINDING.c.type,
        _FINDING.c.status,
        _FINDING.c.deadline,
        _FINDING.c.findings,
        _FINDING.c.causes,
        _FINDING.c.correction,
        _FINDING.c.control_id,
        _FINDING.c.updated_at,
    )
    .join(Control, Control.id == _FINDING.c.control_id)
    .where(
        _FINDING.c.organization_id == ORGANIZATION,
        _FINDING.c.archived_at.is_(None),
        Control.framework_id == FRAMEWORK,
        _FINDING.c.type != _CONFORMITY,
        or_(_FINDING.c.status.is_(None), _FINDING.c.status.not_in(_FINDING.c.deadline.info["due"].at)),
    )
    .order_by(Control.position, Control.id, _FINDING.c.id)
)
