"""Profiles in OSCAL, which become baselines of the frameworks of their catalogs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from normata.catalogs import uploads
from normata.catalogs.importing import import_for_all
from normata.catalogs.reading import Input, read_inputs
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.frameworks.baseline_model import Baseline
from normata.frameworks.baselines import selected_controls
from normata.frameworks.model import Control
from tests import mostly_sqlite, stored
from tests.catalogs.oscal_documents import UUID, catalog, control, metadata
from tests.catalogs.test_centralized_imports import Operator
from tests.coverage.assessing import Stating, assert_consistent, done
from tests.coverage.test_published_coverage import ORGANIZATION
from tests.databases import build, change, on_both
from tests.served import Served, served
from tests.world import ALPHA, BETA

pytestmark = pytest.mark.long

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

CATALOG = catalog(
    control("wt-1", controls=[control("wt-1.1", controls=[control("wt-1.1.1")]), control("wt-1.2")]),
    control("wt-2"),
    control("wt-3"),
)
LOW, HIGH = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


def profile(*imports: dict[str, Any], uuid: str = LOW, title: str = "Low", **more: Any) -> dict[str, Any]:
    return {"profile": {"uuid": uuid, "metadata": metadata(title=title), "imports": [*imports], **more}}


def selection(*ids: str, href: str = f"#{UUID}", children: str | None = None, **more: Any) -> dict[str, Any]:
    choice: dict[str, Any] = {"with-ids": [*ids]} | ({"with-child-controls": children} if children else {})
    return {"href": href, "include-controls": [choice]} | more


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    url = f"sqlite:///{tmp_path / 'profiles.db'}"
    build(url, with_world=False)
    with served(url) as one:
        yield one


Take = Callable[..., dict[str, int]]


@pytest.fixture
def take(service: Served) -> Take:
    """Imports documents, and returns what was left out."""

    def import_them(*documents: dict[str, Any], skip_unknown: bool = False) -> dict[str, int]:
        inputs = [
            Input(f"file-{number}.json", "", lambda one=one: json.dumps(one).encode())  # type: ignore[misc]
            for number, one in enumerate(documents)
        ]
        published = read_inputs(inputs)

        def work(unit: UnitOfWork) -> dict[str, int]:
            return dict(import_for_all(unit, published, skip_unknown=skip_unknown).left_out)

        return change(service.database, work)

    return import_them


def selected(service: Served, baseline: str = LOW) -> list[str]:
    """The controls that a baseline selects."""
    found = service.database.read_now(lambda transaction: selected_controls(transaction, [baseline]))
    return sorted(name.removeprefix(f"{UUID}:") for name in found)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (selection("wt-1", "wt-3"), ["wt-1", "wt-3"]),
        (selection("WT-1"), ["wt-1"]),
        (selection("wt-1", children="yes"), ["wt-1", "wt-1.1", "wt-1.1.1", "wt-1.2"]),
        (selection("wt-1", children="no"), ["wt-1"]),
        ({"href": f"#{UUID}", "include-all": {}}, ["wt-1", "wt-1.1", "wt-1.1.1", "wt-1.2", "wt-2", "wt-3"]),
        (
            {"href": f"#{UUID}", "include-all": {}, "exclude-controls": [{"with-ids": ["wt-3", "wt-1.2"]}]},
            ["wt-1", "wt-1.1", "wt-1.1.1", "wt-2"],
        ),
        (selection("wt-1", children="yes") | {"exclude-controls": [{"with-ids": ["wt-1.2"]}]}, None),
        ({"href": f"#{UUID}", "include-controls": [{"matching": [{"pattern": "wt-1.*"}]}]}, None),
    ],
)
def test_what_a_profile_includes_is_in_its_baseline(
    service: Served, take: Take, entry: dict[str, Any], expected: list[str] | None
) -> None:
    take(CATALOG, profile(entry))
    if expected is None:
        expected = ["wt-1", "wt-1.1", "wt-1.1.1"] if "exclude-controls" in entry else ["wt-1.1", "wt-1.1.1", "wt-1.2"]
    assert selected(service) == expected
    [row] = stored.rows(service.database, Baseline)
    assert (row["framework_id"], row["name"], row["slug"]) == (UUID, "Low", "low")


@pytest.mark.parametrize(
    ("href", "resource"),
    [
        (f"#{UUID}", None),
        (f"urn:uuid:{UUID}", None),
        ("#c0ffee00-1111-4222-8333-444444444444", {"description": "Garden Special Publication 7 Revision 2"}),
        ("#c0ffee00-1111-4222-8333-444444444444", {"rlinks": [{"href": "../json/garden.json"}]}),
        ("https://example.org/garden-min.json", None),
    ],
)
def test_the_catalog_is_found_among_those_that_are_stored(
    service: Served, take: Take, href: str, resource: dict[str, Any] | None
) -> None:
    """By its uuid, its title, or by the controls that only it has."""
    take(CATALOG)
    document = profile(selection("wt-1", href=href))
    if resource is not None:
        document["profile"]["back-matter"] = {"resources": [{"uuid": href[1:], **resource}]}
    take(document)
    assert selected(service) == ["wt-1"]


def test_without_its_catalog_a_profile_is_refused(take: Take) -> None:
    with pytest.raises(FaultyInput) as caught:
        take(profile(selection("wt-1", href="garden.json")))
    [fault] = caught.value.faults
    assert fault.place == "/profile/imports/0"
    assert fault.reason.startswith("needs a catalog or profile that has not been imported (garden.json)")


def test_controls_that_the_catalog_lacks_are_named_or_left_out(service: Served, take: Take) -> None:
    with pytest.raises(FaultyInput) as caught:
        take(CATALOG, profile(selection("wt-1", "wt-9")))
    [fault] = caught.value.faults
    assert fault.reason == (
        f"names controls that {UUID} does not have: wt-9. Import a version that has them, or use --skip-unknown"
    )
    left_out = take(CATALOG, profile(selection("wt-1", "wt-9")), skip_unknown=True)
    assert left_out["controls that the catalog does not have"] == 1
    assert selected(service) == ["wt-1"]


def test_a_profile_of_a_profile_selects_from_what_that_one_does(service: Served, take: Take) -> None:
    high = profile(selection("wt-1", "wt-2"), uuid=HIGH, title="High")
    low = profile({"href": f"#{HIGH}", "include-all": {}, "exclude-controls": [{"with-ids": ["wt-2"]}]})
    take(CATALOG, low, high)
    assert (selected(service), selected(service, HIGH)) == (["wt-1"], ["wt-1", "wt-2"])
    take(profile(selection("wt-2", href=f"#{HIGH}")))  # the other is stored by now
    assert selected(service) == ["wt-2"]


def test_profiles_that_lead_round_in_a_circle_have_no_baseline(service: Served, take: Take) -> None:
    one = profile(selection("wt-1", href=f"#{HIGH}"))
    other = profile(selection("wt-1", href=f"#{LOW}"), uuid=HIGH, title="High")
    with pytest.raises(FaultyInput) as caught:
        take(CATALOG, one, other)
    assert "leads round in a circle" in caught.value.faults[0].reason
    assert stored.rows(service.database, Baseline) == []


def test_what_it_sets_and_alters_is_left_out_and_counted(take: Take) -> None:
    modify = {
        "set-parameters": [{"param-id": "wt-1_prm_1", "values": ["daily"]}],
        "alters": [{"control-id": "wt-1", "adds": [{"props": [{"name": "priority", "value": "P1"}]}]}] * 2,
    }
    left_out = take(CATALOG, profile(selection("wt-1"), modify=modify))
    assert (left_out["parameters that are set"], left_out["controls that are altered"]) == (1, 2)


def test_it_may_be_yaml(tmp_path: Path) -> None:
    path = tmp_path / "low.yaml"
    path.write_text(yaml.safe_dump(profile(selection("wt-1"))))
    [found] = read_inputs([Input(str(path), "", path.read_bytes)]).profiles
    assert found.imports[0].included[0].ids == ("wt-1",)


MODIFIED = {
    "set-parameters": [{"param-id": "wt-1_prm_1", "values": ["daily"]}],
    "alters": [{"control-id": "wt-1", "adds": [{"props": [{"name": "priority", "value": "P1"}]}]}],
}


def imported(stating: Stating, document: dict[str, Any], **query: str) -> Any:
    """The answer to an import of an organization's own."""
    return stating.client.post(
        "/imports/",
        params={"organizationId": stating.organization_id} | query,
        json=document,
        headers=stating.headers,
    )


