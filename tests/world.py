"""A small world for tests: two organizations, members of every role, and records of every kind and state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Any

from pydantic.alias_generators import to_camel
from sqlalchemy import Select, insert, select
from sqlalchemy import Table as SqlTable

from normata.bundle import loading
from normata.bundle.arrays import ARRAYS, HISTORY
from normata.core.changes.row_counts import RowCounts
from normata.core.changes.source import FaultyInput, Row
from normata.core.changes.unit_of_work import Actor, Change, UnitOfWork
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.db.types import format_timestamp
from normata.events.recording import RecordEvents
from normata.frameworks.model import ControlCoverage, SetAsideMatch
from normata.identity import operators
from normata.identity.model import AccessToken, CalendarAddress, Invitation
from normata.identity.sign_in_model import Session
from normata.policies.acknowledgement_model import Acknowledgement
from normata.records.assurance import Risk, VendorAssessment
from normata.records.base import Restorable
from normata.records.kinds import Finding, Policy, Task
from normata.tables import Table
from normata.wiring import changes_of
from tests.audits.rows import checklist_row, scope_row
from tests.comments.rows import comment_rows
from tests.entitlements.rows import item_row
from tests.files.rows import file_row
from tests.links.rows import link_row
from tests.notifications.rows import notification_rows
from tests.policies.rows import POLICIES, open_acknowledgements, policy_arrays, policy_values
from tests.recurrences.rows import recurrence_rows
from tests.risks.rows import RATED, outcome_row
from tests.scim.rows import provision
from tests.soa_versions.rows import version_rows
from tests.vendors.rows import ASSESSMENTS, add_links, assessment_values, vendor_arrays
from tests.views.rows import view_row
from tests.webhooks.rows import add_webhooks

ALPHA, BETA = "org-alpha", "org-beta"
ROLES = ("owner", "admin", "editor", "auditor", "viewer")
EARLIER = "2026-01-02T03:04:05.678Z"
YESTERDAY = format_timestamp(datetime.now(UTC) - timedelta(days=1))
ARCHIVED = "2026-02-03T04:05:06.789Z"
DUE = "2026-02-10T16:00:00.000Z"

# One user of each role in alpha, an owner of beta, a user without an organization, and an operator.
USERS = {role: f"{role}@alpha.example" for role in ROLES} | {
    "foreigner": "owner@beta.example",
    "nobody": "nobody@nowhere.example",
    "operator": "operator@nowhere.example",
}

# The states of further records of some kinds.
FURTHER: dict[type[Restorable], list[str]] = {Policy: list(POLICIES), VendorAssessment: list(ASSESSMENTS)}

# The member of each organization who is responsible for its live records, and the one who owns it, and a risk.
RESPONSIBLE = {ALPHA: "member-editor", BETA: "member-foreigner"}
OWNERS = {ALPHA: "member-owner", BETA: "member-foreigner"}  # of the organization, and of a risk


def record_id(kind: type[Restorable], state: str, organization_id: str = ALPHA) -> str:
    """The id of the world's record of a kind: ``state`` is archived, live, taken or namesake."""
    return f"{kind.path}-{state}-{organization_id}"


def bundle() -> dict[str, list[dict[str, Any]]]:
    """The world as a bundle."""
    return {
        "organizations": [
            {"id": ALPHA, "name": "Alpha", "slug": "alpha"},
            {"id": BETA, "name": "Beta", "slug": "beta"},
        ],
        "users": [
            *({"id": f"user-{key}", "email": email, "name": key.title()} for key, email in USERS.items()),
            *(
                {
                    "id": f"robot-{organization_id}",
                    "organizationId": organization_id,
                    "name": f"Robot {organization_id}",
                }
                for organization_id in (ALPHA, BETA)
            ),
        ],
        "memberships": [
            *(
                {"id": f"member-{role}", "organizationId": ALPHA, "userId": f"user-{role}", "role": role}
                for role in ROLES
            ),
            {"id": "member-foreigner", "organizationId": BETA, "userId": "user-foreigner", "role": "owner"},
            *(
                {
                    "id": f"member-robot-{organization_id}",
                    "organizationId": organization_id,
                    "userId": f"robot-{organization_id}",
                    "role": "editor",
                }
                for organization_id in (ALPHA, BETA)
            ),
        ],
        **_catalogs(),
        "savedViews": [view_row(owner, number, RESPONSIBLE[owner]) for owner in (ALPHA, BETA) for number in (1, 2)],
        "soaVersions": [
            *version_rows(ALPHA, "fw-own", "member-owner"),
            *version_rows(BETA, "fw-foreign", RESPONSIBLE[BETA]),
        ],
        "files": [file_row(ALPHA), file_row(BETA)],
        "notifications": notification_rows(),
        **{kind.path: _records(kind) for kind in Restorable.kinds},
        **policy_arrays(RESPONSIBLE),
        **vendor_arrays((ALPHA, BETA)),
        "links": [
            *(link_row(owner, number, RESPONSIBLE[owner]) for owner in (ALPHA, BETA) for number in (1, 2, 3)),
            *(scope_row(owner) for owner in (ALPHA, BETA)),
        ],
        "comments": comment_rows(),
        "recurrences": [*recurrence_rows(ALPHA), *recurrence_rows(BETA)],
        "entitlementReviewItems": [item_row(owner, RESPONSIBLE[owner]) for owner in (ALPHA, BETA)],
        "riskReviewOutcomes": [outcome_row(owner, RESPONSIBLE[owner]) for owner in (ALPHA, BETA)],
        "checklistRows": [checklist_row(owner, RESPONSIBLE[owner]) for owner in (ALPHA, BETA)],
    }


