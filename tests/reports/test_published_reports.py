"""Published frameworks, assessed FULL throughout: every report says 100 %.

NIST's are the published files. ISO/IEC 27001, PCI DSS and the CIS Controls may not be handed on, so those here have the
ids of the published libraries and the numbers of the requirements, and no texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from normata.catalogs.importing import import_for_all
from normata.catalogs.reading import read_published
from tests.console.browser import Browser, new_link, text_of
from tests.coverage.assessing import Json, Stating, assert_consistent, done
from tests.databases import change, on_both
from tests.served import Served, served
from tests.world import ALPHA

pytestmark = pytest.mark.long

OSCAL_HIGH = "NIST_SP-800-53_rev5_HIGH-baseline-resolved-profile_catalog-min.json"
OSCAL_REV4 = "NIST_SP-800-53_rev4_{}-min.json"
PROFILES = tuple(OSCAL_REV4.format(f"{level}-baseline_profile") for level in ("LOW", "MODERATE", "HIGH"))

# --- Those that are written here

CIS_SAFEGUARDS = (5, 7, 14, 12, 6, 8, 7, 12, 7, 7, 5, 8, 11, 9, 7, 14, 9, 5)
ISO_CLAUSES = (
    *("4.1", "4.2", "4.3", "4.4", "5.1", "5.2", "5.3", "6.1.1", "6.1.2", "6.1.3", "6.2", "6.3", "7.1", "7.2", "7.3"),
    *("7.4", "7.5.1", "7.5.2", "7.5.3", "8.1", "8.2", "8.3", "9.1", "9.2.1", "9.2.2", "9.3.1", "9.3.2", "9.3.3"),
    *("10.1", "10.2"),
)
ISO_ANNEX = tuple(
    f"A.{theme}.{number}" for theme, last in ((5, 37), (6, 8), (7, 14), (8, 34)) for number in range(1, last + 1)
)
PCI_HEADINGS = tuple(
    f"{number}.{heading}"
    for number, last in enumerate((5, 3, 7, 2, 4, 5, 3, 6, 5, 7, 6, 10), 1)
    for heading in range(1, last + 1)
)
CIS_GROUPS = ("IG1", "IG2", "IG3")


def with_parents(numbers: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """These numbers and those above them, each once and after what is above it."""
    seen: set[str] = set()
    for number in numbers:
        steps = number.split(".")
        first = 2 if steps[0] == "A" else 1  # `A.5` is the highest of Annex A
        for length in range(first, len(steps) + 1):
            one, parent = ".".join(steps[:length]), ".".join(steps[: length - 1])
            if one not in seen:
                seen.add(one)
                yield one, parent if length > first else None


def library(name: str, numbers: Iterable[str], requirements: Sequence[str], **groups: Sequence[str]) -> Json:
    """A library of CISO Assistant, with the implementation groups of each number."""
    framework = f"urn:intuitem:risk:framework:{name}"
    nodes = [
        {
            "urn": f"{framework}:{number}",
            "parent_urn": parent and f"{framework}:{parent}",
            "ref_id": number,
            "name": number,
            "assessable": number in requirements,
            "implementation_groups": [group for group, members in groups.items() if number in members],
        }
        for number, parent in with_parents(numbers)
    ]
    defined = [{"ref_id": group, "name": group, "description": None} for group in groups]
    content = {"urn": framework, "ref_id": name, "name": name, "requirement_nodes": nodes}
    return {
        "urn": f"urn:intuitem:risk:library:{name}",
        "name": name,
        "version": 1,
        "objects": {"framework": content | ({"implementation_groups_definition": defined} if groups else {})},
    }


def iso_27001() -> Json:
    """Clauses, of which those with clauses below them are headings, and Annex A."""
    numbers = (*ISO_CLAUSES, *ISO_ANNEX)
    return library("iso27001-2022", numbers, numbers)


def pci_dss() -> Json:
    """Headings that the library marks as requirements, as the requirements below them."""
    requirements = tuple(f"{heading}.{number}" for heading in PCI_HEADINGS for number in (1, 2))
    return library("pcidss-4_0", requirements, (*PCI_HEADINGS, *requirements))


def cis_controls() -> Json:
    """18 controls, their safeguards, and three groups, each of which has what the ones before it have."""
    numbers = tuple(f"{number}.{one}" for number, count in enumerate(CIS_SAFEGUARDS, 1) for one in range(1, count + 1))
    return library("cis-controls-v8", numbers, numbers, IG1=numbers[::3], IG2=numbers[::2] + numbers[::3], IG3=numbers)


WRITTEN = {"iso-27001": iso_27001, "pci-dss": pci_dss, "cis-controls": cis_controls}

# --- What they are assessed and reported as


def imported(service: Served, paths: Sequence[Path]) -> tuple[Stating, str]:
    """Import a framework for all and adopt it; who assesses it, and its id."""
    change(service.database, lambda unit: import_for_all(unit, read_published([*paths]), skip_unknown=False))
    stating = Stating(service.client, service.bearer("admin"))
    known = {"fw-sun", "fw-moon", "fw-star", "fw-own"}
    [framework] = [one["id"] for one in service.listing("/frameworks/", "admin").items() if one["id"] not in known]
    done(stating.adopt(framework))
    return stating, framework


def assess_all(stating: Stating, framework: str) -> list[str]:
    """Assess every requirement of a framework FULL, for a reason; returns their ids."""
    controls = [item for item in stating.listed(frameworks=framework).values() if item["type"] == "CONTROL"]
    ids = [item["id"] for item in controls]
    for start in range(0, len(ids), 500):
        said = {"coverageStatus": "FULL", "reasons": ["BEST_PRACTICE"]}
        done(stating.patch(*({"controlId": one, **said} for one in ids[start : start + 500])))
    return ids


def report(service: Served, framework: str, name: str) -> Json:
    """A report of a framework."""
    path = f"/frameworks/{quote(framework, safe='')}/{name}/"
    return done(service.client.get(path, params={"organizationId": ALPHA}, headers=service.bearer("viewer")))


def assert_every_report_says_all(service: Served, framework: str, applicable: int, all_of_them: int) -> None:
    """The summary with its categories, the gaps, the statement of applicability, and the overview of the console."""
    summary, gaps = report(service, framework, "coverage"), report(service, framework, "gaps")
    statement = report(service, framework, "statement-of-applicability")
    assert report(service, framework, "gaps/plan")["steps"] == []
    counts = summary["counts"]
    assert statement["otherRequirements"] is None
    assert counts == gaps["counts"] == added(statement["counts"], statement["mandatory"]["counts"])
    assert (counts["requirements"], counts["applicable"]) == (all_of_them, applicable)
    assert counts["effective"] == counts["assessed"] == {"none": 0, "partial": 0, "full": applicable}
    assert (counts["withoutAssessment"], counts["conflicts"], counts["indirectlyCovered"]) == (0, 0, 0)
    for category in summary["categories"]:
        assert category["counts"]["effective"]["full"] == category["counts"]["applicable"], category["identifier"]
    assert (gaps["gaps"], gaps["nextSteps"], gaps["conflicts"]) == ([], [], [])
    mandatory = statement["mandatory"]["requirements"]
    assert len(statement["controls"]) == all_of_them - len(mandatory)
    assert {entry["implemented"] for entry in mandatory} <= {"YES"}
    full = [entry for entry in statement["controls"] if entry["effectiveCoverageStatus"] == "FULL"]
    in_it = [entry for entry in statement["controls"] if entry["isApplicable"]]
    assert len(full) == len(in_it) == statement["counts"]["applicable"]
    assert set(statement["objections"].values()) == {0}
    browser = Browser(service)
    assert browser.post("/sign-in/link/", secret=new_link(service, "viewer")).status_code == 303
    name = summary["framework"]["name"]
    assert f"{name} 100 % ready" in text_of(browser.get("/app/alpha/"))
    path = f"/app/alpha/frameworks/{quote(framework, safe='')}/"
    for part in ("", "gaps/"):
        assert "100 % ready" in text_of(browser.get(f"{path}{part}"))
    for part in ("gaps/", "plan/"):
        assert "There are no gaps" in text_of(browser.get(f"{path}{part}"))
    assert_consistent(service.database)


def added(some: Json, others: Json) -> Json:
    """The counts of requirements in two groups, together."""
    return {
        name: added(count, others[name]) if isinstance(count, dict) else count + others[name]
        for name, count in some.items()
    }


def identifiers(stating: Stating, framework: str) -> dict[str, Any]:
    """The controls of a framework by identifier."""
    return {item["identifier"]: item for item in stating.listed(frameworks=framework).values()}


@pytest.mark.parametrize(("name", "count"), [("nist-800-171-rev2", 110), ("nist-csf-2.0", 106)])
@on_both
def test_published_libraries(name: str, count: int, catalogs: Path, database_url: str) -> None:
    with served(database_url) as service:
        stating, framework = imported(service, [catalogs / "ciso-assistant" / f"{name}.yaml"])
        assert len(assess_all(stating, framework)) == count
        assert_every_report_says_all(service, framework, count, count)


@pytest.mark.parametrize(
    "name",
    [
        *("ciso-assistant/nist-csf-1.1.yaml", "ciso-assistant/nist-sp-800-53-rev5.yaml"),
        *("ciso-assistant/nist-sp-800-66-rev2.yaml", "ciso-assistant/cmmc-2.0.yaml", f"oscal/{OSCAL_HIGH}"),
    ],
)
def test_published_files(name: str, catalogs: Path, database_url: str) -> None:
    with served(database_url) as service:
        stating, framework = imported(service, [catalogs / name])
        count = len(assess_all(stating, framework))
        assert count > 100
        assert_every_report_says_all(service, framework, count, count)


def test_800_53_with_each_of_its_baselines(catalogs: Path, database_url: str) -> None:
    """AC-2 is a requirement beside its enhancements, is in all three baselines, and is assessed once."""
    folder = catalogs / "oscal"
    paths = [folder / OSCAL_REV4.format("catalog"), *(folder / profile for profile in PROFILES)]
    with served(database_url) as service:
        stating, framework = imported(service, paths)
        count = len(assess_all(stating, framework))
        assert_every_report_says_all(service, framework, count, count)
        sizes = []
        for baseline in stating.baselines(framework)["baselines"]:
            done(stating.adopt(framework, baseline=baseline["id"]))
            assert_every_report_says_all(service, framework, baseline["requirements"], count)
            entries = report(service, framework, "statement-of-applicability")["controls"]
            [base] = [entry for entry in entries if entry["identifier"].upper() == "AC-2"]
            assert (base["isApplicable"], base["coverageStatus"]) == (True, "FULL")
            sizes.append(baseline["requirements"])
        assert len(sizes) == 3
        assert 0 < sizes[0] < sizes[1] < sizes[2] < count


@pytest.mark.parametrize(
    ("name", "count"), [("iso-27001", len(ISO_CLAUSES) + 93), ("pci-dss", 2 * len(PCI_HEADINGS)), ("cis-controls", 153)]
)
@on_both
def test_libraries_as_they_are_published(name: str, count: int, tmp_path: Path, database_url: str) -> None:
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(WRITTEN[name]()), "utf-8")
    with served(database_url) as service:
        stating, framework = imported(service, [path])
        assess_all(stating, framework)
        assert_every_report_says_all(service, framework, count, count)
        controls = identifiers(stating, framework)
        if name == "pci-dss":
            heading = controls["3.5"]
            assert heading["effectiveCoverageStatus"] == "FULL"
            done(stating.put(heading["id"]))  # its requirements are all of it, so it need not be assessed
            assert_every_report_says_all(service, framework, count, count)
        if name == "iso-27001":
            statement = report(service, framework, "statement-of-applicability")
            assert [entry["identifier"] for entry in statement["controls"]] == list(ISO_ANNEX)
            assert [entry["identifier"] for entry in statement["mandatory"]["requirements"]] == list(ISO_CLAUSES)
            browser = Browser(service)
            browser.post("/sign-in/link/", secret=new_link(service, "viewer"))
            page = browser.get(f"/app/alpha/frameworks/{quote(framework, safe='')}/statement-of-applicability/")
            said = text_of(page)
            assert "Mandatory requirements 30" in said
            premises = controls["A.7"]
            answer = done(stating.put(premises["id"], isApplicable=False, justification="There are no premises."))
            assert answer["mandatoryRetained"]["count"] == 0
            assert_every_report_says_all(service, framework, count - 14, count)
            clauses = controls["6"]
            answer = done(stating.put(clauses["id"], isApplicable=False, justification="No plans."))
            stay = [one["identifier"] for one in answer["mandatoryRetained"]["items"]]
            assert stay == [clause for clause in ISO_CLAUSES if clause.startswith("6.")]
            assert_every_report_says_all(service, framework, count - 14, count)
        if name == "cis-controls":
            for baseline in stating.baselines(framework)["baselines"]:
                done(stating.adopt(framework, baseline=baseline["id"]))
                assert_every_report_says_all(service, framework, baseline["requirements"], count)
