"""The dialogues of providers, replayed on both databases."""

from __future__ import annotations

from typing import Any

from tests.databases import on_both
from tests.scim import okta
from tests.scim.dialogue import replay
from tests.served import Headers, Served
from tests.world import ALPHA


def member(service: Served, member_id: str) -> dict[str, Any]:
    """A member as the organization sees them."""
    response = service.client.get(
        f"/members/{member_id}/", params={"organizationId": ALPHA}, headers=service.bearer("viewer")
    )
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


@on_both
def test_okta(service: Served, provider: Headers) -> None:
    noted = replay(service, provider, okta.PEOPLE)

    def go_on(exchanges: Any) -> dict[str, Any]:
        noted.update(replay(service, provider, exchanges, noted))
        return member(service, noted["ines"])

    found = member(service, noted["ines"])
    assert (found["role"], found["email"], found["removedAt"]) == ("viewer", "ines@alpha.example", None)
    assert found["name"] == "Ines Okonkwo-Bell"
    assert go_on(okta.DEACTIVATED)["removedAt"] is not None
    assert go_on(okta.REACTIVATED_AND_REPLACED)["removedAt"] is None
    assert go_on(okta.GROUPS)["role"] == "editor"
    assert go_on(okta.LEFT_THE_GROUP)["role"] == "viewer"
    assert go_on(okta.RENAMED_AND_FILLED)["role"] == "auditor"
    assert go_on(okta.DELETED)["role"] == "viewer"
