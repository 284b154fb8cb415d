"""Controls that an import words otherwise: what becomes of their assessments, and who learns of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from openpyxl import load_workbook

from normata.core.db.database import Database
from normata.core.schema.text import same_wording
from normata.events.model import AuditEvent
from normata.frameworks.wording_model import ControlWording
from normata.notifications.model import Notification
from tests import mostly_sqlite, stored
from tests.catalogs.test_centralized_imports import FRAMEWORK, Operator
from tests.client import TestClient
from tests.coverage import definition
from tests.coverage.assessing import Json, Stating, done
from tests.databases import on_both
from tests.world import ALPHA, BETA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

NOTHING: Json = {"count": 0, "controls": []}
TEXTS = {
    "urn:docks:1": ("Berths", "All about berths."),
    "urn:docks:1.1": ("Locks", "Berths are locked at night."),
    "urn:docks:1.2": ("Lamps", "Lamps are lit\nat night."),
    "urn:docks:1.3": ("Ropes", "Ropes are checked."),
    "urn:docks:1.4": ("Boats", "Boats are counted."),
    "urn:docks:1.5": ("Watch", "Somebody watches."),
}
NEWER = TEXTS | {
    "urn:docks:1": ("Berths and piers", "All about berths."),
    "urn:docks:1.1": ("Locks", "Berths are locked at night and on Sundays."),
    "urn:docks:1.2": ("Lamps ", " Lamps  are lit at night .\n"),  # white space alone
    "urn:docks:1.3": ("ROPES", "Ropes ARE checked."),  # letter case alone
    "urn:docks:1.4": ("Boats and rafts", "Boats are counted."),
    "urn:docks:1.5": ("Watch", "Two people watch."),
}


def library(texts: dict[str, tuple[str, str]], version: int) -> dict[str, Any]:
    """A framework whose controls are worded so; the first is a category with all others."""
    first = next(iter(texts))
    nodes = [
        {"urn": urn, "ref_id": urn.rpartition(":")[2], "name": name, "description": description, "assessable": True}
        | ({"parent_urn": first} if urn != first else {"assessable": False})
        for urn, (name, description) in texts.items()
    ]
    framework = {"urn": FRAMEWORK, "ref_id": "DOCKS", "name": "Dock Rules", "requirement_nodes": nodes}
    return {"urn": "urn:docks:library", "name": "Dock Rules", "version": version, "objects": {"framework": framework}}


@pytest.fixture
def operator(client: TestClient, bearer: Callable[..., dict[str, str]]) -> Operator:
    return Operator(client, bearer("operator", scope="admin"))


def stale(stating: Stating) -> dict[str, list[str]]:
    """The controls whose assessments are stale, with the reasons, as the list of coverage has them."""
    return {
        one["id"]: [reason["reason"] for reason in one["coverage"]["stale"]]
        for one in stating.covered(isStale="true", frameworks=FRAMEWORK)
    }


def events(database: Database, organization_id: str) -> list[Json]:
    """The counts of the events of changed wordings, in their order."""
    rows = stored.rows(database, AuditEvent, organization_id=organization_id, action="reword")
    return [json.loads(row["body"])["counts"] for row in sorted(rows, key=lambda row: (row["at"], row["id"]))]


def notified(database: Database, organization_id: str) -> list[tuple[str, int]]:
    """Who was notified of changed wordings, and of how many controls."""
    rows = stored.rows(database, Notification, organization_id=organization_id, type="coverage.reworded")
    return sorted((row["user_id"], row["payload"]["params"]["count"]) for row in rows)


REWORDED = {
    "urn:docks:1": ["name"],
    "urn:docks:1.1": ["description"],
    "urn:docks:1.4": ["name"],
    "urn:docks:1.5": ["description"],
}
CHANGED = ["WORDING_CHANGED"]


@pytest.fixture
def adopted(operator: Operator, alpha: Stating, beta: Stating) -> None:
    """Two organizations have adopted the first version, and assessed it."""
    done(operator.send(library(TEXTS, 1)))
    for organization in (alpha, beta):
        assert organization.adopt(FRAMEWORK).is_success
        done(organization.put("urn:docks:1.1", coverageStatus="FULL"))
    done(alpha.put("urn:docks:1.2", coverageStatus="FULL"))
    done(alpha.put("urn:docks:1.3", coverageStatus="PARTIAL", coverageGap="Some are old.", ownerId="member-editor"))
    done(alpha.put("urn:docks:1.4", isApplicable=False, justification="We have none.", ownerId="member-viewer"))
    done(alpha.put("urn:docks:1.5", ownerId="member-editor"))  # that is no judgement of its wording


@on_both
@pytest.mark.usefixtures("adopted")
def test_what_was_assessed_is_stale_once_its_control_is_worded_otherwise(
    operator: Operator, alpha: Stating, beta: Stating, database: Database
) -> None:
    tried = operator.send(library(NEWER, 2), dryRun="true")
    assert not [secret for secret in (ALPHA, BETA, "user-", "member-") if secret in tried.text]
    assert done(tried)["stale"] == NOTHING, "an operator reads nothing of organizations"
    assert (stale(alpha), stored.rows(database, ControlWording)) == ({}, [])
    result = done(operator.send(library(NEWER, 2)))
    assert result == tried.json()["answer"]
    assert (result["reworded"], result["controls"]["changed"]) == (4, 6), "two differ by white space or case alone"
    assert {one["id"]: one["changed"] for one in result["firstReworded"]} == REWORDED

    # The earlier text is stored once, however many organizations have adopted it.
    rows = stored.rows(database, ControlWording)
    assert {row["control_id"]: (row["name"], row["description"]) for row in rows} == {
        one: TEXTS[one] for one in REWORDED
    }
    assert len(rows) == len(REWORDED)

    # What says nothing of the control is not stale.
    assert stale(alpha) == {"urn:docks:1.1": CHANGED, "urn:docks:1.4": CHANGED}
    assert stale(beta) == {"urn:docks:1.1": CHANGED}
    assert alpha.listed()["urn:docks:1.1"]["effectiveCoverageStatus"] == "FULL", "it is only flagged"
    since = rows[0]["replaced_at"]
    reason = [{"reason": "WORDING_CHANGED", "since": since}]
    assert done(alpha.control("urn:docks:1.1"))["coverage"]["stale"] == reason
    assert done(alpha.explanation("urn:docks:1.1"))["assessment"]["stale"] == reason
    assert alpha.summary(FRAMEWORK)["stale"] == 1, "of those that apply"
    report = f"/frameworks/{FRAMEWORK}/statement-of-applicability/"
    statement = done(alpha._send("GET", report))
    assert {one["id"] for one in statement["controls"] if one["stale"] == reason} == stale(alpha).keys()
    book = load_workbook(BytesIO(alpha._send("GET", report, query={"format": "xlsx"}).content))
    objected = [row[2] for row in book["Objections"].iter_rows(values_only=True)]
    assert sum("the control is worded otherwise, since 20" in objection for objection in objected) == 2
    read = done(alpha._send("GET", "/controls/urn:docks:1.1/wordings/"))
    assert (read["isStale"], read["description"]) == (True, NEWER["urn:docks:1.1"][1])
    [earlier] = read["earlier"]
    assert (earlier["description"], earlier["version"]) == (TEXTS["urn:docks:1.1"][1], "1")
    assert (earlier["isAssessed"], earlier["isEditorial"], earlier["replacedAt"]) == (True, False, since)

    # An owner, a note or a gap ends nothing. To confirm does, and so does another status.
    done(alpha.patch({"controlId": "urn:docks:1.1", "ownerId": "member-editor", "note": "Locks.", "coverageGap": "-"}))
    assert "urn:docks:1.1" in stale(alpha)
    done(alpha._send("POST", "/controls/urn:docks:1.4/coverage/confirm/", {}))
    assert stale(alpha) == {"urn:docks:1.1": CHANGED}
    done(alpha.patch({"controlId": "urn:docks:1.1", "coverageStatus": "PARTIAL"}))
    assert stale(alpha) == {}
    # The same again changes nothing.
    before = stored.everything(database)["control_wording"]
    assert done(operator.send(library(NEWER, 2)))["reworded"] == 0
    assert stored.everything(database)["control_wording"] == before


@on_both
@pytest.mark.usefixtures("adopted")
def test_each_organization_learns_of_it_of_editorial_changes_and_of_the_earlier_text_again(
    operator: Operator, alpha: Stating, beta: Stating, database: Database
) -> None:
    done(operator.send(library(NEWER, 2)))
    counts = {"reworded": 4, "assessed": 2, "stale": 2, "holding": 0, "editorial": False}
    assert events(database, ALPHA) == [counts | {"controlIds": ["urn:docks:1.1", "urn:docks:1.4"]}]
    assert events(database, BETA) == [counts | {"assessed": 1, "stale": 1, "controlIds": ["urn:docks:1.1"]}]
    assert notified(database, ALPHA) == [("user-admin", 2), ("user-owner", 2), ("user-viewer", 1)]
    assert notified(database, BETA) == [("user-foreigner", 1)]

    # An editorial import makes nothing stale, and its event says so. What is stale stays so.
    done(alpha._send("POST", "/controls/urn:docks:1.1/coverage/confirm/", {}))
    editorial = NEWER | {"urn:docks:1.1": ("Locks", "At night and on Sundays, berths are locked.")}
    assert done(operator.send(library(editorial, 3), editorial="true"))["reworded"] == 1
    assert (stale(alpha), stale(beta)) == ({"urn:docks:1.4": CHANGED}, {"urn:docks:1.1": CHANGED})
    one = {"reworded": 1, "assessed": 1, "stale": 0, "holding": 0, "editorial": True, "controlIds": ["urn:docks:1.1"]}
    assert [events(database, owner)[1] for owner in (ALPHA, BETA)] == [one, one]
    assert len(notified(database, ALPHA)) == 3

    # The first text again is what beta has assessed. Alpha has confirmed the second of one control.
    assert done(operator.send(library(TEXTS, 1)))["reworded"] == 4
    assert stale(beta) == {}
    assert stale(alpha) == {"urn:docks:1.1": CHANGED}
    last = {"reworded": 4, "assessed": 1, "stale": 0, "holding": 1, "editorial": False}
    assert events(database, BETA)[2] == last | {"controlIds": ["urn:docks:1.1"]}
    assert len(notified(database, BETA)) == 1
    read = done(alpha._send("GET", "/controls/urn:docks:1.1/wordings/"))
    assert [one["isAssessed"] for one in read["earlier"]] == [False, True, False]
    assert [one["isEditorial"] for one in read["earlier"]] == [False, True, False]


def test_an_upload_of_an_organizations_own(
    alpha: Stating, client: TestClient, database: Database, bearer: Callable[..., dict[str, str]]
) -> None:
    def upload(text: str, **query: str) -> Json:
        table = f"identifier,name,description\nD1,Locks,{text}\nD2,Lamps,Lamps are lit.\n"
        headers = bearer("admin", scope="admin") | {"Content-Type": "text/csv"}
        query = {"organizationId": ALPHA, "name": "Docks"} | query
        return done(client.post("/imports/", params=query, content=table, headers=headers))

    [framework] = upload("Berths are locked.")["frameworkIds"]
    assert upload("Berths are closed.", dryRun="true")["answer"]["reworded"] == 1
    assert alpha.adopt(framework).is_success
    [control] = [one["id"] for one in alpha.covered(frameworks=framework, search="Locks")]
    done(alpha.put(control, coverageStatus="FULL"))
    assert upload("Berths are CLOSED.", dryRun="true", editorial="true")["stale"] == NOTHING
    planned = upload("Berths are closed.", dryRun="true")
    assert [one["controlId"] for one in planned["stale"]["controls"]] == [control]
    assert upload("Berths  are LOCKED.")["reworded"] == 0
    assert done(alpha.control(control))["coverage"]["stale"] == []
    assert upload("Berths are closed.") == planned["answer"]
    assert [one["reason"] for one in done(alpha.control(control))["coverage"]["stale"]] == ["WORDING_CHANGED"]
    [row] = stored.rows(database, ControlWording)
    assert (row["organization_id"], row["description"]) == (ALPHA, "Berths  are LOCKED.")
    assert events(database, ALPHA) == [
        {"reworded": 1, "assessed": 1, "stale": 1, "holding": 0, "editorial": False, "controlIds": [control]}
    ]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_imported_and_assessed_is_stale_as_the_definition_has_it(
    operator: Operator, alpha: Stating, beta: Stating, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - the same story each time
    variants = ["Berths are locked.", "berths  are LOCKED.", "Berths are shut.", "Berths are closed.", "Shut berths!"]
    texts = {"urn:docks:1": ("Berths", ""), "urn:docks:1.1": ("A", variants[0]), "urn:docks:1.2": ("B", variants[0])}
    controls = [urn for urn in texts if urn != "urn:docks:1"]
    done(operator.send(library(texts, 1)))
    stories: dict[tuple[str, str], list[definition.Step]] = {}
    for organization in (alpha, beta):
        assert organization.adopt(FRAMEWORK).is_success
        stories |= {(organization.organization_id, urn): [definition.Imported(variants[0])] for urn in controls}
    for step in range(30):
        if rng.random() < 0.5:
            urn, text, editorial = rng.choice(controls), rng.choice(variants), rng.random() < 0.3
            texts[urn] = (texts[urn][0], text)
            done(operator.send(library(texts, step), editorial=str(editorial).lower()))
            for organization_id in (ALPHA, BETA):
                stories[organization_id, urn].append(definition.Imported(text, is_editorial=editorial))
        else:
            organization, urn = rng.choice([alpha, beta]), rng.choice(controls)
            story = stories[organization.organization_id, urn]
            status = done(organization.control(urn))["coverage"]["coverageStatus"]
            does = rng.choice(["assess", "confirm", "note"])
            if does == "assess" or status is None:
                done(organization.patch({"controlId": urn, "coverageStatus": "FULL" if status != "FULL" else "NONE"}))
                story.append(definition.ASSESSED)
            elif does == "confirm":
                done(organization._send("POST", f"/controls/{urn}/coverage/confirm/", {}))
                story.append(definition.ASSESSED)
            else:
                done(organization.patch({"controlId": urn, "note": str(step)}))
        for organization in (alpha, beta):
            expected = {urn for urn in controls if definition.is_reworded(stories[organization.organization_id, urn])}
            assert stale(organization).keys() == expected, (seed, step)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Berths are locked.", " berths\n are\u00a0LOCKED.", True),
        ("Straße", "STRASSE", True),
        ("Caf\u00e9", "Cafe\u0301", True),
        ("soft\u00adware", "software", True),
        (None, "", True),
        ("10\u00b2", "102", False),
        ("must", "should", False),
        ("a, b", "a b", False),
        (None, "a", False),
    ],
)
def test_what_counts_as_the_same_wording(one: str | None, other: str | None, *, same: bool) -> None:
    assert same_wording(one, other) is same
    assert same_wording(other, one) is same
