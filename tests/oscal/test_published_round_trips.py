"""Published catalogs that leave as OSCAL and are imported again: the same controls, in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from normata.catalogs.importing import import_for_all
from normata.catalogs.reading import read_published
from tests.coverage.assessing import Json, done
from tests.databases import change
from tests.oscal.documents import valid
from tests.reports.test_published_reports import OSCAL_HIGH, OSCAL_REV4, imported
from tests.served import Served, served
from tests.world import ALPHA

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    "name",
    [
        *(f"oscal/{one}" for one in (OSCAL_REV4.format("catalog"), OSCAL_HIGH)),
        *(
            "ciso-assistant/nist-csf-2.0.yaml",
            "ciso-assistant/cmmc-2.0.yaml",
            "ciso-assistant/nist-sp-800-66-rev2.yaml",
        ),
        *("ciso-assistant/nist-800-171-rev2.yaml", "ciso-assistant/nist-ssdf-1.1.yaml"),
    ],
)
def test_a_catalog_imports_again_as_the_same_controls(
    name: str, catalogs: Path, tmp_path: Path, database_url: str
) -> None:
    with served(database_url) as service:
        stating, framework = imported(service, [catalogs / name])
        for model in ("component-definition", "poam"):
            valid(asked(service, framework, model))
        document = asked(service, framework, "catalog")
        valid(document)
        path = tmp_path / "again.json"
        path.write_bytes(document)
        published = read_published([path])
        outcome = change(service.database, lambda unit: import_for_all(unit, published, skip_unknown=False))
        [again] = outcome.framework_ids
        assert again != framework
        done(stating.adopt(again))
        assert told(stating.listed(frameworks=again)) == told(stating.listed(frameworks=framework))


def asked(service: Served, framework: str, model: str) -> bytes:
    """A document, as the bytes of the answer."""
    answer = service.client.get(
        f"/frameworks/{quote(framework, safe='')}/oscal/",
        params={"organizationId": ALPHA, "model": model},
        headers=service.bearer("viewer"),
    )
    assert answer.status_code == 200, answer.text
    return answer.content


def told(controls: dict[str, Json]) -> list[Any]:
    """What controls say, and what they are below, in catalog order; an import drops blanks at the ends of lines."""
    return [
        (
            *(control[field] for field in ("identifier", "name", "type", "isMandatory")),
            *(_lines(control[field]) for field in ("description", "purpose")),
            control["parent"] and control["parent"]["identifier"],
        )
        for control in controls.values()
    ]


def _lines(text: str | None) -> list[str]:
    return [line.rstrip() for line in (text or "").strip().splitlines()]
