"""Frameworks that are adopted with a baseline: what applies, what is taken in and out, and what a change keeps."""

from __future__ import annotations

import copy
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from openpyxl import load_workbook

from normata.core.db.database import Database
from normata.frameworks.model import ControlCoverage, FrameworkAdoption
from tests import mostly_sqlite, stored
from tests.catalogs.test_centralized_imports import Operator
from tests.client import TestClient
from tests.coverage.assessing import Json, Stating, assert_consistent, done, faults
from tests.databases import on_both

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

FRAMEWORK = "urn:masts"


def node(number: str, *groups: str, parent: str | None = "urn:masts:1", assessable: bool = True) -> Json:
    """A requirement that is in implementation groups."""
    return {
        "urn": f"urn:masts:{number}",
        "parent_urn": parent,
        "ref_id": number,
        "name": f"Rule {number}",
        "assessable": assessable,
        "implementation_groups": [*groups],
    }


LIBRARY: dict[str, Any] = {
    "urn": "urn:masts:library",
    "name": "Mast Rules",
    "version": 1,
    "objects": {
        "framework": {
            "urn": FRAMEWORK,
            "ref_id": "MASTS",
            "name": "Mast Rules",
            "implementation_groups_definition": [
                {"ref_id": "IG1", "name": "Small boats", "description": "Up to six metres."},
                {"ref_id": "IG2", "name": "Large boats", "description": None},
                {"ref_id": "IG0", "name": "No boats", "description": None},
            ],
            "requirement_nodes": [
                node("1", parent=None, assessable=False),
                node("1.1", "IG1", "IG2"),
                node("1.2", "IG1", "IG2"),
                node("1.3", "IG2"),
                node("1.4"),
            ],
        }
    },
}


@pytest.fixture
def operator(client: TestClient, bearer: Callable[..., dict[str, str]]) -> Operator:
    return Operator(client, bearer("operator", scope="admin"))


@pytest.fixture(autouse=True)
def masts(operator: Operator) -> None:
    """The catalog."""
    result = done(operator.send(LIBRARY))
    assert (result["baselines"]["new"], result["baselineControls"]["new"]) == (3, 5)


def applicable(alpha: Stating) -> set[str]:
    """The requirements that apply, by their identifiers."""
    found = alpha.covered(frameworks=FRAMEWORK, isApplicable="true", type="CONTROL")
    return {item["identifier"] for item in found}


def test_a_framework_shows_its_baselines(alpha: Stating) -> None:
    shown = alpha.baselines(FRAMEWORK)
    assert (shown["requirements"], shown["baseline"]) == (4, None)
    assert [(one["identifier"], one["name"], one["requirements"]) for one in shown["baselines"]] == [
        ("IG1", "Small boats", 2),
        ("IG2", "Large boats", 3),
        ("IG0", "No boats", 0),
    ]
    done(alpha.adopt(FRAMEWORK, baseline="IG2"))
    shown = alpha.baselines(FRAMEWORK)
    assert shown["baseline"]["identifier"] == "IG2"
    assert [one["isAdopted"] for one in shown["baselines"]] == [False, True, False]


@on_both
def test_what_is_outside_does_not_apply_and_says_so(alpha: Stating, database: Database) -> None:
    answer = done(alpha.adopt(FRAMEWORK, baseline="ig1"))
    assert (answer["isAdopted"], answer["baseline"]["name"]) == (True, "Small boats")
    assert applicable(alpha) == {"1.1", "1.2"}
    outside = done(alpha.control("urn:masts:1.3"))
    assert (outside["isApplicable"], outside["coverage"]["isApplicable"]) == (False, None)
    assert outside["outsideOfBaseline"]["identifier"] == "IG1"
    assert done(alpha.control("urn:masts:1.1"))["outsideOfBaseline"] is None
    assert done(alpha.control("urn:masts:1"))["outsideOfBaseline"] is None  # a group asks for nothing
    done(alpha.patch(*({"controlId": f"urn:masts:1.{one}", "coverageStatus": "FULL"} for one in (1, 2, 3))))
    counts = alpha.summary(FRAMEWORK)
    assert (counts["requirements"], counts["applicable"], counts["effective"]["full"]) == (4, 2, 2)
    assert alpha.gaps(FRAMEWORK) == []
    listed = alpha.effective()
    assert (listed["urn:masts:1"], listed["urn:masts:1.3"]) == ("FULL", "NONE")
    assert_consistent(database)


