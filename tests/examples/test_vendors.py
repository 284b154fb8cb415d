"""The example that makes the register of vendors follow a list of purchasing, whatever people do in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.databases import on_both
from tests.examples.integrating import Done, Integrations

PROGRAM = "vendors_from_csv.py"
COLUMNS = ("Number", "Name", "Website", "Contact", "E-mail", "Contract ends")


def listed(*numbers: int, **other: str) -> list[dict[str, str]]:
    """Lines of purchasing, the first of which has other values."""
    lines = [
        {
            "Number": f"V-{number}",
            "Name": f"Vendor {number}",
            "Website": f"https://vendor-{number}.example/",
            "E-mail": "" if number % 2 else f"sales@vendor-{number}.example",
            "Contract ends": "2028-03-31",
        }
        for number in numbers
    ]
    lines[0] |= other
    return lines


def run(integrations: Integrations, *lines: dict[str, str], at_most: int | None = None) -> Done:
    """One night."""
    file = integrations.table("vendors.csv", lines, COLUMNS)
    options = [] if at_most is None else ["--at-most", str(at_most)]
    return integrations.run(PROGRAM, file, *options, token=integrations.token("editor", "write"))


def vendors(integrations: Integrations, archived: str = "exclude") -> dict[str, Any]:
    """The vendors of purchasing, by name."""
    found = integrations.items("/vendors/", archived=archived)
    return {vendor["name"]: vendor for vendor in found if vendor["name"].startswith(("Vendor ", "Renamed"))}


def done(created: int = 0, updated: int = 0, unchanged: int = 0, restored: int = 0, archived: int = 0) -> str:
    """What a run says in which nothing was refused."""
    counts = f"{created} created, {updated} updated, {unchanged} unchanged"
    return f"{counts}, {restored} restored, {archived} archived, 0 refused\n"


@on_both
def test_the_second_night_changes_nothing(integrations: Integrations) -> None:
    lines = listed(*range(1, 8))
    first = run(integrations, *lines)
    assert (first.refused, first.status, first.said) == ([], 0, done(created=7))
    made = vendors(integrations)["Vendor 2"]
    assert (made["contactEmail"], made["contractExpiry"][:10]) == ("sales@vendor-2.example", "2028-03-31")
    events = integrations.events()
    assert run(integrations, *lines).said == done(unchanged=7)
    assert integrations.events() == events


def test_what_people_do_in_between(integrations: Integrations) -> None:
    run(integrations, *listed(*range(1, 8)))
    made = vendors(integrations)
    for name, change in (("Vendor 1", {"name": "Renamed"}), ("Vendor 2", {"category": "CLOUD"})):
        integrations.change("PATCH", f"/vendors/{made[name]['id']}/", change)
    integrations.change("POST", f"/vendors/{made['Vendor 3']['id']}/archive/", {"reason": "A mistake."}, user="admin")

    # The name belongs to purchasing, the category to Normata, and who has archived a vendor has meant it.
    again = run(integrations, *listed(*range(1, 8)))
    assert (again.status, again.said) == (0, done(updated=1, unchanged=6))
    assert vendors(integrations)["Vendor 1"]["id"] == made["Vendor 1"]["id"]
    assert vendors(integrations)["Vendor 2"]["category"] == "CLOUD"
    assert "Vendor 3" not in vendors(integrations)

    # What leaves the list is archived, and restored when it is back.
    assert run(integrations, *listed(*range(2, 8))).said == done(unchanged=6, archived=1)
    assert "Vendor 1" not in vendors(integrations)
    events = integrations.events()
    assert run(integrations, *listed(*range(2, 8))).said == done(unchanged=6)
    assert integrations.events() == events
    assert run(integrations, *listed(*range(1, 8))).said == done(unchanged=6, restored=1)
    assert vendors(integrations)["Vendor 1"]["id"] == made["Vendor 1"]["id"]
    assert run(integrations, *listed(*range(1, 8))).said == done(unchanged=7)


def test_a_row_that_is_refused_keeps_its_vendor(integrations: Integrations) -> None:
    run(integrations, *listed(1, 2))
    bad = run(integrations, *listed(1, 2, 3, Website="ftp://vendor-1.example/"))
    assert (bad.status, len(bad.refused)) == (1, 1)
    assert bad.said.startswith("1 created, 0 updated, 1 unchanged, 0 restored, 0 archived, 1 refused")
    assert bad.refused[0].startswith("V-1: validation: website ")
    assert set(vendors(integrations)) == {"Vendor 1", "Vendor 2", "Vendor 3"}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (listed(1), "2 of 3 vendors would be archived, more than 1"),
        ([*listed(1, 2, 3), *listed(1)], "V-1 is there twice"),
        (listed(1, 2, 3, Name=""), "row 2: no Name"),
        ([], "no rows"),
    ],
)
def test_a_list_with_a_fault_changes_nothing(integrations: Integrations, lines: list[Any], why: str) -> None:
    run(integrations, *listed(1, 2, 3))
    events = integrations.events()
    faulty = run(integrations, *lines)
    assert (faulty.status, faulty.said) == (1, "")
    assert why in faulty.refused[0]
    assert integrations.events() == events


def test_a_viewer_is_refused(unchanged: Integrations) -> None:
    file: Path = unchanged.table("vendors.csv", listed(1), COLUMNS)
    refused = unchanged.run(PROGRAM, file, token=unchanged.token("viewer", "write"))
    assert (refused.status, refused.said) == (1, "")
    assert "403 forbidden" in refused.refused[0]
