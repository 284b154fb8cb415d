"""An organization is named by its id or by its slug, in a query as in a body."""

from __future__ import annotations

import pytest

from normata.core.http.operation import ListOperation
from tests import world
from tests.core.http.samples import operations
from tests.listing import LISTS
from tests.served import Served, refused

CHECK = "integration-checks-archived-org-alpha"


@operations(lambda operation: operation in LISTS)
def test_a_slug_is_as_good_as_an_id(operation: ListOperation, shared: Served) -> None:
    headers = shared.bearer("editor")
    by_id, by_slug = (
        shared.client.get(operation.path, params={"organizationId": name}, headers=headers)
        for name in (world.ALPHA, "alpha")
    )
    assert by_id.status_code == by_slug.status_code == 200
    assert by_id.json() == by_slug.json()
    assert by_id.json()["total"] > 0


@operations(lambda operation: operation in LISTS)
@pytest.mark.parametrize("name", ["beta", "org-beta", "nowhere"])
def test_the_slug_of_another_organization_names_nothing(name: str, operation: ListOperation, shared: Served) -> None:
    answer = shared.client.get(operation.path, params={"organizationId": name}, headers=shared.bearer("editor"))
    refused(answer, 404, "not_found")


def test_an_id_comes_before_a_slug_of_the_same_spelling(service: Served) -> None:
    """Also where both are the caller's own."""
    service.load(
        {
            "organizations": [{"id": "org-gamma", "name": "Gamma", "slug": world.ALPHA}],
            "memberships": [
                {"id": "m-gamma", "organizationId": "org-gamma", "userId": "user-editor", "role": "viewer"},
                {"id": "m-gamma-2", "organizationId": "org-gamma", "userId": "user-nobody", "role": "viewer"},
            ],
        }
    )
    path = "/frameworks/"
    own = service.client.get(path, params={"organizationId": world.ALPHA}, headers=service.bearer("editor")).json()
    assert "fw-own" in {item["id"] for item in own["items"]}
    other = service.client.get(path, params={"organizationId": world.ALPHA}, headers=service.bearer("nobody")).json()
    assert "fw-own" not in {item["id"] for item in other["items"]}


@pytest.mark.parametrize(("name", "status"), [("alpha", 200), (world.ALPHA, 200), ("beta", 404), (world.BETA, 404)])
def test_in_a_body(name: str, status: int, service: Served) -> None:
    answer = service.client.post(
        f"/integration-checks/{CHECK}/restore/", json={"organizationId": name}, headers=service.bearer("editor")
    )
    assert answer.status_code == status
