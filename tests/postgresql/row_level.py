"""What the tests of row-level security share: the service under a login of its own, and an administrator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple
from uuid import uuid4

import pytest

from normata.core.db.transaction import TenantScope
from tests.core.db.sessions import Service, Session, as_role, session
from tests.postgres import Server
from tests.world import ALPHA, BETA

IN_ALPHA, IN_BETA = TenantScope((ALPHA,), (ALPHA,)), TenantScope((BETA,), (BETA,))


class Login(NamedTuple):
    """Somebody whom a URL names."""

    name: str
    url: str


@pytest.fixture
def login(postgres: Server, postgres_url: str) -> Iterator[Login]:
    """One that may do what the service may, and nothing else: as the docs have it."""
    name, password = f"normata_login_{uuid4().hex[:12]}", "member-of-service"
    postgres.run(f"CREATE ROLE {name} LOGIN PASSWORD '{password}' IN ROLE normata_service")
    yield Login(name, as_role(postgres_url, name, password))
    postgres.run(f"DROP ROLE {name}")


@pytest.fixture
def admin(postgres_url: str) -> Iterator[Session]:
    """A session that sees everything; both organizations have what the world has not: an audit event and a key."""
    with session(postgres_url) as everything:
        for organization in (ALPHA, BETA):
            everything.run(
                "INSERT INTO audit_event (id, organization_id, at, action, entity_type, entity_id, user_id, token_id,"
                f" request_id) VALUES ('event-{organization}', '{organization}', now(), 'restore', 'Label', 'x', 'x',"
                " 'x', 'x')",
                "INSERT INTO idempotency_key (user_id, key, organization_id, method, path, fingerprint, status,"
                f" headers, body, created_at) VALUES ('x', 'key-{organization}', '{organization}', 'POST', '/', 'x',"
                " 200, '{}', 'x', now())",
            )
            everything.run(
                f"INSERT INTO event_leaf VALUES ('{organization}', 0, 'event-{organization}', 'x')",
                f"INSERT INTO event_checkpoint VALUES ('{organization}', 1, 'x', 'x', now())",
                "INSERT INTO reminder (organization_id, kind, record_id, what, due_at, which, reminded_at) VALUES"
                f" ('{organization}', 'tasks', 'x', 'deadline', now(), 'soon', now())",
                "INSERT INTO outgoing_mail (id, organization_id, user_id, due_at, attempts) VALUES"
                f" ('{organization}', '{organization}', 'user-owner', now(), 0)",
                "INSERT INTO archive_entry (organization_id, kind, record_id, archive_id, archived_at) VALUES"
                f" ('{organization}', 'tasks', 'x', 'x', now())",
                "INSERT INTO invitation (id, organization_id, email, email_folded, role, digest, created_at,"
                f" expires_at) VALUES ('{organization}', '{organization}', 'x', 'x', 'viewer', '{organization}',"
                " now(), now())",
                f"INSERT INTO mapping_document VALUES ('{organization}', '{organization}', 'x', 'x', NULL, now(),"
                " now())",
                "INSERT INTO set_aside_match (id, organization_id, match_id, justification, created_at, updated_at)"
                f" VALUES ('{organization}', '{organization}', 'star.A.4->moon.A.4', 'x', now(), now())",
                "INSERT INTO baseline (id, framework_id, identifier, slug, name, position, created_at, updated_at,"
                f" organization_id) VALUES ('{organization}', 'fw-sun', 'x', 'x', 'x', 0, now(), now(),"
                f" '{organization}')",
                "INSERT INTO baseline_control (id, baseline_id, control_id, organization_id) VALUES"
                f" ('{organization}', '{organization}', 'sun.A.1', '{organization}')",
                "INSERT INTO source_document (id, framework_id, baseline_id, media_type, sha256, size, content,"
                f" created_at, updated_at, organization_id) VALUES ('{organization}', 'fw-sun', '{organization}', 'x',"
                f" 'x', 1, 'x', now(), now(), '{organization}')",
                "INSERT INTO control_wording (id, control_id, identifier, name, replaced_at, is_editorial,"
                f" organization_id) VALUES ('{organization}', 'sun.A.1', 'x', 'x', now(), false, '{organization}')",
                f"INSERT INTO upgrade_change VALUES ('{organization}', 'sun.A.1', 'FOLLOWS', NULL, 'FULL', now())",
            )
        yield everything


@pytest.fixture
def service(login: Login, admin: Session) -> Iterator[Service]:
    """The service, with one connection for everything."""
    del admin  # what it adds must be there
    with closing(Service(login.url)) as acting:
        yield acting


SECRET = {
    ("password", "hash"),
    ("passkey", "credential"),
    ("external_identity", "subject"),
    *((table, "digest") for table in ("access_token", "calendar_address", "session", "sign_in_link")),
    ("invitation", "digest"),
    ("vendor_link", "digest"),
}

# What an organization takes back is gone, and the event tells what it was. Records are archived.
# Keys have served their time after a day, attempts to sign in after ten minutes, their counts after one. Jobs are done,
# a match that was set aside may count again, and views and files may go. The job that forgets removes what is over.
DELETED = {
    *("job", "set_aside_match", "saved_view", "file", "comment", "policy_version", "vendor_answer"),
    *("entitlement_review_item", "questionnaire", "vendor_link", "external_id"),
    *("provisioned_person", "provisioned_group", "provisioned_group_member"),
    *("webhook", "webhook_delivery"),
    *("unsealed_event", "control_coverage", "control_match", "framework_adoption", "effective_coverage"),
    *("idempotency_key", "sign_in_attempt", "sign_in_count", "passkey", "external_identity", "calendar_address"),
    *("notification", "outgoing_mail", "session", "access_token", "sign_in_link", "invitation"),
}
