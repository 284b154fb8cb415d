"""What the token of a provider reaches: SCIM alone, and nobody who is erased."""

from __future__ import annotations

from normata.identity.model import Membership
from normata.identity.provisioning_model import ProvisionedPerson
from normata.operations import OPERATIONS
from tests import stored
from tests.cells import all_cells
from tests.core.http.samples import sample
from tests.databases import on_both
from tests.erasure import people
from tests.erasure.test_erasing import erased
from tests.scim.dialogue import send
from tests.scim.test_attacks import made, patched, person, refused
from tests.served import Headers, Served


def test_no_operation_is_for_a_provider(service: Served, provider: Headers) -> None:
    """Not even those that take no more than a user of the service, and whatever the request is about."""
    before = stored.everything(service.database)
    with all_cells() as at:
        for operation in OPERATIONS:
            with at(operation.operation_id):
                answer = sample(operation).send(service.client, provider)
                assert answer.status_code == 403, answer.text[:300]
    assert stored.everything(service.database) == before


@on_both
def test_somebody_who_is_erased_is_gone(service: Served, provider: Headers) -> None:
    """And whoever has the same address later is somebody else."""
    member_id = made(service, provider, people.ADDRESS, externalId="ann")
    user_id = stored.row(service.database, Membership, member_id)["user_id"]
    erased(service, user_id)
    assert stored.rows(service.database, ProvisionedPerson, user_id=user_id) == []
    refused(send(service, provider, "GET", f"/Users/{member_id}"), 404)
    back = {"op": "replace", "path": "active", "value": True}
    refused(patched(service, provider, f"/Users/{member_id}", back), 404)
    assert stored.row(service.database, Membership, member_id)["removed_at"] is not None
    again = send(service, provider, "POST", "/Users", person(people.ADDRESS, externalId="ann"))
    assert again.status_code == 201, again.text
    assert again.json()["id"] != member_id
