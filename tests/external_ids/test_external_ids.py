"""Records by their ids in other systems: lists, removal and bundles."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from normata.bundle.dumping import dump
from normata.core.changes.source import FaultyInput
from normata.events.model import AuditEvent
from normata.external_ids.checking import external_id_faults
from normata.external_ids.model import ExternalId
from normata.records.base import Restorable
from tests import stored
from tests.external_ids.rows import external_id_row
from tests.served import Served, refused
from tests.world import ALPHA, BETA, record_id

each = pytest.mark.parametrize


def external_ids(service: Served, **query: Any) -> list[tuple[str, str]]:
    found = service.listing("/external-ids/").items(**query)
    return [(one["recordId"], one["externalId"]) for one in found]


def test_every_list_filters_by_external_id(service: Served) -> None:
    rows = [
        external_id_row(owner, f"{kind.path}-{state}-{owner}")
        | {"kind": kind.path, "recordId": record_id(kind, state, owner), "externalId": state, "source": "Tracker"}
        for kind in Restorable.kinds
        for state in ("live", "archived")
        for owner in (ALPHA, BETA)
    ]
    service.load({"externalIds": rows})
    for kind in Restorable.kinds:
        listing = service.listing(f"/{kind.path}/")
        key = {"externalSource": "Tracker", "externalId": "live"}
        assert listing.ids(**key) == [record_id(kind, "live")], kind.path
        assert listing.ids(**key, archived="only") == []
        both = key | {"externalId": ["live", "archived"], "archived": "include"}
        assert set(listing.ids(**both)) == {record_id(kind, state) for state in ("live", "archived")}
        for differs in ({"externalSource": "tracker"}, {"externalId": "LIVE"}, {"externalId": "live "}):
            assert listing.ids(**key | differs) == []
        for alone, value in key.items():
            problem = refused(listing.get(**{alone: value}), 400, "validation")
            assert "both externalSource and externalId" in problem["detail"]


def test_the_list_of_external_ids(service: Served) -> None:
    assert external_ids(service) == [(f"vendors-live-{ALPHA}", "4711")]
    assert external_ids(service, kind="tasks") == []
    assert external_ids(service, kind="vendors", id=[f"vendors-live-{ALPHA}", "other"]) != []
    assert external_ids(service, kind="vendors", id=f"vendors-live-{BETA}") == []
    refused(service.listing("/external-ids/").get(id="x"), 400, "validation")


def test_one_is_removed_and_its_record_stays(service: Served) -> None:
    path = f"/external-ids/external-id-{ALPHA}/"
    headers = {user: service.bearer(user) for user in ("editor", "viewer", "foreigner")}
    refused(service.client.delete(path, headers=headers["viewer"]), 403, "forbidden")
    refused(service.client.delete(path, headers=headers["foreigner"]), 404, "not_found")
    before = service.listing("/vendors/").page()
    assert service.client.delete(path, params={"dryRun": "true"}, headers=headers["editor"]).json()["status"] == 200
    assert external_ids(service) != []
    assert service.client.delete(path, headers=headers["editor"]).status_code == 200
    assert external_ids(service) == []
    assert service.listing("/vendors/").page() == before
    (event,) = (row for row in stored.rows(service.database, AuditEvent) if row["action"] == "remove_external_id")
    assert json.loads(event["body"])["counts"] == {"source": "erp", "externalId": "4711"}
    refused(service.client.delete(path, headers=headers["editor"]), 404, "not_found")


def test_one_of_an_archived_record_stays(service: Served) -> None:
    archived = external_id_row(ALPHA, "archived") | {"recordId": f"vendors-archived-{ALPHA}"}
    service.load({"externalIds": [archived]})
    refused(service.client.delete("/external-ids/archived/", headers=service.bearer("editor")), 409, "archived")


def test_a_check_finds_one_without_its_record(service: Served) -> None:
    assert service.database.read_now(lambda transaction: list(external_id_faults(transaction))) == []
    service.sql("UPDATE external_id SET record_id = 'gone' WHERE organization_id = 'org-beta'")
    assert service.database.read_now(lambda transaction: list(external_id_faults(transaction))) == [
        "the external id external-id-org-beta of organization org-beta is of a vendor that does not exist: gone"
    ]


def test_a_bundle_has_them_both_ways_unchanged(service: Served) -> None:
    def dumped() -> str:
        file = io.StringIO()
        service.database.read_now(lambda transaction: dump(transaction, ALPHA, file))
        return file.getvalue()

    once = dumped()
    bundle = json.loads(once)
    assert [row["externalId"] for row in bundle["externalIds"]] == ["4711"]
    service.load({"externalIds": bundle["externalIds"]})
    assert dumped() == once


@each(
    ("changed", "reason"),
    [
        ({"recordId": f"vendors-live-{BETA}"}, "names a vendor of another organization"),
        ({"recordId": "nothing"}, "names no vendor that exists"),
        ({"kind": "controls"}, "must be one of tasks"),
        ({"externalId": "4711"}, "is taken by the stored row"),
        ({"source": "e\nrp"}, "must have characters that can be seen"),
        ({"externalId": " "}, "must have characters that can be seen"),
        ({"source": "s" * 101}, "must have at most 100 characters"),
        ({"externalId": "i" * 256}, "must have at most 255 characters"),
    ],
)
def test_a_bundle_with_a_wrong_one_is_refused(service: Served, changed: dict[str, str], reason: str) -> None:
    with pytest.raises(FaultyInput) as raised:
        service.load({"externalIds": [external_id_row(ALPHA, "new") | changed]})
    assert [reason in fault.reason for fault in raised.value.faults] == [True]
    assert len(stored.rows(service.database, ExternalId)) == 2
