"""Documents of OSCAL: strictly valid, the same each time, and true about what is not assessed, planned and open."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from normata.catalogs.importing import import_for_all
from normata.catalogs.reading import read_published
from normata.core.db.types import now
from normata.oscal.names import NAMESPACE, control_names
from tests.coverage.assessing import Json, Stating, done
from tests.databases import change, on_both
from tests.oscal.documents import nist_schema, valid
from tests.reports.conftest import Ask
from tests.reports.reported import FRAMEWORK, match, statement
from tests.reports.test_statement import task
from tests.served import Served, refused
from tests.world import ALPHA, BETA, EARLIER

MODELS = ("catalog", "component-definition", "poam")
DEADLINE = "2027-03-01T00:00:00.000Z"


def finding(number: int, **more: Any) -> Json:
    """A finding about a control of the framework."""
    made = {"id": f"found-{number}", "organizationId": ALPHA, "slug": f"found-{number}", "name": f"Found {number}"}
    return made | {"createdAt": EARLIER, "updatedAt": EARLIER, "controlId": "rep.2.1", "status": "OPEN"} | more


@pytest.fixture
def filled(service: Served) -> Served:
    """A framework with everything that a document says, and what it must leave out."""
    service.load(
        {
            "controls": [
                {"id": "rep.2.1", "description": "Do it.\n  And again.", "purpose": "So that it is done."},
                {"id": "rep.2.2", "frameworkId": FRAMEWORK, "parentId": "rep.2", "identifier": "2.1", "name": "Same"},
                {"id": "rep.4", "frameworkId": FRAMEWORK, "identifier": "4", "name": "Whole", "isDecomposed": True},
                {"id": "rep.4.a", "frameworkId": FRAMEWORK, "parentId": "rep.4", "identifier": "Ü", "name": "Part"},
            ],
            "controlMatches": [match("sun.A.1", "rep.1.1.c", "FULL")],
            "controlCoverages": [
                statement("rep.1.1.c", "NONE", reasons=["LEGAL"]),  # in conflict with the match
                statement("rep.2.3", "NONE", coverageGap="No locks.", ownerId="member-editor", note="By hand."),
            ],
        }
    )
    service.load(
        {
            "tasks": [task(1, "rep.2.3", DEADLINE)],
            "auditItems": [
                finding(1, deadline=DEADLINE, findings="A door.", correction="Close it."),
                finding(2, status="RESOLVED"),
                finding(3, type="CONFORMITY"),
                finding(4, archivedAt=EARLIER),
                finding(5, controlId="sun.A.1"),
            ],
        }
    )
    return service


def properties(item: Json) -> Json:
    """The values of the properties of the product, by name."""
    return {one["name"]: one["value"] for one in item["props"] if one.get("ns") == NAMESPACE}


@pytest.mark.parametrize("model", MODELS)
@on_both
def test_a_document_is_valid_and_the_same_each_time(model: str, ask: Ask, filled: Served) -> None:
    first, second = ask("oscal", model=model), ask("oscal", model=model, format="oscal")
    assert first.status_code == 200, first.text
    assert first.content == second.content
    assert first.headers["content-type"] == "application/json"
    assert second.headers["content-type"] == "application/oscal+json"
    [member] = first.json()
    assert f"{member}.json" in second.headers["content-disposition"]
    document = valid(first.content)
    assert document["metadata"]["title"].endswith("Reported")
    assert (document["metadata"]["version"] == "7") == (model == "catalog")
    # The mail and the name of the member are in none of them.
    assert "Editor" not in first.text
    assert "example" not in first.text
    accepted = filled.client.get(
        f"/frameworks/{FRAMEWORK}/oscal/",
        params={"organizationId": ALPHA, "model": model},
        headers=filled.bearer("viewer") | {"Accept": "application/oscal+json"},
    )
    assert accepted.content == first.content


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("model", MODELS)
def test_a_document_is_valid_by_the_schema_of_nist(model: str, ask: Ask) -> None:
    document = ask("oscal", model=model)
    [name] = document.json()
    if nist_schema(name) is None:
        pytest.skip("the schemas of NIST are not there: name the folder of a release in NORMATA_TEST_OSCAL_SCHEMAS")
    valid(document.content)
    valid(ask("oscal", model=model, asOf=now()).content)
    broken = document.content.replace(b'"uuid":"', b'"uuid":"x', 1)
    assert list(nist_schema(name).iter_errors(json.loads(broken)))


@on_both
def test_a_catalog_imports_again(ask: Ask, filled: Served, tmp_path: Path) -> None:
    document = ask("oscal").content
    groups = {group["id"]: group for group in valid(document)["groups"]}
    assert list(groups) == ["_1", "_2"]
    # Two have the same identifier; both have names of their own.
    assert len({control["id"] for control in groups["_2"]["controls"]}) == 3
    # Below one group are a category and controls, which no group of OSCAL may have.
    assert [properties(one).get("type") for one in groups["_1"]["controls"]] == ["CATEGORY", None, None]
    assert [one["prose"] for one in groups["_2"]["controls"][0]["parts"]] == [
        "Do it.\n  And again.",
        "So that it is done.",
    ]
    path = tmp_path / "again.json"
    path.write_bytes(document)
    published = read_published([path])
    assert published.left_out == {}
    outcome = change(filled.database, lambda unit: import_for_all(unit, published, skip_unknown=False))
    [again] = outcome.framework_ids
    stating = Stating(filled.client, filled.bearer("admin"))
    done(stating.adopt(again))
    fields = ("identifier", "name", "type", "isMandatory", "description", "purpose")
    first, second = (
        [[control[field] for field in fields] for control in stating.listed(frameworks=one).values()]
        for one in (FRAMEWORK, again)
    )
    assert first == second
    requirements = [stating.summary(one)["requirements"] for one in (FRAMEWORK, again)]
    assert requirements[0] == requirements[1]  # what is decomposed is none


@pytest.mark.usefixtures("filled")
@on_both
def test_a_component_tells_what_is_not_assessed_from_what_is_not_implemented(ask: Ask) -> None:
    document = valid(ask("oscal", model="component-definition").content)
    [component] = document["components"]
    [implementation] = component["control-implementations"]
    names = {one["props"][1]["value"]: one["id"] for one in _controls(valid(ask("oscal").content))}
    by_name = {one["control-id"]: one for one in implementation["implemented-requirements"]}
    said = {control: properties(by_name[names[control]]) for control in names if names[control] in by_name}
    assert implementation["source"] == f"urn:uuid:{valid(ask('oscal').content)['uuid']}"
    assert {control: (one.get("implementation-status"), one["coverage-status"]) for control, one in said.items()} == {
        "rep.1.1.a": (None, "NOT_ASSESSED"),
        "rep.1.1.b": ("partial", "PARTIAL"),
        "rep.1.1.c": (None, "NONE"),
        "rep.1.2": ("not-applicable", "NONE"),
        "rep.1.3": ("not-applicable", "NONE"),
        "rep.2.1": (None, "NOT_ASSESSED"),
        "rep.2.2": (None, "NOT_ASSESSED"),
        "rep.2.3": ("planned", "NONE"),
        "rep.3": ("implemented", "FULL"),
        "rep.4.a": (None, "NOT_ASSESSED"),
    }
    assert said["rep.1.1.c"]["conflict"] == "MATCHES"
    assert (said["rep.2.1"]["effective-coverage-status"], said["rep.2.3"]["planned-by"]) == ("FULL", DEADLINE)
    locks = by_name[names["rep.2.3"]]
    assert (locks["description"], locks["remarks"]) == ("By hand.", "No locks.\n\nThe board wants it.")
    [party] = document["metadata"]["parties"]
    assert (locks["responsible-roles"][0]["party-uuids"], properties(party)) == (
        [party["uuid"]],
        {"member-id": "member-editor"},
    )


def _controls(item: Json) -> list[Json]:
    found = []
    for name in ("groups", "controls"):
        for one in item.get(name, ()):
            found += [one, *_controls(one)]
    return found


@pytest.mark.usefixtures("filled")
@on_both
def test_a_plan_has_gaps_conflicts_and_open_findings(ask: Ask) -> None:
    document = valid(ask("oscal", model="poam").content)
    entries = [properties(one) for one in document["poam-items"]]
    found = [(one["kind"], one["id"]) for one in entries]
    gaps = ask("gaps").json()
    assert {control for kind, control in found if kind == "gap"} == {one["id"] for one in gaps["gaps"]}
    assert [control for kind, control in found if kind == "conflict"] == ["rep.1.1.c"]
    assert [one for kind, one in found if kind == "finding"] == ["found-1"]
    deadlines = {entry["id"]: risk.get("deadline") for entry, risk in zip(entries, document["risks"], strict=True)}
    assert {one for one, deadline in deadlines.items() if deadline == DEADLINE} == {"rep.2.3", "found-1"}
    [door] = document["findings"]
    assert (door["description"], door["target"]["status"]["state"]) == ("A door.", "not-satisfied")
    assert document["risks"][-1]["remediations"][0]["description"] == "Close it."


@on_both
def test_a_plan_in_which_nothing_is_open_says_so(service: Served, ask: Ask) -> None:
    small = {"id": "fw-small", "identifier": "SMALL", "name": "Small", "slug": "small"}
    adoption = {"id": "adopt-small", "organizationId": ALPHA, "frameworkId": "fw-small", "adoptedAt": EARLIER}
    service.load({"frameworks": [small], "frameworkAdoptions": [adoption]})
    for model in MODELS:
        document = valid(ask("oscal", "fw-small", model=model).content)
        left_out = [one["value"] for one in document["metadata"]["props"] if one["name"] == "left-out"]
        assert ("version" in left_out) == (model == "catalog")
    [item] = document["poam-items"]
    assert (item["title"], properties(item)) == ("Nothing is open", {"kind": "nothing"})


@on_both
def test_documents_of_the_past(ask: Ask, filled: Served) -> None:
    before = {model: ask("oscal", model=model).json() for model in MODELS}
    time.sleep(0.003)
    moment = now()
    stating = Stating(filled.client, filled.bearer("admin"))
    done(stating.put("rep.2.3", coverageStatus="FULL", note="With locks."))
    done(stating.put("rep.3", coverageStatus="NONE"))
    then = {model: ask("oscal", model=model, asOf=moment) for model in MODELS}
    assert then["catalog"].json() == before["catalog"]
    assert "memento-datetime" in then["poam"].headers
    # Tasks and findings have no past, and are left out.
    implemented = valid(then["component-definition"].content)["components"]
    assert "With locks." not in str(implemented)
    assert "planned-by" not in str(implemented)
    plan = valid(then["poam"].content)
    assert properties(plan["metadata"])["as-of"] == moment
    items = plan["poam-items"]
    earlier = before["poam"]["plan-of-action-and-milestones"]["poam-items"]
    assert items == [one for one in earlier if properties(one)["kind"] != "finding"]
    refused(ask("oscal", asOf="2999-01-01"), 400, "validation")


@on_both
def test_whose_frameworks_there_are(ask: Ask, filled: Served) -> None:
    refused(ask("oscal", "fw-star", model="poam"), 404, "not_found")  # it is not adopted
    assert "catalog" in ask("oscal", "fw-star").json()  # but to be seen
    other = filled.client.get(
        "/frameworks/fw-own/oscal/", params={"organizationId": BETA}, headers=filled.bearer("foreigner")
    )
    refused(other, 404, "not_found")
    refused(ask("oscal", model="profile"), 400, "validation")


class _Control:
    def __init__(self, control_id: str, identifier: str) -> None:
        self.id, self.identifier = control_id, identifier


def test_names_of_controls() -> None:
    given = [("f:ac-1", "AC-1"), ("x", "A.5.1"), ("y", "1 (a)"), ("z", "---"), ("v", "1-A"), ("w", "1 a")]
    names = control_names("f", [_Control(*one) for one in given])
    assert [names[one] for one in ("f:ac-1", "x", "y", "z")] == ["ac-1", "a.5.1", names["y"], "_"]
    same = [names[one] for one in ("y", "v", "w")]
    assert len(set(same)) == 3
    assert all(name.startswith("_1-a-") for name in same)
    assert json.dumps(names) == json.dumps(control_names("f", [_Control(*one) for one in given]))