@on_both
def test_an_organization_imports_a_profile_for_itself(
    alpha: Stating, beta: Stating, bearer: Callable[..., dict[str, str]], database: Database
) -> None:
    """It becomes its own baseline of the centralized framework, which no other organization sees or adopts."""
    operator = Operator(alpha.client, bearer("operator", scope="admin"))
    document = profile(selection("wt-1", "wt-3"), modify=MODIFIED)
    [fault] = imported(alpha, document).json()["errors"]
    assert "the operator of the instance imports that" in fault["message"]
    done(operator.send(CATALOG))
    tried = done(imported(alpha, document, dryRun="true"))["answer"]
    assert (tried["baselines"]["new"], tried["baselineControls"]["new"]) == (1, 2)
    assert tried["omitted"] == [
        {"name": "controls that are altered", "count": 1},
        {"name": "parameters that are set", "count": 1},
    ]
    assert stored.rows(database, Baseline) == []
    assert done(imported(alpha, document)) == tried
    assert tried["frameworkIds"] == [UUID]
    assert done(imported(alpha, document))["baselines"] == {"new": 0, "changed": 0, "unchanged": 1}
    [own] = alpha.baselines(UUID)["baselines"]
    assert (own["name"], own["requirements"], own["isOwn"]) == ("Low", 2, True)
    assert beta.baselines(UUID)["baselines"] == []
    for name in (own["id"], "low"):
        assert beta.adopt(UUID, baseline=name).status_code == 400
    done(beta.adopt(UUID))
    assert (len(beta.listed(baseline="low")), len(beta.listed(baseline=own["id"]))) == (0, 0)
    done(alpha.adopt(UUID, baseline="low"))
    assert (alpha.summary(UUID)["applicable"], beta.summary(UUID)["applicable"]) == (2, 6)
    assert {one["identifier"] for one in alpha.listed(baseline="low").values()} == {"WT-1", "WT-3"}
    # A profile of it, and one that selects less, which takes it away from those who have adopted it.
    done(imported(alpha, profile(selection("wt-3", href=f"#{LOW}"), uuid=HIGH, title="Less")))
    done(imported(alpha, profile(selection("wt-3"))))
    assert [one["requirements"] for one in alpha.baselines(UUID)["baselines"]] == [1, 1]
    assert alpha.summary(UUID)["applicable"] == 1
    # The operator's is another one, for all.
    assert done(operator.send(document, dryRun="true"))["answer"] == tried
    assert done(operator.send(document)) == tried
    assert [one["isOwn"] for one in beta.baselines(UUID)["baselines"]] == [False]
    assert [one["isOwn"] for one in alpha.baselines(UUID)["baselines"]].count(True) == 2
    assert alpha.summary(UUID)["applicable"] == 1
    for organization_id in (ALPHA, BETA):
        assert_consistent(database, organization_id)


