"""Loading: insert or update by id, all or nothing, and every fault named with its file and place."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, text

from normata.bundle import loading
from normata.bundle.loading import Tally
from normata.database import Database
from normata.records.base import Restorable
from normata.records.kinds import Asset, Label, Policy, Task
from normata.source import FaultyInput, Row
from normata.vocabulary import Table, sql_table
from normata.wire import as_wire
from tests import world
from tests.world import ALPHA, BETA

Document = dict[str, list[dict[str, Any]]]


def found(database: Database, table: type[Table], row_id: str) -> dict[str, Any]:
    """A stored row as the wire has it."""
    columns = sql_table(table).c
    row = database.read_now(
        lambda connection: connection.execute(select(*columns).where(columns.id == row_id)).mappings().one()
    )
    return as_wire(table, row)


def faults(database: Database, *documents: Document) -> list[str]:
    """The faults of bundles, as one line each, once it is sure that they left nothing behind."""
    before = world.contents(database)
    rows = [
        Row(array, f"{number}.json", f"/{array}/{index}", values)
        for number, document in enumerate(documents)
        for array, items in document.items()
        for index, values in enumerate(items)
    ]
    with pytest.raises(FaultyInput) as caught:
        database.write_now(lambda connection: loading.load(connection, rows))
    assert world.contents(database) == before
    return [str(fault).removeprefix("0.json: ") for fault in caught.value.faults]


def label(label_id: str = "new", **values: Any) -> dict[str, Any]:
    return {"id": label_id, "organizationId": ALPHA, "name": "Label"} | values


def task(task_id: str = "new", **values: Any) -> dict[str, Any]:
    return {"id": task_id, "organizationId": ALPHA, "title": "Task"} | values


def asset(asset_id: str = "new", **values: Any) -> dict[str, Any]:
    return {"id": asset_id, "organizationId": ALPHA, "name": "Asset"} | values


def policy(policy_id: str = "new", **values: Any) -> dict[str, Any]:
    return {"id": policy_id, "organizationId": ALPHA, "title": "Policy"} | values


def notification(**values: Any) -> dict[str, Any]:
    return {"id": "new", "organizationId": ALPHA, "userId": "user-editor"} | values


# --- Insert and update


def test_tally_tells_new_changed_and_unchanged(database: Database) -> None:
    live, archived = world.record_id(Label, "live"), world.record_id(Label, "archived")
    document = {"labels": [label("new"), {"id": live, "color": "red"}, {"id": archived}]}
    assert world.load(database, document) == {"labels": Tally(inserted=1, updated=1, unchanged=1)}


def test_fields_left_out_stay_and_null_sets_null(database: Database) -> None:
    world.load(database, {"labels": [label(scope="RISK", color="red", slug="s", createdAt="2020-01-01")]})
    world.load(database, {"labels": [{"id": "new", "color": None, "name": "Renamed"}]})
    stored = found(database, Label, "new")
    assert (stored["name"], stored["scope"], stored["color"], stored["slug"]) == ("Renamed", "RISK", None, "s")
    assert (stored["createdAt"], stored["archivedAt"]) == ("2020-01-01T00:00:00.000Z", None)


def test_updated_at_moves_only_where_something_changed(database: Database) -> None:
    live, namesake = world.record_id(Label, "live"), world.record_id(Label, "namesake")
    world.load(database, {"labels": [{"id": live, "color": "red"}, {"id": namesake, "name": "label namesake"}]})
    assert found(database, Label, live)["updatedAt"] > world.EARLIER
    assert found(database, Label, namesake)["updatedAt"] == world.EARLIER


def test_updated_at_is_kept_where_the_bundle_states_it(database: Database) -> None:
    live = world.record_id(Label, "live")
    world.load(database, {"labels": [{"id": live, "color": "red", "updatedAt": "2026-05-06T07:08:09+02:00"}]})
    assert found(database, Label, live)["updatedAt"] == "2026-05-06T05:08:09.000Z"


def test_the_same_again_writes_not_a_single_row(database: Database) -> None:
    before = world.contents(database)
    tallies = world.load(database, world.bundle())
    assert world.contents(database) == before
    assert {(tally.inserted, tally.updated) for tally in tallies.values()} == {(0, 0)}
    assert sum(tally.unchanged for tally in tallies.values()) == len(world.rows())


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, True), (0, False), (1, 1.0), ([1], [True]), ({"done": 0}, {"done": False}), ({"a": 1, "b": 2}, {"a": 1})],
)
def test_values_that_only_python_holds_for_equal_are_a_change(database: Database, first: Any, second: Any) -> None:
    world.load(database, {"policies": [policy(content=first)]})
    assert world.load(database, {"policies": [policy(content=second)]})["policies"].updated == 1
    assert repr(found(database, Policy, "new")["content"]) == repr(second)


def test_an_update_may_archive_and_bring_back(database: Database) -> None:
    live = world.record_id(Label, "live")
    world.load(database, {"labels": [{"id": live, "archivedAt": "2026-01-01"}]})
    assert found(database, Label, live)["archivedAt"] == "2026-01-01T00:00:00.000Z"
    world.load(database, {"labels": [{"id": live, "archivedAt": None}]})
    assert found(database, Label, live)["archivedAt"] is None


def test_derived_fields_of_frameworks_and_controls_are_ignored(database: Database) -> None:
    before = world.contents(database)
    derived = {
        "framework": {"id": "fw-star"},
        "parent": 7,
        "coverage": {"coverageStatus": "FULL"},
        "effectiveCoverageStatus": "FULL",
        "isIndirectlyCovered": "perhaps",
        "sourceMatches": None,
        "children": [{}],
    }
    framework = {"isAdopted": False, "_count": {"controls": 99}, "frameworkAdoptions": [], "adoption": None}
    document = {"controls": [{"id": "sun.A.9"} | derived], "frameworks": [{"id": "fw-sun"} | framework]}
    assert {tally.unchanged for tally in world.load(database, document).values()} == {1}
    assert world.contents(database) == before


# --- Values


@pytest.mark.parametrize(
    ("document", "place", "reason"),
    [
        ({"labels": [label(colour="red")]}, "/labels/0/colour", "is not a field that is known here"),
        ({"labels": [label(search_text="x")]}, "/labels/0/search_text", "is not a field that is known here"),
        ({"labels": [label(organization_id=ALPHA)]}, "/labels/0/organization_id", "is not a field that is known here"),
        ({"controls": [{"id": "sun.A.1", "position": 1}]}, "/controls/0/position", "is not a field"),
        ({"controls": [{"id": "sun.A.1", "organizationId": ALPHA}]}, "/controls/0/organizationId", "is not a field"),
        ({"risk-reviews": [{"id": "r", "updatedAt": "2026-01-01"}]}, "/risk-reviews/0/updatedAt", "is not a field"),
        ({"labels": [{"organizationId": ALPHA, "name": "x"}]}, "/labels/0/id", "is required"),
        ({"labels": [label("")]}, "/labels/0/id", "must have at least 1 character"),
        ({"labels": [label("x" * 129)]}, "/labels/0/id", "must have at most 128 characters"),
        ({"labels": [label("a\nb")]}, "/labels/0/id", "must "),
        ({"labels": [label(name=None)]}, "/labels/0/name", "must be a string"),
        ({"labels": [label(name=3)]}, "/labels/0/name", "must be a string"),
        ({"labels": [label(name="")]}, "/labels/0/name", "must have at least 1 character"),
        ({"labels": [label(name="x" * 501)]}, "/labels/0/name", "must have at most 500 characters"),
        ({"labels": [label(name="a\x00")]}, "/labels/0/name", "must "),
        ({"labels": [label(slug="a b")]}, "/labels/0/slug", "must "),
        ({"labels": [label(slug=None)]}, "/labels/0/slug", "must be a string"),
        ({"labels": [label(color=["red"])]}, "/labels/0/color", "must be a string"),
        ({"labels": [{"id": "new", "organizationId": ALPHA}]}, "/labels/0/name", "is required"),
        ({"labels": [{"id": "new", "name": "x"}]}, "/labels/0/organizationId", "is required"),
        ({"controls": [{"id": "new", "name": "x"}]}, "/controls/0/frameworkId", "is required"),
        ({"users": [{"id": "new"}]}, "/users/0/email", "is required"),
        ({"users": [{"id": "new", "email": "nobody"}]}, "/users/0/email", "must "),
        (
            {"memberships": [{"id": "member-viewer", "role": "king"}]},
            "/memberships/0/role",
            "must be one of owner, admin",
        ),
        ({"tasks": [task(shortId="3")]}, "/tasks/0/shortId", "must be an integer"),
        ({"tasks": [task(shortId=3.5)]}, "/tasks/0/shortId", "must be an integer"),
        ({"tasks": [task(shortId=True)]}, "/tasks/0/shortId", "must be an integer"),
        ({"tasks": [task(shortId=0)]}, "/tasks/0/shortId", "must be at least 1"),
        ({"tasks": [task(shortId=2**31)]}, "/tasks/0/shortId", "must be at most 2147483647"),
        ({"tasks": [task(order=10**400)]}, "/tasks/0/order", "must be "),
        ({"tasks": [task(deadline="tomorrow")]}, "/tasks/0/deadline", "must be an RFC 3339 date-time"),
        ({"tasks": [task(deadline="2026-02-30")]}, "/tasks/0/deadline", "does not exist"),
        ({"tasks": [task(deadline="2026-02-03T04:05:06")]}, "/tasks/0/deadline", "with an offset"),
        ({"tasks": [task(deadline=1767322800)]}, "/tasks/0/deadline", "must be a string"),
        ({"tasks": [task(status="todo")]}, "/tasks/0/status", "must "),
        ({"tasks": [task(status="")]}, "/tasks/0/status", "must "),
        ({"tasks": [task(status="X" * 65)]}, "/tasks/0/status", "must have at most 64 characters"),
        ({"tasks": [task(status="IN PROGRESS")]}, "/tasks/0/status", "must "),
        ({"tasks": [task(status=None)]}, "/tasks/0/status", "must be a string"),
        ({"assets": [asset(confidentialityRating="3")]}, "/assets/0/confidentialityRating", "number"),
        ({"assets": [asset(confidentialityRating=True)]}, "/assets/0/confidentialityRating", "number"),
        ({"assets": [asset(confidentialityRating=2**53)]}, "/assets/0/confidentialityRating", "must be at most"),
        ({"assets": [asset(confidentialityRating=-1e300)]}, "/assets/0/confidentialityRating", "must be at least"),
        (
            {"record-categories": [{"id": "r", "allowPortalSubmission": 1}]},
            "/record-categories/0/allowPortal",
            "true or",
        ),
        (
            {"controlCoverages": [{"id": "s", "coverageStatus": "MOSTLY"}]},
            "/controlCoverages/0/coverageStatus",
            "NONE, P",
        ),
        ({"controlMatches": [{"id": "m", "matchLevel": "NONE"}]}, "/controlMatches/0/matchLevel", "PARTIAL, FULL"),
        ({"controls": [{"id": "sun.A.1", "type": "DOMAIN"}]}, "/controls/0/type", "must be one of CATEGORY, CONTROL"),
        ({"notifications": [notification(payload="x")]}, "/notifications/0/payload", "must be a JSON object"),
        ({"notifications": [notification(payload={"titleKey": 3})]}, "/notifications/0/payload/titleKey", "a string"),
        ({"notifications": [notification(payload={"title": "x"})]}, "/notifications/0/payload/title", "is not a field"),
        ({"notifications": [notification(payload={"params": [1]})]}, "/notifications/0/payload/params", "object"),
        ({"notifications": [notification(category="policies")]}, "/notifications/0/category", "must "),
    ],
)
def test_a_bad_value_is_one_fault_with_its_place(
    database: Database, document: Document, place: str, reason: str
) -> None:
    [fault] = faults(database, document)
    assert fault.startswith(place)
    assert reason in fault


def test_a_fault_deep_in_a_row_further_down(database: Database) -> None:
    good = [notification(id=f"n{number}") for number in range(3)]
    assert faults(database, {"notifications": [*good, notification(id="n3", payload={"url": {}})]}) == [
        "/notifications/3/payload/url: must be a string"
    ]


def test_enums_are_open_to_any_token(database: Database) -> None:
    world.load(database, {"tasks": [task(status="WAITING_4_GODOT", priority="P0", type="X" * 64)]})
    stored = found(database, Task, "new")
    assert (stored["status"], stored["priority"], stored["type"]) == ("WAITING_4_GODOT", "P0", "X" * 64)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-11-20T09:14:03.120Z", "2026-11-20T09:14:03.120Z"),
        ("2026-11-20t09:14:03z", "2026-11-20T09:14:03.000Z"),
        ("2026-11-20 09:14:03+05:30", "2026-11-20T03:44:03.000Z"),
        ("2026-01-01T00:30:00.999999+01:00", "2025-12-31T23:30:00.999Z"),
        ("2026-11-20", "2026-11-20T00:00:00.000Z"),
        ("2024-02-29T23:59:59-00:00", "2024-02-29T23:59:59.000Z"),
    ],
)
def test_timestamps_are_brought_to_utc_with_milliseconds(database: Database, given: str, kept: str) -> None:
    world.load(database, {"tasks": [task(deadline=given)]})
    assert found(database, Task, "new")["deadline"] == kept
    assert world.load(database, {"tasks": [task(deadline=given)]})["tasks"].unchanged == 1


@pytest.mark.parametrize(
    ("given", "kept"), [(3, "3"), (2.5, "2.5"), (-0.0, "0"), (1e3, "1000"), (0.1, "0.1"), (2**53 - 1, str(2**53 - 1))]
)
def test_numbers_stay_as_they_were_given(database: Database, given: float, kept: str) -> None:
    world.load(database, {"assets": [asset(integrityRating=given)]})
    assert repr(found(database, Asset, "new")["integrityRating"]) == kept
    assert world.load(database, {"assets": [asset(integrityRating=given)]})["assets"].unchanged == 1


@pytest.mark.parametrize("content", [0, "", False, [], {}, [None, {"a": [1.5, "\U0001f6b2 \u2028"]}], "text"])
def test_content_may_be_any_json(database: Database, content: Any) -> None:
    world.load(database, {"policies": [policy(content=content)]})
    assert repr(found(database, Policy, "new")["content"]) == repr(content)


def test_identifiers_are_kept_as_they_are(database: Database) -> None:
    odd = "urn:x/ä ~1'\"%_🚲"
    world.load(database, {"labels": [label(odd)]})
    assert found(database, Label, odd)["id"] == odd


# --- References


def test_references_may_point_forward_and_in_circles(database: Database) -> None:
    world.load(
        database,
        {
            "tasks": [task("t", policyId="p", assetId="a1", assigneeMemberId="m")],
            "assets": [asset("a1", parentId="a2"), asset("a2", parentId="a1")],
            "policies": [policy("p")],
            "memberships": [{"id": "m", "organizationId": ALPHA, "userId": "user-nobody"}],
        },
    )
    assert found(database, Task, "t")["policyId"] == "p"
    assert found(database, Asset, "a1")["parentId"] == "a2"


def test_opaque_references_may_name_anything(database: Database) -> None:
    world.load(database, {"tasks": [task(riskId="r", trainingId="t", deviceId="d", assigneeBusinessRoleId="b")]})
    assert found(database, Task, "new")["riskId"] == "r"


def references() -> list[Any]:
    """Every column of every kind that names a row of the same organization, by array."""
    return [
        pytest.param(kind, column.name, column.info["refers_to"], id=f"{kind.path}.{column.name}")
        for kind in Restorable.kinds
        for column in kind.sql().columns
        if "refers_to" in column.info
    ]


_FOREIGN = {
    "membership": "member-foreigner",
    "control": "foreign.A.1",
    "framework": "fw-foreign",
    "control_coverage": "say-foreign",
}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


@pytest.mark.parametrize(("kind", "name", "target"), references())
def test_a_record_refers_to_its_own_organization_only(
    database: Database, kind: type[Restorable], name: str, target: str
) -> None:
    kinds = {other.__tablename__: other for other in Restorable.kinds}
    foreign = _FOREIGN.get(target) or world.record_id(kinds[target], "live", BETA)
    wire = _camel(name)
    row = {"id": world.record_id(kind, "live")}
    place = f"/{kind.path}/0/{wire}"
    words = target.replace("_", " ")
    assert faults(database, {kind.path: [row | {wire: "nowhere"}]}) == [
        f"{place}: names no {words} that is stored or loaded"
    ]
    assert faults(database, {kind.path: [row | {wire: foreign}]}) == [
        f"{place}: names a {words} of another organization"
    ]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"labels": [label(organizationId="org-gamma")]}, "/labels/0/organizationId: names no organization"),
        (
            {"memberships": [{"id": "m", "organizationId": ALPHA, "userId": "u"}]},
            "/memberships/0/userId: names no user",
        ),
        ({"notifications": [notification(userId="u")]}, "/notifications/0/userId: names no user"),
        ({"controls": [{"id": "c", "frameworkId": "f", "name": "C"}]}, "/controls/0/frameworkId: names no framework"),
        (
            {"controls": [{"id": "sun.A.1", "parentId": "sun.Z"}]},
            "/controls/0/parentId: names no control",
        ),
        (
            {"controls": [{"id": "sun.A.1", "parentId": "moon.A"}]},
            "/controls/0/parentId: names a control of another framework",
        ),
        (
            {"controlMatches": [{"id": "m", "sourceControlId": "x", "targetControlId": "sun.A", "matchLevel": "FULL"}]},
            "/controlMatches/0/sourceControlId: names no control",
        ),
        (
            {
                "controlMatches": [
                    {"id": "m", "sourceControlId": "own.A", "targetControlId": "foreign.A", "matchLevel": "FULL"}
                ]
            },
            "/controlMatches/0/targetControlId: names a control of another organization",
        ),
        (
            {"controlCoverages": [{"id": "s", "organizationId": ALPHA, "controlId": "foreign.A"}]},
            "/controlCoverages/0/controlId: names a control of another organization",
        ),
        (
            {"frameworkAdoptions": [{"id": "a", "organizationId": ALPHA, "frameworkId": "fw-foreign"}]},
            "/frameworkAdoptions/0/frameworkId: names a framework of another organization",
        ),
        ({"labels": [{"id": "labels-live-org-alpha", "organizationId": BETA}]}, "/labels/0/organizationId: cannot be"),
        (
            {"memberships": [{"id": "member-viewer", "organizationId": BETA}]},
            "/memberships/0/organizationId: cannot be",
        ),
        ({"frameworks": [{"id": "fw-own", "organizationId": None}]}, "/frameworks/0/organizationId: cannot be"),
        (
            {"frameworks": [{"id": "fw-sun", "organizationId": ALPHA}]},
            "/frameworks/0/organizationId: cannot be changed",
        ),
        ({"controls": [{"id": "sun.A.1", "frameworkId": "fw-moon"}]}, "/controls/0/frameworkId: cannot be changed"),
        (
            {"frameworks": [{"id": "fw-sun", "isCentralized": False}]},
            "/frameworks/0/isCentralized: must be true without",
        ),
        (
            {"frameworks": [{"id": "fw-own", "isCentralized": True}]},
            "/frameworks/0/isCentralized: must be true without",
        ),
    ],
)
def test_what_ties_rows_together_is_checked(database: Database, document: Document, expected: str) -> None:
    [fault] = faults(database, document)
    assert fault.startswith(expected)


def test_a_foreign_row_is_foreign_when_it_is_loaded_in_the_same_bundle_too(database: Database) -> None:
    document = {
        "frameworks": [{"id": "f", "organizationId": BETA, "name": "F"}],
        "controls": [{"id": "c", "frameworkId": "f", "name": "C"}],
        "controlCoverages": [{"id": "s", "organizationId": ALPHA, "controlId": "c"}],
        "policies": [policy("p", organizationId=BETA)],
        "tasks": [task(policyId="p")],
    }
    assert faults(database, document) == [
        "/controlCoverages/0/controlId: names a control of another organization",
        "/tasks/0/policyId: names a policy of another organization",
    ]


@pytest.mark.parametrize("name", ["sun.A.1", "own.A.1"])
def test_a_finding_names_a_centralized_control_or_one_of_its_own(database: Database, name: str) -> None:
    finding = {"id": "f", "organizationId": ALPHA, "name": "F", "controlId": name}
    assert world.load(database, {"auditItems": [finding]})["auditItems"].inserted == 1


# --- Uniqueness

UNIQUE: list[Any] = [
    pytest.param(
        {"labels": [label("one", slug="s"), label("two", slug="s")]},
        ["/labels/1/slug: is taken by 0.json: /labels/0"],
        id="slug within the bundle",
    ),
    pytest.param(
        {"labels": [label(slug="labels-live")]},
        ["/labels/0/slug: is taken by the stored row 'labels-live-org-alpha'"],
        id="slug of a stored row",
    ),
    pytest.param(
        {"labels": [{"id": "labels-taken-org-alpha", "archivedAt": None}]},
        ["/labels/0/slug: is taken by the stored row 'labels-namesake-org-alpha'"],
        id="slug of a record that comes back",
    ),
    pytest.param(
        {"users": [{"id": "u", "email": "EDITOR@Alpha.Example"}]},
        ["/users/0/email: is taken by the stored row 'user-editor'"],
        id="email that differs in case",
    ),
    pytest.param(
        {"users": [{"id": "u", "email": "a@ß.example"}, {"id": "v", "email": "A@SS.example"}]},
        ["/users/1/email: is taken by 0.json: /users/0"],
        id="email that folds to the same",
    ),
    pytest.param(
        {"organizations": [{"id": "o", "name": "O", "slug": "alpha"}]},
        ["/organizations/0/slug: is taken by the stored row 'org-alpha'"],
        id="slug of an organization",
    ),
    pytest.param(
        {"tasks": [task("one", shortId=7), task("two", shortId=7)]},
        ["/tasks/1/shortId: is taken by 0.json: /tasks/0"],
        id="short id within the bundle",
    ),
    pytest.param(
        {"tasks": [task(shortId=1)]},
        ["/tasks/0/shortId: is taken by the stored row 'tasks-archived-org-alpha'"],
        id="short id of an archived stored row",
    ),
    pytest.param(
        {"frameworkAdoptions": [{"id": "a", "organizationId": ALPHA, "frameworkId": "fw-sun"}]},
        ["/frameworkAdoptions/0/frameworkId: is taken by the stored row 'adopt-sun'"],
        id="adoption",
    ),
    pytest.param(
        {"controlCoverages": [{"id": "s", "organizationId": ALPHA, "controlId": "sun.A.1"}]},
        ["/controlCoverages/0/controlId: is taken by the stored row 'say-sun.A.1'"],
        id="statement",
    ),
    pytest.param(
        {"labels": [label("one"), label("one", name="Other")]},
        ["/labels/1/id: is the same as that of 0.json: /labels/0"],
        id="id within the bundle",
    ),
]


@pytest.mark.parametrize(("document", "expected"), UNIQUE)
def test_what_is_taken_is_named_with_its_holder(database: Database, document: Document, expected: list[str]) -> None:
    assert faults(database, document) == expected


def test_a_user_is_a_member_once(database: Database) -> None:
    [fault] = faults(database, {"memberships": [{"id": "m", "organizationId": ALPHA, "userId": "user-editor"}]})
    assert fault.startswith("/memberships/0/")
    assert fault.endswith(": is taken by the stored row 'member-editor'")


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"labels": [label(slug="labels-archived")]}, id="slug of an archived stored record"),
        pytest.param({"labels": [label(slug="labels-live", archivedAt="2026-01-01")]}, id="archived with a live one's"),
        pytest.param(
            {"labels": [label("a", slug="s", archivedAt="2026-01-01"), label("b", slug="s")]}, id="archived and live"
        ),
        pytest.param({"variables": [label(slug="labels-live")]}, id="another kind"),
        pytest.param(
            {"labels": [label(slug="only-here"), label("b", slug="only-here", organizationId=BETA)]}, id="two"
        ),
        pytest.param({"assets": [asset(shortId=9)], "tasks": [task(shortId=9)]}, id="short id of another kind"),
    ],
)
def test_what_is_free(database: Database, document: Document) -> None:
    tallies = world.load(database, document)
    assert sum(tally.inserted for tally in tallies.values()) == sum(map(len, document.values()))


def test_a_slug_is_free_once_its_holder_lets_go_in_the_same_bundle(database: Database) -> None:
    holder = world.record_id(Label, "live")
    world.load(database, {"labels": [label(slug="labels-live"), {"id": holder, "archivedAt": "2026-01-01"}]})
    assert found(database, Label, "new")["slug"] == found(database, Label, holder)["slug"] == "labels-live"


@pytest.mark.parametrize(
    ("table", "field", "ids"),
    [
        (Label, "slug", ("labels-live-org-alpha", "labels-namesake-org-alpha")),
        (Task, "shortId", ("tasks-live-org-alpha", "tasks-archived-org-alpha")),
    ],
)
def test_two_stored_rows_may_swap(database: Database, table: type[Table], field: str, ids: tuple[str, str]) -> None:
    one, two = (found(database, table, row_id)[field] for row_id in ids)
    world.load(database, {table.array: [{"id": ids[0], field: two}, {"id": ids[1], field: one}]})
    assert [found(database, table, row_id)[field] for row_id in ids] == [two, one]


# --- All faults at once


def test_faults_of_all_files_are_told_together(database: Database) -> None:
    one = {"labels": [label(color=3)], "tasks": [task(status="todo", deadline="soon")]}
    two = {"labels": [label("other", colour="x")]}
    assert [fault.partition(": ")[0] if fault[0] == "/" else fault[:24] for fault in faults(database, one, two)] == [
        "/labels/0/color",
        "/tasks/0/status",
        "/tasks/0/deadline",
        "1.json: /labels/0/colour",
    ]


def test_the_same_id_in_two_files_is_a_fault(database: Database) -> None:
    assert faults(database, {"labels": [label("l")]}, {"labels": [label("l")]}) == [
        "1.json: /labels/0/id: is the same as that of 0.json: /labels/0"
    ]


def test_faults_of_every_sort_are_told_together(database: Database) -> None:
    """Nobody should have to mend a value to be told of a reference, and mend that to be told of a slug."""
    document = {
        "labels": [
            label("one", color=3),
            label("two", slug="labels-live"),
            label("three", organizationId="nowhere"),
            label("four", slug="s"),
            label("five", slug="s"),
        ],
        "tasks": [task(assetId="nowhere"), {"id": "tasks-live-org-alpha", "organizationId": BETA}],
        "policies": [{"id": "p", "organizationId": ALPHA}],
    }
    assert {fault.partition(": ")[0] for fault in faults(database, document)} == {
        "/labels/0/color",
        "/labels/1/slug",
        "/labels/2/organizationId",
        "/labels/4/slug",
        "/tasks/0/assetId",
        "/tasks/1/organizationId",
        "/policies/0/title",
    }


def test_a_fault_in_one_row_is_not_blamed_on_those_that_refer_to_it(database: Database) -> None:
    document = {"policies": [policy("p", status="draft")], "tasks": [task(policyId="p")]}
    [fault] = faults(database, document)
    assert fault.startswith("/policies/0/status")


# --- The transaction


def test_a_load_joins_the_transaction_of_its_caller(database: Database) -> None:
    before = world.contents(database)

    def work(connection: Any) -> None:
        loading.load(connection, world.rows({"labels": [label()]}))
        connection.execute(text("SELECT * FROM nowhere"))

    with pytest.raises(Exception, match="nowhere"):
        database.write_now(work)
    assert world.contents(database) == before


def test_progress_tells_steps_and_never_more_than_there_is(database: Database) -> None:
    told: list[tuple[str, int, int]] = []
    many = [label(f"l{number}", slug=f"l{number}") for number in range(1_200)]
    rows = world.rows({"labels": many, "frameworkAdoptions": [{"id": "adopt-sun", "adoptedAt": "2026-01-01"}]})
    database.write_now(lambda connection: loading.load(connection, rows, lambda *step: told.append(step)))
    assert {step for step, _, _ in told} == {"Checking rows", "Writing rows", "Computing coverage"}
    assert all(0 <= done <= total for _, done, total in told)
    written = [done for step, done, _ in told if step == "Writing rows"]
    assert written == sorted(written)