@on_both
def test_changing_the_baseline_up_and_down_and_back_loses_nothing(alpha: Stating, database: Database) -> None:
    done(alpha.adopt(FRAMEWORK, baseline="IG2"))
    done(alpha.put("urn:masts:1.3", coverageStatus="PARTIAL", coverageGap="The top."))
    done(alpha.put("urn:masts:1.1", coverageStatus="FULL"))
    before, assessed = alpha.listed(), stored.rows(database, ControlCoverage)
    for baseline in ("IG1", None, "IG0", "IG2"):
        done(alpha.adopt(FRAMEWORK, baseline=baseline))
        assert_consistent(database)
    assert alpha.listed() == before
    assert stored.rows(database, ControlCoverage) == assessed


def test_without_a_body_the_baseline_stays_and_null_removes_it(alpha: Stating, database: Database) -> None:
    done(alpha.adopt(FRAMEWORK, baseline="IG1"))
    before = stored.everything(database)
    assert done(alpha.adopt(FRAMEWORK))["baseline"]["identifier"] == "IG1"
    assert stored.everything(database) == before
    assert done(alpha.adopt(FRAMEWORK, baseline=None))["baseline"] is None
    assert applicable(alpha) == {"1.1", "1.2", "1.3", "1.4"}
    [row] = stored.rows(database, FrameworkAdoption, framework_id=FRAMEWORK)
    assert row["baseline_id"] is None


def test_an_unknown_baseline_is_refused(alpha: Stating, database: Database) -> None:
    before = stored.everything(database)
    assert faults(alpha.adopt(FRAMEWORK, baseline="IG9")) == [
        ("baseline", "is no baseline of the framework: it has IG1, IG2, IG0")
    ]
    assert faults(alpha.adopt("fw-moon", baseline="IG1")) == [
        ("baseline", "is no baseline of the framework: it has none")
    ]
    assert stored.everything(database) == before


@on_both
def test_true_takes_in_with_a_justification_and_false_takes_out(alpha: Stating, database: Database) -> None:
    done(alpha.adopt(FRAMEWORK, baseline="IG1"))
    [(place, message)] = faults(alpha.put("urn:masts:1.4", isApplicable=True))
    assert (place, "baseline IG1" in message) == ("justification", True)
    done(alpha.put("urn:masts:1.4", isApplicable=True, justification="Our insurer asks for it."))
    done(alpha.put("urn:masts:1.1", isApplicable=False, justification="No such mast."))
    assert applicable(alpha) == {"1.2", "1.4"}
    done(alpha.put("urn:masts:1.4", isApplicable=None))
    done(alpha.put("urn:masts:1.1", isApplicable=None))
    assert applicable(alpha) == {"1.1", "1.2"}
    assert_consistent(database)


def test_what_applies_already_is_said_to_without_a_justification(alpha: Stating) -> None:
    done(alpha.adopt(FRAMEWORK, baseline="IG1"))
    done(alpha.put("urn:masts:1.1", isApplicable=True))
    done(alpha.adopt(FRAMEWORK, baseline="IG0"))
    done(alpha.patch({"controlId": "urn:masts:1.1", "coverageStatus": "FULL"}))  # nothing new of whether it applies
    assert applicable(alpha) == {"1.1"}