def test_with_its_catalog_a_profile_becomes_a_baseline_of_the_copy(service: Served) -> None:
    """As `normata import --organization` reads both."""
    service.load(ORGANIZATION)
    inputs = [
        Input("garden.json", "", lambda: json.dumps(CATALOG).encode()),
        Input("low.json", "", lambda: json.dumps(profile(selection("wt-1"))).encode()),
    ]
    outcome = change(service.database, lambda unit: uploads.take(unit, ALPHA, uploads.Upload(read_inputs(inputs))))
    [framework] = outcome.framework_ids
    [row] = stored.rows(service.database, Baseline)
    assert (row["framework_id"], row["organization_id"]) == (framework, ALPHA)
    [control] = service.database.read_now(lambda transaction: selected_controls(transaction, [row["id"]]))
    [found] = [one for one in stored.rows(service.database, Control) if one["id"] == control]
    assert (found["identifier"], found["framework_id"]) == ("WT-1", framework)


def test_a_profile_in_xml_is_told_what_to_do(alpha: Stating) -> None:
    answer = alpha.client.post(
        "/imports/",
        params={"organizationId": alpha.organization_id},
        content=b'<profile xmlns="http://csrc.nist.gov/ns/oscal/1.0"/>',
        headers=alpha.headers | {"Content-Type": "application/json"},
    )
    assert (answer.status_code, "oscal-cli converts it" in answer.text) == (400, True)


