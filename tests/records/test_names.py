"""What things are called, and how many records there are of each kind."""

from __future__ import annotations

from typing import Any

import pytest

from normata.records.base import Restorable
from tests import mostly_sqlite
from tests.databases import on_both_shared
from tests.listing import Listing
from tests.served import Served, refused
from tests.world import ALPHA, FURTHER, record_id

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


@pytest.fixture
def names(shared: Served) -> Listing:
    """The list of names, for a viewer."""
    return shared.listing("/names/")


def _named(listing: Listing, **query: Any) -> dict[str, Any]:
    return {item["id"]: item for item in listing.items(**query)}


@pytest.mark.parametrize("kind", Restorable.kinds, ids=lambda kind: kind.path)
@on_both_shared
def test_records_by_title(kind: type[Restorable], names: Listing) -> None:
    live = _named(names, kind=kind.path)
    every = _named(names, kind=kind.path, archived="include")
    states = {"live", *(("namesake",) if "slug" in kind.sql().c else ()), *FURTHER.get(kind, ())}
    assert live.keys() == {record_id(kind, state) for state in states}
    archived = every[record_id(kind, "archived")]
    assert archived == {
        "id": record_id(kind, "archived"),
        "label": f"{kind.words()} archived",
        "identifier": "1" if "short_id" in kind.sql().c else None,
        "isLive": False,
        "controlId": None,
    }


@on_both_shared
def test_members_by_the_ids_of_records_and_of_events(names: Listing) -> None:
    members = _named(names, kind="memberships")
    assert members["member-admin"]["label"] == "Admin"
    assert "member-foreigner" not in members
    others = members.keys() - _named(names, kind="people").keys()
    assert others == {"member-robot-org-alpha", "member-auditor"}  # neither is chosen as responsible
    assert [one["label"] for one in members.values()] == sorted(one["label"] for one in members.values())
    assert _named(names, kind="users")["user-admin"]["label"] == "Admin"
    assert _named(names, kind="memberships", search="ADMIN@alpha").keys() == {"member-admin"}
    assert (
        _named(names, kind="memberships", limit=5, page=2).keys().isdisjoint(_named(names, kind="memberships", limit=5))
    )


@on_both_shared
def test_controls_frameworks_and_statements(names: Listing) -> None:
    assert _named(names, kind="frameworks").keys() == {"fw-sun", "fw-moon", "fw-own"}
    assert "fw-star" in _named(names, kind="frameworks", archived="include")
    assert not _named(names, kind="frameworks", id="fw-foreign", archived="include")
    control = _named(names, kind="controls", id="moon.A.1")["moon.A.1"]
    assert (control["identifier"], control["label"], control["isLive"]) == ("A.1", "moon control 1", True)
    assert not _named(names, kind="controls", id="star.A.1")
    statement = _named(names, kind="controlCoverages", id="say-sun.A.1")["say-sun.A.1"]
    assert (statement["controlId"], statement["label"]) == ("sun.A.1", "sun control 1")
    assert not _named(names, kind="controlCoverages", id="say-foreign")


def test_those_with_an_id(names: Listing) -> None:
    wanted = ["tasks-live-org-alpha", "tasks-archived-org-alpha", "tasks-live-org-beta", "no-such"]
    assert _named(names, kind="tasks", id=wanted).keys() == {"tasks-live-org-alpha"}
    assert _named(names, kind="tasks", id=wanted, archived="include").keys() == set(wanted[:2])


def test_what_is_wrong_is_told(shared: Served) -> None:
    query: dict[str, Any] = {"organizationId": ALPHA, "kind": "audit_event", "id": [str(one) for one in range(101)]}
    answer = shared.client.get("/names/", params=query, headers=shared.bearer("viewer"))
    problem = refused(answer, 400, "validation")
    assert {fault["name"] for fault in problem["errors"]} == {"kind", "id"}


def test_each_kind_is_counted(shared: Served) -> None:
    answer = shared.client.get("/kinds/", params={"organizationId": ALPHA}, headers=shared.bearer("viewer"))
    found = {one["kind"]: one for one in answer.json()["items"]}
    assert found.keys() == {kind.path for kind in Restorable.kinds}
    for kind in Restorable.kinds:
        number = 2 if "slug" in kind.sql().c else 1
        assert found[kind.path] == {
            "kind": kind.path,
            "name": kind.plural(),
            "live": number + len(FURTHER.get(kind, ())),
            "archived": number,
        }
