"""Numbers that have a scale, and addresses: what requests may write, and what stays that was loaded."""

from __future__ import annotations

from typing import Any

import pytest

from normata.records.kinds import Vendor
from tests import mostly_sqlite
from tests.cells import all_cells
from tests.databases import on_both
from tests.records.living import change, make, read
from tests.served import Served, refused
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

SCALES = ("inherentProbability", "inherentImpact", "residualProbability", "residualImpact")
REFUSED: tuple[tuple[str, Any], ...] = (
    *((name, value) for name in SCALES for value in (0, 0.99, 5.01, 6, -1, 1e9, "3", True)),
    *(
        ("contactEmail", value)
        for value in (
            "kim",
            "kim@",
            "@example.org",
            "k im@example.org",
            "mailto:kim",
            "<kim@x.example>x",
        )
    ),
    *(
        ("website", value)
        for value in (
            *("javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)"),
            *("data:text/html,x", "vbscript:x", "file:///etc/passwd", "ftp://example.org", "//example.org"),
            *("example.org", "https://", "https:///x", "http:example.org", "https://a b.example", "https://x:y/"),
            *("https://good.example\n", "https://user@bad.example", "https://x/\u202e", "h" * 1_001),
        )
    ),
)
TAKEN: tuple[tuple[str, Any], ...] = (
    *((name, value) for name in SCALES for value in (1, 5, 2.5, 4.999, None)),
    *(("contactEmail", value) for value in ("kim@example.org", "kim.o+x@müller.example", None)),
    *(
        ("website", value)
        for value in (
            *("https://example.org", "http://example.org:8080/a?b=c#d", "HTTPS://Example.org/", None),
            *("https://müller.example/ü", "https://[2001:db8::1]/x", "https://x.example/?next=javascript:alert(1)"),
        )
    ),
)


@on_both
def test_what_is_no_value_of_the_scale_and_no_address_is_refused(service: Served) -> None:
    headers = service.bearer("editor")
    vendor = make(service, Vendor, headers, name="Nimbus").json()
    with all_cells() as at:
        for name, value in REFUSED:
            with at(f"{name} {value!r}"):
                for answer in (
                    make(service, Vendor, headers, name="Other", **{name: value}),
                    change(service, Vendor, vendor["id"], headers, **{name: value}),
                ):
                    assert [fault["name"] for fault in refused(answer, 400, "validation")["errors"]] == [name]
    assert read(service, Vendor, vendor["id"], headers).json() == vendor


@on_both
def test_values_of_the_scale_and_addresses_are_stored_as_they_are(service: Served) -> None:
    headers = service.bearer("editor")
    vendor = make(service, Vendor, headers, name="Nimbus").json()
    with all_cells() as at:
        for name, value in TAKEN:
            with at(f"{name} {value!r}"):
                assert change(service, Vendor, vendor["id"], headers, **{name: value}).json()[name] == value
                assert make(service, Vendor, headers, name="Other", **{name: value}).json()[name] == value


@on_both
def test_what_was_loaded_stays_when_other_fields_change(service: Served) -> None:
    loaded = {"inherentProbability": 7, "residualImpact": 0.5, "website": "javascript:alert(1)", "contactEmail": "Kim"}
    service.load({"vendors": [{"id": "v1", "organizationId": ALPHA, "name": "Nimbus", **loaded}]})
    headers = service.bearer("editor")
    changed = change(service, Vendor, "v1", headers, name="Nimbus Grid", inherentImpact=2.5).json()
    assert {name: changed[name] for name in loaded} == loaded
    assert (changed["name"], changed["inherentImpact"]) == ("Nimbus Grid", 2.5)


@pytest.mark.long
def test_openapi_has_the_scale_where_it_is_written_and_not_where_it_is_read(service: Served) -> None:
    schemas = service.client.get("/openapi.json").json()["components"]["schemas"]
    for name in SCALES:
        for body in ("VendorCreation", "VendorPatch"):
            [number] = [one for one in schemas[body]["properties"][name]["anyOf"] if one["type"] == "number"]
            assert (number["minimum"], number["maximum"]) == (1, 5)
        [number] = [one for one in schemas["Vendor"]["properties"][name]["anyOf"] if one["type"] == "number"]
        assert "maximum" not in number