def invitations() -> list[dict[str, Any]]:
    """An invitation to each organization, because bundles contain none."""
    return [
        {
            "id": f"invitation-{organization_id}",
            "organizationId": organization_id,
            "email": f"guest@{organization_id}.example",
            "role": "viewer",
        }
        for organization_id in (ALPHA, BETA)
    ]


def tokens() -> list[dict[str, Any]]:
    """A token of each member, narrowed to the organization. Nobody can use it, because its digest is of no token."""
    members = [(f"token-{role}", f"user-{role}", ALPHA) for role in ROLES]
    members += [("token-foreigner", "user-foreigner", BETA)]
    members += [(f"token-robot-{owner}", f"robot-{owner}", owner) for owner in (ALPHA, BETA)]
    return [
        {"id": token_id, "userId": user_id, "organizationId": organization_id, "name": f"Name of {token_id}"}
        for token_id, user_id, organization_id in members
    ]


def sessions() -> list[dict[str, Any]]:
    """A session of each person, expired too recently to be removed. Nobody can use it: its digest is of no secret."""
    return [{"id": f"session-{key}", "userId": f"user-{key}"} for key in (*ROLES, "foreigner")]


def change_id(organization_id: str) -> str:
    """The id of the change with which an organization assessed `_CHANGED`."""
    return f"{EARLIER}_change-of-{organization_id}"


# A match that both organizations see and have set aside, see `remember`. It has no effect on their coverage.
SET_ASIDE = "star.A.4->moon.A.4"


def disagreement(organization_id: str) -> str:
    """The justification with which an organization has set `SET_ASIDE` aside. No other one may see it."""
    return f"The disagreement of {organization_id}."


_CHANGED = {ALPHA: "say-sun.A.2", BETA: "say-foreign"}  # the assessment with an event

TOKENS = frozenset(row["id"] for row in tokens())
SESSIONS = frozenset(row["id"] for row in sessions())


def furnish(unit: UnitOfWork) -> None:
    """Add what bundles cannot contain: the operator, invitations, tokens, webhooks and more."""
    operators.set_operator(unit, "user-operator", is_operator=True)
    for row in tokens():
        values = {
            "id": row["id"],
            "user_id": row["userId"],
            "organization_id": row["organizationId"],
            "name": row["name"],
            "scope": "read",
            "digest": sha256(row["id"].encode()).hexdigest(),
            "created_at": EARLIER,
        }
        unit.rows(insert(AccessToken).values(values))
        unit.publish(Change("create", AccessToken, row["organizationId"], row["id"], values))
    for row in sessions():
        values = {
            "id": row["id"],
            "user_id": row["userId"],
            "digest": sha256(row["id"].encode()).hexdigest(),
            "means": "link",
            **dict.fromkeys(("created_at", "last_used_at"), EARLIER),
            "expires_at": YESTERDAY,
            "address": "192.0.2.7",
            "user_agent": "A browser",
        }
        unit.rows(insert(Session).values(values))
        unit.publish(Change("create", Session, None, row["id"], values))
        address = {name: values[name] for name in ("user_id", "digest", "created_at")} | {"id": f"calendar-{row['id']}"}
        unit.rows(insert(CalendarAddress).values(address))
        unit.publish(Change("create", CalendarAddress, None, address["id"], address))
    for row in invitations():
        values = {
            "id": row["id"],
            "organization_id": row["organizationId"],
            "email": row["email"],
            "email_folded": row["email"],
            "role": row["role"],
            "digest": sha256(row["id"].encode()).hexdigest(),
            "created_at": EARLIER,
            "expires_at": "2126-01-02T03:04:05.678Z",
        }
        unit.rows(insert(Invitation).values(values))
        unit.publish(Change("create", Invitation, row["organizationId"], row["id"], values))
    add_links(unit, (ALPHA, BETA))
    provision(unit, RESPONSIBLE)
    add_webhooks(unit, (ALPHA, BETA))
    for one in open_acknowledgements(OWNERS):
        unit.rows(insert(Acknowledgement).values(one))
        unit.publish(Change("create", Acknowledgement, one["organization_id"]))


