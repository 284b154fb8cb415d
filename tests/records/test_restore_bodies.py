"""Bodies of restores: an integration check takes one or none, the other kinds look at none."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import Response

from normata.records.base import Restorable
from normata.records.kinds import IntegrationCheck
from tests import stored
from tests.records.restoring import add_archived, archived, restore, written
from tests.served import Headers, Served, refused
from tests.world import ALPHA, BETA, record_id

pytestmark = pytest.mark.parametrize("shared_url", ["sqlite"], indirect=True)

JSON = {"Content-Type": "application/json"}
ARCHIVED_CHECK = record_id(IntegrationCheck, "archived")

GOOD_BODIES: dict[str, dict[str, Any]] = {
    "absent": {},
    "empty, with a content type": {"content": b"", "headers": JSON},
    "empty, with another content type": {"content": b"", "headers": {"Content-Type": "text/plain"}},
    "{}": {"json": {}},
    "the right organization": {"json": {"organizationId": ALPHA}},
    "null for the organization": {"json": {"organizationId": None}},
    "a content type with a charset": {"content": b"{}", "headers": {"Content-Type": "Application/JSON; charset=utf-8"}},
}


def send(service: Served, row_id: str, headers: Headers, sent: dict[str, Any]) -> Response:
    """The answer to the restore of an integration check with a body."""
    others = {name: value for name, value in sent.items() if name != "headers"}
    return restore(service, IntegrationCheck, row_id, headers | sent.get("headers", {}), **others)


@pytest.mark.parametrize("case", GOOD_BODIES)
def test_an_integration_check_takes_a_body_or_none(shared: Served, case: str) -> None:
    add_archived(shared, IntegrationCheck, f"check {case}")
    response = send(shared, f"check {case}", shared.bearer("editor"), GOOD_BODIES[case])
    assert response.status_code == 200, response.text
    assert response.content == b"null"
    assert stored.row(shared.database, IntegrationCheck, f"check {case}")["archived_at"] is None


BAD_BODIES: dict[str, tuple[dict[str, Any], int, str, str | None]] = {
    # what is sent, status, code, and the field that the fault names
    "another organization that exists": ({"json": {"organizationId": BETA}}, 404, "not_found", None),
    "another organization that does not": ({"json": {"organizationId": "org-gamma"}}, 404, "not_found", None),
    "a number for the organization": ({"json": {"organizationId": 7}}, 400, "validation", "organizationId"),
    "a list for the organization": ({"json": {"organizationId": [ALPHA]}}, 400, "validation", "organizationId"),
    "an empty organization": ({"json": {"organizationId": ""}}, 400, "validation", "organizationId"),
    "an organization that is too long": ({"json": {"organizationId": "x" * 256}}, 400, "validation", "organizationId"),
    "NUL in the organization": ({"json": {"organizationId": "org\0alpha"}}, 400, "validation", "organizationId"),
    "a form": ({"data": {"organizationId": ALPHA}}, 415, "unsupported_media_type", None),
}


@pytest.mark.parametrize("case", BAD_BODIES)
def test_an_integration_check_refuses_other_bodies(shared: Served, case: str) -> None:
    """What is refused of every body is in tests/core/http/test_every_refusal.py."""
    sent, status, code, field = BAD_BODIES[case]
    before = written(shared, IntegrationCheck)
    problem = refused(send(shared, ARCHIVED_CHECK, shared.bearer("editor"), sent), status, code)
    faults = [(fault["in"], fault["name"]) for fault in problem["errors"]]
    assert faults == ([] if field is None else [("body", field)])
    assert all(fault["message"] and fault["code"] for fault in problem["errors"])
    assert written(shared, IntegrationCheck) == before


def test_a_member_of_both_organizations_must_name_the_right_one(shared: Served) -> None:
    member = {"id": "check-both", "organizationId": BETA, "userId": "user-admin", "role": "admin"}
    shared.load({"memberships": [member], "integration-checks": [archived(IntegrationCheck, "check both")]})
    headers = shared.bearer("admin")
    refused(send(shared, "check both", headers, {"json": {"organizationId": BETA}}), 404, "not_found")
    assert send(shared, "check both", headers, {"json": {"organizationId": ALPHA}}).status_code == 200


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=kind.path) for kind in Restorable.kinds if kind is not IntegrationCheck]
)
def test_other_restores_ignore_a_body(shared: Served, kind: type[Restorable]) -> None:
    """They take none: whatever comes along, even another organization, is not looked at."""
    sent = {b'{"organizationId": "org-beta"}': "application/json", b"\xff{": "text/plain", b"x" * 100_000: "a/b"}
    for number, (content, media_type) in enumerate(sent.items()):
        add_archived(shared, kind, f"bodies-{number}")
        headers = shared.bearer("editor") | {"Content-Type": media_type}
        response = restore(shared, kind, f"bodies-{number}", headers, content=content)
        assert response.status_code == 200, response.text
