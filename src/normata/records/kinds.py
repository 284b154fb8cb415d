"""The kinds of records, one class each, but for some in `assurance`. Enums follow the standards in docstrings."""

from __future__ import annotations

from sqlalchemy.orm import Mapped

from normata.core.schema.fields import (
    Count,
    Flag,
    Identifier,
    Json,
    Name,
    Number,
    Scale,
    ShortId,
    ShortText,
    Slug,
    Text,
    Timestamp,
    Token,
    VisibleEmail,
    WebAddress,
)
from normata.core.schema.table import defaults_to, due, known, may_name, names_person, refers_to, set_by, written_as
from normata.entitlements.rules import finished_by_step
from normata.errors import WrongState
from normata.policies.rules import guard_policy
from normata.records.base import Maintained, Restorable
from normata.records.breaches import follow_detection
from normata.records.closing import end_verification, guard_finding
from normata.records.finals import end_finalization, guard_record
from normata.vendors.rules import REVIEW


class Task(Maintained):
    """Something that somebody must do by a deadline, once or repeatedly."""

    __tablename__ = "task"
    path = "tasks"
    topic = "TASKS"
    responsible = "assignee_member_id"

    slug: Mapped[Slug]
    short_id: Mapped[ShortId]
    title: Mapped[Name]
    description: Mapped[Text | None]
    instructions: Mapped[Text | None]
    category: Mapped[ShortText | None]
    category_order: Mapped[Count | None]
    order: Mapped[Count]
    type: Mapped[Token] = known(
        "POLICY", "CONTROL", "EVIDENCE", "RISK", "ASSET", "VENDOR", "AUDIT", "INCIDENT", "REVIEW", "TRAINING",
        "OTHER", default="OTHER",
    )  # fmt: skip
    status: Mapped[Token] = known("TODO", "IN_PROGRESS", "BLOCKED", "IN_REVIEW", "DONE", "CANCELLED")
    priority: Mapped[Token] = known("URGENT", "HIGH", "MEDIUM", "LOW", default="MEDIUM")
    deadline: Mapped[Timestamp | None] = due(at=("DONE", "CANCELLED"))
    frequency: Mapped[ShortText | None]
    assignee_member_id: Mapped[Identifier | None] = refers_to("membership")
    assignee_business_role_id: Mapped[Identifier | None]
    control_coverage_id: Mapped[Identifier | None] = refers_to("control_coverage")
    policy_id: Mapped[Identifier | None] = refers_to("policy")
    evidence_id: Mapped[Identifier | None] = may_name("evidence")
    risk_id: Mapped[Identifier | None] = may_name("risk")
    asset_id: Mapped[Identifier | None] = refers_to("asset")
    vendor_id: Mapped[Identifier | None] = refers_to("vendor")
    audit_id: Mapped[Identifier | None] = refers_to("audit")
    treatment_action_id: Mapped[Identifier | None]
    incident_id: Mapped[Identifier | None] = refers_to("incident")
    risk_review_id: Mapped[Identifier | None] = refers_to("risk_review")
    asset_review_id: Mapped[Identifier | None]
    entitlement_review_id: Mapped[Identifier | None] = refers_to("entitlement_review")
    vendor_review_id: Mapped[Identifier | None]
    training_id: Mapped[Identifier | None]
    process_id: Mapped[Identifier | None]
    device_id: Mapped[Identifier | None]
    record_id: Mapped[Identifier | None] = refers_to("record")
    task_template_id: Mapped[Identifier | None]


