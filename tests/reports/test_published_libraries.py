"""The libraries of CISO Assistant as they are published: what an auditor would count, and what reports once got wrong.

``NORMATA_TEST_LIBRARIES`` names a folder with more of them than there are beside the published catalogs, such as
``backend/library/libraries`` of CISO Assistant. A test whose file is in neither folder is skipped. Where it is set, a
further test assesses everything in it, for some minutes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from normata.catalogs.importing import import_for_all
from normata.catalogs.known_frameworks import known_framework
from normata.catalogs.reading import read_published
from tests.catalogs.test_centralized_imports import Operator
from tests.coverage.assessing import Json, Stating, assert_consistent, done
from tests.databases import change
from tests.notifications.test_about_coverage import told
from tests.reports.test_published_reports import assert_every_report_says_all, assess_all, imported, report
from tests.served import Served, served

FOLDER = os.environ.get("NORMATA_TEST_LIBRARIES")
CSF_1, CSF_2, CSF_1_TO_2 = "nist-csf-1.1", "nist-csf-2.0", "map-nist-csf-1.1-nist-csf-2.0"
ISO, ISO_2013, ISO_2013_TO_2022 = "iso27001-2022", "iso27001-2013", "mapping-iso27001-2013-to-iso27001-2022"
# PCI DSS: 351 less 71 headings of two numbers that are decomposed into the requirements below them.
COUNTS = {ISO: 123, ISO_2013: 140, "pcidss-4_0": 280}
CIS_BENCHMARKS = (
    *("aws-foundations", "azure-foundations", "debian-12", "debian-13", "gcp-foundation", "github", "gitlab"),
    *("google-workspace", "kubernetes-2.0.1", "kubernetes", "microsoft-365", "ubuntu-24.04", "windows-11"),
)

Find = Callable[[str], Path]


@pytest.fixture
def find(catalogs: Path) -> Find:
    """The file of a library."""

    def found(name: str) -> Path:
        folders = [Path(FOLDER)] if FOLDER else []
        for folder in (*folders, catalogs / "ciso-assistant"):
            if (path := folder / f"{name}.yaml").is_file():
                return path
        pytest.skip(f"{name}.yaml is not there: set NORMATA_TEST_LIBRARIES")

    return found


def library(path: Path) -> Json:
    """The content of a library."""
    content: Json = json.loads(json.dumps(yaml.load(path.read_text("utf-8"), yaml.CSafeLoader), default=str))
    return content


def identifier(node: Json) -> str:
    """The identifier of a node; what its urn ends with where it has no reference."""
    return str(node.get("ref_id") or node["urn"].rpartition(":")[2])


def counted(path: Path) -> tuple[str, int]:
    """The id of the framework in a library, and how many requirements its publisher counts; none: there is none."""
    framework = (library(path).get("objects") or {}).get("framework")
    if framework is None:
        return "", 0
    nodes = framework["requirement_nodes"]
    known, parents = known_framework(framework["urn"]), {node.get("parent_urn") for node in nodes}
    return framework["urn"], sum(
        node.get("assessable") is not False
        and not (known and node["urn"] in parents and known.decomposed.fullmatch(identifier(node)))
        for node in nodes
    )


@pytest.mark.parametrize("name", [*COUNTS, *(f"cis-benchmark-{name}" for name in CIS_BENCHMARKS)])
def test_every_requirement_of_a_library_is_counted(name: str, find: Find, database_url: str) -> None:
    path = find(name)
    framework_id, count = counted(path)
    assert count == COUNTS.get(name, count) > 0
    with served(database_url) as service:
        stating, framework = imported(service, [path])
        assert framework == framework_id
        assess_all(stating, framework)
        assert_every_report_says_all(service, framework, count, count)
        if name == ISO:
            statement = report(service, framework, "statement-of-applicability")
            assert (len(statement["controls"]), len(statement["mandatory"]["requirements"])) == (93, 30)


# --- What reports once got wrong


def import_all(service: Served, *paths: Path) -> tuple[Stating, Operator]:
    """Import libraries for all and adopt their frameworks: who assesses them, and who imports others."""
    change(service.database, lambda unit: import_for_all(unit, read_published([*paths]), skip_unknown=False))
    stating = Stating(service.client, service.bearer("admin"))
    for framework in filter(None, (counted(path)[0] for path in paths)):
        done(stating.adopt(framework))
    return stating, Operator(service.client, service.bearer("operator", scope="admin"))


def test_pairs_that_a_mapping_withdraws_count_no_more(find: Find, database_url: str) -> None:
    """Once all of them stayed."""
    with served(database_url) as service:
        stating, operator = import_all(service, *map(find, (CSF_1, CSF_2, CSF_1_TO_2)))
        sources = [item["id"] for item in stating.listed(frameworks=f"urn:intuitem:risk:framework:{CSF_1}").values()]
        done(stating.patch(*({"controlId": one, "coverageStatus": "FULL"} for one in sources)))
        document = library(find(CSF_1_TO_2))
        mappings = document["objects"]["requirement_mapping_set"]["requirement_mappings"]
        withdrawn = {(one["source_requirement_urn"], one["target_requirement_urn"]) for one in mappings[:50]}
        del mappings[:50]
        remaining = {(one["source_requirement_urn"], one["target_requirement_urn"]) for one in mappings}
        listed = stating.listed()
        before = {one: item["effectiveCoverageStatus"] for one, item in listed.items() if item["type"] == "CONTROL"}
        result = done(operator.send(document | {"version": "99"}))
        assert (len(withdrawn), result["retired"], result["controlMatches"]["changed"]) == (50, 100, 100)
        effective = stating.effective()
        fallen = {target for target in before if effective[target] < before[target]}
        # All of it is overlap, which lifts a requirement to PARTIAL while one pair is left.
        bare = {target for _, target in withdrawn} - {target for _, target in remaining}
        assert fallen == {one for one in bare if before.get(one) == "PARTIAL"}
        assert {effective[one] for one in fallen} == {"NONE"}
        [notification] = told(service, "owner")
        assert notification["payload"]["params"]["count"] == len(fallen) > 0
        assert_consistent(service.database)


def test_a_stricter_text_of_a_control_makes_its_assessment_stale(find: Find, database_url: str) -> None:
    """Once the assessment stayed FULL without a word."""
    with served(database_url) as service:
        stating, operator = import_all(service, find(ISO))
        [control] = [item["id"] for item in stating.listed(search="A.5.1").values() if item["identifier"] == "A.5.1"]
        done(stating.put(control, coverageStatus="FULL"))
        document = library(find(ISO))
        [node] = [one for one in document["objects"]["framework"]["requirement_nodes"] if one["urn"] == control]
        node["description"] = f"{node.get('description') or node['name']} They are reviewed every month."
        result = done(operator.send(document | {"version": "99"}))
        assert (result["reworded"], [one["id"] for one in result["firstReworded"]]) == (1, [control])
        assert [one["reason"] for one in done(stating.control(control))["coverage"]["stale"]] == ["WORDING_CHANGED"]
        assert stating.summary("urn:intuitem:risk:framework:iso27001-2022")["stale"] == 1


def test_a_gap_that_a_match_makes_full_is_a_conflict(find: Find, database_url: str) -> None:
    """Once the requirement, assessed NONE with a documented gap, vanished from the gaps."""
    with served(database_url) as service:
        stating, _ = import_all(service, *map(find, (ISO_2013, ISO, ISO_2013_TO_2022)))
        mappings = library(find(ISO_2013_TO_2022))["objects"]["requirement_mapping_set"]["requirement_mappings"]
        equal = next(one for one in mappings if one["relationship"] == "equal")
        source, target = equal["source_requirement_urn"], equal["target_requirement_urn"]
        done(stating.put(target, coverageStatus="NONE", coverageGap="Nothing is written down."))
        done(stating.put(source, coverageStatus="FULL"))
        assert stating.effective()[target] == "FULL"
        found = report(service, f"urn:intuitem:risk:framework:{ISO}", "gaps")
        assert target not in {gap["id"] for gap in found["gaps"]}
        [conflict] = found["conflicts"]
        assert (conflict["id"], conflict["coverageGap"]) == (target, "Nothing is written down.")
        assert found["counts"]["conflicts"] == 1


@pytest.mark.skipif(not FOLDER, reason="takes some minutes: set NORMATA_TEST_LIBRARIES")
def test_all_libraries_together(database_url: str) -> None:
    """Each framework, assessed FULL, has as many FULL requirements as its publisher counts."""
    paths = sorted(Path(FOLDER or "").glob("*.yaml"))
    expected = {framework: count for framework, count in map(counted, paths) if framework}
    assert expected
    with served(database_url) as service:
        published = read_published(paths, skip_unfit=True)
        change(service.database, lambda unit: import_for_all(unit, published, skip_unknown=True))
        stating = Stating(service.client, service.bearer("admin"))
        found: dict[str, Any] = {}
        for framework in expected:
            done(stating.adopt(framework))
            assess_all(stating, framework)
        for framework in expected:
            counts = stating.summary(framework)
            statement = report(service, framework, "statement-of-applicability")["counts"]
            gaps = report(service, framework, "gaps")["gaps"]
            found[framework] = counts["effective"]["full"] if counts["requirements"] and not gaps else statement
        assert found == expected
        plan = done(
            service.client.get(
                f"/frameworks/{quote(next(iter(expected)), safe='')}/gaps/plan/",
                params={"organizationId": stating.organization_id},
                headers=stating.headers,
            )
        )
        assert plan["steps"] == []
        assert plan["effectiveEverywhere"]["full"] >= sum(expected.values())