def remember(unit: UnitOfWork) -> None:
    """Add what each organization can undo: an assessment and a task, with their events, and a match set aside."""
    for organization_id, assessment_id in _CHANGED.items():
        actor = Actor(request_id=change_id(organization_id).partition("_")[2])
        known = {"id": assessment_id, "coverage_status": "NONE"}
        change = Change(
            "assess", ControlCoverage, organization_id, assessment_id, known | {"coverage_status": "PARTIAL"}, known
        )
        task_id = record_id(Task, "live", organization_id)
        known = {"id": task_id, "status": "BLOCKED"}
        of_task = Change("update", Task, organization_id, task_id, known | {"status": "TODO"}, known)
        RecordEvents()(unit, [change, of_task], actor, EARLIER)
        aside = {"id": f"aside-{organization_id}", "organization_id": organization_id, "match_id": SET_ASIDE}
        aside |= {"justification": disagreement(organization_id), "created_at": EARLIER, "updated_at": EARLIER}
        unit.rows(insert(SetAsideMatch).values(aside))
        unit.publish(Change("create", SetAsideMatch, organization_id, str(aside["id"]), aside))


def rows(document: dict[str, list[dict[str, Any]]] | None = None) -> list[Row]:
    """A bundle as rows, in memory."""
    document = bundle() if document is None else document
    unknown = document.keys() - {*ARRAYS, HISTORY}
    assert not unknown, f"no arrays of a bundle: {sorted(unknown)}. There are {sorted(ARRAYS)}"
    return [
        Row(array, "world.json", f"/{array}/{index}", values)
        for array, items in document.items()
        for index, values in enumerate(items)
    ]


def load(database: Database, document: dict[str, list[dict[str, Any]]]) -> dict[str, RowCounts]:
    """Load a bundle as `normata load` does: all of it, or nothing and FaultyInput."""
    try:
        return changes_of(database).make_now(lambda unit: loading.load(unit, rows(document)))
    except FaultyInput as error:
        for fault in error.faults[:5]:  # its message only has their number
            error.add_note(str(fault))
        raise


def contents(database: Database) -> dict[str, list[str]]:
    """The rows of all tables, as texts in which 1, 1.0 and true differ."""

    def work(transaction: Transaction) -> dict[str, list[str]]:
        return {
            table.name: sorted(repr(tuple(row)) for row in transaction.rows(_every(table)))
            for table in Table.metadata.sorted_tables
        }

    return database.read_now(work)


@cache
def _every(table: SqlTable) -> Select[Any]:
    return select(*table.c)