class Finding(Maintained):
    """Something that an audit found, graded as in ISO 19011 and ISO/IEC 17021-1, with its cause and its correction."""

    __tablename__ = "finding"
    path = "auditItems"
    topic = "FINDINGS"
    guard = guard_finding
    refusals = (WrongState,)
    follow = staticmethod(end_verification)

    slug: Mapped[Slug]
    name: Mapped[Name]
    identifier: Mapped[ShortText | None]
    type: Mapped[Token] = known(
        "MAJOR_NONCONFORMITY", "MINOR_NONCONFORMITY", "OBSERVATION", "OPPORTUNITY_FOR_IMPROVEMENT", "CONFORMITY",
        default="OBSERVATION",
    )  # fmt: skip
    status: Mapped[Token] = known(
        "OPEN", "IN_PROGRESS", "RESOLVED", "VERIFIED", "CLOSED", steps={"VERIFIED": "/verify/"}
    )
    source: Mapped[Token] = known(
        "AUDIT", "INSPECTION", "INCIDENT", "PENETRATION_TEST", "MANAGEMENT_REVIEW", "MONITORING", "RISK_ASSESSMENT",
        "COMPLAINT", "OTHER",
    )  # fmt: skip
    deadline: Mapped[Timestamp | None] = due(at=("RESOLVED", "VERIFIED", "CLOSED"))
    findings: Mapped[Text | None]
    causes: Mapped[Text | None]
    correction: Mapped[Text | None]
    measures: Mapped[Text | None]
    notes: Mapped[Text | None]
    verified_at: Mapped[Timestamp | None] = set_by("/verify/")
    verified_by_id: Mapped[Identifier | None] = set_by("/verify/", may_name="membership")
    verified_by_name: Mapped[ShortText | None] = set_by("/verify/", names_person=True)
    verification_note: Mapped[Text | None] = set_by("/verify/")
    control_id: Mapped[Identifier | None] = refers_to("control")
    audit_id: Mapped[Identifier | None] = refers_to("audit")


class Asset(Maintained):
    """Something of value to the organization, rated for confidentiality, integrity and availability."""

    __tablename__ = "asset"
    path = "assets"
    topic = "ASSETS"
    responsible = "owner_id"

    slug: Mapped[Slug]
    short_id: Mapped[ShortId]
    name: Mapped[Name]
    description: Mapped[Text | None]
    status: Mapped[Token] = known("ACTIVE", "PLANNED", "INACTIVE", "RETIRED", "DISPOSED")
    owner_id: Mapped[Identifier | None] = refers_to("membership")
    parent_id: Mapped[Identifier | None] = refers_to("asset")
    asset_class_id: Mapped[Identifier | None]
    location_id: Mapped[Identifier | None]
    retention_period_id: Mapped[Identifier | None]
    last_review_id: Mapped[Identifier | None]
    confidentiality_rating: Mapped[Number | None]
    integrity_rating: Mapped[Number | None]
    availability_rating: Mapped[Number | None]


class Policy(Maintained):
    """A rule that the organization sets for itself, with its approval and review (ISO/IEC 27001, clause 7.5)."""

    __tablename__ = "policy"
    path = "policies"
    topic = "POLICIES"
    responsible = "approver_id"
    refusals = (WrongState,)
    guard = guard_policy

    slug: Mapped[Slug]
    title: Mapped[Name]
    order: Mapped[Count]
    status: Mapped[Token] = set_by("/submit/", known=("DRAFT", "IN_REVIEW", "APPROVED", "PUBLISHED", "RETIRED"))
    content: Mapped[Json | None]
    category_id: Mapped[Identifier | None] = may_name("record_category")
    approver_id: Mapped[Identifier | None] = refers_to("membership")
    current_version: Mapped[ShortText | None] = set_by("/approve/")
    last_approved_at: Mapped[Timestamp | None] = set_by("/approve/")
    last_approved_by: Mapped[ShortText | None] = set_by("/approve/", names_person=True)
    review_schedule_id: Mapped[Identifier | None]
    last_reviewed_at: Mapped[Timestamp | None]
    next_review_at: Mapped[Timestamp | None] = due(at=("RETIRED",))


class RecordCategory(Maintained):
    """A category of records: who owns it, and how often new records are due."""

    __tablename__ = "record_category"
    path = "record-categories"
    topic = "RECORDS"
    responsible = "owner_id"

    slug: Mapped[Slug]
    name: Mapped[Name]
    description: Mapped[Text | None]
    color: Mapped[ShortText | None]
    order: Mapped[Count]
    allow_portal_submission: Mapped[Flag] = defaults_to(False)
    owner_id: Mapped[Identifier | None] = refers_to("membership")
    default_template_id: Mapped[Identifier | None]
    cadence_schedule_id: Mapped[Identifier | None]


class EntitlementReview(Maintained):
    """A review of who may access what: when somebody joins, changes role or leaves, or at regular intervals."""

    __tablename__ = "entitlement_review"
    path = "entitlement-reviews"
    topic = "REVIEWS"
    responsible = "coordinator_id"
    held = finished_by_step

    short_id: Mapped[ShortId]
    title: Mapped[Name]
    description: Mapped[Text | None]
    type: Mapped[Token] = known("ONBOARDING", "ROLE_CHANGE", "OFFBOARDING", "PERIODIC", default="PERIODIC")
    deadline: Mapped[Timestamp | None] = due(once=("finished_at",))
    finished_at: Mapped[Timestamp | None]
    coordinator_id: Mapped[Identifier | None] = refers_to("membership")
    employee_id: Mapped[Identifier | None] = may_name("membership")


