"""Every list, report and explanation of coverage, and how those of two moments are compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.served import Headers, Served

Answers = dict[str, Any]


def answers(
    service: Served, headers: Headers, organization_id: str, frameworks: Iterable[str], moment: str | None = None
) -> Answers:
    """Every list, report and explanation of coverage, now or as of a moment; the status of one that is refused."""
    found: Answers = {}

    def ask(path: str, **query: str) -> Any:
        query = {"organizationId": organization_id, **query} | ({} if moment is None else {"asOf": moment})
        response = service.client.get(path, params=query, headers=headers)
        assert response.status_code in (200, 404), response.text
        found[f"{path} {sorted(query.items() - {('asOf', moment)})}"] = (
            response.json() if response.status_code == 200 else response.status_code
        )
        assert ("memento-datetime" in response.headers) == (moment is not None and response.status_code == 200)
        return response.json()

    controls = ask("/controls/")["items"]
    ask("/controls/", sortColumn="effectiveCoverageStatus", sortDirection="desc")
    ask("/controls/", limit="5", page="2")
    ask("/coverage/")
    ask("/coverage/", isInConflict="true")
    ask("/coverage/", isStale="true")
    ask("/coverage/", effectiveCoverageStatus="FULL", limit="5")
    ask("/frameworks/", adoptedOnly="true")
    for framework in frameworks:
        for report in ("coverage", "gaps", "statement-of-applicability"):
            ask(f"/frameworks/{framework}/{report}/")
    for control in controls:
        ask(f"/controls/{control['id']}/")
        ask(f"/controls/{control['id']}/coverage/")
    return found


def without(value: Any, *names: str) -> Any:
    """A JSON value without members of these names."""
    if isinstance(value, dict):
        return {name: without(one, *names) for name, one in value.items() if name not in names}
    return [without(one, *names) for one in value] if isinstance(value, list) else value


def of(answers: Answers, path: str, organization_id: str) -> Any:
    """The answer of a path without a further query."""
    return answers[f"{path} [('organizationId', '{organization_id}')]"]
