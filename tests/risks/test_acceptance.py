"""A residual risk is accepted by its owner alone, and what they have accepted is what it is."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import Response

from normata.records.assurance import Risk
from tests import stored
from tests.records.living import change, make
from tests.served import Served, refused
from tests.world import ALPHA

_RATED = {"residualProbability": 3, "residualImpact": 4}


def _risk(service: Served, owner: str | None = "member-viewer", **values: Any) -> dict[str, Any]:
    answer = make(service, Risk, service.bearer("editor"), name="Flood", ownerId=owner, **_RATED | values)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def _accept(service: Served, risk_id: str, user: str = "viewer", **headers: str) -> Response:
    return service.client.post(f"/risks/{risk_id}/accept/", headers=service.bearer(user) | headers)


def test_its_owner_accepts_it_whatever_their_role(service: Served) -> None:
    risk = _risk(service)
    for user in ("editor", "admin", "owner", "auditor"):
        assert "owner of the risk" in refused(_accept(service, risk["id"], user), 403, "forbidden")["detail"]
    refused(_accept(service, risk["id"], "foreigner"), 404, "not_found")
    accepted = _accept(service, risk["id"]).json()
    moment = accepted["acceptedAt"]
    assert accepted == risk | {"acceptedAt": moment, "acceptedById": "member-viewer", "updatedAt": moment}
    last = stored.events(service.database, entity_id=risk["id"])[-1]
    assert (last["action"], last["user_id"]) == ("accept", "user-viewer")
    again = _accept(service, risk["id"]).json()
    assert again["acceptedAt"] >= moment


def test_what_nobody_can_accept(service: Served) -> None:
    refused(_accept(service, _risk(service, None)["id"], "owner"), 403, "forbidden")
    refused(_accept(service, _risk(service, residualImpact=None)["id"]), 409, "not_rated")
    risk = _risk(service)
    stale = _accept(service, risk["id"], **{"If-Match": '"another"'})
    refused(stale, 412, "precondition_failed")
    assert service.client.post(f"/risks/{risk['id']}/archive/", headers=service.bearer("editor")).status_code == 200
    refused(_accept(service, risk["id"]), 409, "archived")


def test_another_residual_value_ends_it_and_nothing_else_does(service: Served) -> None:
    editor = service.bearer("editor")
    risk = _accept(service, _risk(service)["id"]).json()
    other = {"name": "Floods", "targetImpact": 1, "inherentImpact": 5, "status": "MONITORED", **_RATED}
    assert change(service, Risk, risk["id"], editor, **other).json()["acceptedAt"] == risk["acceptedAt"]
    ended = change(service, Risk, risk["id"], editor, residualImpact=5).json()
    assert (ended["acceptedAt"], ended["acceptedById"]) == (None, None)
    _accept(service, risk["id"])
    many = {"organizationId": ALPHA, "records": [{"kind": "risks", "id": risk["id"]}]}
    body = many | {"values": {"residualProbability": None}}
    answer = service.client.post("/changes/", json=body, headers=editor)
    assert answer.status_code == 200, answer.text
    assert stored.row(service.database, Risk, risk["id"])["accepted_at"] is None


def test_whoever_has_accepted_it_can_hand_it_over(service: Served) -> None:
    """It says who has accepted it, whoever owns it now."""
    risk = _accept(service, _risk(service)["id"]).json()
    body = {"toMemberId": "member-editor", "kinds": ["risks"]}
    answer = service.client.post("/members/member-viewer/handover/", json=body, headers=service.bearer("admin"))
    assert answer.json() == {"records": {"risks": 1}, "more": False, "left": 0}
    row = stored.row(service.database, Risk, risk["id"])
    assert (row["owner_id"], row["accepted_by_id"]) == ("member-editor", "member-viewer")


@pytest.mark.parametrize("name", ["acceptedAt", "acceptedById"])
def test_nobody_writes_it_by_hand(name: str, service: Served) -> None:
    """What was read can be sent back; another value, also null, is refused, whoever sends it."""
    owner = service.bearer("owner")
    values = {"acceptedAt": "2026-01-01T00:00:00.000Z", "acceptedById": "member-owner"}
    fresh = make(service, Risk, owner, name="Flood", **{name: values[name]})
    [fault] = refused(fresh, 400, "validation")["errors"]
    assert (fault["name"], fault["code"]) == (name, "read_only")
    assert make(service, Risk, owner, name="Flood", **{name: None}).status_code == 201
    risk = _accept(service, _risk(service)["id"]).json()
    for value in (values[name], None):
        [fault] = refused(change(service, Risk, risk["id"], owner, **{name: value}), 400, "validation")["errors"]
        assert (fault["name"], fault["code"]) == (name, "read_only")
    assert change(service, Risk, risk["id"], owner, **{name: risk[name]}).json() == risk
    service.load({"risks": [risk | values | {"id": "loaded", "slug": "loaded", "shortId": 900}]})
    loaded = stored.row(service.database, Risk, "loaded")
    assert {name: loaded[name] for name in ("accepted_at", "accepted_by_id")} == {
        "accepted_at": values["acceptedAt"],
        "accepted_by_id": values["acceptedById"],
    }