class Audit(Maintained):
    """An audit against a framework, internal or by a certification body (ISO 19011)."""

    __tablename__ = "audit"
    path = "audits"
    topic = "AUDITS"

    slug: Mapped[Slug]
    name: Mapped[Name]
    type: Mapped[Token] = known(
        "CERTIFICATION", "SURVEILLANCE", "RECERTIFICATION", "INTERNAL", "SUPPLIER", "CUSTOMER", "REGULATORY",
        default="INTERNAL",
    )  # fmt: skip
    started: Mapped[Timestamp | None] = due(ends_by_passing=True)
    ended: Mapped[Timestamp | None]
    auditor: Mapped[ShortText | None] = names_person()
    notes: Mapped[Text | None]
    framework_id: Mapped[Identifier | None] = refers_to("framework")


class RiskReview(Restorable):
    """A periodic review of risks (ISO 31000, monitoring and review). It does not say when it was last changed."""

    __tablename__ = "risk_review"
    path = "risk-reviews"
    topic = "RISKS"
    responsible = "coordinator_id"

    short_id: Mapped[ShortId]
    title: Mapped[Name]
    notes: Mapped[Text | None]
    priority_filter: Mapped[Token] = known("ALL", "CRITICAL", "HIGH", "MEDIUM", "LOW")
    deadline: Mapped[Timestamp | None] = due(once=("finished_at",))
    finished_at: Mapped[Timestamp | None] = set_by("/finish/")
    coordinator_id: Mapped[Identifier | None] = refers_to("membership")


class Acronym(Maintained):
    """An abbreviation and what it stands for."""

    __tablename__ = "acronym"
    path = "acronyms"
    topic = "VOCABULARY"

    slug: Mapped[Slug]
    acronym: Mapped[Name]
    acronym_plural: Mapped[ShortText | None]
    extended: Mapped[ShortText | None]
    extended_plural: Mapped[ShortText | None]
    definition_id: Mapped[Identifier | None]


class Label(Maintained):
    """A colored tag that groups records of one scope."""

    __tablename__ = "label"
    path = "labels"
    topic = "VOCABULARY"

    slug: Mapped[Slug]
    name: Mapped[Name]
    scope: Mapped[ShortText | None]
    color: Mapped[ShortText | None]


class IntegrationCheck(Maintained):
    """A test of a connected system, such as whether all its users sign in with more than one factor."""

    __tablename__ = "integration_check"
    path = "integration-checks"
    topic = "INTEGRATIONS"
    answers_null = True

    slug: Mapped[Slug]
    name: Mapped[Name]
    provider: Mapped[ShortText | None]
    status: Mapped[Token] = known("UNKNOWN", "PASSED", "WARNING", "FAILED", "ERROR", "DISABLED")


class Incident(Maintained):
    """An information security incident, its handling, and the notices that the GDPR requires (articles 33 and 34)."""

    __tablename__ = "incident"
    path = "incidents"
    topic = "INCIDENTS"
    responsible = "owner_id"
    has_times = True
    follow = staticmethod(follow_detection)

    slug: Mapped[Slug]
    short_id: Mapped[ShortId]
    name: Mapped[Name]
    description: Mapped[Text | None]
    status: Mapped[Token] = known("OPEN", "TRIAGED", "CONTAINED", "ERADICATED", "RECOVERED", "RESOLVED", "CLOSED")
    severity: Mapped[Token] = known("LOW", "MEDIUM", "HIGH", "CRITICAL")
    owner_id: Mapped[Identifier | None] = refers_to("membership")
    reported_by_member_id: Mapped[Identifier | None] = refers_to("membership")
    threat_class_id: Mapped[Identifier | None]
    occurred_at: Mapped[Timestamp | None]
    detected_at: Mapped[Timestamp | None]
    resolved_at: Mapped[Timestamp | None]
    closed_at: Mapped[Timestamp | None]
    root_cause: Mapped[Text | None]
    lessons_learned: Mapped[Text | None]
    is_personal_data_breach: Mapped[Flag] = defaults_to(False)
    notification_deadline: Mapped[Timestamp | None] = due(at=("CLOSED",), once=("authority_notified_at",))
    authority_notified_at: Mapped[Timestamp | None]
    data_subjects_notified_at: Mapped[Timestamp | None]
    notification_notes: Mapped[Text | None]