# --- As NIST publishes them

REVISION_4 = "NIST_SP-800-53_rev4_{}-min.json"
PUBLISHED = {"LOW": 124, "MODERATE": 261, "HIGH": 343}


def read_files(paths: Sequence[Path]) -> Any:
    return read_inputs([Input(str(path), path.stem, path.read_bytes) for path in paths])


def test_the_baselines_of_800_53(catalogs: Path, service: Served) -> None:
    """One framework, with Low, Moderate and High: AC-2 is assessed once."""
    names = ["catalog", *(f"{name}-baseline_profile" for name in PUBLISHED)]
    published = read_files([catalogs / "oscal" / REVISION_4.format(name) for name in names])
    outcome = change(service.database, lambda unit: import_for_all(unit, published, skip_unknown=False))
    assert outcome.left_out["controls that are altered"] == 115 + 159 + 170
    service.load(ORGANIZATION)
    alpha = Stating(service.client, service.bearer("admin"))
    [framework] = [one["id"] for one in service.listing("/frameworks/", "admin").items()]
    shown = alpha.baselines(framework)
    found = {one["identifier"]: one["requirements"] for one in shown["baselines"]}
    assert found == {f"{name} IMPACT BASELINE": count for name, count in PUBLISHED.items()}
    done(alpha.adopt(framework, baseline="moderate-impact-baseline"))
    assert alpha.summary(framework)["applicable"] == 261
    moderate = alpha.listed(baseline="moderate-impact-baseline")
    assert len(moderate) == 261
    ids = list(moderate)
    for start in range(0, len(ids), 100):
        some = ids[start : start + 100]
        done(alpha.patch(*({"controlId": one, "coverageStatus": "FULL"} for one in some)))
    counts = alpha.summary(framework)
    assert (counts["applicable"], counts["effective"]["full"]) == (261, 261)
    assert alpha.gaps(framework) == []
    before = alpha.listed()
    # CM-7 (4) is in Moderate, and CM-7 (5) in its place in High.
    for baseline, full in (("high-impact-baseline", 260), (None, 261), ("low-impact-baseline", 124)):
        done(alpha.adopt(framework, baseline=baseline))
        assert alpha.summary(framework)["effective"]["full"] == full
    done(alpha.adopt(framework, baseline="moderate-impact-baseline"))
    assert alpha.listed() == before
    assert [item["identifier"] for item in before.values()].count("AC-2") == 1
    assert_consistent(service.database)


def test_implementation_groups_of_cmmc(catalogs: Path) -> None:
    rows = read_files([catalogs / "ciso-assistant" / "cmmc-2.0.yaml"]).rows
    baselines = {row.values["identifier"]: row.values["id"] for row in rows if row.array == "baselines"}
    selected_by = {name: sum(row.values.get("baselineId") == one for row in rows) for name, one in baselines.items()}
    assert selected_by == {"L1": 17, "L2": 93}
