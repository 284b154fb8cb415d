"""What a bundle refers to: rows that exist, of the same organization or of none."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.db.database import Database
from normata.core.schema.descriptions import with_article
from normata.records.base import Restorable
from normata.records.kinds import Asset, Task
from tests import world
from tests.bundle.documents import Document, asset, faults, found, label, notification, policy, task
from tests.world import ALPHA, BETA


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
    "questionnaire": f"used-{BETA}",
    "framework": "fw-foreign",
    "control_coverage": "say-foreign",
}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


@pytest.mark.parametrize(("kind", "name", "target"), references())
def test_a_record_refers_to_its_own_organization_only(
    shared_database: Database, kind: type[Restorable], name: str, target: str
) -> None:
    kinds = {other.__tablename__: other for other in Restorable.kinds}
    foreign = _FOREIGN.get(target) or world.record_id(kinds[target], "live", BETA)
    wire = _camel(name)
    row = {"id": world.record_id(kind, "live")}
    place = f"/{kind.path}/0/{wire}"
    words = target.replace("_", " ")
    assert faults(shared_database, {kind.path: [row | {wire: "nowhere"}]}) == [f"{place}: names no {words} that exists"]
    assert faults(shared_database, {kind.path: [row | {wire: foreign}]}) == [
        f"{place}: names {with_article(words)} of another organization"
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
def test_what_ties_rows_together_is_checked(shared_database: Database, document: Document, expected: str) -> None:
    [fault] = faults(shared_database, document)
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
