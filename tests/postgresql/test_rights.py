"""The rights that the service has in PostgreSQL: exactly those that it needs."""

from __future__ import annotations

from normata.records.base import Restorable
from normata.tables import Table
from tests.core.db.sessions import Session
from tests.postgresql.row_level import DELETED, SECRET

FIXED_OF_STATEMENTS = ("organization_id", "control_id", "created_at")
FIXED_OF_POLICY_VERSIONS = ("id", "organization_id", "policy_id", "is_imported", "created_at", "erased_at")
SEALING = {"unsealed_event", "event_leaf", "event_checkpoint"}


def rights(admin: Session, privilege: str) -> set[tuple[str, str]]:
    """The columns for which the service has a privilege."""
    found = admin.rows(
        "SELECT c.relname::text, a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " WHERE c.relkind IN ('r', 'p', 'v', 'm') AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0"
        " AND NOT a.attisdropped AND has_column_privilege('normata_service', c.oid, a.attnum, $1)",
        privilege,
    )
    return {(table, column) for table, column in found}


def columns(*names: str) -> set[tuple[str, str]]:
    """All columns of these tables."""
    return {(name, column.name) for name in names for column in Table.metadata.tables[name].c}


def test_the_service_has_exactly_the_rights_that_it_needs(admin: Session) -> None:
    """Written down here, and not taken from the declarations: that a right is new must be somebody's intention."""
    assert rights(admin, "SELECT") == {
        *columns(*(table.name for table in Table.metadata.sorted_tables)) - SECRET,
        ("alembic_version", "version_num"),
    }
    followed = {"audit_event", "notification", "reminder", "list_revision", "effective_coverage", *SEALING}
    followed |= {"control_evidence", "outgoing_mail"}
    own = {"framework", "control", "control_match", "control_coverage", "framework_adoption", "set_aside_match"}
    # Of mappings that an operator uploads: centralized rows, while the transaction may change centralized catalogs.
    own |= {"saved_view", "mapping_document", "baseline", "baseline_control", "source_document"}
    records = {kind.sql().name for kind in Restorable.kinds}
    # Jobs are of no tenant: whoever runs them looks for those of all. They say whose they are, of which type, and when.
    noted = {"link", "comment", "file", "archive_entry", "short_id_counter", "idempotency_key", "job"}
    noted |= {"soa_version", "policy_version", "acknowledgement", "risk_review_outcome"}
    noted |= {"questionnaire", "vendor_answer", "vendor_link", "recurrence", "checklist_row"}
    noted |= {"entitlement_review_item", "external_id", "webhook", "webhook_delivery"}
    people = {"user_account", "membership", "organization", "invitation", "access_token", "session"}
    # Links to sign in with are also made for whoever has forgotten their password, by a transaction of that user.
    people |= {"password", "passkey", "external_identity", "sign_in_attempt", "sign_in_count", "sign_in_link"}
    people |= {"calendar_address", "provisioned_person", "provisioned_group", "provisioned_group_member"}
    assert rights(admin, "INSERT") == columns("control_wording", *followed, *own, *records, *noted, *people)
    fixed = {(name, "id") for name in (*own, *records)} | {(name, "organization_id") for name in records}
    fixed |= {("control_coverage", name) for name in FIXED_OF_STATEMENTS}
    fixed |= {("framework", "organization_id"), ("control", "framework_id")}
    fixed |= {(name, "organization_id") for name in ("set_aside_match", "mapping_document", "saved_view")}
    fixed |= {("baseline", "framework_id"), *(("baseline_control", name) for name in ("baseline_id", "control_id"))}
    fixed |= {("source_document", name) for name in ("framework_id", "baseline_id")}
    assert rights(admin, "UPDATE") == {
        *(("access_token", name) for name in ("last_used_at", "revoked_at")),
        *(("user_account", name) for name in ("name", "removed_at", "time_zone", "date_format", "theme")),
        *(("user_account", name) for name in ("mail", "mail_by_type", "refused_email")),
        *(("membership", name) for name in ("role", "removed_at", "expires_at")),
        *(
            ("organization", name)
            for name in (
                "name",
                "removed_at",
                "stale_assessments",
                "scope",
                "risk_levels",
                "mail",
                "verifies_findings",
                "keep_replaced_files_days",
            )
        ),
        *(("acknowledgement", "reminded_at"), ("acknowledgement", "acknowledged_at")),
        ("organization", "allows_self_approval"),
        *(columns("policy_version") - {("policy_version", name) for name in FIXED_OF_POLICY_VERSIONS}),
        *(("invitation", name) for name in ("accepted_at", "revoked_at")),
        *(("session", name) for name in ("ended_at", "last_used_at")),
        ("calendar_address", "last_used_at"),
        *(("provisioned_group", name) for name in ("name", "external_id", "changed_at")),
        *(
            ("provisioned_person", name)
            for name in ("user_name", "user_name_folded", "external_id", "details", "changed_at")
        ),
        *(("password", name) for name in ("hash", "changed_at")),
        *(("passkey", name) for name in ("sign_count", "last_used_at")),
        *((table, "used_at") for table in ("sign_in_link", "sign_in_attempt")),
        *(("sign_in_count", name) for name in ("count", "expires_at")),
        *(("external_identity", "last_used_at"), ("framework_adoption", "baseline_id")),
        *(("soa_version", name) for name in ("state", "approved_at", "superseded_at")),
        ("control_wording", "stale_since"),
        *(("file", name) for name in ("attached_at", "detached_at", "erased_at")),
        *(("list_revision", "revision"), ("notification", "read_at"), ("link", "note"), ("link", "removed_at")),
        *(("comment", name) for name in ("text", "updated_at")),
        *(("effective_coverage", name) for name in ("status", "is_indirect", "own", "rank", "applies", "conflict")),
        *(("control_evidence", name) for name in ("pieces", "ends_at")),
        *(("outgoing_mail", name) for name in ("message", "due_at", "attempts", "ended_at", "outcome")),
        # An outcome may be recorded again while the review runs, of the same risk.
        *columns("risk_review_outcome")
        - {("risk_review_outcome", name) for name in ("id", "organization_id", "risk_review_id", "risk_id")},
        *(("questionnaire", name) for name in ("name", "parts", "updated_at")),
        *(("vendor_answer", name) for name in ("value", "remark", "answered_at", "answered_by_id", "is_by_link")),
        *(("recurrence", name) for name in ("frequency", "day", "next_id", "made_at")),
        ("vendor_link", "revoked_at"),
        *columns("webhook") - {("webhook", name) for name in ("id", "organization_id", "created_at")},
        *columns("webhook_delivery") - {("webhook_delivery", name) for name in ("webhook_id", "owner")},
        *(("checklist_row", name) for name in ("status", "note", "checked_at", "checked_by_id", "finding_ids")),
        *(
            ("entitlement_review_item", name)
            for name in ("decision", "change", "decided_at", "decided_by_id", "task_id")
        ),
        *(("job", name) for name in ("due_at", "attempts", "claim", "failure")),
        *(("archive_entry", name) for name in ("archive_id", "archived_at", "user_id", "user_name", "reason")),
        *(("short_id_counter", name) for name in ("kind", "last")),
        *(columns(*own - {"framework_adoption"}, *records) - fixed),
    }
    assert rights(admin, "REFERENCES") == set()
    others = admin.rows(
        "SELECT c.relname::text, p.privilege FROM pg_class c, unnest(ARRAY['DELETE', 'TRUNCATE', 'TRIGGER'])"
        " AS p (privilege) WHERE c.relkind IN ('r', 'p', 'v', 'm') AND c.relnamespace = 'public'::regnamespace"
        " AND has_table_privilege('normata_service', c.oid, p.privilege)"
    )
    assert {(table, privilege) for table, privilege in others} == {(table, "DELETE") for table in DELETED}
