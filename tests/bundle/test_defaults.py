"""What a bundle leaves out gets defaults: sensible, unique, and never the same number twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from normata.bundle import loading
from normata.bundle.arrays import ARRAYS
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.core.schema.table import Table, sql_table
from normata.core.schema.text import slugify
from normata.core.schema.wire import as_wire, input_model, wire_names
from normata.frameworks.model import Control, ControlCoverage, Framework, FrameworkAdoption
from normata.identity.model import Membership, Organization, User
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.records.kinds import Label, Policy, RecordCategory, Task, Vendor
from tests import mostly_sqlite, world
from tests.audits.rows import OPTIONAL_OF_ROWS, new_checklist_row
from tests.comments import rows as comments
from tests.databases import change, on_both, tamper
from tests.files.rows import file_row
from tests.links.rows import bare_row
from tests.oscal.rows import OPTIONAL_OF_DOCUMENTS, bare_document
from tests.policies.rows import LATER, minimal_rows
from tests.recurrences import rows as recurrences
from tests.risks.rows import OPTIONAL_OF_REVIEWS, bare_reviews
from tests.soa_versions.rows import version_row
from tests.vendors import rows as vendors
from tests.world import ALPHA, BETA, EARLIER

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

WITH_SHORT_IDS = [kind for kind in Restorable.kinds if "short_id" in kind.sql().c]
WITH_ORDERS = [kind for kind in Restorable.kinds if "order" in kind.sql().c]


def stored(database: Database, table: type[Table], *ids: str) -> list[dict[str, Any]]:
    """Rows as the wire has them, in the order asked for."""
    columns = sql_table(table).c
    statement = select(*columns).where(columns.id.in_(ids))
    rows = database.read_now(lambda transaction: {row.id: as_wire(table, row) for row in transaction.rows(statement)})
    return [rows[row_id] for row_id in ids]


def bare(kind: type[Restorable], row_id: str, title: str = "Title", organization_id: str = ALPHA) -> dict[str, Any]:
    """A record with nothing but what it cannot do without."""
    return {"id": row_id, "organizationId": organization_id, kind.title_column(): title}


MINIMAL: dict[str, dict[str, Any]] = {
    "organizations": {"id": "new", "name": "Gamma"},
    "users": {"id": "new", "email": "new@alpha.example"},
    "memberships": {"id": "new", "organizationId": ALPHA, "userId": "user-nobody"},
    "frameworks": {"id": "new", "name": "New"},
    "controls": {"id": "new", "frameworkId": "fw-sun", "name": "New"},
    "controlMatches": {"id": "new", "sourceControlId": "sun.A.8", "targetControlId": "moon.A.8", "matchLevel": "FULL"},
    "controlWordings": {"id": "new", "controlId": "sun.A.8", "identifier": "A.8", "name": "Old", "replacedAt": EARLIER},
    "baselines": {"id": "new", "frameworkId": "fw-sun", "name": "New"},
    "baselineControls": {"id": "new", "baselineId": "stored", "controlId": "sun.A.8"},
    "mappingDocuments": {"id": "new", "document": "urn:new", "name": "New"},
    "setAsideMatches": {"id": "new", "organizationId": ALPHA, "matchId": "sun.A.1->moon.A.1", "justification": "No."},
    "frameworkAdoptions": {"id": "new", "organizationId": ALPHA, "frameworkId": "fw-star"},
    "controlCoverages": {"id": "new", "organizationId": ALPHA, "controlId": "sun.A.8"},
    "notifications": {"id": "new", "organizationId": ALPHA, "userId": "user-editor"},
    "soaVersions": version_row(ALPHA, "fw-sun", "member-owner") | {"id": "new"},
    **(minimal_rows(ALPHA) | vendors.minimal_rows(ALPHA) | bare_document("new", "fw-sun")),
    "files": {n: v for n, v in file_row(ALPHA).items() if n != "userId" and n[-2:] != "At"} | {"id": "new"},
    "savedViews": {"id": "new", "organizationId": ALPHA, "userId": "user-editor", "kind": "tasks", "name": "Mine"},
    "links": bare_row("new", ALPHA),
    "comments": comments.bare_row("new", ALPHA, "member-editor"),
    "recurrences": recurrences.bare_row("new", ALPHA),
    **new_checklist_row(ALPHA),
    **bare_reviews("new", ALPHA),
    "accessTokens": {"id": "new", "userId": "user-editor", "digest": "0" * 64, "scope": "read"},
    "auditEvents": {
        "id": "new",
        "organizationId": ALPHA,
        "at": "2026-05-06T07:08:09.100Z",
        "action": "restore",
        "entityType": "Label",
        "entityId": "any",
        "userId": "user-editor",
        "tokenId": "any",
        "requestId": "any",
    },
} | {kind.path: bare(kind, "new") for kind in Restorable.kinds}

NEEDED = {"baselineControls": {"baselines": [{"id": "stored", "frameworkId": "fw-sun", "name": "Stored"}]}}

# What has a value only once something has happened or somebody has said so: null until then.
OPTIONAL_ELSEWHERE = {
    "frameworks": {
        "organizationId", "version", "identifierColor", "publishedAt", "deprecatedAt", "description", "lastSyncAt",
        "createdBy", "applicabilityPrefix",
    },
    "controls": {"parentId", "purpose", "description"},
    "soaVersions": {"approvedAt", "erasedAt", "pdfFile", "pdfSha256", "scope", "supersededAt"},
    **(LATER | vendors.OPTIONAL | OPTIONAL_OF_ROWS | OPTIONAL_OF_DOCUMENTS),
    "files": {"userId", "attachedAt", "detachedAt", "erasedAt"},
    "links": {"note", "removedAt"},
    "recurrences": recurrences.OPTIONAL,
    **OPTIONAL_OF_REVIEWS,
    "controlWordings": {"description", "version", "validFrom", "staleSince"},
    "baselines": {"organizationId", "version", "description"},
    "baselineControls": {"retiredAt"},
    "frameworkAdoptions": {"baselineId"},
    "mappingDocuments": {"organizationId", "version"},
    "controlMatches": {
        "organizationId", "justification", "mappingDocumentId", "retiredAt", "rationale", "strength",
    },
    "controlCoverages": {
        "coverageStatus", "coverageGap", "isApplicable", "justification", "ownerId", "note", "reviewBy",
        "assessedAt", "lapsedStatus", "lapsedAt", "lapseReason",
    },
    "notifications": {"readAt"},
    "auditEvents": {"body"},
    "accessTokens": {"expiresAt", "lastUsedAt", "revokedAt", "organizationId", "name"},
    "organizations": {"removedAt", "riskLevels", "scope", "keepReplacedFilesDays"},
    "users": {"organizationId", "removedAt", "dateFormat", "theme", "timeZone", "mail", "mailByType", "refusedEmail"},
    "memberships": {"removedAt", "expiresAt"},
}  # fmt: skip


def test_every_array_is_covered_here() -> None:
    assert MINIMAL.keys() == ARRAYS.keys()


@pytest.mark.parametrize("array", ARRAYS)
def test_a_minimal_row_becomes_a_whole_one_and_loaded_again_changes_nothing(database: Database, array: str) -> None:
    table, row = ARRAYS[array], MINIMAL[array]
    world.load(database, NEEDED.get(array, {}))
    assert world.load(database, {array: [row]})[array].inserted == 1
    [found] = stored(database, table, "new")
    assert found.items() >= row.items()
    input_model(table).model_validate(found)
    empty = {name for name, value in found.items() if value is None}
    if issubclass(table, Restorable):
        never = {"id", "organizationId", "createdAt", "updatedAt", "slug", "shortId", "order"}
        never |= {"name", "title", "acronym"}
        never |= {wire_names(table)[column.name] for column in table.sql().c if column.info.get("known")}
        never |= {name for name in found if name.startswith(("is", "allow"))}
        assert not empty & never
        assert found["archivedAt"] is None
    else:
        assert empty == OPTIONAL_ELSEWHERE.get(array, set())
    before = world.contents(database)
    assert world.load(database, {array: [row]})[array].unchanged == 1
    assert world.contents(database) == before


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (Organization, {"slug": "gamma"}),
        (User, {"name": "new@alpha.example"}),
        (Membership, {"role": "viewer"}),
        (
            Framework,
            {"identifier": "New", "slug": "new", "isActive": True, "isCentralized": True, "requiredTier": "free-trial"},
        ),
        (
            Control,
            {
                "identifier": "new",
                "slug": "new-new",
                "type": "CONTROL",
                "isMandatory": False,
                "isDecomposed": False,
                "isCentralized": True,
            },
        ),
        (ControlCoverage, {"coverageStatus": None, "isApplicable": None, "reasons": []}),
        (Notification, {"type": "notice", "category": "SYSTEM"}),
        (Task, {"type": "OTHER", "status": "TODO", "priority": "MEDIUM", "slug": "title"}),
        (Vendor, {"category": "OTHER", "relationship": "NONE", "status": "ACTIVE", "treatmentStrategy": "UNKNOWN"}),
        (RecordCategory, {"allowPortalSubmission": False}),
        (Policy, {"status": "DRAFT", "content": None}),
    ],
)
def test_defaults(database: Database, table: type[Table], expected: dict[str, Any]) -> None:
    world.load(database, {table.array: [MINIMAL[table.array]]})
    [found] = stored(database, table, "new")
    assert found.items() >= expected.items()


@on_both
def test_a_payload_has_all_its_fields(database: Database) -> None:
    row = MINIMAL["notifications"]
    world.load(database, {"notifications": [row, row | {"id": "b", "payload": {"url": "/"}}]})
    names = {"titleKey", "bodyKey", "params", "url", "entityType", "entityId", "entityLabel", "entityMeta"}
    bare_payload, payload = (row["payload"] for row in stored(database, Notification, "new", "b"))
    assert bare_payload == dict.fromkeys(names) | {"params": {}}
    assert payload == bare_payload | {"url": "/"}


def test_what_belongs_to_an_organizations_own_framework_is_not_centralized(database: Database) -> None:
    world.load(
        database,
        {
            "frameworks": [{"id": "f", "organizationId": ALPHA, "name": "F"}],
            "controls": [{"id": "c", "frameworkId": "f", "name": "C"}],
        },
    )
    assert stored(database, Framework, "f")[0]["isCentralized"] is False
    assert stored(database, Control, "c")[0]["isCentralized"] is False


# --- Times


@pytest.mark.parametrize(
    ("given_times", "created", "updated"),
    [
        ({"createdAt": EARLIER}, EARLIER, EARLIER),
        ({"updatedAt": EARLIER}, EARLIER, EARLIER),
        ({"createdAt": EARLIER, "updatedAt": "2026-03-01"}, EARLIER, "2026-03-01T00:00:00.000Z"),
    ],
)
def test_a_missing_time_follows_the_one_that_is_there(
    database: Database, given_times: dict[str, str], created: str, updated: str
) -> None:
    world.load(database, {"labels": [MINIMAL["labels"] | given_times]})
    [found] = stored(database, Label, "new")
    assert (found["createdAt"], found["updatedAt"]) == (created, updated)


def test_all_rows_of_a_load_are_of_one_moment(database: Database) -> None:
    for needed in NEEDED.values():
        world.load(database, needed)
    world.load(database, {array: [row] for array, row in MINIMAL.items() if array != "organizations"})
    moments = set()
    for array in MINIMAL.keys() - {"organizations"}:
        [found] = stored(database, ARRAYS[array], "new")
        moments |= {value for name, value in found.items() if name in ("createdAt", "updatedAt", "adoptedAt")}
    assert len(moments) == 1
    assert stored(database, FrameworkAdoption, "new")[0]["adoptedAt"] in moments


# --- Slugs


@pytest.mark.parametrize("kind", [kind for kind in Restorable.kinds if "slug" in kind.sql().c])
def test_slugs_made_from_equal_titles_differ(database: Database, kind: type[Restorable]) -> None:
    world.load(database, {kind.path: [bare(kind, name, "Été: 1/2") for name in "abc"]})
    slugs = [row["slug"] for row in stored(database, kind, "a", "b", "c")]
    assert slugs == ["ete-1-2", "ete-1-2-2", "ete-1-2-3"]


@on_both
def test_slugs_are_counted_by_organization_and_kind(database: Database) -> None:
    world.load(
        database,
        {
            "labels": [bare(Label, "a", "GDPR"), bare(Label, "b", "GDPR", BETA)],
            "variables": [bare(Label, "c", "GDPR")],
        },
    )
    assert [row["slug"] for row in stored(database, Label, "a", "b")] == ["gdpr", "gdpr"]


@on_both
def test_a_made_slug_avoids_what_is_stored_archived_or_not(database: Database) -> None:
    world.load(database, {"labels": [bare(Label, "a", "labels live"), bare(Label, "b", "labels archived")]})
    assert [row["slug"] for row in stored(database, Label, "a", "b")] == ["labels-live-2", "labels-archived-2"]


def test_a_made_slug_avoids_one_that_a_later_row_brings_along(database: Database) -> None:
    later = bare(Label, "b", "Other") | {"slug": "gdpr"}
    world.load(database, {"labels": [bare(Label, "a", "GDPR"), later]})
    assert [row["slug"] for row in stored(database, Label, "a", "b")] == ["gdpr-2", "gdpr"]


def test_a_made_slug_avoids_one_that_a_stored_row_is_given(database: Database) -> None:
    changed = {"id": world.record_id(Label, "live"), "slug": "gdpr"}
    world.load(database, {"labels": [bare(Label, "a", "GDPR"), changed]})
    assert stored(database, Label, "a")[0]["slug"] == "gdpr-2"


@on_both
def test_organizations_of_one_name_get_slugs_of_their_own(database: Database) -> None:
    """A slug that the bundle does not give is no reason to refuse it."""
    names = [{"id": f"o{number}", "name": "Alpha"} for number in range(2)]
    world.load(database, {"organizations": names})
    slugs = {row["slug"] for row in stored(database, Organization, "o0", "o1", ALPHA)}
    assert len(slugs) == 3


@settings(max_examples=50)
@given(st.lists(st.text(max_size=120), max_size=3))
def test_a_slug_is_short_ascii_with_single_hyphens(parts: list[str]) -> None:
    slug = slugify(*parts)
    assert 1 <= len(slug) <= 80
    assert slug.isascii()
    assert slug == slug.lower()
    assert all(part.isalnum() for part in slug.split("-"))


@pytest.mark.parametrize("title", ["🚲", "日本語", "---", " ", "\u2028"])
def test_a_title_without_letters_of_ascii_still_makes_a_slug(database: Database, title: str) -> None:
    world.load(database, {"labels": [bare(Label, "a", title), bare(Label, "b", title)]})
    slugs = [row["slug"] for row in stored(database, Label, "a", "b")]
    assert len(set(slugs)) == 2
    assert all(slug.isascii() for slug in slugs)


# --- Numbers


@pytest.mark.parametrize("kind", WITH_SHORT_IDS)
@on_both
def test_short_ids_go_on_where_the_last_ended(database: Database, kind: type[Restorable]) -> None:
    last = sum(row["organizationId"] == ALPHA for row in world.bundle()[kind.path])
    world.load(database, {kind.path: [bare(kind, "a"), bare(kind, "b"), bare(kind, "c", organization_id=BETA)]})
    assert [row["shortId"] for row in stored(database, kind, "a", "b", "c")] == [last + 1, last + 2, last + 1]


@pytest.mark.parametrize("kind", WITH_ORDERS)
@on_both
def test_orders_go_on_where_the_last_ended(database: Database, kind: type[Restorable]) -> None:
    world.load(database, {kind.path: [bare(kind, "a") | {"order": 70}]})
    world.load(database, {kind.path: [bare(kind, "b"), bare(kind, "c"), bare(kind, "d", organization_id=BETA)]})
    orders = [row["order"] for row in stored(database, kind, "b", "c", "d")]
    assert orders[:2] == [71, 72]
    assert orders[2] < 70


def test_a_made_short_id_avoids_those_that_other_rows_bring_along(database: Database) -> None:
    rows = [bare(Task, "a"), bare(Task, "b") | {"shortId": 5}, bare(Task, "c"), bare(Task, "d") | {"shortId": 7}]
    world.load(database, {"tasks": rows})
    numbers = [row["shortId"] for row in stored(database, Task, "a", "b", "c", "d")]
    assert len(set(numbers)) == 4
    assert numbers[1::2] == [5, 7]
    world.load(database, {"tasks": [bare(Task, "e")]})
    assert stored(database, Task, "e")[0]["shortId"] == max(numbers) + 1


def test_a_made_short_id_avoids_one_that_a_stored_row_is_given(database: Database) -> None:
    changed = {"id": world.record_id(Task, "live"), "shortId": 5}
    world.load(database, {"tasks": [bare(Task, "a"), changed]})
    assert stored(database, Task, "a")[0]["shortId"] == 6


def test_a_short_id_that_was_given_up_is_not_used_again(database: Database) -> None:
    world.load(database, {"tasks": [bare(Task, "a") | {"shortId": 90}]})
    world.load(database, {"tasks": [{"id": "a", "shortId": 80}]})
    world.load(database, {"tasks": [bare(Task, "b")]})
    assert stored(database, Task, "b")[0]["shortId"] == 91


def test_a_short_id_of_a_row_that_is_gone_is_not_used_again(database: Database) -> None:
    world.load(database, {"tasks": [bare(Task, "a")]})
    tamper(database, "DELETE FROM task WHERE id = 'a'")
    world.load(database, {"tasks": [bare(Task, "b")]})
    assert stored(database, Task, "b")[0]["shortId"] == 6


def test_numbers_at_their_end_are_a_fault_and_no_crash(database: Database) -> None:
    """There is no next number after the last that fits."""
    world.load(database, {"tasks": [bare(Task, "a") | {"shortId": 2**31 - 1}]})
    with pytest.raises(FaultyInput) as caught:
        world.load(database, {"tasks": [bare(Task, "b")]})
    assert [fault.place for fault in caught.value.faults] == ["/tasks/0/shortId"]


# --- All of it together


class Undo(Exception):
    """Rolls a transaction back once it has been looked at."""


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@on_both
def test_defaults_of_any_mixture_of_rows_do_not_collide(database: Database, data: st.DataObject) -> None:
    """Titles that make the same slug, and slugs and numbers given and left out, in any order."""
    kind = data.draw(st.sampled_from([Task, Label, RecordCategory]))
    rows = []
    for number in range(data.draw(st.integers(1, 6))):
        row = bare(kind, f"h{number}", data.draw(st.sampled_from(["A", "a", "A 2", "a-2"])))
        if kind is Task and data.draw(st.booleans()):
            row["shortId"] = 5 + number
        if data.draw(st.booleans()):
            row["slug"] = f"a-{number}"
        rows.append(row)

    def work(unit: UnitOfWork) -> None:
        assert loading.load(unit, world.rows({kind.path: rows}))[kind.path].inserted == len(rows)
        raise Undo

    with pytest.raises(Undo):
        change(database, work)
