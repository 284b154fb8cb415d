"""The dialogues of providers, replayed on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.databases import on_both
from tests.scim import entra, okta
from tests.scim.dialogue import Exchange, replay
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


class Dialogue:
    """What a provider sends, one part after the other, and what the member is after each."""

    def __init__(self, service: Served, headers: Headers, person: str) -> None:
        self._service = service
        self._headers = headers
        self._person = person
        self._noted: dict[str, Any] = {}

    def after(self, exchanges: Sequence[Exchange]) -> dict[str, Any]:
        """The member once these requests were answered."""
        self._noted = replay(self._service, self._headers, exchanges, self._noted)
        return member(self._service, self._noted[self._person])


@on_both
def test_okta(service: Served, provider: Headers) -> None:
    dialogue = Dialogue(service, provider, "ines")
    found = dialogue.after(okta.PEOPLE)
    assert (found["role"], found["email"], found["removedAt"]) == ("viewer", "ines@alpha.example", None)
    assert found["name"] == "Ines Okonkwo-Bell"
    assert dialogue.after(okta.DEACTIVATED)["removedAt"] is not None
    assert dialogue.after(okta.REACTIVATED_AND_REPLACED)["removedAt"] is None
    assert dialogue.after(okta.GROUPS)["role"] == "editor"
    assert dialogue.after(okta.LEFT_THE_GROUP)["role"] == "viewer"
    assert dialogue.after(okta.RENAMED_AND_FILLED)["role"] == "auditor"
    assert dialogue.after(okta.DELETED)["role"] == "viewer"


@on_both
def test_entra(service: Served, provider: Headers) -> None:
    dialogue = Dialogue(service, provider, "tove")
    found = dialogue.after(entra.PEOPLE)
    assert (found["role"], found["email"], found["name"]) == ("viewer", "tove@alpha.example", "Tove Lind")
    assert dialogue.after(entra.DISABLED)["removedAt"] is not None
    assert dialogue.after(entra.ENABLED)["removedAt"] is None
    assert dialogue.after(entra.GROUPS)["role"] == "editor"
    assert dialogue.after(entra.LEFT_THE_GROUP)["role"] == "viewer"
    assert dialogue.after(entra.IN_AGAIN)["role"] == "admin"
    assert dialogue.after(entra.DELETED)["removedAt"] is not None
