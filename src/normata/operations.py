"""All operations, and the rights in the database that follow from them."""

from __future__ import annotations

from normata.adoption import operations as adoption
from normata.audits import operations as audits
from normata.catalogs import operations as imports
from normata.comments import operations as comments
from normata.console.writes import SIGN_IN_LOOKUPS, SIGN_IN_WRITES
from normata.core.changes.idempotency import KEY_WRITES, OLDEST_KEYS
from normata.core.changes.jobs import JOB_WRITES
from normata.core.changes.unit_of_work import all_writes, update_of
from normata.core.db.security import Security
from normata.core.http.operation import ChangeOperation, Operation
from normata.coverage import assessment_operations
from normata.coverage import control_operations as controls
from normata.entitlements import operations as entitlements
from normata.events import log_operations, record_undo, undo
from normata.events import operations as events
from normata.events.sealing import SEALING_WRITES
from normata.evidence import explanation_operations as explanation
from normata.external_ids import operations as external_ids
from normata.files import operations as files
from normata.findings import operations as findings
from normata.frameworks import operations as frameworks
from normata.history import operations as history
from normata.history.reading import of_then
from normata.identity.calendar import CALENDAR_LOOKUP
from normata.identity.invitations import operations as invitations
from normata.identity.invitations.invitations import ACCEPTING_WRITES, INVITATION_LOOKUP, INVITATIONS_OF_ADDRESS
from normata.identity.me import calendar_operations
from normata.identity.me import operations as me
from normata.identity.members import operations as members
from normata.identity.model import AccessToken, CalendarAddress
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS
from normata.identity.organizations import operations as organizations
from normata.identity.provisioning.people import ALONE_LOOKUP
from normata.identity.service_accounts import operations as service_accounts
from normata.identity.sessions import operations as sessions
from normata.identity.sign_in_model import Session
from normata.identity.tokens import operations as tokens
from normata.identity.tokens.lookup import TOKEN_LOOKUP
from normata.incidents import operations as incidents
from normata.links import operations as links
from normata.names import operations as names
from normata.notifications import operations as notifications
from normata.notifications.outbox import MAILING_WRITES
from normata.oscal import operations as oscal
from normata.own_frameworks import match_operations as own_matches
from normata.own_frameworks import operations as own_frameworks
from normata.policies import acknowledgement_operations as acknowledgements
from normata.policies import document_operations as documents
from normata.policies import operations as policies
from normata.policies import template_operations as templates
from normata.records import finalizing_operation as finalizing
from normata.records import operations as records
from normata.records.archive import operations as archive
from normata.records.batch import operations as batch
from normata.records.due import operations as due
from normata.records.imports import operations as register_imports
from normata.records.many import operations as many
from normata.records.responsibilities import operations as responsibilities
from normata.records.search import operations as every_kind
from normata.recurrences import operations as recurrences
from normata.reports import operations as reports
from normata.retention.forgetting import FORGETTING_WRITES, NEXT_USERS
from normata.risks import operations as risks
from normata.risks import review_operations as risk_reviews
from normata.scim.endpoint import PROVISIONING_WRITES
from normata.soa_versions import operations as soa_versions
from normata.tables import Table
from normata.vendors import link_operations as vendor_links
from normata.vendors import operations as vendors
from normata.vendors import questionnaire_operations as questionnaires
from normata.views import operations as views
from normata.webhooks import operations as webhooks
from normata.webhooks.deliveries import DISABLING_WRITES
from normata.wiring import SUBSCRIBERS, job_types

_DECLARED: tuple[Operation, ...] = (
    *frameworks.OPERATIONS,
    *controls.OPERATIONS,
    *own_frameworks.OPERATIONS,
    *imports.OPERATIONS,
    *adoption.OPERATIONS,
    *own_matches.OPERATIONS,
    *assessment_operations.OPERATIONS,
    undo.OPERATION,
    *explanation.OPERATIONS,
    *reports.OPERATIONS,
    *oscal.OPERATIONS,
    *history.OPERATIONS,
    *risks.OPERATIONS,
    *policies.OPERATIONS,
    *acknowledgements.OPERATIONS,
    *templates.OPERATIONS,
    *documents.OPERATIONS,
    *audits.OPERATIONS,
    *findings.OPERATIONS,
    *risk_reviews.OPERATIONS,
    *recurrences.OPERATIONS,
    *entitlements.OPERATIONS,
    *incidents.OPERATIONS,
    finalizing.OPERATION,
    *vendors.OPERATIONS,
    *questionnaires.OPERATIONS,
    *vendor_links.OPERATIONS,
    *soa_versions.OPERATIONS,
    *notifications.OPERATIONS,
    *due.OPERATIONS,
    *events.OPERATIONS,
    *log_operations.OPERATIONS,
    *records.OPERATIONS,
    *batch.OPERATIONS,
    *register_imports.OPERATIONS,
    *every_kind.OPERATIONS,
    *archive.OPERATIONS,
    many.OPERATION,
    record_undo.OPERATION,
    *links.OPERATIONS,
    *external_ids.OPERATIONS,
    *comments.OPERATIONS,
    *names.OPERATIONS,
    *files.OPERATIONS,
    *views.OPERATIONS,
    *tokens.OPERATIONS,
    *me.OPERATIONS,
    *calendar_operations.OPERATIONS,
    *sessions.OPERATIONS,
    *organizations.OPERATIONS,
    *members.OPERATIONS,
    *responsibilities.OPERATIONS,
    *invitations.OPERATIONS,
    *service_accounts.OPERATIONS,
    *webhooks.OPERATIONS,
)
# What coverage follows from is known for any moment of the past.
OPERATIONS: tuple[Operation, ...] = tuple(map(of_then, _DECLARED))

SECURITY = Security(
    writes=all_writes(
        [
            *(write for one in OPERATIONS if isinstance(one, ChangeOperation) for write in one.writes),
            # Written outside of operations.
            update_of(AccessToken, "last_used_at"),
            update_of(CalendarAddress, "last_used_at"),
            update_of(Session, "last_used_at"),
            *SEALING_WRITES,
            *JOB_WRITES,
            *(write for one in job_types() for write in one.writes),
            *MAILING_WRITES,
            *DISABLING_WRITES,
            *FORGETTING_WRITES,
            *SIGN_IN_WRITES,
            *KEY_WRITES,  # by every request with an idempotency key, see core/http/change_endpoint.py
            *ACCEPTING_WRITES,  # by the pages for signing in
            *PROVISIONING_WRITES,
        ],
        SUBSCRIBERS,
    ),
    lookups=(
        TOKEN_LOOKUP,
        CALENDAR_LOOKUP,
        OLDEST_KEYS,
        NEXT_ORGANIZATIONS,
        NEXT_USERS,
        INVITATION_LOOKUP,
        INVITATIONS_OF_ADDRESS,
        ALONE_LOOKUP,
        *SIGN_IN_LOOKUPS,
    ),
    partly_readable={
        str(mapper.class_.__tablename__): mapper.class_.readable
        for mapper in Table.registry.mappers
        if mapper.class_.readable is not None
    },
)
