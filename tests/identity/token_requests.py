"""What the tests of tokens over HTTP share: how they ask for them."""

from __future__ import annotations

from typing import Any

from httpx2 import Response

from normata.identity.tokens import tokens
from tests import stored
from tests.served import Headers, Served
from tests.world import ALPHA, BETA, TOKENS

OWN = "/me/tokens/"
WANTED = {"name": "Export", "scope": "read"}
IN_ALPHA, IN_BETA = {"organizationId": ALPHA}, {"organizationId": BETA}


def admin(service: Served, user: str = "admin", organization: str | None = None) -> Headers:
    """The header of a token that may manage tokens."""
    return service.bearer(user, scope="admin", organization=organization)


def guest_of_beta(service: Served, user: str = "editor") -> None:
    """Make a user of alpha a viewer of beta, too."""
    guest = {"id": f"guest-{user}", "organizationId": BETA, "userId": f"user-{user}", "role": "viewer"}
    service.load({"memberships": [guest]})


def make(service: Served, headers: Headers, **wanted: Any) -> dict[str, Any]:
    """A token of one's own, as it was answered."""
    response = service.client.post(OWN, json=WANTED | wanted, headers=headers)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


def bearer(made: dict[str, Any]) -> Headers:
    """The header with a token that was made."""
    return {"Authorization": f"Bearer {made['token']}"}


def id_of(service: Served, headers: Headers) -> str:
    """The id of the token of a header."""
    digest = tokens.digest(headers["Authorization"].removeprefix("Bearer "))
    (row,) = stored.tokens(service.database, digest=digest)
    return str(row["id"])


def account(service: Served, user: str = "admin", organization: str = ALPHA, role: str = "editor") -> str:
    """The id of a new service account."""
    body = {"organizationId": organization, "name": "Inventory", "role": role}
    response = service.client.post("/service-accounts/", json=body, headers=admin(service, user))
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def sees(service: Served, headers: Headers, organization: str) -> bool:
    """Whether a token reaches an organization: 200 or 404."""
    response = service.client.get("/frameworks/", params={"organizationId": organization}, headers=headers)
    assert response.status_code in (200, 404)
    return response.status_code == 200


def listed(response: Response) -> list[str]:
    """The ids of the tokens in a list, but for those of the world."""
    assert response.status_code == 200, response.text
    assert response.json()["total"] == len(response.json()["items"])
    return [item["id"] for item in response.json()["items"] if item["id"] not in TOKENS]