class Vendor(Maintained):
    """A supplier, its role under the GDPR, and the risk of relying on it before and after treatment (ISO 31000)."""

    __tablename__ = "vendor"
    path = "vendors"
    topic = "VENDORS"
    responsible = "owner_id"

    slug: Mapped[Slug]
    short_id: Mapped[ShortId]
    name: Mapped[Name]
    description: Mapped[Text | None]
    category: Mapped[Token] = known(
        "CLOUD", "SOFTWARE", "HARDWARE", "CONSULTING", "OUTSOURCING", "FACILITIES", "OTHER", default="OTHER"
    )
    relationship: Mapped[Token] = known(
        "PROCESSOR", "SUBPROCESSOR", "CONTROLLER", "JOINT_CONTROLLER", "NONE", default="NONE"
    )
    status: Mapped[Token] = known("ACTIVE", "PROSPECTIVE", "UNDER_REVIEW", "SUSPENDED", "TERMINATED")
    treatment_strategy: Mapped[Token] = known("UNKNOWN", "AVOID", "MITIGATE", "TRANSFER", "ACCEPT")
    website: Mapped[ShortText | None] = written_as(WebAddress)
    contact_name: Mapped[ShortText | None] = names_person()
    contact_email: Mapped[ShortText | None] = written_as(VisibleEmail)
    contract_expiry: Mapped[Timestamp | None] = due(at=("TERMINATED",))
    owner_id: Mapped[Identifier | None] = refers_to("membership")
    location_id: Mapped[Identifier | None]
    assessment_period_id: Mapped[Identifier | None]
    last_assessment_id: Mapped[Identifier | None] = set_by(REVIEW, may_name="vendor_assessment")
    inherent_probability: Mapped[Number | None] = written_as(Scale)
    inherent_impact: Mapped[Number | None] = written_as(Scale)
    residual_probability: Mapped[Number | None] = written_as(Scale)
    residual_impact: Mapped[Number | None] = written_as(Scale)


class Record(Maintained):
    """Evidence that something was done: minutes, a test report, a signed form (ISO/IEC 27001, clause 7.5)."""

    __tablename__ = "record"
    path = "records"
    topic = "RECORDS"
    guard = guard_record
    refusals = (WrongState,)
    follow = staticmethod(end_finalization)
    responsible = "assignee_member_id"

    slug: Mapped[Slug]
    short_id: Mapped[ShortId]
    title: Mapped[Name]
    status: Mapped[Token] = known("DRAFT", "IN_REVIEW", "FINALIZED", "SUPERSEDED", steps={"FINALIZED": "/finalize/"})
    content: Mapped[Json | None]
    category_id: Mapped[Identifier | None] = refers_to("record_category")
    assignee_member_id: Mapped[Identifier | None] = refers_to("membership")
    assignee_business_role_id: Mapped[Identifier | None]
    current_version: Mapped[Count | None]
    due_date: Mapped[Timestamp | None] = due(at=("FINALIZED", "SUPERSEDED"))
    finalized_at: Mapped[Timestamp | None] = set_by("/finalize/")
    finalized_by: Mapped[ShortText | None] = set_by("/finalize/", names_person=True)
    review_schedule_id: Mapped[Identifier | None]
    last_reviewed_at: Mapped[Timestamp | None]
    next_review_at: Mapped[Timestamp | None] = due(at=("SUPERSEDED",))


class VulnerabilityClass(Maintained):
    """A type of weakness that a threat can exploit, such as unpatched software."""

    __tablename__ = "vulnerability_class"
    path = "vulnerability-classes"
    topic = "VOCABULARY"

    slug: Mapped[Slug]
    name: Mapped[Name]
    description: Mapped[Text | None]


class Variable(Maintained):
    """A named value that policies quote, such as the organization's legal name."""

    __tablename__ = "variable"
    path = "variables"
    topic = "VOCABULARY"

    slug: Mapped[Slug]
    name: Mapped[Name]
    value: Mapped[Text | None]