def test_what_matches_give_ends_at_the_edge_of_the_baseline(alpha: Stating, database: Database) -> None:
    done(alpha.adopt(FRAMEWORK))
    match = {"sourceControlId": "urn:masts:1.3", "targetControlId": "sun.A.9", "matchLevel": "FULL"}
    body = {"organizationId": alpha.organization_id, "matches": [match | {"justification": "The same words."}]}
    done(alpha.client.post("/matches/", json=body, headers=alpha.headers))
    done(alpha.put("urn:masts:1.3", coverageStatus="FULL"))
    assert alpha.effective()["sun.A.9"] == "FULL"
    preview = alpha.preview(FRAMEWORK, baseline="IG1")
    [other] = preview["others"]
    assert (other["framework"]["id"], other["gained"], other["lost"]) == ("fw-sun", 0, 1)
    done(alpha.adopt(FRAMEWORK, baseline="IG1"))
    assert alpha.effective()["sun.A.9"] == "NONE"
    assert_consistent(database)


def test_a_preview_is_what_comes(alpha: Stating) -> None:
    done(alpha.adopt(FRAMEWORK, baseline="IG2"))
    done(alpha.put("urn:masts:1.1", coverageStatus="FULL"))
    preview = alpha.preview(FRAMEWORK, baseline="IG1")
    assert (preview["isAdopted"], preview["baseline"]["identifier"]) == (True, "IG1")
    assert (preview["applicable"], preview["notApplicable"]) == (2, 2)
    assert alpha.preview(FRAMEWORK)["applicable"] == 3
    assert alpha.preview(FRAMEWORK, baseline="")["applicable"] == 4
    assert alpha.summary(FRAMEWORK)["applicable"] == 3
    done(alpha.adopt(FRAMEWORK, baseline="IG1"))
    counts = alpha.summary(FRAMEWORK)
    assert counts["effective"] == preview["effective"]
    assert [gap["id"] for gap in alpha.gaps(FRAMEWORK)] == [gap["id"] for gap in preview["gaps"]]


def test_lists_are_filtered_by_a_baseline(alpha: Stating) -> None:
    done(alpha.adopt(FRAMEWORK))
    for name in ("IG1", "ig1", f"{FRAMEWORK}:implementation-group:IG1"):
        assert {item["identifier"] for item in alpha.listed(baseline=name).values()} == {"1.1", "1.2"}
        assert {item["identifier"] for item in alpha.covered(baseline=name)} == {"1.1", "1.2"}
    assert alpha.listed(baseline="nothing") == {}
    assert list(alpha.listed(baseline="IG2", search="1.3")) == ["urn:masts:1.3"]
    assert [item["identifier"] for item in alpha.covered(baseline="IG2", isAssessed="true")] == []


@on_both
def test_a_newer_version_changes_the_baseline_of_those_who_have_it(
    alpha: Stating, operator: Operator, database: Database
) -> None:
    done(alpha.adopt(FRAMEWORK, baseline="IG1"))
    done(alpha.put("urn:masts:1.2", coverageStatus="FULL"))
    library = copy.deepcopy(LIBRARY)
    nodes = library["objects"]["framework"]["requirement_nodes"]
    nodes[2]["implementation_groups"], nodes[4]["implementation_groups"] = ["IG2"], ["IG1"]
    result = done(operator.send(library))
    assert result["baselineControls"] == {"new": 1, "changed": 1, "unchanged": 4}
    assert applicable(alpha) == {"1.1", "1.4"}
    assert alpha.effective()["urn:masts:1.2"] == "NONE"
    assert_consistent(database)
    inbox = alpha.client.get(
        "/notifications/", params={"organizationId": alpha.organization_id}, headers=alpha.headers
    ).json()["items"]
    assert [one["type"] for one in inbox][:1] == ["coverage.lost"]
    assert done(operator.send(LIBRARY))["baselineControls"] == {"new": 0, "changed": 2, "unchanged": 4}
    assert applicable(alpha) == {"1.1", "1.2"}
    assert alpha.effective()["urn:masts:1.2"] == "FULL"
    assert done(operator.send(LIBRARY))["baselineControls"] == {"new": 0, "changed": 0, "unchanged": 5}


