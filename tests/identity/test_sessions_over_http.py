"""A user's own sessions, over the interface."""

from __future__ import annotations

from typing import Any

import pytest

from normata.identity.sessions import sessions
from tests import stored
from tests.databases import change, on_both
from tests.served import Served, refused, run_sql, served


@pytest.fixture
def instance(database_url: str) -> Any:
    """The application over the test world."""
    with served(database_url) as application:
        yield application


def begin(instance: Served, user: str, user_agent: str = "A browser") -> str:
    """The id of a new session of a user."""
    before = {row["id"] for row in stored.sessions(instance.database)}

    def work(unit: Any) -> str:
        return sessions.begin(unit, f"user-{user}", "link", address="192.0.2.7", user_agent=user_agent)

    change(instance.database, work)
    (row,) = (row for row in stored.sessions(instance.database) if row["id"] not in before)
    return str(row["id"])


def listed(instance: Served, headers: dict[str, str]) -> list[str]:
    """The ids of the sessions that a caller sees."""
    answer = instance.client.get("/me/sessions/", headers=headers)
    assert answer.status_code == 200
    return [item["id"] for item in answer.json()["items"]]


def test_the_list_has_ones_own_that_go_on(instance: Served) -> None:
    first, second, ended, idle, old = (begin(instance, "editor", f"Browser {number}") for number in range(5))
    begin(instance, "viewer")
    past = "'2026-01-01T00:00:00.000Z'"
    run_sql(
        instance.database,
        f"UPDATE session SET ended_at = {past} WHERE id = '{ended}'",
        f"UPDATE session SET last_used_at = {past} WHERE id = '{idle}'",
        f"UPDATE session SET expires_at = {past} WHERE id = '{old}'",
        f"UPDATE session SET last_used_at = '2999-01-01T00:00:00.000Z' WHERE id = '{first}'",
    )
    answer = instance.client.get("/me/sessions/", headers=instance.bearer("editor", scope="read")).json()
    assert [item["id"] for item in answer["items"]] == [first, second]
    assert answer["total"] == 2
    item = answer["items"][0]
    assert (item["userAgent"], item["address"], item["means"]) == ("Browser 0", "192.0.2.7", "link")
    assert "digest" not in answer["items"][0]


@on_both
def test_one_ends_ones_own_alone(instance: Served) -> None:
    own, other = begin(instance, "viewer"), begin(instance, "owner")
    headers = instance.bearer("viewer", scope="admin")
    refused(instance.client.delete(f"/me/sessions/{other}/", headers=headers), 404, "not_found")
    refused(instance.client.delete("/me/sessions/unknown/", headers=headers), 404, "not_found")
    ended = [instance.client.delete(f"/me/sessions/{own}/", headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in ended] == [200, 200]
    assert ended[0].json()["endedAt"] is not None
    assert ended[0].json() == ended[1].json()
    assert listed(instance, headers) == []
    assert listed(instance, instance.bearer("owner")) == [other]
    (event,) = stored.events(instance.database, entity_type="Session", user_id="user-viewer")
    assert (event["action"], event["entity_id"], event["organization_id"]) == ("end", own, None)
    assert "192.0.2.7" not in event["body"]


def test_it_takes_the_scope_admin(instance: Served) -> None:
    own = begin(instance, "viewer")
    headers = instance.bearer("viewer", scope="write")
    refused(instance.client.delete(f"/me/sessions/{own}/", headers=headers), 403, "forbidden")
    assert instance.client.delete(f"/me/sessions/{own}/").status_code == 401
    assert listed(instance, headers) == [own]


def test_a_narrowed_token_sees_none(instance: Served) -> None:
    own = begin(instance, "owner")
    headers = instance.bearer("owner", scope="admin", organization="org-alpha")
    assert listed(instance, headers) == []
    refused(instance.client.delete(f"/me/sessions/{own}/", headers=headers), 404, "not_found")
    assert listed(instance, instance.bearer("owner")) == [own]