def _catalogs() -> dict[str, list[dict[str, Any]]]:
    """Three centralized frameworks (one not adopted, one inactive) and each organization's own one."""
    frameworks: list[dict[str, Any]] = [
        {"id": "fw-sun", "identifier": "SUN-2", "name": "Sun Standard", "version": "2.0", "publishedAt": "2024-05-06"},
        {
            "id": "fw-moon",
            "identifier": "SUN-10",
            "name": "moon standard",
            "version": "10",
            "identifierColor": "#123456",
        },
        {"id": "fw-star", "identifier": "STAR", "name": "Étoile Straße", "description": "Not adopted, 100% _new_."},
        {"id": "fw-old", "identifier": "OLD", "name": "Old Standard", "isActive": False},
        {"id": "fw-own", "identifier": "OWN", "name": "Alpha's own", "organizationId": ALPHA},
        {"id": "fw-foreign", "identifier": "FOREIGN", "name": "Beta's own", "organizationId": BETA},
    ]
    controls: list[dict[str, Any]] = []
    for framework in ("sun", "moon", "star", "own", "foreign"):
        controls.append(
            {"id": f"{framework}.A", "identifier": "A", "name": f"{framework} category", "type": "CATEGORY"}
        )
        controls.extend(
            {
                "id": f"{framework}.A.{number}",
                "parentId": f"{framework}.A",
                "identifier": f"A.{number}",
                "name": f"{framework} control {number}",
                "isMandatory": number % 2 == 0,
                "purpose": "Größe ÉTÉ 50%_off \\o/" if number == 7 else None,
            }
            for number in range(1, 13)
        )
    for control in controls:
        control["frameworkId"] = "fw-" + control["id"].partition(".")[0]
    return {
        "frameworks": frameworks,
        "controls": controls,
        "controlMatches": [
            _match("sun.A.1", "moon.A.1", "FULL"),
            _match("sun.A.2", "moon.A.2", "FULL"),
            _match("sun.A.3", "moon.A.3", "PARTIAL"),
            _match("own.A.1", "moon.A.1", "PARTIAL") | {"organizationId": ALPHA},
            _match("star.A.4", "moon.A.4", "FULL"),
            _match("moon.A.1", "own.A.2", "FULL"),
            _match("foreign.A.1", "star.A.1", "FULL") | {"organizationId": BETA},
        ],
        "frameworkAdoptions": [
            *(
                {"id": f"adopt-{name}", "organizationId": ALPHA, "frameworkId": f"fw-{name}", "adoptedAt": EARLIER}
                for name in ("sun", "moon", "own")
            ),
            {"id": "adopt-foreign", "organizationId": BETA, "frameworkId": "fw-foreign", "adoptedAt": EARLIER},
            {"id": "adopt-beta-star", "organizationId": BETA, "frameworkId": "fw-star", "adoptedAt": EARLIER},
        ],
        "controlCoverages": [
            _statement("sun.A.1", "FULL"),
            _statement("sun.A.2", "PARTIAL", "Two sites are missing.") | {"updatedAt": EARLIER},
            _statement("sun.A.3", "FULL"),
            {"id": "say-foreign", "organizationId": BETA, "controlId": "star.A.4", "coverageStatus": "FULL"}
            | {"updatedAt": EARLIER},
        ],
    }


def _match(source: str, target: str, level: str) -> dict[str, Any]:
    return {"id": f"{source}->{target}", "sourceControlId": source, "targetControlId": target, "matchLevel": level}


def _statement(control: str, status: str, gap: str | None = None) -> dict[str, Any]:
    said = {"coverageStatus": status, "coverageGap": gap}
    return {"id": f"say-{control}", "organizationId": ALPHA, "controlId": control} | said


def _records(kind: type[Restorable]) -> list[dict[str, Any]]:
    """An archived and a live record of each organization.

    Kinds with slugs also have an archived record whose slug a live one, the namesake, has taken.
    """
    states = ["archived", "live"] + (["taken", "namesake"] if "slug" in kind.sql().c else [])
    states += FURTHER.get(kind, [])
    return [
        _record(kind, state, organization_id, number)
        for organization_id in (ALPHA, BETA)
        for number, state in enumerate(states, 1)
    ]


def _record(kind: type[Restorable], state: str, organization_id: str, number: int) -> dict[str, Any]:
    columns = kind.sql().c
    record: dict[str, Any] = {
        "id": record_id(kind, state, organization_id),
        "organizationId": organization_id,
        kind.title_column(): f"{kind.words()} {state}",
        "createdAt": EARLIER,
        "archivedAt": ARCHIVED if state in ("archived", "taken") else None,
    }
    slug = "shared" if state in ("taken", "namesake") else state
    made = {"slug": f"{kind.path}-{slug}", "short_id": number, "updated_at": EARLIER}
    record |= {to_camel(name): value for name, value in made.items() if name in columns}
    if state == "live":  # it is overdue, and a member is responsible for it
        record |= dict.fromkeys([to_camel(column.name) for column in columns if "due" in column.info][:1], DUE)
        if kind.responsible is not None:
            record[to_camel(kind.responsible)] = RESPONSIBLE[organization_id]
    record |= policy_values(state, OWNERS[organization_id])
    record |= assessment_values(state, organization_id) if kind is VendorAssessment else {}
    if kind is Risk and state == "namesake":  # an owner can accept it, and what it claims rests on no control
        record |= RATED | {"ownerId": OWNERS[organization_id]}
    return record | ({"status": "RESOLVED"} if kind is Finding and state == "namesake" else {})  # it can be verified