def test_a_mandatory_requirement_is_in_every_baseline(alpha: Stating, operator: Operator) -> None:
    library = copy.deepcopy(LIBRARY)
    framework = library["objects"]["framework"]
    framework["urn"] = "urn:intuitem:risk:framework:iso27001-2022"
    framework["requirement_nodes"] = [
        {**one, "urn": f"{one['urn']}:27001", "parent_urn": None, "ref_id": name}
        for one, name in zip(framework["requirement_nodes"][1:], ("4.1", "4.2", "A.5.1", "A.5.2"), strict=True)
    ]
    library["urn"] = "urn:other"
    done(operator.send(library))
    done(alpha.adopt(framework["urn"], baseline="IG0"))
    found = alpha.covered(frameworks=framework["urn"], isApplicable="true")
    assert [item["identifier"] for item in found] == ["4.1", "4.2"]
    assert [one["requirements"] for one in alpha.baselines(framework["urn"])["baselines"]] == [2, 3, 2]
    assert len(alpha.listed(baseline="IG0")) == 2


def test_an_upload_brings_baselines_of_its_own(alpha: Stating, database: Database) -> None:
    def send(library: Json) -> Json:
        return done(
            alpha.client.post(
                "/imports/", params={"organizationId": alpha.organization_id}, json=library, headers=alpha.headers
            )
        )

    [framework] = send(LIBRARY)["frameworkIds"]
    done(alpha.adopt(framework, baseline="IG1"))
    assert alpha.summary(framework)["applicable"] == 2
    library = copy.deepcopy(LIBRARY)
    library["objects"]["framework"]["requirement_nodes"][2]["implementation_groups"] = []
    assert send(library)["baselineControls"]["changed"] == 2
    assert alpha.summary(framework)["applicable"] == 1
    assert alpha.baselines(FRAMEWORK)["baselines"][0]["requirements"] == 2  # the published one is another
    assert_consistent(database)


def test_the_statement_of_applicability_gives_the_baseline_as_the_reason(alpha: Stating) -> None:
    done(alpha.adopt(FRAMEWORK, baseline="IG1"))
    path = f"/frameworks/{FRAMEWORK}/statement-of-applicability/"
    query = {"organizationId": alpha.organization_id}
    report = done(alpha.client.get(path, params=query, headers=alpha.headers))
    entries = {entry["identifier"]: entry for entry in report["controls"]}
    assert (entries["1.3"]["outsideOfBaseline"]["identifier"], entries["1.3"]["objections"]) == ("IG1", [])
    assert entries["1.1"]["outsideOfBaseline"] is None
    table = alpha.client.get(path, params=query, headers=alpha.headers | {"Accept": "text/csv"}).text
    assert table.count("Outside of the baseline IG1") == 2


def test_reports_and_explanations_name_the_baseline(alpha: Stating) -> None:
    named = {"identifier": "IG1", "name": "Small boats", "id": f"{FRAMEWORK}:implementation-group:IG1"}
    for baseline, expected in ((None, None), ("IG1", named)):
        done(alpha.adopt(FRAMEWORK, baseline=baseline))
        for report in ("coverage", "gaps", "gaps/plan", "statement-of-applicability"):
            query = {"organizationId": alpha.organization_id}
            answer = alpha.client.get(f"/frameworks/{FRAMEWORK}/{report}/", params=query, headers=alpha.headers)
            assert done(answer)["baseline"] == expected
        assert done(alpha.explanation("urn:masts:1.3"))["outsideOfBaseline"] == expected
        assert done(alpha.explanation("urn:masts:1.1"))["outsideOfBaseline"] is None
    path = f"/frameworks/{FRAMEWORK}/gaps/"
    answer = alpha.client.get(path, params=query | {"format": "xlsx"}, headers=alpha.headers)
    facts = dict(row[:2] for row in load_workbook(BytesIO(answer.content))["Summary"].iter_rows(values_only=True))
    assert facts["Baseline"] == "Small boats"
