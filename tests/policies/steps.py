"""What the members of alpha do with a policy."""

from __future__ import annotations

from typing import Any

from httpx2 import Response

from normata.identity.tokens import tokens
from normata.records.kinds import Policy
from normata.wiring import changes_of
from tests import stored
from tests.records.living import change, make, read
from tests.served import Headers, Served
from tests.world import ALPHA

APPROVER = "member-viewer"
TEXT = "## Rule\n\nLock the door.\n\nKeep the key."


class Policies:
    """The policies of the world: made, changed, and taken through their steps."""

    def __init__(self, service: Served) -> None:
        self.service = service
        self._headers: dict[str, Headers] = {}

    def headers(self, user: str) -> Headers:
        """The header of a user."""
        if user not in self._headers:
            self._headers[user] = self.service.bearer(user)
        return self._headers[user]

    def hire(self, name: str) -> None:
        """Give the service account of the world the role of an editor, and a token, under a name."""
        self.service.sql(f"UPDATE membership SET role = 'editor' WHERE id = 'member-robot-{ALPHA}'")
        token = changes_of(self.service.database).make_now(
            lambda unit: tokens.create(unit, email=f"robot-{ALPHA}", scope="write", lifetime=None)
        )
        self.allow(name, token)

    def allow(self, name: str, token: str) -> None:
        """Use a token under a name."""
        self._headers[name] = {"Authorization": f"Bearer {token}"}

    def make(self, user: str = "admin", **values: Any) -> str:
        """A new draft, which a viewer is to approve; its id."""
        body = {"title": "Doors", "content": TEXT, "approverId": APPROVER} | values
        answer = make(self.service, Policy, self.headers(user), **body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def step(self, name: str, policy: str, user: str = "editor", *, query: Any = None, **body: Any) -> Response:
        """The answer to a step."""
        return self.service.client.post(
            f"/policies/{policy}/{name}/", json=body or None, params=query or {}, headers=self.headers(user)
        )

    def done(self, name: str, policy: str, user: str = "editor", **body: Any) -> Any:
        """The policy after a step that succeeds."""
        answer = self.step(name, policy, user, **body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def approved(self, policy: str, number: int = 1) -> Any:
        """The policy, once its draft is approved."""
        self.done("submit", policy)
        return self.done("approve", policy, "viewer", version=number)

    def published(self, policy: str, number: int = 1) -> Any:
        """The policy, once its draft is published."""
        self.approved(policy, number)
        return self.done("publish", policy)

    def draft(self, policy: str, method: str = "GET", user: str = "editor", **body: Any) -> Response:
        """The answer about the draft."""
        query = {"organizationId": ALPHA} if method == "GET" else {}
        return self.service.client.request(
            method, f"/policies/{policy}/draft/", params=query, json=body or None, headers=self.headers(user)
        )

    def versions(self, policy: str, **query: int) -> Any:
        """The approved versions, the newest first."""
        path = f"/policies/{policy}/versions/"
        answer = self.service.client.get(
            path, params={"organizationId": ALPHA, **query}, headers=self.headers("auditor")
        )
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    def read(self, policy: str) -> Any:
        """The policy as it is."""
        return read(self.service, Policy, policy, self.headers("editor")).json()

    def change(self, policy: str, user: str = "editor", **values: Any) -> Response:
        """The answer to a change of the policy itself."""
        return change(self.service, Policy, policy, self.headers(user), **values)

    def events(self, policy: str) -> list[str]:
        """The actions of the events of the policy."""
        return [event["action"] for event in stored.events(self.service.database, entity_id=policy)]
